//! Results that are computed aside, on the real binary: what they are is what they would be under
//! the locks, at one moment between request and reply, whatever happens meanwhile.

use crate::live::large::{array, connect, fill, large_sets, run, wait_for_jobs, words};
use crate::live::{self, error, info_number, ok, on_both_backends, pong};
use ladon_crash::{Client, Launch};
use ladon_resp::client::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const TWO_THREADS: &[&str] = &["--io-threads", "2"];

/// More than are combined at once.
const ELEMENTS: usize = 20_000;

/// Sources of every kind, two of each that overlap by half.
fn sources(client: &mut Client) {
    for (at, suffix) in [(0, "a"), (ELEMENTS / 2, "b")] {
        let numbers = at..at + ELEMENTS;
        fill(client, &format!("SADD s{suffix}"), numbers.clone(), |n| vec![format!("m{n}")]);
        fill(client, &format!("SADD i{suffix}"), numbers.clone(), |n| vec![n.to_string()]);
        fill(client, &format!("ZADD z{suffix}"), numbers.clone(), |n| {
            vec![format!("{}.5", n % 1_000), format!("m{n}")]
        });
        fill(client, &format!("RPUSH l{suffix}"), numbers.clone(), |n| {
            vec![(n * 7_919 % 100_003).to_string()]
        });
        fill(client, &format!("HSET h{suffix}"), numbers, |n| vec![format!("f{n}"), n.to_string()]);
    }
    fill(client, "RPUSH words", 0..ELEMENTS, |n| vec![format!("w{}", n * 7_919 % 100_003)]);
    run(client, "SADD few m1 m15000 m19999");
    run(client, "SET text nothing");
    run(client, "PEXPIREAT hb 4000000000000");
    run(client, "SPEXPIREAT sb 4000000000000 MEMBERS 1 m10001");
    run(client, "PEXPIREAT lb 4000000000000");
    run(client, "RPUSH lb needle");
    // Two long strings that overlap.
    for (key, byte) in [("ta", 'a'), ("tb", '3')] {
        run(client, &format!("SET {key} {}", byte.to_string().repeat(STRING_BYTES)));
    }
    run(client, &format!("SETRANGE tb {} behind", STRING_BYTES * 3 / 2));
    run(client, &format!("SETBIT ones {} 1", STRING_BYTES * 8 - 1));
    run(client, "BITOP NOT ones ones");
    run(client, "PEXPIREAT tb 4000000000000");
    for key in ["ca", "cb"] {
        run(client, &format!("SET {key} {}", "abcde".repeat(200)));
    }
}

/// Longer than what is looked through at once.
const STRING_BYTES: usize = 6 << 20;

/// What is under a key, in a form that tells whether two are the same.
fn contents(client: &mut Client, key: &str) -> (Value, Value, Vec<Value>) {
    let kind = run(client, &format!("TYPE {key}"));
    let encoding = run(client, &format!("OBJECT ENCODING {key}"));
    let expiry = run(client, &format!("PEXPIRETIME {key}"));
    let all = match &kind {
        Value::Simple(name) => match name.as_slice() {
            b"set" => sorted(run(client, &format!("SMEMBERS {key}"))),
            b"zset" => array(run(client, &format!("ZRANGE {key} 0 -1 WITHSCORES"))),
            b"list" => array(run(client, &format!("LRANGE {key} 0 -1"))),
            b"hash" => sorted_pairs(run(client, &format!("HGETALL {key}"))),
            b"string" => vec![run(client, &format!("GET {key}"))],
            b"none" => Vec::new(),
            other => panic!("a {}", other.escape_ascii()),
        },
        other => panic!("{other:?}"),
    };
    (encoding, expiry, all)
}

fn sorted(value: Value) -> Vec<Value> {
    let mut values = array(value);
    values.sort_by(|a, b| a.as_bytes().cmp(&b.as_bytes()));
    values
}

fn sorted_pairs(value: Value) -> Vec<Value> {
    let mut pairs: Vec<Vec<Value>> = array(value).chunks(2).map(<[Value]>::to_vec).collect();
    pairs.sort_by(|a, b| a[0].as_bytes().cmp(&b[0].as_bytes()));
    pairs.concat()
}

/// The same under the locks.
fn run_in_exec(client: &mut Client, text: &str) -> Value {
    assert_eq!(run(client, "MULTI"), ok());
    run(client, text);
    let mut replies = array(run(client, "EXEC"));
    assert_eq!(replies.len(), 1);
    replies.remove(0)
}

