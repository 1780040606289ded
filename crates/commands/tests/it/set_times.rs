//! Members of sets that expire. No server that has the commands is at hand: what is expected here
//! is what the sources and tests of Redis 8.12 say.

use crate::common::{TestNode, check_on};
use ladon_kernel::request::outcome::Flow;
use ladon_platform::Clock;
use ladon_settings::Loader;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A node that can be told to read its data anew.
fn node_with_debug() -> TestNode {
    let mut loader = Loader::new();
    loader.flag("enable-debug-command", "yes");
    TestNode::with_settings(loader.finish().expect("a known flag").0)
}

#[test]
fn members_expire() {
    check_on(
        &TestNode::new(),
        r#"
        SADD s a b c                        => :3
        SPEXPIRE s 100 MEMBERS 3 a b zz     => [:1 :1 :-2]
        SPTTL s MEMBERS 4 a b c zz          => [:100 :100 :-1 :-2]
        STTL s MEMBERS 1 a                  => [:1]
        OBJECT ENCODING s                   => "listpackex"
        TYPE s                              => +set
        SPERSIST s MEMBERS 3 b c zz         => [:1 :-1 :-2]
        @advance 99
        SISMEMBER s a                       => :1
        @advance 1
        SISMEMBER s a                       => :0
        SMISMEMBER s a b                    => [:0 :1]
        SMEMBERS s                          => ["b" "c"]
        SSCAN s 0                           => ["0" ["b" "c"]]
        SORT s ALPHA                        => ["b" "c"]
        SRANDMEMBER s 5                     => ["b" "c"]
        SCARD s                             => :2
        STTL s MEMBERS 1 a                  => [:-2]
        SEXPIRE s 10 MEMBERS 2 b c          => [:1 :1]
        @advance 10000
        EXISTS s                            => :0
        TYPE s                              => +none
        SADD s a                            => :1
        STTL s MEMBERS 1 a                  => [:-1]
        # Adding a member again keeps its time.
        SEXPIRE s 10 MEMBERS 1 a            => [:1]
        SADD s a b                          => :1
        STTL s MEMBERS 2 a b                => [:10 :-1]
        SREM s a                            => :1
        SADD s a                            => :1
        STTL s MEMBERS 1 a                  => [:-1]
        # A moment that is past removes.
        SEXPIREAT s 1 MEMBERS 3 a zz a      => [:2 :-2 :-2]
        SPEXPIREAT s 1 MEMBERS 1 b          => [:2]
        EXISTS s                            => :0
        SEXPIRE s 10 MEMBERS 2 a b          => [:-2 :-2]
        STTL s MEMBERS 2 a b                => [:-2 :-2]
        SPERSIST s MEMBERS 1 a              => [:-2]
        EXISTS s                            => :0
        "#,
    );
}

/// The keywords come in any order; a condition may come twice.
#[test]
fn conditions_on_the_present_expiry() {
    check_on(
        &TestNode::new(),
        r#"
        SADD s a b                          => :2
        SEXPIRE s 10 NX MEMBERS 1 a         => [:1]
        SEXPIRE s 20 MEMBERS 2 a b NX       => [:0 :1]
        SEXPIRE s 15 gt members 2 a b GT    => [:1 :0]
        SEXPIRE s 12 LT MEMBERS 2 a b       => [:1 :1]
        SPERSIST s MEMBERS 1 a              => [:1]
        SEXPIRE s 30 XX MEMBERS 2 a b       => [:0 :1]
        SEXPIRE s 30 GT MEMBERS 2 a b       => [:0 :0]
        SEXPIRE s 30 LT MEMBERS 2 a b       => [:1 :0]
        SEXPIRE s 0 GT MEMBERS 1 a          => [:0]
        SEXPIRE s 0 LT MEMBERS 1 a          => [:2]
        SMEMBERS s                          => ["b"]
        SPEXPIREAT s 70368744177663 MEMBERS 1 b => [:1]
        SPEXPIRETIME s MEMBERS 1 b          => [:70368744177663]
        SEXPIRETIME s MEMBERS 1 b           => [:70368744178]
        "#,
    );
}

