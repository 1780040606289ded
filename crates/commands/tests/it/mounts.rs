//! Spaces mounted under prefixes of keys: tuples as hashes, beside ordinary keys and beside what
//! the other protocol does to the same tuples.

mod both_views;

use crate::common::{TestClient, TestNode, check_on};
use ladon_engine::{AllRights, Scratch};
use ladon_msgpack::write;
use ladon_space::{BoxError, Statement};

const SPACE: u32 = 280;
const INDEX: u32 = 288;
const USERS: u32 = 512;

/// MessagePack of an array of values that are encoded already.
pub fn array(values: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    write::array(&mut out, values.len() as u32);
    values.iter().for_each(|value| out.extend_from_slice(value));
    out
}

pub fn text(value: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write::str(&mut out, value.as_bytes());
    out
}

pub fn int(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write::uint(&mut out, value);
    out
}

pub fn nil() -> Vec<u8> {
    vec![0xc0]
}

fn map(pairs: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    write::map(&mut out, pairs.len() as u32);
    for (name, value) in pairs {
        out.extend_from_slice(&text(name));
        out.extend_from_slice(value);
    }
    out
}

/// Changes a definition, as IPROTO would.
fn define(node: &TestNode, space: u32, statement: Statement<'_>) -> Result<(), BoxError> {
    let append = |record: ladon_record::Record<'_>| node.log.append(&record.changes());
    let mut scratch = Scratch::default();
    node.node
        .keyspace
        .define((space, &AllRights), &mut scratch, |it| statement.run(it), append)
        .0
        .map(drop)
}

/// Runs a statement on a space, as IPROTO would.
pub fn run(node: &TestNode, space: u32, statement: Statement<'_>) -> Result<(), BoxError> {
    let append = |record: ladon_record::Record<'_>| node.log.append(&record.changes());
    let mut scratch = Scratch::default();
    let catalog = node.node.keyspace.spaces.catalog();
    let mut tx = node.node.keyspace.begin_on_spaces(&catalog, &[space], &mut scratch)?;
    let done = tx.write(space, |it| statement.run(it)).map(drop);
    tx.commit(append);
    done
}

/// A tuple of `_space`; a field is `name:type`, with a `?` at the end if it may be nil.
fn space_tuple(id: u32, name: &str, prefix: Option<&str>, fields: &[&str]) -> Vec<u8> {
    let field = |field: &&str| {
        let (name, kind) = field.split_once(':').expect("name and type");
        let is_nullable = vec![if kind.ends_with('?') { 0xc3 } else { 0xc2 }];
        let kind = text(kind.trim_end_matches('?'));
        map(&[("name", text(name)), ("type", kind), ("is_nullable", is_nullable)])
    };
    let fields: Vec<Vec<u8>> = fields.iter().map(field).collect();
    let options = prefix.map(|prefix| ("resp_prefix", text(prefix)));
    let options = map(&options.into_iter().collect::<Vec<_>>());
    let (id, owner, none) = (int(id.into()), int(1), int(0));
    array(&[id, owner, text(name), text("memtx"), none, options, array(&fields)])
}

fn index_tuple(space: u32, id: u32, name: &str, kind: &str, parts: &[(u64, &str)]) -> Vec<u8> {
    let parts: Vec<Vec<u8>> = parts
        .iter()
        .map(|(field, kind)| {
            let is_nullable = vec![if id == 0 { 0xc2 } else { 0xc3 }];
            map(&[("field", int(*field)), ("type", text(kind)), ("is_nullable", is_nullable)])
        })
        .collect();
    let options = map(&[("unique", vec![0xc3])]);
    let (space, id) = (int(space.into()), int(id.into()));
    array(&[space, id, text(name), text(kind), options, array(&parts)])
}

const FIELDS: &[&str] = &[
    "id:unsigned",
    "name:string",
    "mail:string?",
    "age:unsigned?",
    "score:double?",
    "balance:decimal?",
    "active:boolean?",
    "tags:array?",
];

/// A node with users: a primary key of a number, and a unique index of mail addresses.
pub fn node() -> TestNode {
    node_with("tree", &[(0, "unsigned")])
}