/// Stores under `D`; whether they are computed aside.
const STORES: &[(&str, bool)] = &[
    ("SUNIONSTORE D sa sb", true),
    ("SUNIONSTORE D sa missing", true),
    ("SUNIONSTORE D sa sa", true),
    ("SUNIONSTORE D ia ib few", true),
    ("SINTERSTORE D sa sb", true),
    ("SINTERSTORE D sa few sb", false),
    ("SINTERSTORE D sa missing", false),
    ("SINTERSTORE D sa ia", true),
    ("SDIFFSTORE D sa sb", true),
    ("SDIFFSTORE D sa sb few missing", true),
    ("SDIFFSTORE D sa sa", true),
    ("SDIFFSTORE D missing sa", true),
    ("ZUNIONSTORE D 2 za zb", true),
    ("ZUNIONSTORE D 3 za zb sa WEIGHTS 2 -1 0.5 AGGREGATE MIN", true),
    ("ZUNIONSTORE D 2 za za", true),
    ("ZINTERSTORE D 2 za zb AGGREGATE MAX", true),
    ("ZINTERSTORE D 2 za za", true),
    ("ZINTERSTORE D 2 za few", false),
    ("ZDIFFSTORE D 2 za zb", true),
    ("ZDIFFSTORE D 2 za za", true),
    ("ZRANGESTORE D za 0 -1", true),
    ("ZRANGESTORE D za 5 15000 REV", true),
    ("ZRANGESTORE D za (100 900 BYSCORE LIMIT 10 12000", true),
    ("ZRANGESTORE D za - + BYLEX LIMIT 0 0", false),
    ("SORT la STORE D", true),
    ("SORT la DESC LIMIT 5 9000 STORE D", true),
    ("SORT words ALPHA STORE D", true),
    ("SORT words ALPHA DESC GET # GET # STORE D", true),
    ("SORT sa BY nosort STORE D", true),
    ("SORT za BY nosort DESC STORE D", true),
    ("SORT ia LIMIT 0 -1 STORE D", true),
    ("SORT la LIMIT 50000 10 STORE D", true),
    ("COPY sa D", true),
    ("COPY za D REPLACE", true),
    ("COPY la D", true),
    ("COPY hb D", true),
    ("COPY ta D", true),
    ("COPY tb D REPLACE", true),
    ("BITOP AND D ta tb", true),
    ("BITOP ONE D ta tb text missing", true),
    ("BITOP NOT D ta", true),
    ("BITOP XOR D ta ta", true),
    ("BITOP OR D text ca", false),
    ("BITOP OR D ta sa", false),
    // What is wrong with them.
    ("SUNIONSTORE D sa text", false),
    ("SINTERSTORE D sa za", false),
    ("ZUNIONSTORE D 2 za text", false),
    ("ZUNIONSTORE D 2 za zb WEIGHTS 1 x", false),
    ("ZUNIONSTORE D 2 za zb WITHSCORES", false),
    ("ZRANGESTORE D za a b", false),
    ("ZRANGESTORE D sa 0 -1", false),
    ("SORT words STORE D", true),
    ("SORT text STORE D", false),
    ("COPY sa D DB 99", false),
    ("COPY sa few", false),
];

#[test]
fn a_store_aside_stores_what_one_under_the_locks_does() {
    on_both_backends(TWO_THREADS, |server| {
        let mut client = connect(server);
        sources(&mut client);
        for &(text, is_aside) in STORES {
            for before in ["DEL D", "SADD D something"] {
                if text.starts_with("COPY") && !text.ends_with("REPLACE") && before != "DEL D" {
                    continue;
                }
                run(&mut client, "DEL D");
                run(&mut client, before);
                let expected = run_in_exec(&mut client, text);
                let there = contents(&mut client, "D");
                run(&mut client, "DEL D");
                run(&mut client, before);
                let jobs = info_number(&mut client, "ladon", "aside_jobs");
                let reply = run(&mut client, text);
                let jobs = info_number(&mut client, "ladon", "aside_jobs") - jobs;
                assert_eq!(reply, expected, "{text}");
                assert_eq!(jobs, u64::from(is_aside), "{text}: jobs");
                assert!(contents(&mut client, "D") == there, "{text}: what is stored");
            }
        }
        assert_eq!(info_number(&mut client, "ladon", "aside_repeated"), 0);
        // Onto a source, and into another database.
        run(&mut client, "SUNIONSTORE sa sa sb");
        assert_eq!(run(&mut client, "SCARD sa"), Value::Integer(30_000));
        assert_eq!(run(&mut client, "COPY zb sb REPLACE DB 3"), Value::Integer(1));
        run(&mut client, "SELECT 3");
        assert_eq!(run(&mut client, "ZCARD sb"), Value::Integer(20_000));
        assert_eq!(run(&mut client, "DBSIZE"), Value::Integer(1));
    });
}

