//! Reads at the gate `quorum` at a node that follows.

use super::{Nodes, quorum, told};
use crate::common::until;
use crate::http::Http;
use crate::iproto::client::{Iproto, Refusal, array, int, map, text};
use crate::live::{bulk, call, error, ok};
use crate::memcached::Memcached;
use ladon_crash::Client;
use ladon_iproto::Request;
use ladon_iproto::request::{Execute, Put, SpaceRef, Statement};
use ladon_resp::client::{Value, write_request};
use nix::sys::signal::Signal;
use std::time::Duration;

const LATE: &str = "NOQUORUM The leader was not heard, or this node did not catch up with it, within \
                    failover-timeout";

impl Nodes {
    /// Three, the leader first.
    fn three(&self) -> [usize; 3] {
        let leader = self.leader(&[0, 1, 2]);
        [leader, (leader + 1) % 3, (leader + 2) % 3]
    }

    /// Waits until a read at quorum is answered: what leads may not know yet that it does, or that it
    /// does no more.
    fn read(&self, node: usize, key: &str) -> Value {
        until("an answer at quorum", || {
            let answer = self.at_quorum(node).call(&["GET", key]).ok()?;
            let text = told(&answer);
            let is_refused = text.starts_with("NOQUORUM") || text.starts_with("UNKNOWNOUTCOME");
            (!is_refused).then_some(answer)
        })
    }

    /// Stops a node, and waits until no thread of it runs any more.
    fn stop(&self, node: usize) {
        self.signal(node, Signal::SIGSTOP);
        let tasks = format!("/proc/{}/task", self.running[node].as_ref().expect("it runs").id());
        let is_stopped = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        };
        until("a stop", || {
            let mut tasks = std::fs::read_dir(&tasks).ok()?.flatten();
            tasks.all(is_stopped).then_some(())
        });
    }

    fn at_quorum(&self, node: usize) -> Client {
        let mut client = self.client(node);
        quorum(&mut client);
        client
    }
}

