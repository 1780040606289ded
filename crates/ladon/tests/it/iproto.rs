//! IPROTO on the real binary: spaces made as connectors make them, statements and calls on them,
//! durable at their gate, and nobody's burden.

mod admission;
pub mod client;
mod definitions_wait;
mod large_definitions;
mod large_foreign_keys;
mod long_commits;
mod long_requests_are_passed;
mod long_selections;
mod mounts;
mod overtaking;
mod sequences;
mod session_settings;
mod sql;
mod sql_shell;
mod streams;
mod watch;
mod while_loading;

use crate::sick_disk::SickDisk;
use client::{Iproto, array, int, map, text};
use ladon_crash::{Launch, Server};
use ladon_iproto::request::{IndexRef, Put, Select, SpaceRef};
use ladon_iproto::{Request, auth};
use ladon_testkit::Ports;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

const ADMIN_PASSWORD: &str = "secret";
/// `ER_WAL_IO`.
const WAL_IO: u32 = 40;

/// A server that also speaks IPROTO, on this port.
struct Node {
    dir: tempfile::TempDir,
    ports: Ports,
    gate: &'static str,
    io_threads: usize,
    io_backend: &'static str,
}

impl Node {
    fn new(gate: &'static str) -> Node {
        let dir = tempfile::tempdir().expect("a directory");
        Node {
            dir,
            ports: Ports::take(1).expect("a port"),
            gate,
            io_threads: 2,
            io_backend: "auto",
        }
    }

    fn start(&self) -> Server {
        let arguments = arguments(&self.ports, self.gate, self.io_threads);
        let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        arguments.extend(["--io-backend", self.io_backend]);
        let launch =
            Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), self.dir.path(), &arguments);
        launch.start().expect("starts")
    }

    fn guest(&self) -> Iproto {
        Iproto::connect(self.ports.first())
    }

    fn admin(&self) -> Iproto {
        admin_at(&self.ports)
    }
}

/// A server that also speaks IPROTO, on a disk that fails on command.
struct SickNode {
    disk: SickDisk,
    ports: Ports,
}

impl SickNode {
    fn guest(&self) -> Iproto {
        Iproto::connect(self.ports.first())
    }

    fn new(gate: &str) -> SickNode {
        let ports = Ports::take(1).expect("a port");
        let arguments = arguments(&ports, gate, 2);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        SickNode { disk: SickDisk::new(&arguments), ports }
    }

    fn admin(&self) -> Iproto {
        admin_at(&self.ports)
    }

    /// Asks, and fills the disk meanwhile: what had not come to its end before the log knew is
    /// refused by it. There is room again afterwards.
    fn ask_while_full(&self, server: &Server, admin: &mut Iproto, request: &Request<'_>) {
        let mut redis = server.connect().expect("connects");
        admin.tell(request);
        let _pending = self.disk.fill(server, &mut redis);
        self.disk.drain(&mut redis);
        let code = admin.receive().expect("a reply").err().map_or(WAL_IO, |(code, _)| code);
        assert_eq!(code, WAL_IO);
    }
}

fn arguments(ports: &Ports, gate: &str, io_threads: usize) -> [String; 8] {
    let (iproto, io_threads) = (format!("127.0.0.1:{}", ports.first()), io_threads.to_string());
    let [listen, password] = ["--iproto", "--iproto-admin-password"];
    ["--gate", gate, "--io-threads", &io_threads, listen, &iproto, password, ADMIN_PASSWORD]
        .map(str::to_owned)
}

fn admin_at(ports: &Ports) -> Iproto {
    let mut admin = Iproto::connect(ports.first());
    admin.log_in("admin", ADMIN_PASSWORD).expect("logs in");
    admin
}