fn node_with(kind: &str, parts: &[(u64, &str)]) -> TestNode {
    let node = TestNode::new();
    let space = space_tuple(USERS, "users", Some("user:"), FIELDS);
    define(&node, SPACE, Statement::Insert(&space)).expect("a space");
    let primary = index_tuple(USERS, 0, "pk", kind, parts);
    define(&node, INDEX, Statement::Insert(&primary)).expect("an index");
    let mail = index_tuple(USERS, 1, "mail", "tree", &[(2, "string")]);
    define(&node, INDEX, Statement::Insert(&mail)).expect("an index");
    node
}

#[test]
fn tuples_are_hashes() {
    check_on(
        &node(),
        r#"
        EXISTS user:7                             => :0
        TYPE user:7                               => +none
        HGETALL user:7                            => []
        HSET user:7 name Ada mail ada@x age 36    => :3
        HGETALL user:7       => ["id" "7" "name" "Ada" "mail" "ada@x" "age" "36"]
        HSET user:7 age 37 score 1.5              => :1
        HGET user:7 age                           => "37"
        HGET user:7 balance                       => nil
        HGET user:7 nosuch                        => nil
        HMGET user:7 score name nosuch            => ["1.5" "Ada" nil]
        HLEN user:7                               => :5
        HKEYS user:7                              => ["id" "name" "mail" "age" "score"]
        HVALS user:7                              => ["7" "Ada" "ada@x" "37" "1.5"]
        HEXISTS user:7 mail                       => :1
        HEXISTS user:7 active                     => :0
        HSTRLEN user:7 mail                       => :5
        HSETNX user:7 age 1                       => :0
        HSETNX user:7 active true                 => :1
        HDEL user:7 active active nosuch          => :1
        HINCRBY user:7 age -7                     => :30
        HINCRBY user:7 age -31                    => -ERR increment or decrement would overflow
        HINCRBYFLOAT user:7 score 0.25            => "1.75"
        HINCRBYFLOAT user:7 balance 0.10          => "0.10"
        HINCRBYFLOAT user:7 balance 0.2           => "0.30"
        HMSET user:7 name Grace                   => +OK
        HSCAN user:7 0 MATCH n*                   => ["0" ["name" "Grace"]]
        EXISTS user:7 user:8 other                => :1
        TYPE user:7                               => +hash
        TTL user:7                                => :-1
        PTTL user:8                               => :-2
        PERSIST user:7                            => :0
        TOUCH user:7                              => :1
        SET plain 1                               => +OK
        DEL user:7 plain user:8                   => :2
        EXISTS user:7                             => :0
        HDEL user:7 age                           => :0
        "#,
    );
}

#[test]
fn what_a_tuple_cannot_be_is_refused() {
    check_on(
        &node(),
        r#"
        HSET user:7 age 1         => -ERR a new tuple of space 'users' needs field 'name' (string)
        HSET user:7 name a b      => -ERR wrong number of arguments for 'hset' command
        HSET user:7 name a nick b => -ERR space 'users' has no field 'nick' in its format
        HSET user:x name a        => -ERR 'user:x' is no key of space 'users': 'x' is no value of type unsigned
        HGETALL user:07           => -ERR 'user:07' is no key of space 'users': '07' is not how unsigned keys are written, which is '7'
        HSET user:7 name a age -1 => -ERR field 'age' of space 'users': '-1' is no value of type unsigned
        HSET user:7 name a tags x => -ERR field 'tags' of space 'users': values of type array are written over IPROTO only
        HSET user:7 name a id 8   => -ERR field 'id' is a part of the primary key of space 'users', and the key says what it is
        EXISTS user:7             => :0
        HSET user:7 id 7 name a mail m => :3
        HDEL user:7 id            => -ERR field 'id' is a part of the primary key of space 'users', and the key says what it is
        HDEL user:7 mail name     => -ERR field 'name' of space 'users' must have a value
        HINCRBY user:7 id 1       => -ERR field 'id' is a part of the primary key of space 'users', and the key says what it is
        HINCRBY user:7 name 1     => -ERR field 'name' of space 'users' is of type string; HINCRBY adds to unsigned, integer and number
        HINCRBYFLOAT user:7 age 1 => -ERR field 'age' of space 'users' is of type unsigned; HINCRBYFLOAT adds to double, decimal and number
        HINCRBYFLOAT user:7 score x => -ERR value is not a valid float
        HSET user:8 name b mail m => -ERR Duplicate key exists in unique index "mail" in space "users" with old tuple - [7, "a", "m"] and new tuple - [8, "b", "m"]
        EXISTS user:8             => :0
        HGETALL user:7            => ["id" "7" "name" "a" "mail" "m"]
        "#,
    );
}