#[test]
fn what_is_wrong_is_refused() {
    const WRONG: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let mut script = "SET str x => +OK\nSADD s a => :1\n".to_owned();
    for line in [
        "SEXPIRE str x MEMBERS 1 a",
        "SPEXPIRE str 1 MEMBERS 1 a",
        "SEXPIREAT str 1 MEMBERS 1 a",
        "SPEXPIREAT str 1 MEMBERS 1 a",
        "STTL str MEMBERS x a",
        "SPTTL str MEMBERS 1 a",
        "SEXPIRETIME str MEMBERS 1 a",
        "SPEXPIRETIME str MEMBERS 1 a",
        "SPERSIST str MEMBERS x a",
        "SADDEX str MEMBERS 1 a",
        "SADDEX str MXX EX 5 MEMBERS 1 a",
    ] {
        script += &format!("{line} => {WRONG}\n");
    }
    script += r#"
        SEXPIRE s x MEMBERS 1 a             => -ERR value is not an integer or out of range
        SEXPIRE s -1 MEMBERS 1 a            => -ERR invalid expire time, must be >= 0
        SEXPIRE s 9999999999999 MEMBERS 1 a => -ERR invalid expire time in 'sexpire' command
        SPEXPIREAT s 70368744177664 MEMBERS 1 a => -ERR invalid expire time in 'spexpireat' command
        SEXPIRE s 1 NX GT MEMBERS 1 a       => -ERR Multiple condition flags specified
        SEXPIRE s 1 NX MEMBERS 1 a LT       => -ERR Multiple condition flags specified
        SEXPIRE s 1 NX NX NX                => -ERR missing MEMBERS argument
        SEXPIRE s 1 a b c d                 => -ERR unknown argument: a
        SEXPIRE s 1 NX NX MEMBERS           => -ERR MEMBERS requires at least nummembers and one member argument
        SEXPIRE s 1 NX MEMBERS 1            => -ERR MEMBERS requires at least nummembers and one member argument
        SEXPIRE s 1 MEMBERS 0 a             => -ERR Parameter `numMembers` should be greater than 0
        SEXPIRE s 1 MEMBERS x a             => -ERR Parameter `numMembers` should be greater than 0
        SEXPIRE s 1 MEMBERS 2147483648 a    => -ERR Parameter `numMembers` should be greater than 0
        SEXPIRE s 1 MEMBERS 2 a             => -ERR wrong number of arguments
        SEXPIRE s 1 MEMBERS 1 a c           => -ERR unknown argument: c
        SEXPIRE s 1 MEMBERS 1 a MEMBERS 1 b => -ERR MEMBERS keyword specified multiple times
        SEXPIRE s 1 MEMBERS 1               => -ERR wrong number of arguments for 'sexpire' command
        STTL s MEMBERS 0 a                  => -ERR Number of members must be a positive integer
        STTL s MEMBERS x a                  => -ERR Number of members must be a positive integer
        STTL s MEMBERS 1 a b                => -ERR The `nummembers` parameter must match the number of arguments
        STTL s MEMBERS 2 a                  => -ERR The `nummembers` parameter must match the number of arguments
        STTL s FIELDS 1 a                   => -ERR Mandatory argument MEMBERS is missing or not at the right position
        SPERSIST s FIELDS 1 a               => -ERR Mandatory argument MEMBERS is missing or not at the right position
        STTL s MEMBERS 1                    => -ERR wrong number of arguments for 'sttl' command
        SADDEX s EX 100 MXX                 => -ERR missing MEMBERS argument
        SADDEX s MEMBERS 0 a                => -ERR invalid number of members
        SADDEX s MEMBERS x a                => -ERR invalid number of members
        SADDEX s MEMBERS 3 a b              => -ERR wrong number of arguments
        SADDEX s EX 1 MEMBERS               => -ERR wrong number of arguments for 'saddex' command
        SADDEX s MEMBERS 1 a MEMBERS 1 a    => -ERR MEMBERS keyword specified multiple times
        SADDEX s FNX MEMBERS 1 a            => -ERR unknown argument: FNX
        SADDEX s MEMBERS 1 a c              => -ERR unknown argument: c
        SADDEX s MXX MNX MEMBERS 1 a        => -ERR Only one of MXX or MNX arguments can be specified
        SADDEX s EX 1 PX 1 MEMBERS 1 a      => -ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified
        SADDEX s KEEPTTL EXAT 1 MEMBERS 1 a => -ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified
        SADDEX s MEMBERS 1 a EX             => -ERR missing expire time
        SADDEX s PXAT -1 MEMBERS 1 a        => -ERR invalid expire time, must be >= 0
        SADDEX s EX 9999999999999 MEMBERS 1 a => -ERR invalid expire time in 'saddex' command
        SMEMBERS s                          => ["a"]
        OBJECT ENCODING s                   => "listpack"
    "#;
    check_on(&TestNode::new(), &script);
}