/// Keys that move; whether their record is made aside.
const MOVES: &[(&str, bool)] = &[
    ("sa", true),
    ("ia", true),
    ("za", true),
    ("hb", true),
    ("lb", true),
    ("tb", true),
    ("few", false),
    ("text", false),
];

#[test]
fn a_large_value_that_moves_is_the_same_in_another_place() {
    on_both_backends(TWO_THREADS, |server| {
        let mut client = connect(server);
        sources(&mut client);
        run(&mut client, "HPEXPIREAT hb 4000000000000 FIELDS 1 f10001");
        run(&mut client, "SPEXPIREAT sa 4000000000000 MEMBERS 1 m10001");
        for &(key, is_aside) in MOVES {
            let before = contents(&mut client, key);
            let mut expect = |text: &str, reply: Value, is_aside: bool| {
                let jobs = info_number(&mut client, "ladon", "aside_jobs");
                assert_eq!(run(&mut client, text), reply, "{text}");
                let jobs = info_number(&mut client, "ladon", "aside_jobs") - jobs;
                assert_eq!(jobs, u64::from(is_aside), "{text}: jobs");
            };
            expect("SADD there something", Value::Integer(1), false);
            expect(&format!("RENAMENX {key} there"), Value::Integer(0), false);
            expect(&format!("RENAME {key} there"), ok(), is_aside);
            expect(&format!("EXISTS {key}"), Value::Integer(0), false);
            expect(&format!("RENAMENX there {key}"), Value::Integer(1), is_aside);
            expect("EXISTS there", Value::Integer(0), false);
            expect(&format!("RENAME {key} {key}"), ok(), false);
            expect(&format!("MOVE {key} 5"), Value::Integer(1), is_aside);
            expect(&format!("EXISTS {key}"), Value::Integer(0), false);
            expect("SELECT 5", ok(), false);
            assert!(contents(&mut client, key) == before, "{key}");
            run(&mut client, "SELECT 0");
        }
        assert_eq!(run(&mut client, "RENAME sa there"), error("ERR no such key"));
        assert_eq!(run(&mut client, "MOVE sa 5"), Value::Integer(0));
        run(&mut client, "SELECT 5");
        let expiry = run(&mut client, "HPEXPIRETIME hb FIELDS 1 f10001");
        assert_eq!(array(expiry), [Value::Integer(4_000_000_000_000)]);
        let expiry = run(&mut client, "SPEXPIRETIME sa MEMBERS 2 m10001 m10002");
        assert_eq!(array(expiry), [Value::Integer(4_000_000_000_000), Value::Integer(-1)]);
    });
}

/// Replies; whether they are computed aside, and whether their order means something.
const REPLIES: &[(&str, bool, bool)] = &[
    ("SUNION sa sb", true, false),
    ("SUNION sa", true, false),
    ("SUNION ia ib", true, false),
    ("SINTER sa sb", true, false),
    ("SINTER sa few", false, false),
    ("SINTER sa missing", false, false),
    ("SDIFF sa sb", true, false),
    ("SINTERCARD 2 sa sb", true, true),
    ("SINTERCARD 2 sa sb LIMIT 9000", true, true),
    ("SINTERCARD 2 sa sb LIMIT 10", false, true),
    ("ZUNION 2 za zb WITHSCORES", true, true),
    ("ZUNION 3 za zb sa", true, true),
    ("ZINTER 2 za zb WITHSCORES", true, true),
    ("ZDIFF 2 za zb", true, true),
    ("ZINTERCARD 2 za zb", true, true),
    ("ZINTERCARD 2 za zb LIMIT 7", true, true),
    ("SORT la", true, true),
    ("SORT_RO la DESC", true, true),
    ("SORT words ALPHA LIMIT 3 10000", true, true),
    ("SORT words ALPHA GET # GET nothing GET #", true, true),
    ("SORT words", true, true),
    ("BITCOUNT ta", false, true),
    ("BITPOS ones 0", false, true),
    ("LPOS lb needle", true, true),
    ("LPOS lb needle RANK -1", false, true),
    ("LPOS lb nothing", true, true),
    ("LPOS lb nothing MAXLEN 8000", false, true),
    ("LPOS lb nothing MAXLEN 9000", true, true),
    ("LPOS lb needle COUNT 0", true, true),
    ("LPOS words w0 COUNT 1", false, true),
    ("LCS ca cb", true, true),
    ("LCS ca cb LEN", true, true),
    ("LCS ca cb IDX WITHMATCHLEN", true, true),
    ("LCS ca text", false, true),
    ("SUNION sa text", false, true),
    ("ZUNION 2 za text", false, true),
];

