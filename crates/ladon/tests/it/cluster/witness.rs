//! Two servers with the data, and a witness.

use super::{Nodes, quorum, told};
use crate::common::{ladon, until};
use crate::iproto::client::{Iproto, array, int, text};
use crate::live::{bulk, call, error, ok};
use ladon_iproto::Request;
use ladon_iproto::request::{Put, SpaceRef};
use ladon_resp::client::Value;
use nix::sys::signal::Signal;
use std::thread::sleep;
use std::time::Duration;

const NO_DATA: &str =
    "CLUSTERDOWN This node is a witness: it votes and has no data; ask another member";

/// The witness.
const W: usize = 2;

impl Nodes {
    /// The third of three is a witness.
    fn with_witness() -> Nodes {
        let nodes = Nodes::start(3);
        nodes.form_with_witness();
        nodes
    }

    fn form_with_witness(&self) {
        let addresses = [0, 1, W].map(|node| self.address(node));
        let [a, b, w] = addresses.each_ref().map(|address| &address[..]);
        let words = ["create", "--shards", "1", "--replicas", "1", "--timeout", "90", a, b, w];
        let ran = self.cluster(&words);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stdout.matches("  witness  ").count(), 1, "{}", ran.stdout);
        assert_eq!(ran.stdout.matches("  follower  ").count(), 1, "{}", ran.stdout);
    }

    /// Kills it, and returns the one that leads then.
    fn lose(&mut self, node: usize) -> usize {
        self.kill(node);
        self.leader(&[1 - node])
    }
}

#[test]
fn either_of_two_with_data_goes_and_nothing_is_lost() {
    let mut nodes = Nodes::with_witness();
    nodes.fill(0, |_, _| {});
    let mut count = 0;
    // Each of them goes, and is back before the other one goes.
    for round in 0..4 {
        let leader = nodes.leader(&[0, 1]);
        let mut client = nodes.client(leader);
        quorum(&mut client);
        for _ in 0..20 {
            count += 1;
            assert_eq!(call(&mut client, &["INCR", "count"]), Value::Integer(count));
        }
        let next = nodes.lose(leader);
        let mut client = nodes.client(next);
        quorum(&mut client);
        assert_eq!(call(&mut client, &["GET", "count"]), bulk(&count.to_string()), "{round}");
        nodes.set_last(&count.to_string());
        if round == 2 {
            nodes.kill(W);
            nodes.launch(W, "a secret");
        }
        nodes.launch(leader, "a secret");
        nodes.shows_all(leader, &count.to_string());
    }
    (0..3).for_each(|node| nodes.kill(node));
    (0..3).for_each(|node| nodes.launch(node, "a secret"));
    nodes.leader(&[0, 1]);
    (0..2).for_each(|node| nodes.shows_all(node, &count.to_string()));
    assert_eq!(call(&mut nodes.client(W), &["DBSIZE"]), error(NO_DATA));
}