#[test]
fn members_are_added_with_their_time() {
    check_on(
        &TestNode::new(),
        r#"
        SADDEX s MXX MEMBERS 1 a            => :0
        EXISTS s                            => :0
        SADDEX s EX 10 MEMBERS 2 a b        => :1
        OBJECT ENCODING s                   => "listpackex"
        STTL s MEMBERS 2 a b                => [:10 :10]
        SADDEX s PX 50 MEMBERS 1 a          => :1
        SPTTL s MEMBERS 1 a                 => [:50]
        SADDEX s KEEPTTL MEMBERS 2 a c      => :1
        SPTTL s MEMBERS 2 a c               => [:50 :-1]
        SADDEX s MEMBERS 2 a d              => :1
        SPTTL s MEMBERS 2 a d               => [:-1 :-1]
        SADDEX s MNX EX 10 MEMBERS 2 a e    => :0
        SADDEX s MEMBERS 2 a e EX 10 MXX    => :0
        SISMEMBER s e                       => :0
        SADDEX s MXX EX 10 MEMBERS 2 a c    => :1
        SADDEX s MNX EX 10 MEMBERS 2 e f    => :1
        STTL s MEMBERS 3 a c e              => [:10 :10 :10]
        # In the past: the members go.
        SADDEX s PXAT 1 MEMBERS 3 a e new   => :1
        SMEMBERS s                          => ["b" "c" "d" "f"]
        SADDEX s EX 0 MEMBERS 4 b c d f     => :1
        EXISTS s                            => :0
        SADDEX s EXAT 1 MEMBERS 2 a b       => :1
        EXISTS s                            => :0
        # Without times it is as after SADD.
        SADDEX s MEMBERS 2 1 2              => :1
        OBJECT ENCODING s                   => "intset"
        SADDEX s MEMBERS 2 2 3              => :1
        OBJECT ENCODING s                   => "intset"
        SMEMBERS s                          => ["1" "2" "3"]
        SADDEX i PXAT 70368744177663 MEMBERS 2 1 2 => :1
        OBJECT ENCODING i                   => "listpackex"
        "#,
    );
}

#[test]
fn only_a_first_time_changes_the_encoding() {
    check_on(
        &node_with_debug(),
        r#"
        SADD i 1 2 3                        => :3
        SEXPIRE i 10 XX MEMBERS 1 1         => [:0]
        SEXPIRE i 10 MEMBERS 1 7            => [:-2]
        SPERSIST i MEMBERS 1 1              => [:-1]
        SEXPIRE i 0 MEMBERS 1 3             => [:2]
        OBJECT ENCODING i                   => "intset"
        SEXPIRE i 10 MEMBERS 1 1            => [:1]
        OBJECT ENCODING i                   => "listpackex"
        SPERSIST i MEMBERS 1 1              => [:1]
        OBJECT ENCODING i                   => "listpackex"
        DEBUG RELOAD                        => +OK
        OBJECT ENCODING i                   => "intset"
        CONFIG SET set-max-listpack-entries 3 => +OK
        SADDEX l EX 10 MEMBERS 3 a b c      => :1
        OBJECT ENCODING l                   => "listpackex"
        SADD l d                            => :1
        OBJECT ENCODING l                   => "hashtable"
        STTL l MEMBERS 4 a b c d            => [:10 :10 :10 :-1]
        COPY l m                            => :1
        OBJECT ENCODING m                   => "hashtable"
        STTL m MEMBERS 4 a b c d            => [:10 :10 :10 :-1]
        SADD t a b c d e                    => :5
        SEXPIRE t 10 MEMBERS 1 a            => [:1]
        OBJECT ENCODING t                   => "hashtable"
        STTL t MEMBERS 2 a b                => [:10 :-1]
        DEBUG RELOAD                        => +OK
        STTL t MEMBERS 2 a b                => [:10 :-1]
        @advance 10000
        SCARD t                             => :4
        "#,
    );
}