#[test]
fn a_reply_aside_is_what_one_under_the_locks_is() {
    on_both_backends(TWO_THREADS, |server| {
        let mut client = connect(server);
        sources(&mut client);
        for protocol in ["HELLO 2", "HELLO 3"] {
            run(&mut client, protocol);
            for &(text, is_aside, in_order) in REPLIES {
                let expected = run_in_exec(&mut client, text);
                let jobs = info_number(&mut client, "ladon", "aside_jobs");
                let reply = run(&mut client, text);
                let jobs = info_number(&mut client, "ladon", "aside_jobs") - jobs;
                assert_eq!(jobs, u64::from(is_aside), "{text}: jobs");
                if in_order {
                    assert!(reply == expected, "{text}");
                } else {
                    let is_set = |value: &Value| matches!(value, Value::Set(_));
                    assert_eq!(is_set(&reply), is_set(&expected), "{text}");
                    assert!(sorted(reply) == sorted(expected), "{text}");
                }
            }
        }
        let errors = run(&mut client, "INFO errorstats");
        let errors = String::from_utf8_lossy(errors.as_bytes().expect("text")).into_owned();
        assert!(errors.contains("errorstat_ERR:count=4"), "{errors}");
    });
}

#[test]
fn a_command_aside_is_one_call() {
    on_both_backends(TWO_THREADS, |server| {
        let mut client = connect(server);
        sources(&mut client);
        run(&mut client, "CONFIG RESETSTAT");
        run(&mut client, "SUNIONSTORE d sa sb");
        run(&mut client, "ZUNION 2 za zb");
        run(&mut client, "SORT words");
        let info = run(&mut client, "INFO commandstats");
        let info = String::from_utf8_lossy(info.as_bytes().expect("text")).into_owned();
        for line in ["sunionstore:calls=1,", "zunion:calls=1,", "sort:calls=1,"] {
            assert!(info.contains(line), "{line} in {info}");
        }
        let sort = info.lines().find(|line| line.starts_with("cmdstat_sort:")).expect("a line");
        assert!(sort.ends_with("failed_calls=1"), "{sort}");
    });
}

#[test]
fn later_requests_wait_for_a_result_aside() {
    on_both_backends(TWO_THREADS, |server| {
        let mut client = connect(server);
        sources(&mut client);
        for text in [
            "SUNIONSTORE d sa sb",
            "SCARD d",
            "ZUNION 2 za zb",
            "PING",
            "SORT la STORE d",
            "COPY d e REPLACE",
            "LLEN e",
            "SORT words",
            "CLIENT REPLY SKIP",
            "SUNIONSTORE d sa few",
            "SCARD d",
            "DEL d",
        ] {
            client.request(&words(text)).expect("sent");
        }
        let mut reply = || client.reply().expect("a reply");
        assert_eq!(reply(), Value::Integer(30_000));
        assert_eq!(reply(), Value::Integer(30_000));
        assert_eq!(array(reply()).len(), 30_000);
        assert_eq!(reply(), pong());
        assert_eq!(reply(), Value::Integer(20_000));
        assert_eq!(reply(), Value::Integer(1));
        assert_eq!(reply(), Value::Integer(20_000));
        assert_eq!(reply(), error("ERR One or more scores can't be converted into double"));
        assert_eq!(reply(), Value::Integer(20_000));
        assert_eq!(reply(), Value::Integer(1));
    });
}

