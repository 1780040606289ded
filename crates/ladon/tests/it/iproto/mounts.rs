//! Mounted spaces on the real binary: RESP and IPROTO on the same tuples, through kills.

use super::client::{array, int, map, text};
use super::long_commits::begin_naming;
use super::{ADMIN_PASSWORD, Node};
use ladon_crash::{Client, Server};
use ladon_iproto::Request;
use ladon_iproto::request::{Begin, Put, SpaceRef};
use ladon_resp::client::Value;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

const USERS: u32 = 512;

/// Runs `ladon space` and returns what it printed.
#[track_caller]
fn space(node: &Node, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_ladon"))
        .args(["space", "--iproto", &format!("127.0.0.1:{}", node.ports.first())])
        .args(arguments)
        .env("LADON_IPROTO_PASSWORD", ADMIN_PASSWORD)
        .output()
        .expect("runs");
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Users under `user:`, with a unique index of their mail addresses.
fn make_users(node: &Node) {
    let fields = ["id:unsigned", "name:string", "mail:string?", "visits:unsigned?"];
    let fields: Vec<&str> = fields.iter().flat_map(|field| ["--field", field]).collect();
    space(node, &[&["create", "users"], &fields[..]].concat()).expect("created");
    space(node, &["index", "users", "pk", "--part", "id:unsigned"]).expect("created");
    space(node, &["mount", "users", "user:"]).expect("mounted");
    let part = |field: u64| {
        let names = [(text("field"), int(field)), (text("type"), text("string"))];
        map(&[&names[..], &[(text("is_nullable"), vec![0xc3])]].concat())
    };
    let unique = map(&[(text("unique"), vec![0xc3])]);
    let head = [int(USERS.into()), int(1), text("mail"), text("tree"), unique];
    node.admin().insert(288, &array(&[&head[..], &[array(&[part(2)])]].concat()));
}

fn call(client: &mut Client, line: &str) -> Value {
    client.call(&line.split(' ').collect::<Vec<_>>()).expect("a reply")
}

fn words(value: &Value) -> Vec<String> {
    let list = value.as_slice().unwrap_or_else(|| panic!("{value:?}"));
    list.iter()
        .map(|word| String::from_utf8_lossy(word.as_bytes().expect("a string")).into_owned())
        .collect()
}

fn is_error(value: &Value, part: &str) -> bool {
    matches!(value, Value::Error(text) if String::from_utf8_lossy(text.as_ref()).contains(part))
}

fn user(id: u64, name: &str) -> Vec<u8> {
    array(&[int(id), text(name)])
}

#[test]
fn a_mount_is_declared_listed_kept_and_taken_away() {
    let node = Node::new("write");
    let mut server = node.start();
    make_users(&node);
    let listed = "512 users (memtx) id:unsigned, name:string, mail:string?, visits:unsigned?\n    \
                  mounted under 'user:'\n    index 0 pk: unique tree\n    index 1 mail: unique tree\n";
    assert_eq!(space(&node, &["list"]).as_deref(), Ok(listed));
    let mut redis = server.connect().expect("connects");
    assert_eq!(call(&mut redis, "HSET user:1 name ada"), Value::Integer(1));
    server.kill().expect("killed");
    let mut server = node.start();
    assert_eq!(space(&node, &["list"]).as_deref(), Ok(listed));
    let mut redis = server.connect().expect("connects");
    assert_eq!(words(&call(&mut redis, "HGETALL user:1")), ["id", "1", "name", "ada"]);
    // A new name leaves the mount where it is.
    space(&node, &["alter", "users", "--name", "people"]).expect("altered");
    assert!(is_error(&call(&mut redis, "GET user:1"), "space 'people'"));
    let overlapping = space(&node, &["create", "other"])
        .and_then(|_| space(&node, &["mount", "other", "user:vip:"]));
    assert!(overlapping.expect_err("overlaps").contains("cannot be told apart"));
    space(&node, &["unmount", "people"]).expect("unmounted");
    let again = space(&node, &["unmount", "people"]).expect_err("not mounted");
    assert!(again.contains("not mounted"), "{again}");
    assert_eq!(call(&mut redis, "EXISTS user:1"), Value::Integer(0));
    assert_eq!(node.admin().select(USERS, 0, &array(&[int(1)])), [user(1, "ada")]);
    server.kill().expect("killed");
}

#[test]
fn both_protocols_see_the_same_tuples() {
    let node = Node::new("write");
    let mut server = node.start();
    make_users(&node);
    let (mut redis, mut admin) = (server.connect().expect("connects"), node.admin());
    assert_eq!(call(&mut redis, "HSET user:1 name ada mail a@x"), Value::Integer(2));
    assert_eq!(admin.select(USERS, 1, &array(&[text("a@x")])).len(), 1, "the index has it");
    assert_eq!(call(&mut redis, "HSET user:1 mail b@x"), Value::Integer(0));
    assert_eq!(admin.select(USERS, 1, &array(&[text("a@x")])).len(), 0, "the index lost it");
    assert_eq!(admin.select(USERS, 1, &array(&[text("b@x")])).len(), 1);
    assert!(is_error(&call(&mut redis, "HSET user:2 name bob mail b@x"), "Duplicate key"));
    admin.insert(USERS, &array(&[int(3), text("eve"), text("e@x"), int(7)]));
    assert_eq!(call(&mut redis, "HINCRBY user:3 visits 1"), Value::Integer(8));
    assert_eq!(admin.select(USERS, 0, &array(&[int(3)]))[0].last(), Some(&8));
    admin.delete(USERS, &array(&[int(1)]));
    assert_eq!(call(&mut redis, "EXISTS user:1 user:3"), Value::Integer(1));
    assert_eq!(words(&call(&mut redis, "KEYS *")), ["user:3"]);
    server.kill().expect("killed");
}

/// Whether a WATCH of `user:1` is broken by what happens meanwhile.
fn breaks_watch(redis: &mut Client, meanwhile: impl FnOnce()) -> bool {
    call(redis, "WATCH user:1");
    meanwhile();
    call(redis, "MULTI");
    call(redis, "PING");
    call(redis, "EXEC").as_slice().is_none()
}

#[test]
fn iproto_breaks_watches_and_tells_subscribers_and_trackers() {
    let node = Node::new("write");
    let mut server = node.start();
    make_users(&node);
    let (mut redis, mut admin) = (server.connect().expect("connects"), node.admin());
    admin.insert(USERS, &user(1, "ada"));
    assert!(!breaks_watch(&mut redis, || ()));
    assert!(!breaks_watch(&mut redis, || drop(admin.insert(USERS, &user(2, "bob")))));
    let set = array(&[array(&[text("="), int(1), text("eve")])]);
    assert!(breaks_watch(&mut redis, || drop(admin.update(USERS, &array(&[int(1)]), &set))));
    // A transaction of several requests, at its commit.
    let mut stream = node.admin();
    stream.stream_id = 1;
    assert!(breaks_watch(&mut redis, || {
        let begin = Begin { timeout_seconds: None, isolation: 0, is_sync: None };
        stream.ask(&Request::Begin(begin)).expect("begins");
        let put = Put { space: SpaceRef::Id(USERS), tuple: &user(1, "gus") };
        stream.ask(&Request::Replace(put)).expect("replaces");
        stream.ask(&Request::Commit(None)).expect("commits");
    }));
    call(&mut redis, "CONFIG SET notify-keyspace-events KEA");
    let mut subscriber = server.connect().expect("connects");
    call(&mut subscriber, "PSUBSCRIBE __keyspace@0__:user:*");
    let mut tracker = server.connect().expect("connects");
    call(&mut tracker, "HELLO 3");
    call(&mut tracker, "CLIENT TRACKING ON");
    assert_eq!(words(&call(&mut tracker, "HKEYS user:1")), ["id", "name"]);
    admin.update(USERS, &array(&[int(1)]), &set);
    admin.delete(USERS, &array(&[int(1)]));
    for event in ["hset", "del"] {
        let message = subscriber.reply().expect("a message");
        assert_eq!(words(&message)[2..], ["__keyspace@0__:user:1", event]);
    }
    let push = tracker.reply().expect("an invalidation");
    let Value::Push(push) = &push else { panic!("{push:?}") };
    assert_eq!(push[0].as_bytes(), Some(&b"invalidate"[..]));
    assert_eq!(words(&push[1]), ["user:1"]);
    server.kill().expect("killed");
}

/// HSET of a new key takes the space's sequence along, so that the next insert does not meet it.
#[test]
fn a_sequence_goes_on_after_a_new_key() {
    let node = Node::new("write");
    let mut server = node.start();
    make_users(&node);
    let (mut redis, mut admin) = (server.connect().expect("connects"), node.admin());
    let no = || vec![0xc2];
    let counts = [int(1), int(1), text("ids"), int(1), int(1), int(100), int(1), int(0), no()];
    admin.insert(284, &array(&counts));
    admin.insert(340, &array(&[int(USERS.into()), int(1), no(), int(0), text("")]));
    assert_eq!(call(&mut redis, "HSET user:10 name ada"), Value::Integer(1));
    let unnumbered = array(&[vec![0xc0], text("bob")]);
    assert_eq!(admin.insert(USERS, &unnumbered), [user(11, "bob")]);
    // A refused one leaves the sequence where it was.
    assert!(is_error(&call(&mut redis, "HSET user:20 visits 1"), "needs field 'name'"));
    assert_eq!(admin.insert(USERS, &unnumbered), [user(12, "bob")]);
    call(&mut redis, "MULTI");
    call(&mut redis, "HSET user:30 name ada");
    call(&mut redis, "HSET user:31 name ada");
    call(&mut redis, "EXEC");
    server.kill().expect("killed");
    let mut server = node.start();
    assert_eq!(node.admin().insert(USERS, &unnumbered), [user(32, "bob")]);
    server.kill().expect("killed");
}

/// A transaction over both worlds is in the log as a whole or not at all.
#[test]
fn transactions_over_both_worlds_survive_kills_whole() {
    let node = Node::new("write");
    let mut server = node.start();
    make_users(&node);
    node.admin().insert(USERS, &user(1, "ada"));
    for round in 0..4 {
        let acknowledged = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                let mut redis = server.connect().expect("connects");
                let acknowledged = &acknowledged;
                scope.spawn(move || {
                    loop {
                        for line in ["MULTI", "INCR visits", "HINCRBY user:1 visits 1", "EXEC"] {
                            let words: Vec<&str> = line.split(' ').collect();
                            let Ok(reply) = redis.call(&words) else { return };
                            if line == "EXEC" {
                                let both = reply.as_slice().expect("two replies");
                                assert_eq!(both[0], both[1], "both at one moment");
                            }
                        }
                        acknowledged.fetch_add(1, SeqCst);
                    }
                });
            }
            thread::sleep(Duration::from_millis(200));
            if round % 2 == 1 {
                let mut redis = server.connect().expect("connects");
                call(&mut redis, "SAVE");
            }
            server.kill().expect("killed");
        });
        server = node.start();
        let mut redis = server.connect().expect("connects");
        let plain = call(&mut redis, "INCRBY visits 0");
        assert_eq!(call(&mut redis, "HINCRBY user:1 visits 0"), plain, "round {round}");
        let Value::Integer(count) = plain else { panic!("{plain:?}") };
        assert!(count as u64 >= acknowledged.load(SeqCst), "what was acknowledged is there");
    }
    server.kill().expect("killed");
}

