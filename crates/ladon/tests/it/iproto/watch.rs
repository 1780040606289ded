//! Watchers hear of every new version of the definitions once, and of no other.

use super::client::{Iproto, array, int, map, text};
use super::{Node, make_space};
use ladon_iproto::Request;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(5);
const NOTHING: Duration = Duration::from_millis(100);

/// The version in an event of `box.schema`.
fn version(client: &mut Iproto) -> u64 {
    let (key, value) = client.event_within(SOON).expect("an event");
    assert_eq!(key, b"box.schema");
    let value = value.expect("a value");
    let mut rest = &value[..];
    assert_eq!(ladon_msgpack::read_map(&mut rest), Ok(1));
    assert_eq!(ladon_msgpack::read_str(&mut rest), Ok(&b"version"[..]));
    ladon_msgpack::read_uint(&mut rest).expect("a number")
}

fn make_named(admin: &mut Iproto, id: u64) {
    let name = format!("s{id}");
    let space = [int(id), int(1), text(&name), text("memtx"), int(0), map(&[]), array(&[])];
    admin.insert(280, &array(&space));
}

#[test]
fn changed_definitions_are_told_once_to_who_waits() {
    let node = Node::new("fsync");
    let mut server = node.start();
    let (mut admin, mut watcher) = (node.admin(), node.guest());
    let schema = Request::Watch(b"box.schema");
    watcher.tell(&schema);
    let first = version(&mut watcher);
    // It has not taken note: it is told of the next version when it does.
    make_space(&mut admin, 512, "users");
    assert_eq!(watcher.event_within(NOTHING), None);
    watcher.tell(&schema);
    let second = version(&mut watcher);
    assert!(second > first);
    // It waits.
    watcher.tell(&schema);
    assert_eq!(watcher.event_within(NOTHING), None);
    make_named(&mut admin, 600);
    let third = version(&mut watcher);
    assert!(third > second);
    let once = watcher.ask(&Request::WatchOnce(b"box.schema"));
    assert_eq!(once, Ok(vec![map(&[(text("version"), int(third))])]));
    // It does not watch any more.
    watcher.tell(&schema);
    watcher.tell(&Request::Unwatch(b"box.schema"));
    assert_eq!(watcher.ask(&Request::Ping), Ok(vec![]));
    make_named(&mut admin, 601);
    assert_eq!(watcher.event_within(NOTHING), None);
    server.kill().expect("killed");
}

/// To connectors, version 0 means that they do not know it: Java's waits for another one without
/// end.
#[test]
fn replies_show_the_version_that_they_made() {
    let node = Node::new("write");
    let mut server = node.start();
    let mut admin = node.admin();
    let first = admin.schema_version;
    assert!(first > 0);
    make_named(&mut admin, 600);
    assert_eq!(admin.schema_version, first + 1);
    assert_eq!(admin.ask(&Request::Ping), Ok(vec![]));
    assert_eq!(admin.schema_version, first + 1);
    server.kill().expect("killed");
}

#[test]
fn other_keys_are_told_once() {
    let node = Node::new("write");
    let mut server = node.start();
    let mut client = node.guest();
    client.tell(&Request::Watch(b"box.status"));
    let (key, value) = client.event_within(SOON).expect("an event");
    assert_eq!(key, b"box.status");
    let running = [text("status"), text("running")].concat();
    assert!(value.expect("a value").windows(running.len()).any(|part| part == running));
    client.tell(&Request::Watch(b"box.shutdown"));
    assert_eq!(client.event_within(SOON), Some((b"box.shutdown".to_vec(), None)));
    client.tell(&Request::Watch(b"box.shutdown"));
    assert_eq!(client.event_within(NOTHING), None);
    assert_eq!(client.ask(&Request::WatchOnce(b"nobody's")), Ok(vec![]));
    // So many keys, and no more.
    for number in 0..998 {
        client.tell(&Request::Watch(format!("key {number}").as_bytes()));
        client.event_within(SOON).expect("an event");
    }
    assert_eq!(client.ask(&Request::Watch(b"one more")).expect_err("too many").0, 1);
    server.kill().expect("killed");
}

/// Thousands watch, and leave: nobody is forgotten, and nothing of them stays.
#[test]
fn watchers_come_and_go() {
    let node = Node::new("write");
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin, 512, "users");
    for _ in 0..10 {
        let mut watchers: Vec<Iproto> = (0..50).map(|_| node.guest()).collect();
        for watcher in &mut watchers {
            watcher.tell(&Request::Watch(b"box.schema"));
            version(watcher);
            watcher.tell(&Request::Watch(b"box.schema"));
            assert_eq!(watcher.ask(&Request::Ping), Ok(vec![]));
        }
        watchers.truncate(25);
        let drop = array(&[int(700)]);
        make_named(&mut admin, 700);
        let told: Vec<u64> = watchers.iter_mut().map(version).collect();
        assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
        admin.delete(280, &drop);
    }
    server.kill().expect("killed");
}