/// Replaces both sources by those of another generation, at one go.
fn write_generation(client: &mut Client, generation: usize) {
    run(client, "MULTI");
    for (key, first) in [("ga", 0), ("gb", ELEMENTS)] {
        run(client, &format!("DEL {key}"));
        let mut request = vec!["SADD".to_owned(), key.to_owned()];
        request.extend((first..first + ELEMENTS).map(|n| format!("{generation}:{n}")));
        client.call(&request).expect("queued");
    }
    assert_eq!(array(run(client, "EXEC")).len(), 4);
}

fn generation_of(members: Vec<Value>) -> usize {
    let of = |value: &Value| {
        let text = String::from_utf8(value.as_bytes().expect("bytes").to_vec()).expect("text");
        let (generation, number) = text.split_once(':').expect("two numbers");
        (generation.parse::<usize>().expect("one"), number.parse::<usize>().expect("another"))
    };
    let mut all: Vec<(usize, usize)> = members.iter().map(of).collect();
    all.sort_unstable();
    let generation = all[0].0;
    assert!(all.iter().all(|&(of, _)| of == generation), "one moment");
    assert!(all.iter().map(|&(_, number)| number).eq(0..2 * ELEMENTS), "all of it");
    generation
}

#[test]
fn what_is_stored_was_so_at_one_moment_between_request_and_reply() {
    on_both_backends(TWO_THREADS, |server| {
        write_generation(&mut connect(server), 0);
        let over = AtomicBool::new(false);
        let newest = std::sync::atomic::AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut writer = connect(server);
                let began = Instant::now();
                let mut generation = 0;
                while began.elapsed() < Duration::from_secs(3) {
                    generation += 1;
                    // It counts as there from when it is sent: that is the latest it can be read.
                    write_generation(&mut writer, generation);
                    newest.store(generation, Relaxed);
                    let rest = [0, 0, 20, 100][generation % 4];
                    thread::sleep(Duration::from_millis(rest));
                }
                over.store(true, Relaxed);
            });
            for number in 0..2 {
                let (over, newest) = (&over, &newest);
                scope.spawn(move || {
                    let mut client = connect(server);
                    let to = format!("d{number}");
                    while !over.load(Relaxed) {
                        let oldest = newest.load(Relaxed);
                        let reply = run(&mut client, &format!("SUNIONSTORE {to} ga gb"));
                        assert_eq!(reply, Value::Integer(2 * ELEMENTS as i64));
                        let latest = newest.load(Relaxed) + 1;
                        let stored = run(&mut client, &format!("SMEMBERS {to}"));
                        let generation = generation_of(array(stored));
                        assert!((oldest..=latest).contains(&generation), "{generation}");
                        let oldest = newest.load(Relaxed);
                        let seen = generation_of(array(run(&mut client, "SUNION ga gb")));
                        let latest = newest.load(Relaxed) + 1;
                        assert!((oldest..=latest).contains(&seen), "{seen}");
                    }
                });
            }
        });
        let mut client = connect(server);
        assert!(info_number(&mut client, "ladon", "aside_jobs") > 0);
        assert!(info_number(&mut client, "ladon", "aside_repeated") > 0, "some came in between");
    });
}

#[test]
fn what_happens_to_sources_meanwhile_is_seen_or_came_later() {
    on_both_backends(TWO_THREADS, |server| {
        let (mut client, mut other) = (connect(server), connect(server));
        let changes: &[(&str, &[i64])] = &[
            ("FLUSHALL", &[120_000, 0]),
            ("DEL a", &[120_000, 80_000]),
            ("PEXPIRE a 1", &[120_000, 80_000]),
            ("SADD a another", &[120_000, 120_001]),
            ("SREM b m50000 m110000", &[120_000, 119_999]),
            ("RENAME a c", &[120_000, 80_000]),
            ("SWAPDB 0 1", &[120_000, 0]),
            ("SET d text", &[120_000]),
        ];
        for (change, counts) in changes {
            run(&mut other, "FLUSHALL");
            large_sets(&mut other);
            let jobs = info_number(&mut other, "ladon", "aside_jobs");
            client.request(&words("SUNIONSTORE d a b")).expect("sent");
            wait_for_jobs(&mut other, jobs + 1);
            run(&mut other, change);
            let Value::Integer(count) = client.reply().expect("a reply") else { panic!("a count") };
            assert!(counts.contains(&count), "{change}: {count}");
            // Both before and after the swap it is in what was the first one for this client.
            let found = run(&mut client, "SCARD d");
            let swapped = change.starts_with("SWAPDB").then(|| {
                run(&mut client, "SELECT 1");
                let found = run(&mut client, "SCARD d");
                run(&mut client, "SELECT 0");
                found
            });
            let all = [Some(found), swapped];
            let is_there = all.iter().flatten().any(|found| *found == Value::Integer(count));
            let was_flushed = *change == "FLUSHALL" && all[0] == Some(Value::Integer(0));
            let was_replaced = *change == "SET d text";
            assert!(is_there || was_flushed || was_replaced, "{change}: {all:?}");
        }
        // Of another type by then, or gone.
        run(&mut other, "FLUSHALL");
        large_sets(&mut other);
        client.request(&words("SUNIONSTORE d a b")).expect("sent");
        run(&mut other, "SET a text");
        let reply = client.reply().expect("a reply");
        let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value";
        assert!(reply == Value::Integer(120_000) || reply == error(wrong), "{reply:?}");
    });
}