/// Tools that walk all keys ask these about each.
#[test]
fn tuples_have_a_size_and_are_counted() {
    let node = node();
    let mut client = node.client();
    assert_eq!(node.run(&mut client, "HSET user:7 name a"), ":1");
    assert_eq!(node.run(&mut client, "SET plain 1"), "+OK");
    let size = node.run(&mut client, "MEMORY USAGE user:7 SAMPLES 5");
    let size: i64 = size.trim_start_matches(':').parse().expect("a number");
    assert!((10..200).contains(&size), "{size} bytes");
    for (command, reply) in [
        ("MEMORY USAGE user:8", "nil"),
        ("MEMORY USAGE user:7 SAMPLES x", "-ERR value is not an integer or out of range"),
        ("OBJECT ENCODING user:7", "\"tuple\""),
        ("OBJECT REFCOUNT user:7", ":1"),
        ("OBJECT IDLETIME user:7", ":0"),
        ("OBJECT IDLETIME user:8", "nil"),
        ("CONFIG SET maxmemory-policy allkeys-lfu", "+OK"),
        ("OBJECT FREQ user:7", ":0"),
        ("DBSIZE", ":2"),
    ] {
        assert_eq!(node.run(&mut client, command), reply, "{command}");
    }
    let info = node.run(&mut client, "INFO keyspace");
    assert!(info.contains("db0:keys=2,"), "{info}");
    // A transaction holds the spaces of its own keys only.
    assert_eq!(node.run(&mut client, "MULTI"), "+OK");
    assert_eq!(node.run(&mut client, "INFO keyspace"), "+QUEUED");
    let info = node.run(&mut client, "EXEC");
    assert!(info.contains("db0:keys=1,"), "{info}");
}

#[test]
fn other_commands_make_no_second_value() {
    let node = node();
    let mut client = node.client();
    assert_eq!(node.run(&mut client, "HSET user:7 name a"), ":1");
    for command in [
        "SET user:7 x",
        "GET user:7",
        "SET user:8 x",
        "APPEND user:9 x",
        "EXPIRE user:7 10",
        "LPUSH user:9 x",
        "SADD user:9 x",
        "ZADD user:9 1 x",
        "XADD user:9 * a b",
        "PFADD user:9 x",
        "SETBIT user:9 1 1",
        "GEOADD user:9 1 1 x",
        "MSET plain 1 user:9 x",
        "BITOP NOT user:9 plain",
        "SUNIONSTORE user:9 plain",
        "ZUNIONSTORE user:9 1 plain",
        "SORT plain STORE user:9",
        "BLPOP user:9 1",
        "LMOVE plain user:9 LEFT LEFT",
        "HEXPIRE user:7 10 FIELDS 1 name",
        "HGETDEL user:7 FIELDS 1 name",
        "HGETEX user:7 FIELDS 1 name",
        "HSETEX user:7 FIELDS 1 name b",
        "HRANDFIELD user:7",
        "RENAME user:7 plain",
        "RENAME plain user:9",
        "RENAMENX plain user:9",
        "COPY plain user:9",
        "COPY user:7 plain",
        "MOVE user:7 1",
        "SORT plain BY user:*->name",
        "SORT plain BY nosort GET user:*->name",
        "SORT plain BY *",
        "SWAPDB 0 1",
        "DEBUG POPULATE 3 user",
    ] {
        assert_eq!(node.run(&mut client, "RPUSH plain 7 9"), ":2");
        let reply = node.run(&mut client, command);
        assert!(reply.starts_with("-ERR "), "{command}: {reply}");
        assert_eq!(node.run(&mut client, "DEL plain"), ":1");
        assert_eq!(node.dump().len(), 0, "{command}");
    }
    assert_eq!(
        node.run(&mut client, "SET user:8 x"),
        "-ERR SET does not work on 'user:8': space 'users', mounted under 'user:', takes hash \
         commands for its tuples"
    );
    // Keys of other databases are ordinary ones, and cannot come to database 0.
    assert_eq!(node.run(&mut client, "SELECT 1"), "+OK");
    assert_eq!(node.run(&mut client, "SET user:8 x"), "+OK");
    for command in ["MOVE user:8 0", "COPY user:8 user:9 DB 0", "SWAPDB 1 0"] {
        let reply = node.run(&mut client, command);
        assert!(reply.starts_with("-ERR "), "{command}: {reply}");
    }
    assert_eq!(node.run(&mut client, "COPY user:8 other DB 0"), ":1");
    assert_eq!(node.run(&mut client, "KEYS *"), "[\"user:8\"]");
    assert_eq!(node.run(&mut client, "DBSIZE"), ":1");
    assert_eq!(node.run(&mut client, "SCAN 0"), "[\"0\" [\"user:8\"]]");
    assert_eq!(node.run(&mut client, "RANDOMKEY"), "\"user:8\"");
}