#[test]
fn a_witness_has_no_data_for_anybody() {
    let nodes = Nodes::with_witness();
    nodes.fill(0, |_, _| {});
    let mut client = nodes.client(W);
    for words in [
        &["GET", "key:1"][..],
        &["SET", "key:1", "x"],
        &["KEYS", "*"],
        &["DBSIZE"],
        &["SYNC"],
        &["LADON.BACKUP", "BEGIN"],
        &["EVAL", "return 1", "0"],
        &["FLUSHALL"],
    ] {
        assert_eq!(call(&mut client, words), error(NO_DATA), "{words:?}");
    }
    assert_eq!(call(&mut client, &["PING"]), Value::Simple("PONG".into()));
    assert_eq!(call(&mut client, &["MULTI"]), ok());
    assert_eq!(call(&mut client, &["GET", "a"]), error(NO_DATA));
    assert!(told(&call(&mut client, &["EXEC"])).starts_with("EXECABORT"));
    let mut iproto = Iproto::connect(nodes.iproto_port(W));
    iproto.log_in("admin", "a word").expect("logs in");
    let tuple = &array(&[text("name"), int(1)])[..];
    let put = Request::Replace(Put { space: SpaceRef::Id(272), tuple });
    let (_, refused) = iproto.ask(&put).expect_err("it is a witness");
    assert!(refused.contains("it is a witness of its cluster"), "{refused}");
    assert_eq!(nodes.fact(W, "role").as_deref(), Some("witness"));
    // Nobody counts it for a copy, nor is sent there.
    let mut leader = nodes.client(nodes.leader(&[0, 1]));
    assert_eq!(call(&mut leader, &["SET", "last", "1"]), ok());
    assert_eq!(call(&mut leader, &["WAIT", "1", "0"]), Value::Integer(1));
    assert_eq!(call(&mut leader, &["WAIT", "2", "200"]), Value::Integer(1));
    let info = call(&mut leader, &["INFO", "replication"]);
    let info = String::from_utf8_lossy(info.as_bytes().expect("text")).into_owned();
    assert!(info.contains("connected_slaves:1\r\n"), "{info}");
    let Value::Array(replicas) = call(&mut leader, &["SENTINEL", "REPLICAS", "mymaster"]) else {
        panic!("no list");
    };
    assert_eq!(replicas.len(), 1);
    let Value::Array(sentinels) = call(&mut leader, &["SENTINEL", "SENTINELS", "mymaster"]) else {
        panic!("no list");
    };
    assert_eq!(sentinels.len(), 2);
    for to in [nodes.address(W), nodes.fact(W, "member").expect("it answers")] {
        let lead = nodes.cluster(&["failover", &nodes.address(0), &to]);
        let is_told = lead.stderr.contains("no such voting member that has data");
        assert_eq!((lead.code, is_told), (3, true), "{}", lead.stderr);
    }
}

#[test]
fn what_a_witness_alone_has_comes_to_the_other_before_that_leads() {
    let mut nodes = Nodes::with_witness();
    let leader = nodes.leader(&[0, 1]);
    let other = 1 - leader;
    nodes.fill(leader, |_, _| {});
    nodes.set_last("0");
    nodes.shows_all(other, "0");
    nodes.signal(other, Signal::SIGSTOP);
    nodes.set_last("1");
    let mut client = nodes.client(leader);
    quorum(&mut client);
    assert_eq!(call(&mut client, &["RPUSH", "list", "a", "b"]), Value::Integer(2));
    // Whoever comes back lacks it, so that nobody votes for it, and the witness' own data is none.
    nodes.kill(leader);
    nodes.signal(other, Signal::SIGCONT);
    assert_eq!(nodes.leader(&[other]), other);
    let mut client = nodes.client(other);
    quorum(&mut client);
    assert_eq!(call(&mut client, &["LLEN", "list"]), Value::Integer(2));
    nodes.shows_all(other, "1");
    assert!(nodes.log(W).contains("is to lead"), "{}", nodes.log(W));
    assert_eq!(nodes.fact(W, "role").as_deref(), Some("witness"));
    nodes.launch(leader, "a secret");
    nodes.set_last("2");
    nodes.shows_all(leader, "2");
}

