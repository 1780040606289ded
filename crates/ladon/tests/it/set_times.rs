//! Members of sets that expire, on the real binary: durable at their gate, removed in time, and
//! announced.

use crate::live::{call, info_number, ok, on_both_backends};
use ladon_crash::{Client, Launch, Server};
use ladon_resp::client::Value;
use ladon_testkit::Random;
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

fn connect(server: &Server) -> Client {
    server.connect().expect("connects")
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

fn run(client: &mut Client, line: &str) -> Value {
    call(client, &words(line))
}

/// Members and when they expire (0: never).
type Members = BTreeMap<String, u64>;

/// What a set holds.
fn held(client: &mut Client, key: &str) -> Members {
    let Value::Array(members) = run(client, &format!("SMEMBERS {key}")) else { panic!("no set") };
    let name = |member: &Value| {
        String::from_utf8(member.as_bytes().expect("bytes").to_vec()).expect("text")
    };
    let names: Vec<String> = members.iter().map(name).collect();
    if names.is_empty() {
        return Members::new();
    }
    let line = format!("SPEXPIRETIME {key} MEMBERS {} {}", names.len(), names.join(" "));
    let Value::Array(times) = run(client, &line) else { panic!("no times") };
    let at = |time: &Value| match time {
        Value::Integer(-1) => 0,
        Value::Integer(at) => u64::try_from(*at).expect("a member that is there"),
        other => panic!("{other:?}"),
    };
    names.into_iter().zip(times.iter().map(at)).collect()
}

/// A change that no clock decides, and what the set holds after it.
fn change(key: &str, members: &mut Members, random: &mut Random, most: u64) -> String {
    let member = format!("m{}", random.below(most));
    let at = 4_000_000_000_000 + random.below(1000);
    match random.below(6) {
        0 => {
            members.entry(member.clone()).or_insert(0);
            format!("SADD {key} {member}")
        }
        1 => {
            members.remove(&member);
            format!("SREM {key} {member}")
        }
        2 => {
            members.insert(member.clone(), at);
            format!("SADDEX {key} PXAT {at} MEMBERS 1 {member}")
        }
        3 => {
            members.entry(member.clone()).and_modify(|time| *time = 0);
            format!("SPERSIST {key} MEMBERS 1 {member}")
        }
        4 => {
            members.remove(&member);
            format!("SPEXPIREAT {key} 1 MEMBERS 1 {member}")
        }
        _ => {
            members.entry(member.clone()).and_modify(|time| *time = at);
            format!("SPEXPIREAT {key} {at} MEMBERS 1 {member}")
        }
    }
}

/// At gate `fsync`, with checkpoints in between, every member has the time that was acknowledged,
/// or the one of the request that the crash interrupted. One set is packed, and one is so large
/// that a checkpoint saves it in pieces.
#[test]
fn acknowledged_times_survive_kills() {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--gate", "fsync", "--io-threads", "2"];
    let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &arguments);
    let sets = [("small", 12), ("large", 9000)];
    let mut known: Vec<Members> = vec![Members::new(); sets.len()];
    for round in 1..=5u64 {
        let mut server = launch.start().expect("starts");
        if round == 1 {
            let mut client = connect(&server);
            for from in (0..9000).step_by(1000) {
                let names: Vec<String> = (from..from + 1000).map(|at| format!("m{at}")).collect();
                run(&mut client, &format!("SADD large {}", names.join(" ")));
                known[1].extend(names.into_iter().map(|name| (name, 0)));
            }
        }
        run(&mut connect(&server), &format!("SADDEX brief{round} PX 100 MEMBERS 2 a b"));
        run(&mut connect(&server), &format!("SADDEX partly{round} PX 100 MEMBERS 2 a b"));
        run(&mut connect(&server), &format!("SADD partly{round} c"));
        let ends: Vec<(Members, Members)> = thread::scope(|scope| {
            let writers: Vec<_> = sets
                .iter()
                .zip(&known)
                .map(|(&(key, most), known)| {
                    let server = &server;
                    scope.spawn(move || {
                        let (mut client, mut random) = (connect(server), Random::new(round));
                        let mut acknowledged = known.clone();
                        loop {
                            let mut next = acknowledged.clone();
                            let line = change(key, &mut next, &mut random, most);
                            match client.call(&words(&line)) {
                                Ok(Value::Error(text)) => panic!("{}", text.escape_ascii()),
                                Ok(_) => acknowledged = next,
                                Err(_) => return (acknowledged, next),
                            }
                        }
                    })
                })
                .collect();
            thread::sleep(Duration::from_millis(150));
            if round % 2 == 0 {
                assert_eq!(run(&mut connect(&server), "SAVE"), ok());
                thread::sleep(Duration::from_millis(50));
            }
            let pid = nix::unistd::Pid::from_raw(server.pid() as i32);
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("killed");
            writers.into_iter().map(|writer| writer.join().expect("a writer")).collect()
        });
        server.kill().expect("killed");
        let mut server = launch.start().expect("starts again");
        let mut client = connect(&server);
        for ((&(key, _), known), (acknowledged, next)) in sets.iter().zip(&mut known).zip(ends) {
            let found = held(&mut client, key);
            assert!(found == acknowledged || found == next, "{key} in round {round}");
            *known = found;
        }
        // What expired while nobody ran.
        assert_eq!(run(&mut client, &format!("EXISTS brief{round}")), Value::Integer(0));
        let left = Members::from([("c".to_owned(), 0)]);
        assert_eq!(held(&mut client, &format!("partly{round}")), left);
        server.kill().expect("killed");
    }
    assert!(known.iter().all(|set| set.values().any(|at| *at != 0)), "there are times");
    // Only a checkpoint has them now.
    let mut server = launch.start().expect("starts");
    assert_eq!(run(&mut connect(&server), "SAVE"), ok());
    server.kill().expect("killed");
    let server = launch.start().expect("starts");
    for (&(key, _), known) in sets.iter().zip(&known) {
        assert_eq!(&held(&mut connect(&server), key), known, "{key}");
    }
}

