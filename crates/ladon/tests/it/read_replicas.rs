//! Read replicas without a cluster: the first sync of everything, breaks of every kind, and what
//! becomes of a replica that is let go.
//!
//! Waits are long, because machines that run tests are busy; nothing is asserted of a time.

mod failover;

use crate::common::until;
use crate::iproto::client::Iproto;
use crate::live::{bulk, call, error, ok};
use crate::sick_disk::SickDisk;
use ladon_crash::{Client, Launch, Server, ladon_check};
use ladon_iproto::Request;
use ladon_iproto::request::{Execute, Statement};
use ladon_resp::client::Value;
use ladon_testkit::Ports;
use nix::sys::signal::Signal;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const READ_ONLY: &str = "READONLY You can't write against a read only replica.";

/// A server on a directory and a port of its own, which it keeps when it starts again.
struct Node {
    dir: TempDir,
    ports: Ports,
    arguments: Vec<String>,
    server: Option<Server>,
}

impl Node {
    fn new(arguments: &[&str]) -> Node {
        let dir = tempfile::tempdir().expect("a folder");
        let ports = Ports::take(2).expect("free ports");
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let mut node = Node { dir, ports, arguments, server: None };
        node.start();
        node
    }

    fn of(primary: &Node, arguments: &[&str]) -> Node {
        let of = format!("127.0.0.1 {}", primary.port());
        Node::new(&[&["--replicaof", &of], arguments].concat())
    }

    fn launch(&self) -> Launch {
        let iproto = format!("127.0.0.1:{}", self.ports.numbers()[1]);
        let all = [
            "--io-threads",
            "2",
            "--enable-debug-command",
            "yes",
            "--iproto",
            &iproto,
            "--iproto-admin-password",
            "word",
        ];
        let own = self.arguments.iter().map(String::as_str);
        let all: Vec<&str> = all.into_iter().chain(own).collect();
        let mut launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), self.dir.path(), &all);
        launch.port = Some(self.port());
        launch
    }

    fn start(&mut self) {
        self.server = Some(self.launch().start().expect("starts"));
    }

    fn start_with(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        self.start();
    }

    fn port(&self) -> u16 {
        self.ports.first()
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    fn client(&self) -> Client {
        until("a connection", || Client::connect(self.port()).ok())
    }

    fn kill(&mut self) {
        self.server.take().expect("it runs").kill().expect("kills");
    }

    fn stop(&mut self) {
        let status = self.server.take().expect("it runs").terminate().expect("ends");
        assert!(status.success(), "{status}");
    }

    fn sql(&self, text: &str) -> Vec<Vec<u8>> {
        let mut client = Iproto::connect(self.ports.numbers()[1]);
        client.log_in("admin", "word").expect("logs in");
        let request =
            Request::Execute(Execute { statement: Statement::Text(text.as_bytes()), bind: None });
        client.ask(&request).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    /// A field of a section of INFO.
    fn info(&self, field: &str) -> String {
        self.try_info(field).unwrap_or_else(|| panic!("no field {field}"))
    }

    fn try_info(&self, field: &str) -> Option<String> {
        let text = self.client().call(&["INFO", "everything"]).ok()?;
        let text = String::from_utf8_lossy(text.as_bytes()?).into_owned();
        let head = format!("{field}:");
        text.lines().find_map(|line| Some(line.strip_prefix(&head)?.to_owned()))
    }

    /// Waits until the link to its primary is up.
    fn is_linked(&self) {
        until("a link", || {
            (self.try_info("master_link_status").as_deref() == Some("up")).then_some(())
        });
    }

    /// Waits until it shows the value.
    fn shows(&self, key: &str, value: &str) {
        until(&format!("{key} = {value}"), || {
            let shown = self.client().call(&["GET", key]).ok()?;
            (shown == bulk(value)).then_some(())
        });
    }

    fn digest(&self) -> Value {
        call(&mut self.client(), &["DEBUG", "DIGEST"])
    }

    fn set(&self, key: &str, value: &str) {
        assert_eq!(call(&mut self.client(), &["SET", key, value]), ok());
    }

    /// Both have the same data, once the replica has this.
    fn equals(&self, replica: &Node, mark: &str) {
        self.set("mark", mark);
        replica.shows("mark", mark);
        assert_eq!(self.digest(), replica.digest());
    }

    fn full_syncs(&self) -> usize {
        self.server().output().matches("all data of ").count()
    }
}

/// Every type, a library of functions, and a table.
fn fill(node: &Node) {
    let mut client = node.client();
    let lines = [
        "SET string value",
        "SET expiring value PX 100000000",
        "SET gone value PX 1",
        "RPUSH list a b c",
        "SADD set a b c",
        "SADD numbers 1 2 3",
        "HSET hash a 1 b 2",
        "HPEXPIRE hash 100000000 FIELDS 1 a",
        "ZADD sorted 1 a 2 b",
        "XADD stream 1-1 field value",
        "XGROUP CREATE stream group 0",
        "PFADD loglog a b c",
        "SETBIT bits 1000 1",
        "GEOADD geo 13.361389 38.115556 Palermo",
    ];
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let reply = call(&mut client, &words);
        assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
    }
    let library = "#!lua name=mine\nredis.register_function{function_name='mine', \
                   callback=function() return 7 end, flags={'no-writes'}}";
    assert_eq!(call(&mut client, &["FUNCTION", "LOAD", library]), bulk("mine"));
    let long = "x".repeat(3 << 20);
    assert_eq!(call(&mut client, &["SET", "long", &long]), ok());
    for number in 0..500 {
        assert_eq!(call(&mut client, &["SET", &format!("key:{number}"), "value"]), ok());
    }
    node.sql("CREATE TABLE t (id INT PRIMARY KEY, name STRING)");
    node.sql("INSERT INTO t VALUES (1, 'ada'), (2, 'bob')");
}