#[test]
fn a_witness_gets_the_log_and_not_the_data_from_before() {
    let mut nodes = super::with_data_from_before(true);
    nodes.form_with_witness();
    nodes.set_last("1");
    (0..2).for_each(|node| nodes.shows_all(node, "1"));
    // Its own checkpoints, and starts from them.
    for last in ["2", "3"] {
        until("a checkpoint", || {
            let begun = nodes.client(W).call(&["BGSAVE"]).ok()?;
            matches!(begun, Value::Simple(_)).then_some(())
        });
        sleep(Duration::from_millis(300));
        nodes.kill(W);
        nodes.launch(W, "a secret");
        nodes.set_last(last);
        let leader = nodes.leader(&[0, 1]);
        let next = nodes.lose(leader);
        nodes.shows_all(next, last);
        nodes.launch(leader, "a secret");
        nodes.shows_all(leader, last);
    }
    let checkpoint = std::fs::read_dir(nodes.data(W)).expect("a folder").find_map(|file| {
        let path = file.expect("a file").path();
        path.extension().is_some_and(|it| it == "checkpoint").then_some(path)
    });
    let bytes = std::fs::read(checkpoint.expect("it has one")).expect("a file");
    let has_values = bytes.windows(40).any(|part| part.iter().all(|&byte| byte == b'v'));
    assert!(!has_values, "{} bytes of a checkpoint without data", bytes.len());
    // Its directory is good for nothing else.
    nodes.kill(W);
    let dir = nodes.data(W);
    let dir = dir.to_str().expect("a name");
    let ran = nodes.cluster(&["recover", dir]);
    let is_told = ran.stderr.contains("is a witness's directory");
    assert_eq!((ran.code, is_told), (3, true), "{}", ran.stderr);
    let file = nodes.dir.path().join("w.rdb");
    let ran = ladon(&["export", "--data", dir, file.to_str().expect("a name")]);
    assert!(ran.code != 0 && ran.stderr.contains("is a witness's directory"), "{}", ran.stderr);
}

#[test]
fn witnesses_come_and_go() {
    let mut nodes = Nodes::start(4);
    nodes.form_with_witness();
    nodes.fill(nodes.leader(&[0, 1]), |_, _| {});
    let counts = nodes.cluster(&[
        "create",
        "--replicas",
        "2",
        &nodes.address(0),
        &nodes.address(1),
        &nodes.address(2),
        &nodes.address(3),
    ]);
    let is_told = counts.stderr.contains("3 nodes with data need no witness");
    assert_eq!((counts.code, is_told), (2, true), "{}", counts.stderr);
    // Another one in its place is a witness too.
    let ran = nodes.cluster(&[
        "replace-node",
        "--timeout",
        "90",
        &nodes.address(0),
        &nodes.address(W),
        &nodes.address(3),
    ]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stdout.matches("  witness  ").count(), 1, "{}", ran.stdout);
    nodes.kill(W);
    assert_eq!(call(&mut nodes.client(3), &["GET", "key:1"]), error(NO_DATA));
    nodes.set_last("1");
    let leader = nodes.leader(&[0, 1]);
    let next = nodes.lose(leader);
    nodes.shows_all(next, "1");
    nodes.launch(leader, "a secret");
    // A third one with data in the place of the witness.
    std::fs::remove_dir_all(nodes.data(W)).expect("it was there");
    nodes.launch(W, "a secret");
    let ran = nodes.cluster(&["add-node", "--timeout", "90", &nodes.address(0), &nodes.address(W)]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let ran = nodes.cluster(&["remove-node", &nodes.address(0), &nodes.address(3)]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    nodes.set_last("2");
    (0..3).for_each(|node| nodes.shows_all(node, "2"));
}

#[test]
fn who_joined_as_something_else_than_it_was_added_takes_no_part() {
    let nodes = Nodes::start(2);
    nodes.form(1);
    let id = || nodes.fact(0, "cluster").filter(|id| !id.is_empty());
    let status = until("a cluster", id);
    let mesh = nodes.fact(1, "address").expect("it answers");
    assert_eq!(call(&mut nodes.client(1), &["LADON.CLUSTER", "JOIN", &status, "9"]), bulk("OK"));
    let words = ["LADON.CLUSTER", "ADD", "9", &mesh, &nodes.address(1), "WITNESS"];
    assert_eq!(call(&mut nodes.client(0), &words), bulk("OK"));
    until("what is wrong", || {
        let stopped = nodes.fact(1, "stopped")?;
        stopped.contains("joined as a witness and was added as a member with data").then_some(())
    });
    let words = ["LADON.CLUSTER", "JOIN", &status, "10", "REPLICA"];
    assert_eq!(told(&call(&mut nodes.client(0), &words)), "ERR syntax error");
}