/// The space comes and goes under transactions that act on it.
#[test]
fn a_space_that_comes_and_goes_harms_nobody() {
    let node = Node::new("none");
    let mut server = node.start();
    make_users(&node);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            let mut redis = server.connect().expect("connects");
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(SeqCst) {
                    for line in [
                        "WATCH user:1",
                        "MULTI",
                        "HSET user:1 name ada",
                        "INCR plain",
                        "SCAN 0 COUNT 100",
                        "DBSIZE",
                        "EXEC",
                        "DEL user:1",
                        "HGETALL user:1",
                    ] {
                        call(&mut redis, line);
                    }
                }
            });
        }
        for _ in 0..20 {
            space(&node, &["unmount", "users"]).expect("unmounted");
            space(&node, &["mount", "users", "user:"]).expect("mounted");
            space(&node, &["drop", "users"]).expect("dropped");
            make_users(&node);
        }
        stop.store(true, SeqCst);
    });
    let mut redis = server.connect().expect("connects");
    // An ordinary hash may have come while nothing was mounted.
    call(&mut redis, "DEL user:1");
    assert_eq!(call(&mut redis, "HSET user:1 name ada"), Value::Integer(1));
    server.kill().expect("killed");
}

/// Scans of many tuples hold up nobody, and find each.
#[test]
fn scans_of_many_tuples_hold_up_nobody() {
    const TUPLES: u64 = 50_000;
    let node = Node::new("none");
    let mut server = node.start();
    make_users(&node);
    fill(&server, TUPLES);
    let stop = AtomicBool::new(false);
    let mut longest = Duration::ZERO;
    thread::scope(|scope| {
        for _ in 0..4 {
            let mut scanner = server.connect().expect("connects");
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(SeqCst) {
                    assert_eq!(scan(&mut scanner, "COUNT 1000000"), TUPLES);
                }
            });
        }
        let mut polite = server.connect().expect("connects");
        for id in 0..500 {
            let asked = Instant::now();
            call(&mut polite, &format!("HGET user:{id} name"));
            longest = longest.max(asked.elapsed());
        }
        stop.store(true, SeqCst);
    });
    eprintln!("a read beside four scans waited {longest:?} at most");
    server.kill().expect("killed");
}

