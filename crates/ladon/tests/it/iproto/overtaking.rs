//! Replies out of the order of their requests: what waits for the disk does not hold back what does
//! not, on the same connection.

use super::{SickNode, make_space, row};
use crate::sick_disk::WHILE;
use ladon_iproto::Request;
use ladon_iproto::request::{IndexRef, Put, Select, SpaceRef};
use std::thread;

fn all_of(space: u32) -> Request<'static> {
    Request::Select(Select {
        space: SpaceRef::Id(space),
        index: IndexRef::Id(0),
        iterator: 2,
        offset: 0,
        limit: 100,
        key: &[0x90],
        fetch_position: false,
        after_position: None,
        after_tuple: None,
    })
}

#[test]
fn a_reply_that_waits_for_the_disk_holds_back_none_that_does_not() {
    let node = SickNode::new("fsync");
    let disk = &node.disk;
    let mut server = disk.start();
    let mut client = node.admin();
    make_space(&mut client, 512, "changed");
    make_space(&mut client, 513, "still");
    client.insert(513, &row(1, "ada"));

    disk.set("hold-sync");
    let changed = row(1, "bob");
    client.tell(&Request::Replace(Put { space: SpaceRef::Id(512), tuple: &changed }));
    // On the same connection, in one stream of bytes.
    for _ in 0..100 {
        assert_eq!(client.ask(&Request::Ping), Ok(vec![]));
        assert_eq!(client.ask(&all_of(513)), Ok(vec![row(1, "ada")]));
    }
    // What shows the change waits with it, and so does a stream behind one of its own.
    client.tell(&all_of(512));
    client.stream_id = 7;
    client.tell(&Request::Replace(Put { space: SpaceRef::Id(512), tuple: &changed }));
    client.tell(&all_of(513));
    thread::sleep(WHILE);
    assert!(!client.has_reply(), "the disk has none of it");

    disk.unset("hold-sync");
    assert_eq!(client.receive(), Some(Ok(vec![row(1, "ada")])));
    assert_eq!(client.receive_earlier(1), Some(Ok(vec![changed.clone()])));
    assert_eq!(client.receive_earlier(2), Some(Ok(vec![changed.clone()])));
    assert_eq!(client.receive_earlier(203), Some(Ok(vec![changed])));
    server.kill().expect("killed");
}

/// A reply that is made in slices begins after its request, and waits for what that has found.
#[test]
fn a_long_reply_waits_for_the_disk() {
    const TUPLES: u64 = 2_000;
    let node = SickNode::new("fsync");
    let disk = &node.disk;
    let mut server = disk.start();
    let (mut client, mut other) = (node.admin(), node.admin());
    make_space(&mut client, 512, "changed");
    super::long_commits::insert_all(&mut client, 0..TUPLES);

    disk.set("hold-sync");
    let changed = row(TUPLES, "bob");
    other.tell(&Request::Replace(Put { space: SpaceRef::Id(512), tuple: &changed }));
    assert!(!other.has_reply_within(WHILE));
    client.send_select(512);
    client.stream_id = 7;
    client.send_select(512);
    client.tell(&Request::Ping);
    assert!(!client.has_reply_within(WHILE), "the disk has none of it");

    disk.unset("hold-sync");
    for selection in [2, 1] {
        let found = client.receive_earlier(selection).expect("a reply").expect("selects");
        assert_eq!(found.len() as u64, TUPLES + 1);
    }
    assert_eq!(client.receive(), Some(Ok(vec![])));
    server.kill().expect("killed");
}