#[test]
fn members_that_expire_are_announced() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let (mut control, mut subscriber) = (connect(server), connect(server));
        let set = call(&mut control, &["CONFIG", "SET", "notify-keyspace-events", "Ksg"]);
        assert_eq!(set, ok());
        call(&mut subscriber, &["PSUBSCRIBE", "__keyspace@0__:*"]);
        let mut next = || {
            let Ok(Value::Array(parts)) = subscriber.reply() else { panic!("no message") };
            let text = |at: usize| {
                String::from_utf8_lossy(parts[at].as_bytes().unwrap_or_default()).into_owned()
            };
            format!("{} {}", text(2).trim_start_matches("__keyspace@0__:"), text(3))
        };
        for (request, events) in [
            ("SADD k a b c d", &["k sadd"][..]),
            ("SEXPIRE k 1000 MEMBERS 2 a b", &["k sexpire"]),
            ("SEXPIRE k 1000 NX MEMBERS 1 a", &[]),
            ("SPERSIST k MEMBERS 3 a b c", &["k spersist"]),
            ("SPERSIST k MEMBERS 1 c", &[]),
            ("STTL k MEMBERS 1 a", &[]),
            ("SEXPIREAT k 1 MEMBERS 2 a b", &["k srem"]),
            ("SADDEX k EX 1000 MEMBERS 1 x", &["k sadd", "k sexpire"]),
            ("SADDEX k KEEPTTL MEMBERS 1 x", &["k sadd"]),
            ("SMOVE k l x", &["k srem", "l sadd", "l sexpire"]),
            ("SADDEX k MEMBERS 1 x", &["k sadd"]),
            ("SMOVE k l x", &["k srem", "l spersist"]),
            ("SADDEX k EX 5 MEMBERS 1 x", &["k sadd", "k sexpire"]),
            ("SMOVE k l x", &["k srem", "l sexpire"]),
            ("SADDEX l PXAT 1 MEMBERS 1 x", &["l srem", "l del"]),
            ("SPEXPIREAT k 1 MEMBERS 2 c d", &["k srem", "k del"]),
            // Nobody asks: the members leave by themselves.
            ("SADDEX k PX 30 MEMBERS 2 a b", &["k sadd", "k sexpire", "k sexpired", "k del"]),
        ] {
            run(&mut control, request);
            for event in events {
                assert_eq!(next(), *event, "{request}");
            }
        }
        call(&mut control, &["PUBLISH", "__keyspace@0__:end", "last"]);
        assert_eq!(next(), "end last", "and nothing else");
        assert_eq!(info_number(&mut control, "stats", "expired_subkeys"), 2);
    });
}