fn fill(server: &Server, count: u64) {
    let mut redis = server.connect().expect("connects");
    let mut bytes = Vec::new();
    for id in 0..count {
        let key = format!("user:{id}");
        ladon_resp::client::write_request(&mut bytes, &["HSET", &key, "name", "x"]);
        if bytes.len() > 1 << 16 || id + 1 == count {
            redis.send(&bytes).expect("sends");
            bytes.clear();
        }
    }
    (0..count).for_each(|_| assert_eq!(redis.reply().expect("a reply"), Value::Integer(1)));
}

/// How many keys a scan finds.
fn scan(client: &mut Client, options: &str) -> u64 {
    let (mut cursor, mut found) = ("0".to_owned(), 0);
    loop {
        let page = call(client, &format!("SCAN {cursor} {options}"));
        let [next, keys] = page.as_slice().expect("a page") else { panic!("{page:?}") };
        let keys = keys.as_slice().expect("keys").len();
        assert!(keys <= 10_000, "a page is bounded");
        found += keys as u64;
        cursor = String::from_utf8_lossy(next.as_bytes().expect("a cursor")).into_owned();
        if cursor == "0" {
            return found;
        }
    }
}

/// Hashes that clients of RESP change all the time, alone and in MULTI, keep no transaction of
/// IPROTO from its commit.
#[test]
fn long_commits_succeed_beside_writers_of_hashes() {
    const TUPLES: u64 = 1_000;
    for io_threads in [1, 3] {
        let node = Node { io_threads, ..Node::new("none") };
        let mut server = node.start();
        make_users(&node);
        let mut admin = node.admin();
        let rows: Vec<Vec<u8>> = (0..TUPLES).map(|id| user(id, "before")).collect();
        let space = SpaceRef::Id(USERS);
        let inserts: Vec<Request<'_>> =
            rows.iter().map(|tuple| Request::Insert(Put { space, tuple })).collect();
        assert!(admin.ask_all(&inserts).iter().all(Result::is_ok));
        let (over, written) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            for at in 0..2 {
                let mut redis = server.connect().expect("connects");
                let (over, written) = (&over, &written);
                scope.spawn(move || {
                    let hset = format!("HSET user:{} name other", TUPLES + at);
                    while !over.load(SeqCst) {
                        if at == 0 {
                            call(&mut redis, &hset);
                        } else {
                            assert_eq!(call(&mut redis, "MULTI"), crate::live::ok());
                            call(&mut redis, &hset);
                            assert!(call(&mut redis, "EXEC").as_slice().is_some());
                        }
                        written.fetch_add(1, SeqCst);
                    }
                });
            }
            while written.load(SeqCst) < 100 {
                thread::yield_now();
            }
            admin.stream_id = 1;
            for round in 0..4 {
                begin_naming(&mut admin, 0..TUPLES, &format!("round {round}"));
                let before = written.load(SeqCst);
                let committed = admin.ask(&Request::Commit(None));
                if committed.is_err() || round == 3 {
                    over.store(true, SeqCst);
                }
                assert_eq!(
                    committed,
                    Ok(vec![]),
                    "beside {} writes",
                    written.load(SeqCst) - before
                );
            }
        });
        let mut redis = server.connect().expect("connects");
        let last = call(&mut redis, &format!("HGET user:{} name", TUPLES - 1));
        assert_eq!(last.as_bytes(), Some(&b"round 3"[..]), "{io_threads} threads");
        server.kill().expect("killed");
    }
}