#[test]
fn followers_show_at_quorum_what_was_just_written() {
    let nodes = Nodes::start(3);
    nodes.form(3);
    let [leader, one, other] = nodes.three();
    let mut writer = nodes.at_quorum(leader);
    let mut readers = [one, other].map(|node| nodes.at_quorum(node));
    for count in 1..=60 {
        let value = count.to_string();
        assert_eq!(call(&mut writer, &["SET", "a", &value]), ok());
        let reader = &mut readers[count % 2];
        assert_eq!(call(reader, &["GET", "a"]), bulk(&value));
    }
    let [reader, second] = &mut readers;
    // All of a pipeline, a transaction and a script.
    let mut bytes = Vec::new();
    let requests: [&[&str]; 6] = [
        &["GET", "a"],
        &["MULTI"],
        &["MGET", "a", "b"],
        &["EXEC"],
        &["EVAL_RO", "return redis.call('GET', KEYS[1])", "1", "a"],
        &["SET", "a", "x"],
    ];
    requests.iter().for_each(|request| write_request(&mut bytes, request));
    reader.send(&bytes).expect("sends");
    let both = Value::Array(vec![bulk("60"), Value::Null]);
    for expected in [
        bulk("60"),
        ok(),
        Value::Simple("QUEUED".into()),
        Value::Array(vec![both]),
        bulk("60"),
        error(super::READ_ONLY),
    ] {
        assert_eq!(reader.reply().expect("a reply"), expected);
    }
    // Who waits gets what comes.
    second.request(&["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]).expect("asks");
    until("a client that waits", || {
        let info = call(&mut nodes.client(other), &["INFO", "clients"]);
        let text = String::from_utf8_lossy(info.as_bytes()?).into_owned();
        text.contains("blocked_clients:1").then_some(())
    });
    assert_eq!(call(&mut writer, &["XADD", "s", "1-1", "f", "v"]), bulk("1-1"));
    let list = |values: &[Value]| Value::Array(values.to_vec());
    let entry = list(&[bulk("1-1"), list(&[bulk("f"), bulk("v")])]);
    let heard = list(&[list(&[bulk("s"), list(&[entry])])]);
    assert_eq!(second.reply().expect("an entry"), heard);
    assert_eq!(call(second, &["XLEN", "s"]), Value::Integer(1));
}

#[test]
fn followers_do_not_answer_at_quorum_without_the_leader() {
    let nodes = Nodes::start(3);
    nodes.form(3);
    let [leader, one, other] = nodes.three();
    let mut writer = nodes.at_quorum(leader);
    assert_eq!(call(&mut writer, &["SET", "a", "1"]), ok());
    let mut reader = nodes.at_quorum(one);
    assert_eq!(call(&mut reader, &["GET", "a"]), bulk("1"));
    // Nobody leads: the wait ends, and others are served meanwhile.
    nodes.stop(leader);
    nodes.stop(other);
    let mut bytes = Vec::new();
    (0..3).for_each(|_| write_request(&mut bytes, &["GET", "a"]));
    reader.send(&bytes).expect("sends");
    let mut lax = nodes.client(one);
    assert_eq!(call(&mut lax, &["GET", "a"]), bulk("1"));
    for _ in 0..3 {
        assert_eq!(reader.reply().expect("a reply"), error(LATE));
    }
    // Another one leads, and the one that was stopped knows nothing of it.
    nodes.signal(other, Signal::SIGCONT);
    let next = nodes.leader(&[one, other]);
    assert_eq!(nodes.read(next, "a"), bulk("1"));
    assert_eq!(call(&mut nodes.at_quorum(next), &["SET", "a", "2"]), ok());
    assert_eq!(nodes.read(one + other - next, "a"), bulk("2"));
    nodes.signal(leader, Signal::SIGCONT);
    assert_eq!(nodes.read(leader, "a"), bulk("2"));
}

#[test]
fn tuples_are_read_at_quorum_from_followers() {
    let nodes = Nodes::start_at(3, "quorum");
    nodes.form(3);
    let [leader, one, _] = nodes.three();
    let [mut writer, mut reader] = [leader, one].map(|node| {
        let mut client = Iproto::connect(nodes.iproto_port(node));
        client.log_in("admin", "a word").expect("logs in");
        client
    });
    for count in 1..=20 {
        let tuple = &array(&[text("name"), int(count)])[..];
        let put = Put { space: SpaceRef::Id(272), tuple };
        writer.ask(&Request::Replace(put)).expect("it leads");
        let shown = reader.select(272, 0, &array(&[text("name")]));
        assert_eq!(shown, [array(&[text("name"), int(count)])]);
    }
    let space = SpaceRef::Id(272);
    let tuple = &array(&[text("name"), int(1)])[..];
    let refused = reader.ask(&Request::Replace(Put { space, tuple })).expect_err("it follows");
    assert_eq!((refused.0, refused.1.contains("read-only instance")), (7, true), "{refused:?}");
}

/// A node's clients of the other protocols, all at its default gate.
struct Doors {
    memcached: Memcached,
    http: Http,
    iproto: Iproto,
}

impl Doors {
    fn of(nodes: &Nodes, node: usize) -> Doors {
        let mut iproto = Iproto::connect(nodes.iproto_port(node));
        iproto.log_in("admin", "a word").expect("logs in");
        let memcached = Memcached::connect(nodes.memcached_port(node));
        Doors { memcached, http: Http::connect(nodes.http_port(node)), iproto }
    }

    /// Makes a persistent function, in Tarantool's words for it.
    fn define(&mut self, name: &str, body: &str) {
        let (no, now) = (vec![0xc2], text("2026-11-29 00:00:00"));
        let fields = [
            int(100),
            int(1),
            text(name),
            int(0),
            text("LUA"),
            text(body),
            text("function"),
            array(&[]),
            text("any"),
            text("none"),
            text("none"),
            no.clone(),
            no,
            vec![0xc3],
            array(&[text("LUA")]),
            map(&[]),
            text(""),
            now.clone(),
            now,
        ];
        self.iproto.insert(296, &array(&fields));
    }

    fn sql(&mut self, text: &str) -> Result<Vec<Vec<u8>>, Refusal> {
        let statement = Statement::Text(text.as_bytes());
        self.iproto.ask(&Request::Execute(Execute { statement, bind: None }))
    }
}

#[test]
fn every_protocol_reads_at_quorum_from_followers() {
    let nodes = Nodes::start_at(3, "quorum");
    nodes.form(3);
    let [leader, one, other] = nodes.three();
    let (mut writer, mut at_leader) = (nodes.client(leader), Doors::of(&nodes, leader));
    at_leader.sql("CREATE TABLE t (id INT PRIMARY KEY, n INT)").expect("it leads");
    at_leader.sql("INSERT INTO t VALUES (1, 0)").expect("it leads");
    at_leader.define("get", "function() return box.space.T:get(1)[2] end");
    let mut doors = [one, other].map(|node| Doors::of(&nodes, node));
    for count in 1..=30 {
        assert_eq!(call(&mut writer, &["SET", "a", &count.to_string()]), ok());
        at_leader.sql(&format!("UPDATE t SET n = {count} WHERE id = 1")).expect("it leads");
        let Doors { memcached, http, .. } = &mut doors[count % 2];
        let length = count.to_string().len();
        let got = memcached.ask("get a\r\n");
        assert_eq!(got, format!("VALUE a 0 {length}\r\n{count}\r\nEND\r\n"));
        assert_eq!(http.ask("GET /get/a", "").text(), format!("{{\"result\":\"{count}\"}}"));
        let shown = doors[count % 2].sql("SELECT n FROM t WHERE id = 1").expect("rows");
        assert_eq!(shown, [array(&[int(count as u64)])]);
        let shown = doors[count % 2].iproto.call("get", &array(&[])).expect("a value");
        assert_eq!(shown, [int(count as u64)]);
        // What is no read is refused as ever.
        let refused = doors[count % 2].sql("DELETE FROM t").expect_err("it follows");
        assert_eq!((refused.0, refused.1.contains("read-only instance")), (7, true), "{refused:?}");
    }
    let reader = &mut doors[0];
    // Who watches is told.
    reader.iproto.tell(&Request::Watch(b"box.schema"));
    let (_, mut before) = reader.iproto.event_within(Duration::from_secs(20)).expect("an event");
    // Often: an event may be sent while the change that it tells of is still being applied.
    for table in 0..40 {
        reader.iproto.tell(&Request::Watch(b"box.schema"));
        at_leader.sql(&format!("CREATE TABLE u{table} (id INT PRIMARY KEY)")).expect("it leads");
        let (_, next) = reader.iproto.event_within(Duration::from_secs(20)).expect("an event");
        assert_ne!(before, next);
        before = next;
    }
    // Nobody leads.
    nodes.stop(leader);
    nodes.stop(other);
    let refused = reader.memcached.ask("get a\r\n");
    assert_eq!(refused, format!("SERVER_ERROR {LATE}\r\n"));
    let refused = reader.http.ask("GET /get/a", "");
    assert_eq!((refused.status, refused.text()), (503, &*format!("{{\"error\":\"{LATE}\"}}")));
    for text in ["SELECT n FROM t", "DELETE FROM t"] {
        let refused = reader.sql(text).expect_err("nobody leads");
        assert_eq!((refused.0, refused.1.contains("leader")), (7, true), "{text}: {refused:?}");
    }
    let refused = reader.iproto.call("get", &array(&[])).expect_err("nobody leads");
    assert_eq!((refused.0, refused.1.contains("leader")), (7, true), "{refused:?}");
    // Who comes now is let in.
    Doors::of(&nodes, one).sql("SELECT 1").expect_err("nobody leads");
}