/// A space of numbered rows, with a secondary index on the second field.
fn make_space(admin: &mut Iproto, id: u64, name: &str) {
    admin.insert(
        280,
        &array(&[int(id), int(1), text(name), text("memtx"), int(0), map(&[]), array(&[])]),
    );
    let unique = |is| map(&[(text("unique"), if is { vec![0xc3] } else { vec![0xc2] })]);
    let parts = |field: u64, kind: &str| array(&[array(&[int(field), text(kind)])]);
    let index = |number, name, is_unique, parts| {
        array(&[int(id), int(number), text(name), text("tree"), unique(is_unique), parts])
    };
    admin.insert(288, &index(0, "pk", true, parts(0, "unsigned")));
    admin.insert(288, &index(1, "by_name", false, parts(1, "string")));
}

fn row(id: u64, name: &str) -> Vec<u8> {
    array(&[int(id), text(name)])
}

#[test]
fn spaces_are_made_read_and_changed() {
    let node = Node::new("write");
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin, 512, "users");
    for (id, name) in [(1, "ada"), (2, "bob"), (3, "ada")] {
        assert_eq!(admin.insert(512, &row(id, name)), [row(id, name)]);
    }
    let twice =
        admin.ask(&Request::Insert(Put { space: SpaceRef::Id(512), tuple: &row(1, "eve") }));
    let duplicate = "Duplicate key exists in unique index \"pk\" in space \"users\" with old tuple - \
                     [1, \"ada\"] and new tuple - [1, \"eve\"]";
    assert_eq!(twice, Err((3, duplicate.to_owned())));
    assert_eq!(admin.select(512, 1, &array(&[text("ada")])), [row(1, "ada"), row(3, "ada")]);
    assert_eq!(admin.select(512, 0, &array(&[])).len(), 3);
    // By name, as calls, and as 3.x's connectors do.
    let called = admin.call("box.space.users:select", &array(&[int(2)]));
    assert_eq!(called, Ok(vec![array(&[row(2, "bob")])].into_iter().map(client::normal).collect()));
    assert_eq!(admin.call("box.space.users:get", &array(&[int(9)])), Ok(vec![]));
    let named = Request::Select(Select {
        space: SpaceRef::Name(b"users"),
        index: IndexRef::Name(b"by_name"),
        iterator: 0,
        offset: 0,
        limit: 10,
        key: &array(&[text("bob")]),
        fetch_position: false,
        after_position: None,
        after_tuple: None,
    });
    assert_eq!(admin.ask(&named), Ok(vec![row(2, "bob")]));
    let add = array(&[array(&[text("="), int(1), text("eve")])]);
    assert_eq!(admin.update(512, &array(&[int(3)]), &add), [row(3, "eve")]);
    assert_eq!(admin.delete(512, &array(&[int(1)])), [row(1, "ada")]);
    assert_eq!(admin.select(512, 0, &array(&[])), [row(2, "bob"), row(3, "eve")]);
    server.kill().expect("killed");
}

#[test]
fn rights_are_checked() {
    let node = Node::new("write");
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin, 512, "users");
    let mut guest = node.guest();
    let denied = |right: &str| {
        Err((42, format!("{right} access to space 'users' is denied for user 'guest'")))
    };
    let put = row(1, "ada");
    let insert = Request::Insert(Put { space: SpaceRef::Id(512), tuple: &put });
    assert_eq!(guest.ask(&insert), denied("Write"));
    // Read and write, on this space.
    admin.insert(312, &array(&[int(1), int(0), text("space"), int(512), int(3)]));
    assert_eq!(guest.ask(&insert), Ok(vec![put.clone()]));
    assert_eq!(guest.select(512, 0, &array(&[])), [put]);
    let wrong = "User not found or supplied credentials are invalid";
    assert_eq!(guest.log_in("admin", "guess"), Err((47, wrong.to_owned())));
    assert_eq!(guest.log_in("nobody", "guess"), Err((47, wrong.to_owned())));
    // A password of its own, as `_user` keeps it.
    let mut auth_map = Vec::new();
    auth::StoredPassword::chap_sha1(b"pw").write_map(&mut auth_map);
    let history = array(&[]);
    admin.insert(
        304,
        &array(&[int(40), int(1), text("app"), text("user"), auth_map, history, int(0)]),
    );
    admin.insert(312, &array(&[int(1), int(40), text("universe"), int(0), int(24)]));
    guest.log_in("app", "pw").expect("logs in");
    server.kill().expect("killed");
}