#[test]
fn times_move_with_members_and_keys() {
    check_on(
        &TestNode::new(),
        r#"
        SADD from a b                       => :2
        SADD to z                           => :1
        SEXPIRE from 10 MEMBERS 1 a         => [:1]
        SMOVE from to a                     => :1
        STTL to MEMBERS 2 a z               => [:10 :-1]
        SADD from a                         => :1
        SMOVE from to a                     => :1
        STTL to MEMBERS 1 a                 => [:-1]
        SADDEX from EX 20 MEMBERS 1 a       => :1
        SMOVE from to a                     => :1
        STTL to MEMBERS 1 a                 => [:20]
        SMOVE to to a                       => :1
        STTL to MEMBERS 1 a                 => [:20]
        SMOVE from new b                    => :1
        OBJECT ENCODING new                 => "listpack"
        SADDEX from EX 20 MEMBERS 1 c       => :1
        SMOVE from newer c                  => :1
        STTL newer MEMBERS 1 c              => [:20]
        # What is computed from sets has no times.
        SUNIONSTORE u to newer              => :3
        STTL u MEMBERS 3 a z c              => [:-1 :-1 :-1]
        OBJECT ENCODING u                   => "listpack"
        RENAME to there                     => +OK
        PEXPIRE there 30000                 => :1
        STTL there MEMBERS 2 a z            => [:20 :-1]
        @advance 20000
        SMEMBERS there                      => ["z"]
        PTTL there                          => :10000
        EXISTS newer                        => :0
        SINTER u there                      => ["z"]
        SADDEX there PX 10 MEMBERS 1 y      => :1
        EVAL "return redis.call('SPTTL', KEYS[1], 'MEMBERS', 2, 'y', 'z')" 1 there => [:10 :-1]
        ZUNION 2 there u                    => ["a" "c" "y" "z"]
        @advance 10
        EVAL "return redis.call('SMEMBERS', KEYS[1])" 1 there => ["z"]
        ZUNION 2 there u WITHSCORES         => ["a" "1" "c" "1" "z" "2"]
        SINTERCARD 2 u there                => :1
        SDIFFCARD 3 u there newer           => :2
        # A client that watches the key sees the member go.
        SADDEX w PX 10 MEMBERS 1 a          => :1
        SADD w b                            => :1
        WATCH w                             => +OK
        @advance 10
        MULTI                               => +OK
        SCARD w                             => +QUEUED
        EXEC                                => nil-array
        "#,
    );
}

#[test]
fn many_members_expire_each_in_its_time() {
    let node = TestNode::new();
    let mut client = node.client();
    for number in 0..600 {
        let line = format!("SADDEX s PX {} MEMBERS 1 m{number}", 1 + number % 100);
        assert_eq!(node.run(&mut client, &line), ":1");
    }
    assert_eq!(node.run(&mut client, "OBJECT ENCODING s"), "\"hashtable\"");
    for passed in 1..=100 {
        node.clock.advance(1);
        assert_eq!(node.run(&mut client, "SCARD s"), format!(":{}", 6 * (100 - passed)));
    }
    assert_eq!(node.run(&mut client, "EXISTS s"), ":0");
    assert_eq!(node.replayed(), node.dump());
}

/// Removing what has expired takes several turns, except in a transaction.
#[test]
fn what_expired_at_one_moment_does_not_leave_in_one_turn() {
    for (add, count) in
        [("SADDEX k PX 10 MEMBERS 1000", "SCARD k"), ("HSETEX k PX 10 FIELDS 1000", "HLEN k")]
    {
        let node = TestNode::new();
        let mut client = node.client();
        let is_set = count.starts_with('S');
        let element =
            |number: usize| if is_set { format!("m{number}") } else { format!("m{number} v") };
        let elements: Vec<String> = (0..1000).map(element).collect();
        let line = format!("{add} {}", elements.join(" "));
        let lasting = if is_set { "SADD k lasting" } else { "HSET k lasting v" };
        for in_exec in [false, true] {
            assert_eq!(node.run(&mut client, &line), ":1");
            node.run(&mut client, lasting);
            node.clock.advance(10);
            if in_exec {
                node.run(&mut client, "MULTI");
                node.run(&mut client, count);
                assert_eq!(node.run(&mut client, "EXEC"), "[:1]");
                continue;
            }
            let args: Vec<&[u8]> = count.split(' ').map(str::as_bytes).collect();
            let mut turns = 0;
            let reply = loop {
                let records = node.log.records().len();
                let (reply, outcome) = node.request(&mut client, &args);
                assert_eq!(node.log.records().len(), records + 1, "what went is logged");
                if !matches!(outcome.flow, Flow::Again) {
                    break reply;
                }
                assert!(reply.is_empty());
                turns += 1;
            };
            assert_eq!((reply.as_slice(), turns), (&b":1\r\n"[..], 3), "{count}");
            // Others are not concerned, nor is a key that went as a whole.
            assert_eq!(node.run(&mut client, "EXISTS other"), ":0");
            node.run(&mut client, "DEL k");
            assert_eq!(node.run(&mut client, &line), ":1");
            node.clock.advance(10);
            assert_eq!(node.run(&mut client, count), ":0");
        }
        assert_eq!(node.replayed(), node.dump());
    }
}