/// Writes until it is told to stop: two keys at once, with the same value.
fn write(node: &Node, stop: &AtomicBool) -> u64 {
    let (mut client, mut count) = (node.client(), 0u64);
    while !stop.load(Relaxed) {
        count += 1;
        let n = count.to_string();
        assert_eq!(call(&mut client, &["MSET", "left", &n, "right", &n]), ok());
        call(&mut client, &["RPUSH", "pushed", &n]);
    }
    count
}

/// Whether these are two values, and the same.
fn is_equal_pair(values: &Value) -> bool {
    matches!(values.as_slice(), Some([left, right]) if left == right)
}

#[test]
fn a_replica_gets_everything_while_it_is_written() {
    let primary = Node::new(&[]);
    fill(&primary);
    assert_eq!(call(&mut primary.client(), &["SAVE"]), ok());
    primary.sql("INSERT INTO t VALUES (3, 'eve')");
    let stop = AtomicBool::new(false);
    let replica = thread::scope(|threads| {
        let writer = threads.spawn(|| write(&primary, &stop));
        let replica = Node::of(&primary, &[]);
        replica.is_linked();
        // Readers never see half of a transaction.
        let mut client = replica.client();
        let read = (0..2000).map(|_| call(&mut client, &["MGET", "left", "right"]));
        let halves: Vec<Value> = read.filter(|both| !is_equal_pair(both)).take(1).collect();
        // A checkpoint while records are applied.
        let saved = call(&mut client, &["SAVE"]);
        // Before anything is asserted: a writer that goes on would be waited for.
        stop.store(true, Relaxed);
        writer.join().expect("writes");
        assert_eq!((halves, saved), (Vec::new(), ok()));
        replica
    });
    primary.equals(&replica, "1");
    let all = "SELECT * FROM t";
    assert_eq!((primary.sql(all), primary.sql(all).len()), (replica.sql(all), 3));
    let mut client = replica.client();
    assert_eq!(call(&mut client, &["FCALL_RO", "mine", "0"]), Value::Integer(7));
    assert_eq!(call(&mut client, &["SET", "x", "y"]), error(READ_ONLY));
    assert_eq!(replica.full_syncs(), 1);
    // What both say of each other.
    let port = replica.port().to_string();
    let shown = format!("ip=127.0.0.1,port={port},state=online,offset=");
    assert!(primary.info("slave0").starts_with(&shown), "{}", primary.info("slave0"));
    assert_eq!(primary.info("master_replid"), replica.info("master_replid"));
    assert_eq!((primary.info("role"), replica.info("role")), ("master".into(), "slave".into()));
    assert_eq!(replica.info("master_port"), primary.port().to_string());
    let Value::Array(role) = call(&mut client, &["ROLE"]) else { panic!("no array") };
    assert_eq!((&role[0], &role[3]), (&bulk("slave"), &bulk("connected")));
    let Value::Array(role) = call(&mut primary.client(), &["ROLE"]) else { panic!("no array") };
    let Value::Array(replicas) = &role[2] else { panic!("no array") };
    assert_eq!(replicas.len(), 1);
    // Both directories are whole, and the replica's says what it is.
    let ran = ladon_check(&replica.launch().program, &replica.launch().data).expect("checks");
    assert_eq!(ran.0, Some(0), "{}", ran.1);
    let runs = fs::read_to_string(replica.launch().data.join("runs")).expect("a file");
    assert!(runs.contains("\nreplica\n"), "{runs}");
    // What it wrote down is what it had.
    let mut replica = replica;
    replica.kill();
    replica.start();
    primary.equals(&replica, "2");
    assert_eq!(replica.full_syncs(), 0);
    assert_eq!(replica.sql(all).len(), 3);
}

