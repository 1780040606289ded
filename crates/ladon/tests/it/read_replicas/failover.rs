//! `FAILOVER`: a replica takes over while both run, under writes; refusals, aborts and timeouts.

use super::*;
use std::sync::atomic::AtomicU16;

const SHORT: Duration = Duration::from_millis(300);

fn of(node: &Node) -> [String; 2] {
    ["127.0.0.1".to_owned(), node.port().to_string()]
}

fn failover(node: &Node, words: &[&str]) -> Value {
    call(&mut node.client(), &[&["FAILOVER"], words].concat())
}

fn state(node: &Node) -> String {
    node.info("master_failover_state")
}

fn becomes(node: &Node, wanted: &str) {
    until(wanted, || (state(node) == wanted).then_some(()));
}

fn role_becomes(node: &Node, role: &str) {
    until(role, || (node.try_info("role").as_deref() == Some(role)).then_some(()));
}

/// Two that have the same.
fn pair(arguments: &[&str]) -> (Node, Node) {
    let primary = Node::new(arguments);
    let replica = Node::of(&primary, arguments);
    replica.is_linked();
    primary.equals(&replica, "begin");
    (primary, replica)
}

/// Pushes numbers to a list of whoever takes them, and returns those that were acknowledged.
fn push(at: &AtomicU16, others: [u16; 2], stop: &AtomicBool) -> Vec<u64> {
    let mut done = Vec::new();
    let mut number = 0;
    while !stop.load(Relaxed) {
        let Ok(mut client) = Client::connect(at.load(Relaxed)) else { continue };
        loop {
            number += 1;
            match client.call(&["RPUSH", "numbers", &number.to_string()]) {
                Ok(Value::Integer(_)) => done.push(number),
                Ok(Value::Error(text)) if text.starts_with(b"READONLY") => break,
                Ok(other) => panic!("{other:?}"),
                Err(_) => break,
            }
            if stop.load(Relaxed) {
                break;
            }
        }
        let other = others.into_iter().find(|&port| port != at.load(Relaxed));
        at.store(other.expect("two"), Relaxed);
    }
    done
}

#[test]
fn a_replica_takes_over_under_writes_and_back() {
    for gate in ["everysec", "fsync"] {
        let (first, second) = pair(&["--gate", gate]);
        let third = Node::of(&first, &[]);
        third.is_linked();
        let (at, stop) = (AtomicU16::new(first.port()), AtomicBool::new(false));
        let ports = [first.port(), second.port()];
        let done = thread::scope(|threads| {
            let writer = threads.spawn(|| push(&at, ports, &stop));
            for _ in 0..3 {
                for (from, to) in [(&first, &second), (&second, &first)] {
                    thread::sleep(Duration::from_millis(50));
                    let [host, port] = of(to);
                    until("a replica of the one that leads", || {
                        (failover(from, &["TO", &host, &port]) == ok()).then_some(())
                    });
                    role_becomes(to, "master");
                    becomes(from, "no-failover");
                    assert_eq!(from.info("role"), "slave");
                    from.is_linked();
                }
            }
            stop.store(true, Relaxed);
            writer.join().expect("writes")
        });
        first.equals(&second, "end");
        first.equals(&third, "end");
        let all = call(&mut first.client(), &["LRANGE", "numbers", "0", "-1"]);
        let has = |value: &Value| std::str::from_utf8(value.as_bytes()?).ok()?.parse().ok();
        let has: Option<Vec<u64>> = all.as_slice().expect("a list").iter().map(has).collect();
        let has = has.expect("numbers");
        assert!(has.is_sorted_by(|one, next| one < next), "twice, or out of order");
        let lost = done.iter().find(|number| has.binary_search(number).is_err());
        assert_eq!(lost, None, "{gate}: of {} acknowledged", done.len());
        assert!(done.len() > 20, "{}", done.len());
        // Nobody got all data anew.
        let syncs = [&first, &second, &third].map(Node::full_syncs);
        assert_eq!(syncs, [0, 1, 1], "{}", first.server().output());
    }
}

#[test]
fn a_failover_is_refused_in_redis_words() {
    let alone = Node::new(&[]);
    let says = |node: &Node, words: &[&str], text: &str| {
        assert_eq!(failover(node, words), error(text), "{words:?}");
    };
    says(&alone, &[], "ERR FAILOVER requires connected replicas.");
    says(&alone, &["TO", "a", "1", "FORCE"], "ERR FAILOVER requires connected replicas.");
    says(&alone, &["ABORT"], "ERR No failover in progress.");
    says(&alone, &["TO", "a"], "ERR syntax error");
    says(&alone, &["ABORT", "TIMEOUT", "3"], "ERR syntax error");
    says(&alone, &["TO", "a", "b"], "ERR value is not an integer or out of range");
    says(&alone, &["TIMEOUT", "0"], "ERR FAILOVER timeout must be greater than 0");
    let (primary, replica) = pair(&[]);
    let [host, port] = of(&replica);
    says(&replica, &[], "ERR FAILOVER is not valid when server is a replica.");
    says(&primary, &["TO", &host, "1"], "ERR FAILOVER target HOST and PORT is not a replica.");
    let text = "ERR FAILOVER with force option requires both a timeout and target HOST and IP.";
    says(&primary, &["FORCE"], text);
    says(&primary, &["TO", &host, &port, "FORCE"], text);
    says(&primary, &["FORCE", "TIMEOUT", "10"], text);
    assert_eq!((state(&primary), state(&replica)), ("no-failover".into(), "no-failover".into()));
    assert_eq!(primary.info("role"), "master");
}