#[test]
fn a_move_sees_what_happens_to_its_source_meanwhile() {
    on_both_backends(TWO_THREADS, |server| {
        let (mut client, mut other) = (connect(server), connect(server));
        let missing = || error("ERR no such key");
        let changes: &[(&str, &str, i64)] = &[
            ("RENAME a d", "SADD a another", 80_001),
            ("RENAME a d", "SREM a m1", 79_999),
            ("RENAME a d", "PEXPIRE a 1000000", 80_000),
            ("RENAME a d", "DEL a", 0),
            ("RENAME a d", "FLUSHALL", 0),
            ("RENAMENX a d", "SADD d other", 80_000),
            ("MOVE a 1", "SADD a another", 80_001),
            ("MOVE a 1", "SWAPDB 0 1", 80_000),
            ("COPY a d", "SADD d other", 80_000),
        ];
        for &(text, change, count) in changes {
            run(&mut other, "FLUSHALL");
            large_sets(&mut other);
            let jobs = info_number(&mut other, "ladon", "aside_jobs");
            client.request(&words(text)).expect("sent");
            wait_for_jobs(&mut other, jobs + 1);
            run(&mut other, change);
            let reply = client.reply().expect("a reply");
            if reply == missing() {
                assert_eq!(count, 0, "{text}, {change}");
                continue;
            }
            // Wherever it is, it is all there, once; the change came before, or later to no avail.
            let mut counts = Vec::new();
            for (db, key) in [("0", "a"), ("0", "d"), ("1", "a")] {
                run(&mut other, &format!("SELECT {db}"));
                if let Value::Integer(found @ 2..) = run(&mut other, &format!("SCARD {key}")) {
                    counts.push(found);
                }
            }
            run(&mut other, "SELECT 0");
            let copies = if text.starts_with("COPY") && reply == Value::Integer(1) { 2 } else { 1 };
            let was_flushed = change == "FLUSHALL" && counts.is_empty();
            let was_late = change.starts_with("SADD") && copies == 1 && counts == [80_000];
            let is_whole = counts.len() == copies
                && counts.iter().all(|&n| n == 80_000 || n == count || n == 80_001);
            assert!(was_flushed || was_late || is_whole, "{text}, {change}: {reply:?}, {counts:?}");
        }
        assert!(info_number(&mut other, "ladon", "aside_repeated") > 0, "some came in between");
    });
}