#[test]
fn a_replica_goes_on_after_any_break() {
    let mut primary = Node::new(&[]);
    fill(&primary);
    let mut replica = Node::of(&primary, &[]);
    primary.equals(&replica, "1");
    // The replica is killed, stopped, and stands still.
    replica.kill();
    primary.set("a", "1");
    replica.start();
    primary.equals(&replica, "2");
    replica.stop();
    primary.set("a", "2");
    replica.start();
    primary.equals(&replica, "3");
    replica.server().signal(Signal::SIGSTOP).expect("stops");
    primary.set("a", "3");
    thread::sleep(Duration::from_millis(300));
    replica.server().signal(Signal::SIGCONT).expect("goes on");
    primary.equals(&replica, "4");
    // The primary is killed and stopped: what the replica has is a part of what is there.
    primary.kill();
    until("a link that is down", || (replica.info("master_link_status") == "down").then_some(()));
    primary.start();
    replica.is_linked();
    primary.equals(&replica, "5");
    primary.stop();
    primary.start();
    replica.is_linked();
    primary.equals(&replica, "6");
    assert_eq!(replica.full_syncs(), 0, "started anew: {}", replica.server().output());
    // The connection is cut by the primary.
    let killed = call(&mut primary.client(), &["CLIENT", "KILL", "TYPE", "replica"]);
    assert_eq!(killed, Value::Integer(1));
    primary.equals(&replica, "7");
    assert_eq!(replica.full_syncs(), 0);
}