/// What stays after `SPOP` keeps its time, however few stay.
#[test]
fn what_is_not_popped_keeps_its_time() {
    let node = TestNode::new();
    let mut client = node.client();
    for entries in [128, 3] {
        node.run(&mut client, &format!("CONFIG SET set-max-listpack-entries {entries}"));
        node.run(&mut client, "DEL s");
        let members: Vec<String> = (0..40).map(|number| format!("m{number}")).collect();
        let line = format!("SADDEX s EX 10 MEMBERS 40 {}", members.join(" "));
        assert_eq!(node.run(&mut client, &line), ":1");
        let encoding = node.run(&mut client, "OBJECT ENCODING s");
        for (count, left) in [("1", 39), ("9", 30), ("28", 2)] {
            node.run(&mut client, &format!("SPOP s {count}"));
            assert_eq!(node.run(&mut client, "SCARD s"), format!(":{left}"));
            let line = format!("STTL s MEMBERS 40 {}", members.join(" "));
            let times = node.run(&mut client, &line);
            assert_eq!(times.matches(":10").count(), left, "{times}");
        }
        assert_eq!(node.run(&mut client, "OBJECT ENCODING s"), encoding);
        assert_eq!(node.replayed(), node.dump());
    }
}

/// Members and when they expire (0: never), by key.
type Model = BTreeMap<String, BTreeMap<String, u64>>;

#[derive(Clone, Debug)]
enum Step {
    Run(Vec<String>),
    /// With a time from now, before `MEMBERS`.
    RunAt(Vec<String>, u64, Vec<String>),
    Advance(u64),
}

fn key() -> impl Strategy<Value = String> {
    (0..3u8).prop_map(|n| format!("k{n}"))
}

fn members() -> impl Strategy<Value = Vec<String>> {
    let member = prop_oneof![
        2 => (0..5u8).prop_map(|n| n.to_string()),
        2 => (0..5u8).prop_map(|n| format!("m{n}")),
        1 => Just("x".repeat(70)),
    ];
    prop::collection::vec(member, 1..5)
}

