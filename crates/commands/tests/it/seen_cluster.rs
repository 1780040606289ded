//! What clients of Redis see of a node in a cluster.

use crate::common::{TestClient, TestNode, check_on};
use ladon_kernel::cluster::{Cluster, MemberView, Order, Orders, View};
use ladon_kernel::leader_reads::{LeaderRead, Unanswered};
use ladon_kernel::request::outcome::Flow;
use ladon_kernel::role::Role;
use ladon_record::{Gate, Lsn};
use std::sync::Arc;
use std::time::Duration;

struct Made(View, Orders);

impl Cluster for Made {
    fn view(&self) -> View {
        self.0.clone()
    }

    fn orders(&self) -> &Orders {
        &self.1
    }

    fn order(&self, order: Order) -> Result<String, String> {
        Err(format!("{order:?}"))
    }
}

fn node(member: u64, leader: Option<u64>, role: Role) -> TestNode {
    let leads = leader == Some(member);
    let of = |id: u64| MemberView {
        id,
        client: format!("10.0.0.{id}:6379"),
        votes: true,
        has: leads.then_some(Lsn(100 - id)),
        silent: leads.then_some(Duration::from_secs(id - 1)),
        ..MemberView::default()
    };
    let view = View {
        cluster: "c".repeat(32),
        member,
        term: 7,
        leader,
        members: (1..=3).map(of).collect(),
        end: Lsn(100),
        committed: Lsn(99),
        applied: Lsn(98),
        heard_leader: (!leads).then_some(Duration::from_secs(2)),
        ..View::default()
    };
    TestNode::in_cluster(Arc::new(Made(view, Orders::default())), role)
}

#[test]
fn a_leader_is_a_master() {
    check_on(
        &node(1, Some(1), Role::Leads),
        r#"
        ROLE => ["master" :100 [["10.0.0.2" "6379" "98"] ["10.0.0.3" "6379" "97"]]]
        SENTINEL get-master-addr-by-name mymaster => ["10.0.0.1" "6379"]
        SENTINEL get-master-addr-by-name other => nil-array
        SENTINEL myid => "cccccccccccccccccccccccccccccccc00000001"
        SENTINEL ckquorum mymaster => +OK 3 usable Sentinels. Quorum and failover authorization can be reached
        SENTINEL master other => -ERR No such master with that name
        "#,
    );
}

#[test]
fn a_follower_is_a_replica() {
    let node = node(2, Some(1), Role::Follows);
    check_on(
        &node,
        r#"
        ROLE => ["slave" "10.0.0.1" :6379 "connected" :98]
        SENTINEL get-master-addr-by-name mymaster => ["10.0.0.1" "6379"]
        WAIT 1 10 => -ERR WAIT cannot be used with replica instances
        WAITAOF 0 1 10 => -ERR WAITAOF cannot be used with replica instances
        "#,
    );
}

#[test]
fn without_a_leader_no_master_is_known() {
    check_on(
        &node(2, None, Role::Follows),
        r#"
        ROLE => ["slave" "" :0 "connect" :98]
        SENTINEL get-master-addr-by-name mymaster => nil-array
        SENTINEL masters => []
        SENTINEL ckquorum mymaster => -NOQUORUM this node does not hear a leader of its cluster
        "#,
    );
}

#[test]
fn outside_clusters_there_is_no_sentinel() {
    let node = TestNode::new();
    let mut client = node.client();
    for (words, shown) in
        [(&[b"SENTINEL".as_slice()][..], ""), (&[b"sentinel", b"masters"], "'masters' ")]
    {
        let (reply, _) = node.request(&mut client, words);
        let name = words[0].escape_ascii();
        let expected = format!("unknown command '{name}', with args beginning with: {shown}");
        assert_eq!(String::from_utf8(reply).unwrap(), format!("-ERR {expected}\r\n"));
    }
}