/// A write at the primary, whose answer does not come.
fn waits(primary: &Node) -> Client {
    let mut writer = primary.client();
    writer.request(&["SET", "waits", "1"]).expect("sends");
    assert!(!writer.has_reply_within(SHORT).expect("a connection"));
    writer
}

#[test]
fn while_a_replica_lacks_something_writes_wait_until_abort_or_timeout() {
    let (primary, replica) = pair(&[]);
    let stands = |signal| replica.server().signal(signal).expect("is there");
    stands(Signal::SIGSTOP);
    primary.set("lacks", "1");
    assert_eq!(failover(&primary, &[]), ok());
    assert_eq!(state(&primary), "waiting-for-sync");
    assert_eq!(failover(&primary, &[]), error("ERR FAILOVER already in progress."));
    let mut client = primary.client();
    let refused = error("ERR REPLICAOF not allowed while failing over.");
    assert_eq!(call(&mut client, &["REPLICAOF", "127.0.0.1", "1"]), refused);
    let mut writer = waits(&primary);
    assert_eq!(call(&mut client, &["GET", "lacks"]), bulk("1"));
    assert_eq!(failover(&primary, &["ABORT"]), ok());
    assert_eq!(writer.reply().expect("a reply"), ok());
    assert_eq!(state(&primary), "no-failover");
    // The same, by itself.
    assert_eq!(failover(&primary, &["TIMEOUT", "1000"]), ok());
    let mut writer = waits(&primary);
    assert_eq!(writer.reply().expect("a reply"), ok());
    becomes(&primary, "no-failover");
    assert_eq!(primary.info("role"), "master");
    stands(Signal::SIGCONT);
    primary.equals(&replica, "end");
    assert_eq!(replica.full_syncs(), 1);
}

#[test]
fn a_forced_failover_goes_on_without_what_the_replica_lacks() {
    let (primary, replica) = pair(&[]);
    let stands = |signal| replica.server().signal(signal).expect("is there");
    stands(Signal::SIGSTOP);
    let long = "x".repeat(8 << 20);
    assert_eq!(call(&mut primary.client(), &["SET", "lacks", &long]), ok());
    let [host, port] = of(&replica);
    assert_eq!(failover(&primary, &["TO", &host, &port, "FORCE", "TIMEOUT", "200"]), ok());
    becomes(&primary, "failover-in-progress");
    stands(Signal::SIGCONT);
    role_becomes(&replica, "master");
    becomes(&primary, "no-failover");
    assert_eq!(primary.info("role"), "slave");
    replica.equals(&primary, "end");
}

#[test]
fn a_replica_that_is_gone_or_unwilling_leaves_the_primary_as_it_was() {
    let (primary, mut replica) = pair(&[]);
    let [host, port] = of(&replica);
    replica.server().signal(Signal::SIGSTOP).expect("is there");
    primary.set("lacks", "1");
    assert_eq!(failover(&primary, &["TO", &host, &port, "FORCE", "TIMEOUT", "2000"]), ok());
    let mut writer = waits(&primary);
    becomes(&primary, "failover-in-progress");
    replica.kill();
    role_becomes(&primary, "slave");
    assert_eq!(call(&mut primary.client(), &["SET", "x", "y"]), error(READ_ONLY));
    assert_eq!(failover(&primary, &["ABORT"]), ok());
    // It came while the server was to follow, or once it led again.
    let answer = writer.reply().expect("a reply");
    assert!(answer == ok() || answer == error(READ_ONLY), "{answer:?}");
    assert_eq!((primary.info("role"), state(&primary)), ("master".into(), "no-failover".into()));
    primary.set("more", "1");
    replica.start();
    primary.equals(&replica, "again");
    // One that has another log does not take over.
    let (run, other) = (primary.info("master_replid"), "0".repeat(40));
    let end = primary.info("master_repl_offset");
    let takeover =
        |run: &str| call(&mut replica.client(), &["LADON.REPLICA", "TAKEOVER", run, &end]);
    assert_eq!(takeover(&other), error("ERR this server follows another one"));
    // Asked twice, it says that it has.
    assert_eq!(takeover(&run), ok());
    assert_eq!(replica.info("role"), "master");
    assert_eq!(takeover(&run), ok());
    let refused = error("ERR this server follows nobody, and has another log");
    assert_eq!(takeover(&other), refused);
}