fn words(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

fn counted(members: &[String]) -> Vec<String> {
    let mut words = vec!["MEMBERS".to_owned(), members.len().to_string()];
    words.extend_from_slice(members);
    words
}

fn step() -> impl Strategy<Value = Step> {
    let condition = prop::sample::select(vec!["", "", "NX", "XX", "GT", "LT"]);
    let exist = prop::sample::select(vec!["", "", "MNX", "MXX"]);
    let plain = prop::sample::select(vec!["SADD", "SADD", "SREM"]);
    let asking = prop::sample::select(vec!["SPEXPIRETIME", "SPTTL", "SPERSIST"]);
    let of_key = prop::sample::select(vec!["SCARD", "SMEMBERS", "SPOP", "DEL"]);
    let of_keys = prop::sample::select(vec!["SUNIONSTORE", "SINTERSTORE", "COPY", "RENAME"]);
    prop_oneof![
        4 => (plain, key(), members()).prop_map(|(name, key, members)| {
            Step::Run([words(&[name, &key]), members].concat())
        }),
        4 => (key(), condition, 0..60u64, members()).prop_map(|(key, condition, ms, members)| {
            let mut rest = counted(&members);
            rest.extend((!condition.is_empty()).then(|| condition.to_owned()));
            Step::RunAt(words(&["SPEXPIREAT", &key]), ms, rest)
        }),
        3 => (key(), exist, 0..60u64, 0..4u8, members()).prop_map(
            |(key, exist, ms, how, members)| {
                let mut begin = words(&["SADDEX", &key]);
                begin.extend((!exist.is_empty()).then(|| exist.to_owned()));
                let rest = counted(&members);
                match how {
                    0 => Step::Run([begin, rest].concat()),
                    1 => Step::Run([begin, words(&["KEEPTTL"]), rest].concat()),
                    _ => Step::RunAt([begin, words(&["PXAT"])].concat(), ms, rest),
                }
            }
        ),
        3 => (asking, key(), members()).prop_map(|(name, key, members)| {
            Step::Run([words(&[name, &key]), counted(&members)].concat())
        }),
        2 => (of_key, key()).prop_map(|(name, key)| {
            let count = (name == "SPOP").then(|| "100".to_owned());
            Step::Run(words(&[name, &key]).into_iter().chain(count).collect())
        }),
        2 => (key(), key(), members()).prop_map(|(from, to, members)| {
            Step::Run(words(&["SMOVE", &from, &to, &members[0]]))
        }),
        1 => (of_keys, key(), key(), key()).prop_map(|(name, a, b, c)| {
            Step::Run(match name {
                "COPY" => words(&[name, &a, &b, "REPLACE"]),
                "RENAME" => words(&[name, &a, &b]),
                _ => words(&[name, &a, &b, &c]),
            })
        }),
        1 => Just(Step::Run(words(&["DEBUG", "RELOAD"]))),
        3 => (1..30u64).prop_map(Step::Advance),
    ]
}

fn integers(values: impl Iterator<Item = i64>) -> String {
    let values: Vec<String> = values.map(|value| format!(":{value}")).collect();
    format!("[{}]", values.join(" "))
}

fn integer(value: impl TryInto<i64>) -> String {
    format!(":{}", value.try_into().unwrap_or(i64::MAX))
}

/// The members' list, in order.
fn listed(members: impl Iterator<Item = String>) -> String {
    let mut members: Vec<String> = members.map(|member| format!("\"{member}\"")).collect();
    members.sort();
    format!("[{}]", members.join(" "))
}

/// A reply whose order means nothing, in order.
fn in_order(name: &str, reply: String) -> String {
    if !matches!(name, "SMEMBERS" | "SPOP") {
        return reply;
    }
    let text = reply.trim_start_matches('[').trim_end_matches(']');
    listed(text.split(' ').filter(|it| !it.is_empty()).map(|it| it.trim_matches('"').to_owned()))
}

/// Applies a request; the reply, in order.
#[expect(clippy::too_many_lines, reason = "one arm for each command")]
fn answer(model: &mut Model, now_ms: u64, words: &[String]) -> String {
    for set in model.values_mut() {
        set.retain(|_, at| *at == 0 || *at > now_ms);
    }
    model.retain(|_, set| !set.is_empty());
    let has = |word: &str| words.iter().any(|other| other == word);
    let at_members = words.iter().position(|word| word == "MEMBERS");
    let named: Vec<String> = at_members.map_or(Vec::new(), |at| {
        let count: usize = words[at + 1].parse().unwrap();
        words[at + 2..at + 2 + count].to_vec()
    });
    let key = words[1].clone();
    let mut set = model.remove(&key).unwrap_or_default();
    let reply = match words[0].as_str() {
        "SADD" => {
            // A member that was there keeps its time.
            let before = set.len();
            words[2..].iter().for_each(|member| _ = set.entry(member.clone()).or_insert(0));
            let added = set.len() - before;
            integer(added)
        }
        "SREM" => integer(words[2..].iter().filter(|it| set.remove(*it).is_some()).count()),
        "SPEXPIREAT" => {
            let at: u64 = words[2].parse().unwrap();
            integers(named.iter().map(|member| {
                let Some(old) = set.get(member).copied() else { return -2 };
                let allowed = (!has("NX") || old == 0)
                    && (!has("XX") || old != 0)
                    && (!has("GT") || old != 0 && at > old)
                    && (!has("LT") || old == 0 || at < old);
                if !allowed {
                    return 0;
                }
                if at <= now_ms {
                    set.remove(member);
                    return 2;
                }
                set.insert(member.clone(), at);
                1
            }))
        }
        "SADDEX" => {
            let there = named.iter().filter(|member| set.contains_key(*member)).count();
            if has("MNX") && there > 0 || has("MXX") && there < named.len() {
                integer(0)
            } else {
                let at = words.iter().position(|word| word == "PXAT");
                let at: Option<u64> = at.map(|at| words[at + 1].parse().unwrap());
                for member in named {
                    match at {
                        Some(at) if at <= now_ms => _ = set.remove(&member),
                        Some(at) => _ = set.insert(member, at),
                        None if has("KEEPTTL") => _ = set.entry(member).or_insert(0),
                        None => _ = set.insert(member, 0),
                    }
                }
                integer(1)
            }
        }
        "SPEXPIRETIME" | "SPTTL" => integers(named.iter().map(|member| match set.get(member) {
            None => -2,
            Some(0) => -1,
            Some(at) if words[0] == "SPTTL" => (at - now_ms) as i64,
            Some(at) => *at as i64,
        })),
        "SPERSIST" => integers(named.iter().map(|member| match set.get_mut(member) {
            None => -2,
            Some(0) => -1,
            Some(at) => {
                *at = 0;
                1
            }
        })),
        "SCARD" => integer(set.len()),
        "SMEMBERS" => listed(set.keys().cloned()),
        "SPOP" => listed(std::mem::take(&mut set).into_keys()),
        "DEL" => integer(usize::from(!std::mem::take(&mut set).is_empty())),
        "SMOVE" => match set.get(&words[3]).copied() {
            None => integer(0),
            Some(_) if words[1] == words[2] => integer(1),
            Some(at) => {
                set.remove(&words[3]);
                model.entry(words[2].clone()).or_default().insert(words[3].clone(), at);
                integer(1)
            }
        },
        "SUNIONSTORE" | "SINTERSTORE" => {
            model.insert(key.clone(), set);
            let of = |key: &String| model.get(key).cloned().unwrap_or_default();
            let (a, b) = (of(&words[2]), of(&words[3]));
            let both = a.keys().chain(b.keys());
            let is_in = |member: &&String| {
                words[0] == "SUNIONSTORE" || a.contains_key(*member) && b.contains_key(*member)
            };
            set = both.filter(is_in).map(|member| (member.clone(), 0)).collect();
            integer(set.len())
        }
        "COPY" if words[1] == words[2] => {
            "-ERR source and destination objects are the same".to_owned()
        }
        "RENAME" if set.is_empty() => "-ERR no such key".to_owned(),
        "COPY" if set.is_empty() => integer(0),
        "COPY" => {
            model.insert(words[2].clone(), set.clone());
            integer(1)
        }
        "RENAME" if words[1] == words[2] => "+OK".to_owned(),
        "RENAME" => {
            model.insert(words[2].clone(), std::mem::take(&mut set));
            "+OK".to_owned()
        }
        other => unreachable!("{other} is not modelled"),
    };
    if !set.is_empty() {
        model.insert(key, set);
    } else {
        model.remove(&key);
    }
    reply
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn replies_are_those_of_a_map_with_a_clock(
        steps in prop::collection::vec(step(), 1..60),
        small in any::<bool>(),
    ) {
        let node = node_with_debug();
        let mut client = node.client();
        if small {
            let settings = "set-max-listpack-entries 4 set-max-intset-entries 3";
            assert_eq!(node.run(&mut client, &format!("CONFIG SET {settings}")), "+OK");
        }
        let mut model = Model::new();
        for step in steps {
            let now_ms = node.clock.unix_ms();
            let words = match step {
                Step::Advance(ms) => {
                    node.clock.advance(ms);
                    continue;
                }
                Step::Run(words) if words[0] == "DEBUG" => {
                    prop_assert_eq!(node.run(&mut client, "DEBUG RELOAD"), "+OK");
                    continue;
                }
                Step::Run(words) => words,
                Step::RunAt(begin, ms, rest) => {
                    // Some moments have passed.
                    let at = (now_ms + ms).saturating_sub(10).to_string();
                    [begin, vec![at], rest].concat()
                }
            };
            let reply = node.run(&mut client, &words.join(" "));
            let expected = answer(&mut model, now_ms, &words);
            prop_assert_eq!(in_order(&words[0], reply), expected, "{:?}", words);
        }
        prop_assert_eq!(node.replayed(), node.dump());
    }
}