#[test]
fn who_watches_or_waits_for_the_destination_is_told() {
    on_both_backends(TWO_THREADS, |server| {
        let (mut client, mut other) = (connect(server), connect(server));
        sources(&mut client);
        run(&mut other, "WATCH d");
        run(&mut client, "SUNIONSTORE d sa sb");
        run(&mut other, "MULTI");
        run(&mut other, "SET d text");
        assert_eq!(run(&mut other, "EXEC"), Value::NullArray);
        // Who watches only a source goes on.
        run(&mut other, "WATCH sa");
        run(&mut client, "SUNIONSTORE d sa sb");
        run(&mut other, "MULTI");
        run(&mut other, "PING");
        assert_eq!(array(run(&mut other, "EXEC")), [pong()]);

        run(&mut client, "DEL d");
        other.request(&words("BZPOPMIN d 10")).expect("sent");
        thread::sleep(Duration::from_millis(50));
        assert_eq!(run(&mut client, "ZUNIONSTORE d 2 za zb"), Value::Integer(30_000));
        assert_eq!(array(other.reply().expect("served"))[0], live::bulk("d"));
        assert_eq!(run(&mut client, "ZCARD d"), Value::Integer(29_999));

        run(&mut client, "DEL d");
        other.request(&words("BLPOP d 10")).expect("sent");
        thread::sleep(Duration::from_millis(50));
        assert_eq!(run(&mut client, "SORT la STORE d"), Value::Integer(20_000));
        assert_eq!(array(other.reply().expect("served"))[0], live::bulk("d"));
        assert_eq!(run(&mut client, "LLEN d"), Value::Integer(19_999));

        other.request(&words("BLPOP e 10")).expect("sent");
        thread::sleep(Duration::from_millis(50));
        let mut third = connect(server);
        run(&mut third, "WATCH d");
        assert_eq!(run(&mut client, "RENAME d e"), ok());
        assert_eq!(array(other.reply().expect("served"))[0], live::bulk("e"));
        assert_eq!(run(&mut client, "LLEN e"), Value::Integer(19_998));
        run(&mut third, "MULTI");
        run(&mut third, "PING");
        assert_eq!(run(&mut third, "EXEC"), Value::NullArray, "it is gone");
    });
}

#[test]
fn who_leaves_or_is_made_to_leave_stores_nothing() {
    on_both_backends(TWO_THREADS, |server| {
        let mut control = connect(server);
        large_sets(&mut control);
        for turn in 0..6 {
            let jobs = info_number(&mut control, "ladon", "aside_jobs");
            let mut client = connect(server);
            let text = ["SUNIONSTORE d a b", "SUNION a b"][turn % 2];
            client.request(&words(text)).expect("sent");
            wait_for_jobs(&mut control, jobs + 1);
            if turn < 3 {
                run(&mut control, "CLIENT KILL TYPE normal SKIPME yes");
            }
            drop(client);
            let began = Instant::now();
            while info_number(&mut control, "clients", "connected_clients") > 1 {
                assert!(began.elapsed() < Duration::from_secs(20), "it is gone");
            }
            // A job that was faster may have stored it.
            run(&mut control, "DEL d");
        }
        // Nothing is left behind: the same again works, and finds nothing in its way.
        assert_eq!(run(&mut control, "SUNIONSTORE d a b"), Value::Integer(120_000));
    });
}

#[test]
fn a_large_store_survives_the_process() {
    for gate in ["write", "everysec", "fsync"] {
        let dir = tempfile::tempdir().expect("a directory");
        let arguments = ["--gate", gate, "--io-threads", "2"];
        let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &arguments);
        let mut server = launch.start().expect("starts");
        let mut client = connect(&server);
        large_sets(&mut client);
        fill(&mut client, "ZADD z", 0..50_000, |n| vec![n.to_string(), format!("m{n}")]);
        assert_eq!(run(&mut client, "SUNIONSTORE d a b"), Value::Integer(120_000));
        assert_eq!(run(&mut client, "ZUNIONSTORE e 2 z a"), Value::Integer(80_000));
        run(&mut client, "SADD d behind");
        assert_eq!(run(&mut client, "RENAME a moved"), ok());
        run(&mut client, "SADD moved behind");
        assert_eq!(run(&mut client, "MOVE z 3"), Value::Integer(1));
        run(&mut client, "SETBIT bits 30000000 1");
        run(&mut client, "BITOP NOT not bits");
        run(&mut client, "SETBIT not 5 0");
        let stored = contents(&mut client, "d");
        let others = contents(&mut client, "e");
        let moved = contents(&mut client, "moved");
        let not = contents(&mut client, "not");
        server.kill().expect("killed");
        let mut server = launch.start().expect("starts again");
        let mut client = connect(&server);
        assert!(contents(&mut client, "d") == stored, "{gate}");
        assert!(contents(&mut client, "e") == others, "{gate}");
        assert!(contents(&mut client, "moved") == moved, "{gate}");
        assert!(contents(&mut client, "not") == not, "{gate}");
        assert_eq!(run(&mut client, "EXISTS a z"), Value::Integer(0), "{gate}");
        run(&mut client, "SELECT 3");
        assert_eq!(run(&mut client, "ZCARD z"), Value::Integer(50_000), "{gate}");
        assert!(server.terminate().expect("ends").success());
    }
}