#[test]
fn a_primary_that_lost_its_end_and_wrote_another_one_is_copied() {
    let mut primary = Node::new(&["--gate", "fsync"]);
    fill(&primary);
    let mut replica = Node::of(&primary, &[]);
    primary.equals(&replica, "1");
    primary.stop();
    // As a backup, or a snapshot of the file system, of an earlier time.
    let kept = primary.dir.path().join("kept");
    copy(&primary.launch().data, &kept);
    primary.start();
    primary.set("lost", "1");
    primary.equals(&replica, "2");
    assert_eq!(replica.full_syncs(), 1);
    replica.kill();
    primary.kill();
    fs::remove_dir_all(primary.launch().data).expect("it was there");
    fs::rename(kept, primary.launch().data).expect("it was there");
    primary.start();
    // Other bytes, at the same positions and behind.
    (0..20).for_each(|number| primary.set("else", &number.to_string()));
    replica.start();
    primary.equals(&replica, "3");
    let mut client = replica.client();
    assert_eq!(call(&mut client, &["EXISTS", "lost", "else"]), Value::Integer(1));
    // It knew before it took any of them.
    let output = replica.server().output();
    assert!(!output.contains("not its continuation"), "{output}");
    assert_eq!(replica.full_syncs(), 1, "{output}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("makes");
    for file in fs::read_dir(from).expect("lists") {
        let file = file.expect("a file");
        fs::copy(file.path(), to.join(file.file_name())).expect("copies");
    }
}

#[test]
fn a_replica_that_is_let_go_writes_and_can_be_followed() {
    let mut primary = Node::new(&[]);
    fill(&primary);
    let first = Node::of(&primary, &[]);
    let second = Node::of(&primary, &[]);
    primary.equals(&first, "1");
    primary.equals(&second, "1");
    primary.kill();
    let mut client = first.client();
    assert_eq!(call(&mut client, &["REPLICAOF", "NO", "ONE"]), ok());
    assert_eq!(call(&mut client, &["SET", "mine", "1"]), ok());
    assert_eq!(first.info("role"), "master");
    let nobody = Value::Array(vec![bulk("replicaof"), bulk("")]);
    assert_eq!(call(&mut client, &["CONFIG", "GET", "replicaof"]), nobody);
    // The other one has the same history, and goes on with this one.
    let port = first.port().to_string();
    let mut other = second.client();
    assert_eq!(call(&mut other, &["REPLICAOF", "127.0.0.1", &port]), ok());
    first.equals(&second, "2");
    assert_eq!(second.full_syncs(), 1, "{}", second.server().output());
    // What the old primary wrote alone goes.
    primary.start();
    primary.set("alone", "1");
    assert_eq!(call(&mut primary.client(), &["SLAVEOF", "127.0.0.1", &port]), ok());
    assert_eq!(call(&mut primary.client(), &["SET", "x", "y"]), error(READ_ONLY));
    first.equals(&primary, "3");
    assert_eq!(call(&mut primary.client(), &["EXISTS", "alone"]), Value::Integer(0));
    assert_eq!(primary.full_syncs(), 1);
    // A start without 'replicaof' takes writes; with it again, they go.
    let mut second = second;
    second.stop();
    second.start_with(&[]);
    second.set("own", "1");
    assert_eq!(call(&mut second.client(), &["GET", "mine"]), bulk("1"));
    second.stop();
    let of = format!("127.0.0.1 {port}");
    second.start_with(&["--replicaof", &of]);
    first.equals(&second, "4");
    assert_eq!(call(&mut second.client(), &["EXISTS", "own"]), Value::Integer(0));
}

#[test]
fn first_syncs_that_broke_leave_room_for_others() {
    let primary = Node::new(&[]);
    fill(&primary);
    let begin = || {
        let mut client = primary.client();
        let begun = call(&mut client, &["LADON.BACKUP", "BEGIN"]);
        matches!(begun, Value::Array(_)).then_some(client)
    };
    let held: Vec<Client> = (0..4).map(|_| begin().expect("a backup")).collect();
    assert!(begin().is_none(), "a fifth one");
    drop(held);
    // They would end by themselves after a minute.
    let began = std::time::Instant::now();
    let again: Vec<Client> = (0..4).map(|_| until("a backup", begin)).collect();
    assert!(began.elapsed() < Duration::from_secs(50));
    drop(again);
    let replica = Node::of(&primary, &[]);
    primary.equals(&replica, "1");
    // Back and forth: each time, all data was to come anew.
    let port = primary.port().to_string();
    for _ in 0..30 {
        let mut client = replica.client();
        assert_eq!(call(&mut client, &["REPLICAOF", "NO", "ONE"]), ok());
        assert_eq!(call(&mut client, &["REPLICAOF", "127.0.0.1", &port]), ok());
    }
    primary.equals(&replica, "2");
    assert!(began.elapsed() < Duration::from_secs(50));
}

#[test]
fn a_replica_of_a_replica() {
    let mut primary = Node::new(&[]);
    fill(&primary);
    let mut middle = Node::of(&primary, &[]);
    primary.equals(&middle, "0");
    assert_eq!(call(&mut middle.client(), &["SAVE"]), ok());
    let last = Node::of(&middle, &[]);
    primary.equals(&middle, "1");
    primary.equals(&last, "1");
    middle.kill();
    primary.set("a", "1");
    middle.start();
    primary.equals(&last, "2");
    primary.kill();
    primary.start();
    primary.equals(&last, "3");
    assert_eq!(last.full_syncs(), 1, "{}", last.server().output());
    assert_eq!(middle.info("connected_slaves"), "1");
}

#[test]
fn a_password_a_user_and_what_is_no_ladon() {
    let primary = Node::new(&[]);
    let mut client = primary.client();
    assert_eq!(call(&mut client, &["CONFIG", "SET", "requirepass", "secret"]), ok());
    let rights = ["ACL", "SETUSER", "copy", "on", ">word", "+ladon.replica", "+ladon.backup"];
    assert_eq!(call(&mut client, &rights), ok());
    assert_eq!(call(&mut client, &["SET", "a", "1"]), ok());
    let replica = Node::of(&primary, &["--masterauth", "wrong"]);
    let says = |replica: &Node, text: &str| {
        until(text, || replica.server().output().contains(text).then_some(()));
    };
    says(&replica, "WRONGPASS");
    assert_eq!(replica.info("master_link_status"), "down");
    let mut own = replica.client();
    let set = ["CONFIG", "SET", "masteruser", "copy", "masterauth", "word"];
    assert_eq!(call(&mut own, &set), ok());
    replica.shows("a", "1");
    drop(own);
    // Somebody who speaks no protocol, and one who never answers.
    let garbage = TcpListener::bind("127.0.0.1:0").expect("listens");
    let port = garbage.local_addr().expect("an address").port().to_string();
    let talker = thread::spawn(move || {
        let (mut stream, _) = garbage.accept().expect("accepts");
        let mut asked = [0; 64];
        let _ = stream.read(&mut asked);
        stream.write_all(b"$99999999999999\r\n").expect("writes");
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    });
    let mut own = replica.client();
    assert_eq!(call(&mut own, &["CONFIG", "SET", "masterauth", ""]), ok());
    assert_eq!(call(&mut own, &["REPLICAOF", "127.0.0.1", &port]), ok());
    says(&replica, "it answers more than");
    talker.join().expect("talks");
    assert_eq!(call(&mut own, &["GET", "a"]), bulk("1"));
    let zero = call(&mut own, &["REPLICAOF", "127.0.0.1", "0"]);
    assert!(matches!(zero, Value::Error(_)), "{zero:?}");
}

#[test]
fn a_redis_as_primary_is_refused_by_name() {
    let redis = Ports::take(1).expect("a port");
    let port = redis.first().to_string();
    let dir = tempfile::tempdir().expect("a folder");
    let Ok(mut process) = std::process::Command::new("redis-server")
        .args(["--port", &port, "--save", "", "--dir"])
        .arg(dir.path())
        .stdout(std::process::Stdio::null())
        .spawn()
    else {
        eprintln!("not run: there is no redis-server");
        return;
    };
    let of = format!("127.0.0.1 {port}");
    let node = Node::new(&["--replicaof", &of]);
    let text = "is no Ladon that can be followed";
    until(text, || node.server().output().contains(text).then_some(()));
    assert_eq!(node.info("master_link_status"), "down");
    // And a Redis that follows a Ladon gets an error, no dump without an end.
    let primary = Node::new(&[]);
    let mut client = Client::connect(redis.first()).expect("connects");
    let follows = ["REPLICAOF", "127.0.0.1", &primary.port().to_string()];
    assert_eq!(call(&mut client, &follows), ok());
    thread::sleep(Duration::from_millis(1500));
    let info = call(&mut client, &["INFO", "replication"]);
    let info = String::from_utf8_lossy(info.as_bytes().unwrap_or_default()).into_owned();
    assert!(info.contains("master_link_status:down"), "{info}");
    process.kill().expect("kills");
    process.wait().expect("ends");
}

#[test]
fn replicas_count_for_waits_and_for_writes() {
    let primary = Node::new(&["--min-replicas-to-write", "1", "--min-replicas-max-lag", "5"]);
    let few = error("NOREPLICAS Not enough good replicas to write.");
    assert_eq!(call(&mut primary.client(), &["SET", "a", "1"]), few);
    let mut replica = Node::of(&primary, &["--replica-serve-stale-data", "no"]);
    until("a good replica", || {
        (call(&mut primary.client(), &["SET", "a", "1"]) == ok()).then_some(())
    });
    let mut client = primary.client();
    assert_eq!(call(&mut client, &["SET", "a", "2"]), ok());
    assert_eq!(call(&mut client, &["WAIT", "1", "60000"]), Value::Integer(1));
    assert_eq!(call(&mut replica.client(), &["GET", "a"]), bulk("2"));
    assert_eq!(call(&mut client, &["SET", "a", "3"]), ok());
    let both = Value::Array(vec![Value::Integer(1), Value::Integer(1)]);
    assert_eq!(call(&mut client, &["WAITAOF", "1", "1", "60000"]), both);
    let list = call(&mut client, &["CLIENT", "LIST", "TYPE", "replica"]);
    let list = String::from_utf8_lossy(list.as_bytes().unwrap_or_default()).into_owned();
    assert!(list.contains(" flags=S"), "{list}");
    replica.kill();
    until("no replica", || (call(&mut client, &["SET", "b", "4"]) == few).then_some(()));
    assert_eq!(primary.info("connected_slaves"), "0");
    // Alone, the replica shows nothing that may be old.
    let mut primary = primary;
    primary.kill();
    replica.start();
    let down = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
    until("a refusal", || {
        (call(&mut replica.client(), &["GET", "a"]) == error(down)).then_some(())
    });
    assert_eq!(call(&mut replica.client(), &["PING"]), Value::Simple("PONG".into()));
    primary.start();
    replica.shows("a", "3");
}

#[test]
fn a_replica_that_stands_still_is_given_up_and_comes_back() {
    let primary = Node::new(&["--repl-timeout", "2"]);
    let replica = Node::of(&primary, &["--repl-timeout", "2"]);
    primary.equals(&replica, "1");
    replica.server().signal(Signal::SIGSTOP).expect("stops");
    until("no replica", || (primary.info("connected_slaves") == "0").then_some(()));
    replica.server().signal(Signal::SIGCONT).expect("goes on");
    primary.equals(&replica, "2");
    // And the other way round.
    primary.server().signal(Signal::SIGSTOP).expect("stops");
    until("no link", || (replica.info("master_link_status") == "down").then_some(()));
    primary.server().signal(Signal::SIGCONT).expect("goes on");
    primary.equals(&replica, "3");
    assert_eq!(replica.full_syncs(), 1);
}

#[test]
fn a_replica_hears_of_changes_as_clients_of_the_primary_do() {
    let primary = Node::new(&[]);
    let replica = Node::of(&primary, &["--notify-keyspace-events", "KEA"]);
    primary.equals(&replica, "1");
    let mut waiting = replica.client();
    waiting.request(&["XREAD", "BLOCK", "60000", "STREAMS", "stream", "$"]).expect("sent");
    let mut events = replica.client();
    call(&mut events, &["SUBSCRIBE", "__keyevent@0__:set"]);
    thread::sleep(Duration::from_millis(200));
    let mut client = primary.client();
    call(&mut client, &["XADD", "stream", "1-1", "a", "b"]);
    primary.set("key", "value");
    assert!(matches!(waiting.reply().expect("woken"), Value::Array(_)));
    assert!(format!("{:?}", events.reply().expect("an event")).contains("Bulk"));
    // Its clock removes nothing: the primary says when a key goes, and until then it is hidden.
    call(&mut client, &["SET", "brief", "v", "PX", "50"]);
    until("it is gone", || {
        (call(&mut replica.client(), &["EXISTS", "brief"]) == Value::Integer(0)).then_some(())
    });
    primary.equals(&replica, "2");
}

#[test]
fn a_replica_on_a_full_disk_goes_on_when_there_is_room() {
    let primary = Node::new(&[]);
    fill(&primary);
    let of = format!("127.0.0.1 {}", primary.port());
    let disk = SickDisk::new(&["--replicaof", &of, "--enable-debug-command", "yes"]);
    // Not even the first sync has room.
    disk.set("full");
    let server = disk.launch.spawn().expect("starts");
    thread::sleep(Duration::from_secs(2));
    disk.unset("full");
    drop(server);
    let server = disk.start();
    let shows = |key: &str, value: &str| {
        until(&format!("{key} = {value}"), || {
            let mut client = server.connect().ok()?;
            (client.call(&["GET", key]).ok()? == bulk(value)).then_some(())
        });
    };
    primary.set("a", "1");
    shows("a", "1");
    disk.set("full");
    for number in 0..300 {
        primary.set(&format!("more:{number}"), &"v".repeat(10_000));
    }
    primary.set("a", "2");
    thread::sleep(Duration::from_secs(1));
    disk.unset("full");
    shows("a", "2");
    let mut client = server.connect().expect("connects");
    assert_eq!(call(&mut client, &["DEBUG", "DIGEST"]), primary.digest());
}

#[test]
fn log_is_kept_for_a_replica_that_is_gone_up_to_a_setting() {
    let arguments = ["--log-segment-bytes", "1mb", "--log-keep-bytes", "1", "--gate", "none"];
    let primary = Node::new(&[&arguments[..], &["--replica-log-max", "8mb"]].concat());
    let mut replica = Node::of(&primary, &[]);
    primary.equals(&replica, "1");
    let write = |megabytes: usize| {
        let value = "v".repeat(1 << 20);
        let mut client = primary.client();
        for _ in 0..megabytes {
            assert_eq!(call(&mut client, &["SET", "large", &value]), ok());
        }
        assert_eq!(call(&mut client, &["SAVE"]), ok());
    };
    replica.kill();
    write(4);
    replica.start();
    primary.equals(&replica, "2");
    assert_eq!(replica.full_syncs(), 0, "{}", replica.server().output());
    replica.kill();
    write(20);
    let text = "more than replica-log-max";
    until(text, || primary.server().output().contains(text).then_some(()));
    write(1);
    replica.start();
    primary.equals(&replica, "3");
    assert_eq!(replica.full_syncs(), 1, "{}", replica.server().output());
}
