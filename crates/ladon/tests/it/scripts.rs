//! Scripts on the real binary: atomic whatever they reach for, all or nothing through a kill -9,
//! and no more than a nuisance when they run for ever.

use crate::live::{bulk, call, info_number, ok, on_both_backends};
use ladon_crash::{Client, Launch, Server};
use ladon_resp::client::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const FOUR_THREADS: &[&str] = &["--io-threads", "4"];

fn connect(server: &Server) -> Client {
    server.connect().expect("connects")
}

/// Moves 1 from the account ARGV[1] to ARGV[2], neither of which is declared.
const MOVE: &str = "local from, to = ARGV[1], ARGV[2]
    if tonumber(redis.call('get', from)) <= 0 then return 0 end
    redis.call('decr', from)
    for i = 1, tonumber(ARGV[3]) do end
    redis.call('incr', to)
    return 1";

/// The sum of the accounts, read one by one.
const SUM: &str = "local sum = 0
    for i = 0, 19 do sum = sum + redis.call('get', 'account' .. i) end
    return sum";

const ACCOUNTS: usize = 20;
const EACH: usize = 100;

fn account(number: usize) -> String {
    format!("account{}", number % ACCOUNTS)
}

/// Scripts that reach for each other's keys, in every order and from every thread, neither lose nor
/// make money, and nobody sees them in between.
#[test]
fn scripts_are_atomic_whatever_they_reach_for() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        for number in 0..ACCOUNTS {
            assert_eq!(call(&mut control, &["SET", &account(number), &EACH.to_string()]), ok());
        }
        let total = Value::Integer((ACCOUNTS * EACH) as i64);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let movers: Vec<_> = (0..6)
                .map(|seed| {
                    let mut client = connect(server);
                    scope.spawn(move || {
                        let mut moved = 0;
                        for round in 0..400 {
                            let (from, to) = (account(seed * 7 + round), account(seed + round * 3));
                            // Some take long enough that another thread's script begins meanwhile.
                            let spin = if round % 10 == 0 { "20000" } else { "0" };
                            let reply = match round % 3 {
                                // The same as a transaction of two commands, by other means.
                                0 => call(
                                    &mut client,
                                    &["EVAL", MOVE, "2", &from, &to, &from, &to, spin],
                                ),
                                1 => call(&mut client, &["EVAL", MOVE, "0", &from, &to, spin]),
                                // One key is declared, the other is not.
                                _ => call(&mut client, &["EVAL", MOVE, "1", &to, &from, &to, spin]),
                            };
                            match reply {
                                Value::Integer(number) => moved += number,
                                other => panic!("{other:?}"),
                            }
                        }
                        moved
                    })
                })
                .collect();
            let readers: Vec<_> = (0..2)
                .map(|number| {
                    let (mut client, total, is_over) = (connect(server), total.clone(), &is_over);
                    scope.spawn(move || {
                        while !is_over.load(Relaxed) {
                            if number == 0 {
                                assert_eq!(call(&mut client, &["EVAL", SUM, "0"]), total);
                                continue;
                            }
                            let mut words = vec!["MGET".to_owned()];
                            words.extend((0..ACCOUNTS).map(account));
                            let Value::Array(found) = client.call(&words).expect("a reply") else {
                                panic!("an array")
                            };
                            let sum: i64 = found.iter().map(number_of).sum();
                            assert_eq!(Value::Integer(sum), total);
                        }
                    })
                })
                .collect();
            let moved: i64 = movers.into_iter().map(|mover| mover.join().expect("moves")).sum();
            is_over.store(true, Relaxed);
            readers.into_iter().for_each(|reader| reader.join().expect("reads"));
            assert!(moved > 0);
        });
        assert_eq!(call(&mut control, &["EVAL", SUM, "0"]), total);
    });
}

fn number_of(value: &Value) -> i64 {
    let bytes = value.as_bytes().expect("a string");
    std::str::from_utf8(bytes).expect("digits").parse().expect("a number")
}

/// Runs for ever after it has written.
const ENDLESS: &str = "redis.call('set', KEYS[1], 'half') while true do pcall(function() end) end";

/// Runs commands for seconds, after it has written, from a function of C: none of its instructions
/// runs twice.
const COMMANDS: &str = "redis.call('set', KEYS[1], 'half') \
                        return #string.gsub(string.rep('dbsize ', 3000000), '%a+', redis.call)";

/// Waits until a request to `client` is answered by an error that begins so.
fn until_error(client: &mut Client, words: &[&str], start: &str) {
    let began = Instant::now();
    loop {
        match call(client, words) {
            Value::Error(text) if text.starts_with(start.as_bytes()) => return,
            other if began.elapsed() > Duration::from_secs(20) => panic!("{words:?}: {other:?}"),
            _ => thread::sleep(Duration::from_millis(2)),
        }
    }
}