#[test]
fn info_has_the_fields_in_order() {
    let lines = |node: &TestNode| {
        let mut client = node.client();
        let (reply, _) = node.request(&mut client, &[b"INFO", b"replication"]);
        let text = String::from_utf8(reply).unwrap();
        let lines = text.lines().filter(|line| line.contains(':') && !line.contains("backlog"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let id = format!("{}00000007", "c".repeat(32));
    let ids = |offset: u64| {
        vec![
            "master_failover_state:no-failover".to_owned(),
            format!("master_replid:{id}"),
            format!("master_replid2:{}", "0".repeat(40)),
            format!("master_repl_offset:{offset}"),
            "second_repl_offset:-1".to_owned(),
        ]
    };
    let mut expected: Vec<String> = [
        "role:master",
        "connected_slaves:2",
        "slave0:ip=10.0.0.2,port=6379,state=online,offset=98,lag=1",
        "slave1:ip=10.0.0.3,port=6379,state=online,offset=97,lag=2",
    ]
    .map(str::to_owned)
    .into();
    expected.extend(ids(100));
    assert_eq!(lines(&node(1, Some(1), Role::Leads)), expected);
    let mut expected: Vec<String> = [
        "role:slave",
        "master_host:10.0.0.1",
        "master_port:6379",
        "master_link_status:up",
        "master_last_io_seconds_ago:2",
        "master_sync_in_progress:0",
        "slave_read_repl_offset:100",
        "slave_repl_offset:98",
        "slave_priority:100",
        "slave_read_only:1",
        "replica_announced:1",
        "connected_slaves:0",
    ]
    .map(str::to_owned)
    .into();
    expected.extend(ids(100));
    assert_eq!(lines(&node(3, Some(1), Role::Follows)), expected);
}

#[test]
fn reads_at_quorum_wait_for_the_leaders_position() {
    let node = node(2, Some(1), Role::Follows);
    let mut client = node.client();
    client.session.gate = Some(Gate::Quorum);
    let waits = |client: &mut TestClient, line: &str| {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        matches!(node.request(client, &args).1.flow, Flow::AwaitsLeader)
    };
    // There is nobody to ask.
    assert!(node.run(&mut client, "GET a").starts_with("-NOQUORUM This node is a replica"));
    node.node.leader_reads.asks_with(Arc::new(|| ()));
    assert!(waits(&mut client, "GET a"));
    assert!(waits(&mut client, "EVAL_RO 1 0"));
    let told = node.run(&mut client, "SET a 1");
    assert!(told.starts_with("-READONLY"), "{told}");
    assert_eq!(node.run(&mut client, "PING"), "+PONG");
    // What is queued reads nothing yet.
    assert_eq!(node.run(&mut client, "MULTI"), "+OK");
    assert_eq!(node.run(&mut client, "GET a"), "+QUEUED");
    assert!(waits(&mut client, "EXEC"));
    let epoch = node.node.leader_reads.epoch();
    client.local.leader_read = LeaderRead::Granted(epoch);
    assert_eq!(node.run(&mut client, "EXEC"), "[nil]");
    let depends = node.request(&mut client, &[b"GET", b"a"]).1.depends;
    assert_eq!(depends, Lsn::ZERO, "it waits for nothing more");
    // The node led meanwhile.
    node.node.leader_reads.begin_epoch();
    assert!(waits(&mut client, "GET a"));
    for (why, told) in [
        (Unanswered::Late, "-NOQUORUM The leader was not heard"),
        (Unanswered::Unknown, "-NOQUORUM The leader is of a version"),
    ] {
        client.local.leader_read = LeaderRead::Refused(why);
        let shown = node.run(&mut client, "GET a");
        assert!(shown.starts_with(told), "{shown}");
    }
    assert_eq!(node.run(&mut client, "CLIENT GATE write"), "+OK");
    assert_eq!(node.run(&mut client, "GET a"), "nil");
}