#[test]
fn ordinary_keys_from_before_a_mount_are_named_and_can_go() {
    let node = TestNode::new();
    check_on(&node, "SET user:7 x => +OK\nSET user:8 y => +OK");
    let space = space_tuple(USERS, "users", Some("user:"), FIELDS);
    define(&node, SPACE, Statement::Insert(&space)).expect("a space");
    check_on(
        &node,
        "HGETALL user:9 => -ERR space 'users', mounted under 'user:', has no primary index yet",
    );
    let primary = index_tuple(USERS, 0, "pk", "tree", &[(0, "unsigned")]);
    define(&node, INDEX, Statement::Insert(&primary)).expect("an index");
    check_on(
        &node,
        r#"
        HSET user:7 name a => -ERR 'user:7' is an ordinary key from before space 'users' was mounted under 'user:': DEL it, or RENAME it
        GET user:7         => -ERR GET does not work on 'user:7': space 'users', mounted under 'user:', takes hash commands for its tuples
        RENAME user:7 user:9 => *
        RENAME user:7 kept => +OK
        GET kept           => "x"
        DEL user:8 user:8  => :1
        HSET user:7 name a => :1
        HSET user:8 name b => :1
        KEYS user:*        => ["user:7" "user:8"]
        "#,
    );
}

#[test]
fn lists_of_keys_have_tuples() {
    let node = node();
    check_on(
        &node,
        r#"
        DBSIZE                    => :0
        RANDOMKEY                 => nil
        HSET user:7 name a        => :1
        RANDOMKEY                 => "user:7"
        SET plain 1               => +OK
        DBSIZE                    => :2
        KEYS *                    => ["plain" "user:7"]
        KEYS user:*               => ["user:7"]
        FLUSHALL                  => +OK
        KEYS *                    => ["user:7"]
        DBSIZE                    => :1
        "#,
    );
}

/// All keys that a scan shows, each once.
fn scanned(node: &TestNode, client: &mut TestClient, rest: &str) -> Vec<String> {
    let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
    loop {
        let reply = node.run(client, &format!("SCAN {cursor} {rest}"));
        let (next, keys) = reply[2..reply.len() - 2].split_once("\" [").expect("a page");
        let keys = keys.split(' ').filter(|key| !key.is_empty());
        found.extend(keys.map(|key| key.trim_matches('"').to_owned()));
        if next == "0" {
            found.sort();
            return found;
        }
        cursor = next.to_owned();
    }
}

#[test]
fn scans_find_all_tuples_whatever_comes_and_goes() {
    for kind in ["tree", "hash"] {
        let node = node_with(kind, &[(0, "unsigned")]);
        let mut client = node.client();
        for id in 0..100 {
            node.run(&mut client, &format!("HSET user:{id} name a"));
            node.run(&mut client, &format!("SET plain:{id} a"));
        }
        let all = scanned(&node, &mut client, "COUNT 7");
        assert_eq!(all.len(), 200, "{kind}");
        let mut users: Vec<String> = (0..100).map(|id| format!("user:{id}")).collect();
        users.sort();
        assert_eq!(scanned(&node, &mut client, "MATCH user:* COUNT 10"), users);
        assert_eq!(scanned(&node, &mut client, "TYPE hash"), users);
        assert_eq!(scanned(&node, &mut client, "TYPE string").len(), 100);
        // Every other tuple goes, and others come, between the pages.
        let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
        let mut step = 0;
        loop {
            let reply = node.run(&mut client, &format!("SCAN {cursor} MATCH user:* COUNT 3"));
            let (next, keys) = reply[2..reply.len() - 2].split_once("\" [").expect("a page");
            found.extend(keys.split(' ').map(|key| key.trim_matches('"').to_owned()));
            if next == "0" {
                break;
            }
            cursor = next.to_owned();
            let gone = step * 2 % 100;
            node.run(&mut client, &format!("DEL user:{gone}"));
            node.run(&mut client, &format!("HSET user:{} name b", 1_000 - step));
            step += 1;
        }
        for id in (1..100).step_by(2) {
            assert!(found.contains(&format!("user:{id}")), "{kind}: {id} was there all the time");
        }
    }
}