#[test]
fn a_script_that_runs_for_ever_is_reported_and_can_be_killed_even_after_it_wrote() {
    for threads in ["1", "2"] {
        let arguments = ["--io-threads", threads, "--busy-reply-threshold", "20"];
        on_both_backends(&arguments, |server| {
            let mut control = connect(server);
            let mut others: Vec<Client> = (0..4).map(|_| connect(server)).collect();
            let mut runner = connect(server);
            assert_eq!(call(&mut control, &["SET", "key", "whole"]), ok());
            let killed = |text: &[u8]| text.starts_with(b"ERR") && has(text, b"killed by user");
            for body in [ENDLESS, COMMANDS, ENDLESS] {
                runner.request(&["EVAL", body, "1", "key"]).expect("sent");
                until_error(&mut control, &["GET", "key"], "BUSY");
                for client in &mut others {
                    until_error(client, &["SET", "key", "mine"], "BUSY");
                }
                assert_eq!(call(&mut control, &["SCRIPT", "KILL"]), ok());
                match runner.reply().expect("a reply") {
                    Value::Error(text) if killed(&text) => {}
                    other => panic!("{other:?}"),
                }
                assert_eq!(call(&mut control, &["GET", "key"]), bulk("whole"));
            }
            until_error(&mut control, &["SCRIPT", "KILL"], "NOTBUSY");
        });
    }
}

fn has(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// With a second thread, who does not need the script's keys notices nothing of it.
#[test]
fn who_needs_other_keys_is_served_while_a_script_runs_for_ever() {
    on_both_backends(&["--io-threads", "2", "--busy-reply-threshold", "20"], |server| {
        let mut clients: Vec<Client> = (0..4).map(|_| connect(server)).collect();
        let mut runner = connect(server);
        runner.request(&["EVAL", ENDLESS, "1", "key"]).expect("sent");
        until_error(&mut clients[0], &["GET", "key"], "BUSY");
        let served = clients.iter_mut().filter(|_| true).map(|client| {
            let reply = call(client, &["SET", "another", "value"]);
            reply == ok()
        });
        assert!(served.filter(|&is_served| is_served).count() >= 2, "half are on the other thread");
        assert_eq!(call(&mut clients[0], &["SCRIPT", "KILL"]), ok());
        runner.reply().expect("a reply");
    });
}

/// A server that is told to end does so although a script runs for ever.
#[test]
fn the_server_ends_although_a_script_runs_for_ever() {
    on_both_backends(&["--io-threads", "2", "--busy-reply-threshold", "20"], |server| {
        let mut runner = connect(server);
        runner.request(&["EVAL", ENDLESS, "1", "key"]).expect("sent");
        thread::sleep(Duration::from_millis(100));
        // `on_both_backends` now sends SIGTERM, and waits for the end.
    });
}

/// What a script has changed comes back from the log as a whole or not at all.
#[test]
fn a_script_survives_a_kill_whole_or_not_at_all() {
    const THREE: &str = "redis.call('incr', KEYS[1]) redis.call('lpush', 'undeclared', ARGV[1])
        redis.call('hincrby', 'hash', 'field', 1) return redis.call('incr', 'another')";
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--gate", "fsync", "--io-threads", "2"];
    let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &arguments);
    let mut acknowledged = 0;
    for _ in 0..4 {
        let mut server = launch.start().expect("starts");
        let mut client = connect(&server);
        let counts = |client: &mut Client| {
            let Value::Array(found) = call(client, &["MGET", "key", "another"]) else {
                panic!("an array")
            };
            let Value::Integer(pushed) = call(client, &["LLEN", "undeclared"]) else {
                panic!("a number")
            };
            let field = call(client, &["HGET", "hash", "field"]);
            let whole = |value: &Value| if *value == Value::Null { 0 } else { number_of(value) };
            [whole(&found[0]), whole(&found[1]), pushed, whole(&field)]
        };
        let found = counts(&mut client);
        assert!(found.iter().all(|&count| count == found[0]), "half a script: {found:?}");
        assert!(found[0] >= acknowledged, "{found:?} of {acknowledged} acknowledged");
        for _ in 0..200 {
            for _ in 0..4 {
                client.request(&["EVAL", THREE, "1", "key", "element"]).expect("sent");
            }
            for _ in 0..4 {
                match client.reply().expect("a reply") {
                    Value::Integer(number) => acknowledged = number,
                    other => panic!("{other:?}"),
                }
            }
        }
        for _ in 0..50 {
            client.request(&["EVAL", THREE, "1", "key", "element"]).expect("sent");
        }
        server.kill().expect("killed");
    }
    assert!(acknowledged >= 3200, "{acknowledged}");
}

/// A script's memory is bounded, and it is the script that fails.
#[test]
fn a_script_cannot_take_all_memory() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut client = connect(server);
        let body = "local t = {} while true do t[#t + 1] = ('x'):rep(1000000) .. #t end";
        match call(&mut client, &["EVAL", body, "0"]) {
            Value::Error(text) if has(&text, b"not enough memory") => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(call(&mut client, &["EVAL", "return 'well'", "0"]), bulk("well"));
        assert!(info_number(&mut client, "memory", "used_memory_vm_eval") < 64 << 20);
    });
}