/// Lua looks for the primary index first. Methods of an index are found without a right to its space.
#[test]
fn a_call_looks_for_the_primary_index_before_it_looks_at_rights() {
    let node = Node::new("write");
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin, 512, "users");
    let fields = [int(513), int(1), text("empty"), text("memtx"), int(0), map(&[]), array(&[])];
    admin.insert(280, &array(&fields));
    // Guests may call.
    let grant = array(&[int(1), int(0), text("universe"), int(0), int(24 | 4)]);
    let granted = admin.ask(&Request::Replace(Put { space: SpaceRef::Id(312), tuple: &grant }));
    assert_eq!(granted, Ok(vec![grant]));
    let mut guest = node.guest();
    let missing = || Err((35, "No index #0 is defined in space 'empty'".to_owned()));
    let function = || Err((32, "unsupported Lua type 'function'".to_owned()));
    let none = || Ok(vec![int(0)]);
    let denied = |right: &str| {
        Err((42, format!("{right} access to space 'users' is denied for user 'guest'")))
    };
    let key = array(&[int(1)]);
    for (method, of_empty, of_users) in [
        ("get", missing(), denied("Read")),
        ("select", missing(), denied("Read")),
        ("delete", missing(), denied("Write")),
        ("count", none(), denied("Read")),
        ("len", none(), denied("Read")),
        ("pairs", function(), denied("Read")),
    ] {
        let mut call = |of: &str| guest.call(&format!("box.space.{of}:{method}"), &key);
        assert_eq!(call("empty"), of_empty, "{method}");
        assert_eq!(call("users"), of_users, "{method}");
        assert_eq!(call("users.index.pk"), of_users, "{method} of an index");
    }
    let unknown = guest.call("box.space.users.index.other:get", &key).expect_err("no such index");
    assert_eq!(unknown.0, 33, "{}", unknown.1);
    server.kill().expect("killed");
}

/// At gate `fsync`, with checkpoints in between: what was acknowledged is there after `kill -9`,
/// with its definitions and secondary indexes.
#[test]
fn acknowledged_tuples_survive_kills() {
    let node = Node::new("fsync");
    let acknowledged: [AtomicU64; 2] = Default::default();
    for round in 1..=4 {
        let mut server = node.start();
        let mut admin = node.admin();
        if round == 1 {
            make_space(&mut admin, 512, "rows");
            make_space(&mut admin, 600, "other");
        }
        for (part, count) in acknowledged.iter().enumerate() {
            let count = count.load(SeqCst);
            let space = if part == 0 { 512 } else { 600 };
            let found = admin.select(space, 0, &array(&[]));
            let expected = (1..=count).map(|id| row(id, &format!("n{}", id % 7)));
            assert!(found.len() as u64 >= count, "round {round}: {} of {count}", found.len());
            assert!(expected.zip(&found).all(|(expected, found)| expected == *found));
            for name in 0..7 {
                let by_name = admin.select(space, 1, &array(&[text(&format!("n{name}"))]));
                let wanted = found.iter().enumerate().filter(|(at, _)| (at + 1) % 7 == name);
                assert!(wanted.map(|(_, row)| row).eq(&by_name), "round {round}, name {name}");
            }
            let found = found.len() as u64;
            acknowledged[part].store(found, SeqCst);
        }
        write_until_killed(&node, &mut server, &acknowledged, round);
    }
}

