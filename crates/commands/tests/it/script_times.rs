//! How long scripts take: short ones are timed together with their batch, as quick commands are.

use crate::common::{TestClient, TestNode};

const SHORT: &str = "local n = redis.call('incr', KEYS[1]) if n > 5 then redis.call('set', KEYS[1], 0) \
                     end return n";

/// Scripts that are not quick, each for another reason.
const OTHERS: [&str; 8] = [
    "for i = 1, 2 do redis.call('incr', KEYS[1]) end return 1",
    "local f = function() return 1 end return f()",
    "return #redis.call('keys', '*')",
    "redis.call('incr', KEYS[1]) redis.call('incr', KEYS[1]) redis.call('incr', KEYS[1]) \
     redis.call('incr', KEYS[1]) redis.call('incr', KEYS[1]) return 1",
    "return string.rep('x', 20000)",
    "for i = 1, 2 do redis.call('incr', KEYS[1]) end return redis.error_reply('no')",
    "redis.call('incr', KEYS[1]) return redis.call('sort', KEYS[1])",
    "return #string.rep('x', 20)",
];

fn load(node: &TestNode, client: &mut TestClient, body: &str) -> Vec<u8> {
    let (reply, _) = node.request(client, &[b"SCRIPT", b"LOAD", body.as_bytes()]);
    let sha = reply[5..45].to_vec();
    // The machine compiles it.
    node.request(client, &[b"EVALSHA", &sha, b"1", b"k"]);
    sha
}

fn calls(node: &TestNode, client: &mut TestClient, command: &str) -> (u64, u64) {
    let (info, _) = node.request(client, &[b"INFO", b"commandstats"]);
    let info = String::from_utf8(info).unwrap();
    let name = format!("cmdstat_{command}:calls=");
    let Some(at) = info.find(&name) else { return (0, 0) };
    let rest = &info[at + name.len()..];
    let (calls, rest) = rest.split_once(",usec=").unwrap();
    let usec = rest.split(',').next().unwrap();
    (calls.parse().unwrap(), usec.parse().unwrap())
}

#[test]
fn short_scripts_read_no_clock() {
    let node = TestNode::new().without_rehearsals();
    let client = &mut node.client();
    let sha = load(&node, client, SHORT);
    node.request(client, &[b"CONFIG", b"RESETSTAT"]);
    client.local.begin_batch(&node.node);
    let before = node.clock.reads();
    for _ in 0..10 {
        node.run(client, "GET k");
        node.request(client, &[b"EVALSHA", &sha, b"1", b"k"]);
        // One that another thread may have compiled: an error is quick, too.
        node.request(client, &[b"EVALSHA", &[b'f'; 40], b"1", b"k"]);
    }
    assert_eq!(node.clock.reads(), before);
    node.clock.advance(66);
    client.local.end_batch(&node.node);
    assert_eq!(calls(&node, client, "evalsha"), (20, 20 * 66_000 / 41));
    assert_eq!(calls(&node, client, "get"), (10, 10 * 66_000 / 41));
    assert_eq!(calls(&node, client, "incr").0, 10);
    assert_eq!(calls(&node, client, "set").0, 1);
}

/// The time of a turn is looked at when the clock is read.
#[test]
fn many_short_scripts_read_the_clock_now_and_then() {
    let node = TestNode::new().without_rehearsals();
    let client = &mut node.client();
    let sha = load(&node, client, "redis.call('incr', KEYS[1]) return redis.call('incr', KEYS[1])");
    client.local.begin_batch(&node.node);
    let before = node.clock.reads();
    for _ in 0..640 {
        node.request(client, &[b"EVALSHA", &sha, b"1", b"k"]);
    }
    let reads = node.clock.reads() - before;
    assert!((10..=40).contains(&reads), "{reads}");
    client.local.end_batch(&node.node);
}