#[test]
fn transactions_touch_both_worlds_at_once() {
    check_on(
        &node(),
        r#"
        MULTI                          => +OK
        HSET user:1 name a             => +QUEUED
        INCR visits                    => +QUEUED
        HSET user:2 age 1              => +QUEUED
        HINCRBY user:1 age 5           => +QUEUED
        HGETALL user:1                 => +QUEUED
        KEYS *                         => +QUEUED
        DBSIZE                         => +QUEUED
        RANDOMKEY                      => +QUEUED
        SELECT 1                       => +QUEUED
        SET user:1 x                   => +QUEUED
        SELECT 0                       => +QUEUED
        DEL visits                     => +QUEUED
        RANDOMKEY                      => +QUEUED
        EXEC                           => *
        KEYS *                         => ["user:1"]
        MULTI                          => +OK
        HSET user:2 age 1              => +QUEUED
        HSET user:2 name b             => +QUEUED
        HINCRBY user:2 age 5           => +QUEUED
        HGETALL user:2                 => +QUEUED
        INCR visits                    => +QUEUED
        KEYS *                         => +QUEUED
        EXEC                           => [-ERR a new tuple of space 'users' needs field 'name' (string) :1 :5 ["id" "2" "name" "b" "age" "5"] :1 ["visits" "user:1" "user:2"]]
        SELECT 1                       => +OK
        GET user:1                     => "x"
        "#,
    );
}

/// As [`node`], and orders under `order:`, whose field `buyer` names a user.
fn node_with_orders() -> TestNode {
    const ORDERS: u32 = 600;
    let node = node();
    let fields = map(&[("buyer", text("id"))]);
    let key = map(&[("buyer", map(&[("space", int(USERS.into())), ("field", fields)]))]);
    let options = map(&[("resp_prefix", text("order:")), ("foreign_key", key)]);
    let field = |name: &str, is_nullable| {
        map(&[("name", text(name)), ("type", text("unsigned")), ("is_nullable", is_nullable)])
    };
    let format = array(&[field("id", vec![0xc2]), field("buyer", vec![0xc3])]);
    let (id, owner, none) = (int(ORDERS.into()), int(1), int(0));
    let space = array(&[id, owner, text("orders"), text("memtx"), none, options, format]);
    define(&node, SPACE, Statement::Insert(&space)).expect("a space");
    for (id, name, part) in [(0, "pk", (0, "unsigned")), (1, "buyer", (1, "unsigned"))] {
        let index = index_tuple(ORDERS, id, name, "tree", &[part]);
        define(&node, INDEX, Statement::Insert(&index)).expect("an index");
    }
    node
}

#[test]
fn foreign_keys_hold_for_hashes() {
    check_on(
        &node_with_orders(),
        r#"
        HSET order:1 buyer 7      => -ERR Foreign key constraint 'buyer' failed: foreign tuple was not found
        EXISTS order:1            => :0
        HSET user:7 name a        => :1
        HSET order:1 buyer 7      => :1
        HSET order:1 buyer 8      => -ERR Foreign key constraint 'buyer' failed: foreign tuple was not found
        HGET order:1 buyer        => "7"
        DEL user:7                => -ERR Foreign key 'buyer' integrity check failed: tuple is referenced
        EXISTS user:7             => :1
        HDEL order:1 buyer        => :1
        MULTI                     => +OK
        DEL user:7                => +QUEUED
        HSET order:1 buyer 7      => +QUEUED
        HSET user:7 name b        => +QUEUED
        HSET order:1 buyer 7      => +QUEUED
        SET plain 1               => +QUEUED
        EXEC                      => [:1 -ERR Foreign key constraint 'buyer' failed: foreign tuple was not found :1 :1 +OK]
        DEL order:1 user:7        => :2
        "#,
    );
}