fn write_until_killed(node: &Node, server: &mut Server, acknowledged: &[AtomicU64; 2], round: u32) {
    let writing = AtomicBool::new(true);
    thread::scope(|scope| {
        for (part, count) in acknowledged.iter().enumerate() {
            let writing = &writing;
            scope.spawn(move || {
                let mut admin = node.admin();
                let space = if part == 0 { 512 } else { 600 };
                while writing.load(SeqCst) {
                    let id = count.load(SeqCst) + 1;
                    let put = row(id, &format!("n{}", id % 7));
                    let insert = Request::Insert(Put { space: SpaceRef::Id(space), tuple: &put });
                    match admin.try_ask(&insert) {
                        Some(reply) => assert_eq!(reply, Ok(vec![put])),
                        None => return,
                    }
                    count.store(id, SeqCst);
                }
            });
        }
        thread::sleep(Duration::from_millis(150));
        if round.is_multiple_of(2) {
            let mut redis = server.connect().expect("connects");
            let saved = redis.call(&["SAVE"]).expect("a reply");
            assert_eq!(saved, crate::live::ok());
            thread::sleep(Duration::from_millis(50));
        }
        server.kill().expect("killed");
        writing.store(false, SeqCst);
    });
}

#[test]
fn info_lists_the_listeners_of_both_protocols() {
    let node = Node::new("none");
    let mut server = node.start();
    let info = crate::live::call(&mut server.connect().expect("connects"), &["INFO", "server"]);
    let info = String::from_utf8_lossy(info.as_bytes().expect("text")).into_owned();
    let listeners: Vec<&str> = info.lines().filter(|line| line.starts_with("listener")).collect();
    let iproto = format!("listener1:name=iproto,bind=127.0.0.1,port={}", node.ports.first());
    assert_eq!(listeners[1..], [iproto.as_str()], "{listeners:?}");
    assert!(listeners[0].starts_with("listener0:name=tcp,bind="), "{listeners:?}");
    server.kill().expect("killed");
}

/// A client's garbage ends its own connection at most.
#[test]
fn garbage_is_answered_and_nobody_else_notices() {
    let node = Node::new("write");
    let mut server = node.start();
    let mut polite = node.admin();
    for garbage in
        [&b"\xce\xff\xff\xff\xff"[..], b"GET / HTTP/1.1\r\n\r\n", b"\xc1\xc1", b"\x00", b"\x01\xc0"]
    {
        let mut rude = node.guest();
        rude.send(garbage);
        let _ = rude.closed_within(Duration::from_millis(200));
        assert_eq!(polite.ask(&Request::Ping), Ok(vec![]), "{garbage:x?}");
    }
    server.kill().expect("killed");
}

/// Nobody keeps the server's memory without a login: what is announced longer is refused at once. Who
/// was given rights sends what tuples need.
#[test]
fn packets_of_guests_are_short() {
    let node = Node::new("write");
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin, 512, "users");
    let refused = |client: &mut Iproto, length: u32| {
        let header = [&b"\xce"[..], &length.to_be_bytes(), &[0x82; 100]].concat();
        client.send(&header);
        let text = format!("Invalid MsgPack - too big packet size in the header: {length}");
        // Nobody knows which request it would have been.
        assert_eq!(client.receive_of(0), Some(Err((20, text))));
        assert!(client.closed_within(Duration::from_secs(5)), "{length}");
    };
    for length in [16_385, 600 << 20] {
        refused(&mut node.guest(), length);
    }
    let long = row(1, &"x".repeat(100_000));
    let insert = Request::Insert(Put { space: SpaceRef::Id(512), tuple: &long });
    assert!(node.guest().try_ask(&insert).is_none_or(|reply| reply.is_err()));
    // Read and write, on this space.
    admin.insert(312, &array(&[int(1), int(0), text("space"), int(512), int(3)]));
    assert_eq!(node.guest().ask(&insert), Ok(vec![long]));
    // `proto-max-bulk-len` is the bound of all.
    refused(&mut admin, (512 << 20) + 1);
    server.kill().expect("killed");
}