#[test]
fn others_are_measured_and_logged_if_slow() {
    for body in OTHERS {
        let node = TestNode::new().without_rehearsals();
        let client = &mut node.client();
        let (short, other) = (load(&node, client, SHORT), load(&node, client, body));
        node.run(client, "CONFIG SET slowlog-log-slower-than 5000");
        node.request(client, &[b"CONFIG", b"RESETSTAT"]);
        node.run(client, "SLOWLOG RESET");
        client.local.begin_batch(&node.node);
        for sha in [&short, &other, &short, &other] {
            // What came before it, and took long, is not its time.
            node.run(client, "GET k");
            node.clock.advance(7);
            if sha == &other {
                node.clock.advance_when_read(5);
            }
            node.request(client, &[b"EVALSHA", sha, b"1", b"k"]);
            node.clock.advance_when_read(0);
        }
        client.local.end_batch(&node.node);
        let (times, microseconds) = calls(&node, client, "evalsha");
        assert_eq!(times, 4, "{body}");
        assert!(microseconds >= 10_000, "{microseconds} us: {body}");
        assert_eq!(calls(&node, client, "get").0, 4, "{body}");
        let (log, _) = node.request(client, &[b"SLOWLOG", b"GET", b"-1"]);
        let log = String::from_utf8_lossy(&log).into_owned();
        let digest = |sha: &[u8]| String::from_utf8(sha.to_vec()).unwrap();
        assert_eq!(log.matches(&digest(&other)).count(), 2, "{body}: {log}");
        assert_eq!(log.matches(&digest(&short)).count(), 0, "{body}: {log}");
    }
}

#[test]
fn what_is_compiled_first_is_measured() {
    let node = TestNode::new().without_rehearsals();
    let client = &mut node.client();
    node.run(client, "CONFIG SET slowlog-log-slower-than 5000");
    client.local.begin_batch(&node.node);
    let before = node.clock.reads();
    node.request(client, &[b"EVAL", b"return 1", b"0"]);
    let read = node.clock.reads() - before;
    assert!(read > 0);
    node.request(client, &[b"EVAL", b"return 1", b"0"]);
    assert_eq!(node.clock.reads() - before, read);
    client.local.end_batch(&node.node);
}

#[test]
fn what_came_before_a_script_is_not_its_time() {
    for body in [OTHERS[0], OTHERS[3], OTHERS[6]] {
        let node = TestNode::new().without_rehearsals();
        let client = &mut node.client();
        let sha = load(&node, client, body);
        node.run(client, "CONFIG SET slowlog-log-slower-than 5000");
        client.local.begin_batch(&node.node);
        node.run(client, "GET k");
        node.clock.advance(20);
        node.request(client, &[b"EVALSHA", &sha, b"1", b"k"]);
        client.local.end_batch(&node.node);
        assert_eq!(node.run(client, "SLOWLOG LEN"), ":0", "{body}");
    }
}

/// A command that is quick but for its reply.
#[test]
fn a_large_reply_is_time_of_the_script() {
    let node = TestNode::new().without_rehearsals();
    let client = &mut node.client();
    let sha = load(&node, client, "local x = redis.call('get', KEYS[1]) if x then return #x end");
    node.request(client, &[b"SET", b"k", &[b'x'; 40_000]]);
    node.run(client, "CONFIG SET slowlog-log-slower-than 5000");
    client.local.begin_batch(&node.node);
    node.clock.advance_when_read(5);
    node.request(client, &[b"EVALSHA", &sha, b"1", b"k"]);
    node.clock.advance_when_read(0);
    client.local.end_batch(&node.node);
    let (log, _) = node.request(client, &[b"SLOWLOG", b"GET", b"-1"]);
    let log = String::from_utf8_lossy(&log).into_owned();
    assert_eq!(log.matches("EVALSHA").count(), 1, "{log}");
}

/// Every script is run twice, and what it counted the first time is taken back.
#[test]
fn what_is_taken_back_is_not_counted() {
    for (body, inner) in [(SHORT, 1), (OTHERS[0], 2), (OTHERS[3], 5), (OTHERS[6], 1)] {
        let node = TestNode::new();
        let client = &mut node.client();
        let sha = load(&node, client, body);
        node.request(client, &[b"CONFIG", b"RESETSTAT"]);
        client.local.begin_batch(&node.node);
        for _ in 0..3 {
            node.run(client, "INCR other");
        }
        for _ in 0..2 {
            node.request(client, &[b"EVALSHA", &sha, b"1", b"k"]);
            node.run(client, "INCR other");
        }
        client.local.end_batch(&node.node);
        assert_eq!(calls(&node, client, "incr").0, 5 + 2 * inner, "{body}");
        assert_eq!(calls(&node, client, "evalsha").0, 2, "{body}");
    }
}