#[test]
fn a_transaction_is_one_record() {
    let node = node();
    let mut client = node.client();
    let before = node.log.records().len();
    for line in ["MULTI", "HSET user:1 name a", "SET plain 1", "HSET user:2 name b", "EXEC"] {
        node.run(&mut client, line);
    }
    assert_eq!(node.log.records().len(), before + 1);
}

#[test]
fn watches_break_whoever_changes_the_tuple() {
    let node = node();
    let (mut client, mut other) = (node.client(), node.client());
    let transaction = |node: &TestNode, client: &mut TestClient, meanwhile: &mut dyn FnMut()| {
        assert_eq!(node.run(client, "WATCH user:1 plain"), "+OK");
        meanwhile();
        node.run(client, "MULTI");
        node.run(client, "HGET user:1 name");
        node.run(client, "EXEC")
    };
    assert_eq!(node.run(&mut client, "HSET user:1 name a"), ":1");
    assert_eq!(transaction(&node, &mut client, &mut || {}), "[\"a\"]");
    let tuple = array(&[int(1), text("b")]);
    let replaced = transaction(&node, &mut client, &mut || {
        run(&node, USERS, Statement::Replace(&tuple)).expect("replaced");
    });
    assert_eq!(replaced, "nil-array");
    let by_resp = transaction(&node, &mut client, &mut || {
        node.run(&mut other, "HSET user:1 age 3");
    });
    assert_eq!(by_resp, "nil-array");
    // Another tuple of the space.
    let another = array(&[int(2), text("b")]);
    let untouched = transaction(&node, &mut client, &mut || {
        run(&node, USERS, Statement::Replace(&another)).expect("replaced");
    });
    assert_eq!(untouched, "[\"b\"]");
    let deleted = transaction(&node, &mut client, &mut || {
        let key = array(&[int(1)]);
        run(&node, USERS, Statement::Delete { index: 0, key: &key }).expect("deleted");
    });
    assert_eq!(deleted, "nil-array");
    // The space is mounted elsewhere, and again where it was.
    let space = |prefix| space_tuple(USERS, "users", Some(prefix), FIELDS);
    let moved = transaction(&node, &mut client, &mut || {
        define(&node, SPACE, Statement::Replace(&space("u:"))).expect("altered");
    });
    assert_eq!(moved, "nil-array");
    let back = transaction(&node, &mut client, &mut || {
        define(&node, SPACE, Statement::Replace(&space("user:"))).expect("altered");
    });
    assert_eq!(back, "nil-array");
    let truncated = transaction(&node, &mut client, &mut || {
        define(&node, 330, Statement::Insert(&array(&[int(512), int(1)]))).expect("truncated");
    });
    assert_eq!(truncated, "nil-array");
    assert_eq!(transaction(&node, &mut client, &mut || {}), "[nil]");
}

#[test]
fn a_space_is_dropped_while_a_transaction_waits() {
    let node = node();
    let mut client = node.client();
    for line in ["HSET user:1 name a", "WATCH user:1", "MULTI", "HSET user:1 age 1"] {
        node.run(&mut client, line);
    }
    for id in [1, 0] {
        let key = array(&[int(512), int(id)]);
        define(&node, INDEX, Statement::Delete { index: 0, key: &key }).expect("dropped");
    }
    let key = array(&[int(512)]);
    define(&node, SPACE, Statement::Delete { index: 0, key: &key }).expect("dropped");
    assert_eq!(node.run(&mut client, "EXEC"), "nil-array");
    assert!(!node.node.keyspace.spaces.has_mounts());
    // From now on these are ordinary keys.
    assert_eq!(node.run(&mut client, "HSET user:1 nick b"), ":1");
    assert_eq!(node.run(&mut client, "KEYS *"), "[\"user:1\"]");
}

#[test]
fn scripts_are_kept_from_tuples() {
    check_on(
        &node(),
        r#"
        EVAL "return redis.call('HGETALL', KEYS[1])" 1 user:7 => *
        EVAL "return redis.pcall('HSET', KEYS[1], 'name', 'a')" 1 user:7 => -ERR HSET does not work on 'user:7': space 'users', mounted under 'user:', is out of scripts' reach; use MULTI
        EVAL "return redis.pcall('SET', KEYS[1], 'x')" 1 user:7 => -ERR SET does not work on 'user:7': space 'users', mounted under 'user:', is out of scripts' reach; use MULTI
        EVAL "return redis.pcall('KEYS', '*')" 0 => -ERR KEYS cannot list the tuples of mounted spaces in a script; send it outside
        EVAL "return redis.call('SET', KEYS[1], 'x')" 1 plain => +OK
        DBSIZE => :1
        "#,
    );
}