/// A selection of any length comes whole, as it was at its moment, by pages too.
#[test]
fn long_selections_come_whole() {
    const ROWS: u64 = 20_000;
    let node = Node::new("none");
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin, 512, "rows");
    let rows: Vec<Vec<u8>> = (1..=ROWS).map(|id| row(id, &format!("n{}", id % 7))).collect();
    for row in &rows {
        admin.insert(512, row);
    }
    assert!(admin.select(512, 0, &array(&[])) == rows, "all of them");
    let called = admin.call("box.space.rows:select", &array(&[])).expect("selects");
    assert!(called == [array(&rows)], "as one value");
    let of_name = admin.select(512, 1, &array(&[text("n3")]));
    assert!(of_name.iter().eq(rows.iter().skip(2).step_by(7)), "by the secondary index");
    // Short pages and long ones.
    for limit in [100, 7000] {
        let mut found = Vec::new();
        let mut after: Option<Vec<u8>> = None;
        loop {
            let (page, position) = admin.page(512, limit, after.as_deref());
            found.extend(page);
            match position {
                Some(position) => after = Some(position),
                None => break,
            }
        }
        assert!(found == rows, "pages of {limit}");
    }
    // What changes meanwhile is not shown, and the requests behind wait.
    let mut writer = node.admin();
    admin.send_select(512);
    for id in 1..200 {
        writer.delete(512, &array(&[int(id)]));
    }
    let shown = admin.receive().expect("a reply").expect("selects");
    assert!(shown.len() as u64 >= ROWS - 199 && shown.ends_with(&rows[200..]), "one moment");
    assert_eq!(admin.select(512, 0, &array(&[int(5)])), Vec::<Vec<u8>>::new());
    server.kill().expect("killed");
}

/// Who asks for everything and reads nothing holds up nobody, and takes little memory.
#[test]
fn clients_that_do_not_read_their_selections_hold_up_nobody() {
    const CLIENTS: usize = 30;
    let node = Node::new("none");
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin, 512, "rows");
    let name = "x".repeat(1000);
    for id in 1..=2000 {
        admin.insert(512, &row(id, &name));
    }
    let before = crate::live::rss_bytes(&server);
    let deaf: Vec<Iproto> = (0..CLIENTS)
        .map(|_| {
            let mut deaf = node.admin();
            (0..50).for_each(|_| deaf.send_select(512));
            deaf
        })
        .collect();
    let mut longest = Duration::ZERO;
    for _ in 0..200 {
        let asked = std::time::Instant::now();
        assert_eq!(admin.select(512, 0, &array(&[int(7)])).len(), 1);
        longest = longest.max(asked.elapsed());
        thread::sleep(Duration::from_millis(5));
    }
    // 100 MB were asked for by each of them.
    let grown = crate::live::rss_bytes(&server).saturating_sub(before);
    assert!(grown < CLIENTS as u64 * (8 << 20), "{grown} bytes more for {CLIENTS} clients");
    assert!(longest < Duration::from_secs(5), "a small read waited {longest:?}");
    drop(deaf);
    server.kill().expect("killed");
}

/// The password need not stand on the command line, where every process can read it.
#[test]
fn the_admins_password_may_be_in_a_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("password");
    std::fs::write(&file, "from the file\n").expect("a file");
    let ports = Ports::take(1).expect("a port");
    let iproto = format!("127.0.0.1:{}", ports.first());
    let file = file.display().to_string();
    let arguments = ["--iproto", &iproto, "--iproto-admin-password-file", &file];
    let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &arguments);
    let mut server = launch.start().expect("starts");
    let mut client = Iproto::connect(ports.first());
    assert!(client.log_in("admin", "from the file\n").is_err());
    client.log_in("admin", "from the file").expect("logs in");
    server.kill().expect("killed");
    std::fs::remove_file(&file).expect("removed");
    let refused = launch.start().map(drop).expect_err("no password");
    assert!(refused.to_string().contains("which iproto-admin-password-file names"), "{refused}");
}