/// A script may run for long, and IPROTO's requests would wait for it.
#[test]
fn no_script_runs_while_tuples_are_locked() {
    let abort = "-EXECABORT Transaction discarded because of: scripts and tuples of mounted spaces \
                 cannot be in one transaction";
    for (beside, reply) in [
        ("HGET user:1 name", abort),
        ("DBSIZE", abort),
        ("COPY plain other", "[:0 \"plain\"]"),
        ("GET plain", "[nil \"plain\"]"),
    ] {
        let node = node();
        let mut client = node.client();
        let script = "EVAL \"return KEYS[1]\" 1 plain";
        for line in ["WATCH user:1", "MULTI", beside, script] {
            node.run(&mut client, line);
        }
        assert_eq!(node.run(&mut client, "EXEC"), reply, "{beside}");
        assert_eq!(node.run(&mut client, "HSET user:1 name a"), ":1");
    }
}

#[test]
fn mounts_are_checked() {
    let node = node();
    let space = |id, name, prefix| space_tuple(id, name, Some(prefix), &["id:unsigned", "n:any?"]);
    for prefix in ["user:", "user", "user:vip:", "u"] {
        let error = define(&node, SPACE, Statement::Insert(&space(513, "other", prefix)));
        let message = error.expect_err(prefix).message;
        assert!(message.contains("cannot be told apart"), "{message}");
    }
    define(&node, SPACE, Statement::Insert(&space(513, "other", "vip:"))).expect("another mount");
    for parts in [&[(0, "double")][..], &[(0, "unsigned"), (1, "scalar")]] {
        let index = index_tuple(513, 0, "pk", "tree", parts);
        let error = define(&node, INDEX, Statement::Insert(&index)).expect_err("no text");
        assert!(!error.message.is_empty());
    }
    let empty = space_tuple(514, "third", Some(""), &[]);
    let error = define(&node, SPACE, Statement::Insert(&empty)).expect_err("an empty prefix");
    assert!(error.message.contains("string of 1 to 256 bytes"), "{}", error.message);
}

#[test]
fn fields_beyond_the_format_are_named_by_number() {
    let node = node();
    let tags = array(&[text("x"), int(1)]);
    let (yes, none) = (vec![0xc3], nil());
    let tuple = array(&[int(1), text("a"), nil(), nil(), none, nil(), yes, tags, int(5), nil()]);
    run(&node, USERS, Statement::Insert(&tuple)).expect("inserted");
    check_on(
        &node,
        r#"
        HGETALL user:1 => ["id" "1" "name" "a" "active" "true" "tags" "[\"x\", 1]" "9" "5"]
        HGET user:1 9  => "5"
        HGET user:1 8  => nil
        HSET user:1 9 6 => -ERR space 'users' has no field '9' in its format
        HSET user:1 name b => :0
        HGET user:1 9  => "5"
        "#,
    );
}

#[test]
fn a_hundred_thousand_fields_are_refused_or_set_in_little_time() {
    let node = TestNode::new().without_rehearsals();
    let names: Vec<String> = (0..5_000).map(|at| format!("field{at}:string?")).collect();
    let mut fields = vec!["id:unsigned"];
    fields.extend(names.iter().map(String::as_str));
    let space = space_tuple(USERS, "wide", Some("user:"), &fields);
    define(&node, SPACE, Statement::Insert(&space)).expect("a space");
    let primary = index_tuple(USERS, 0, "pk", "tree", &[(0, "unsigned")]);
    define(&node, INDEX, Statement::Insert(&primary)).expect("an index");
    let mut client = node.client();
    let pairs: Vec<String> = (0..100_000).map(|at| format!("field{} v{at}", at % 5_000)).collect();
    let begun = std::time::Instant::now();
    assert_eq!(node.run(&mut client, &format!("HSET user:1 {}", pairs.join(" "))), ":5000");
    // Looking each of them up in the format would take half a billion comparisons.
    eprintln!("100,000 pairs of 5,000 fields: {:?}", begun.elapsed());
    assert_eq!(node.run(&mut client, "HGET user:1 field4999"), "\"v99999\"");
    assert_eq!(node.run(&mut client, "HLEN user:1"), ":5001");
}
