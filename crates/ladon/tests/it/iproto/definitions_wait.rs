//! What shows a definition waits at the gate as the definition itself does: the version of the
//! definitions in every header, errors about what there is or is not, and about rights.

use super::client::{Iproto, array, int, map, text};
use super::{SickNode, row};
use crate::sick_disk::{SOON, WHILE};
use ladon_iproto::Request;
use ladon_iproto::request::{Put, SpaceRef};

fn insert(space: u32, tuple: &[u8]) -> Request<'_> {
    Request::Insert(Put { space: SpaceRef::Id(space), tuple })
}

fn space(id: u64, name: &str) -> Vec<u8> {
    let owner = int(1);
    array(&[int(id), owner, text(name), text("memtx"), int(0), map(&[]), array(&[])])
}

type Reply = Result<Vec<Vec<u8>>, (u32, String)>;

/// While the disk has not synced what `definer` asks for, so does what shows it to others. Returns
/// the reply of each.
fn all_wait(
    node: &SickNode,
    definition: &Request<'_>,
    others: &mut [(Iproto, Request<'_>)],
) -> Vec<Reply> {
    let mut definer = node.admin();
    node.disk.set("hold-sync");
    definer.tell(definition);
    assert!(!definer.has_reply_within(WHILE), "the disk does not have it");
    others.iter_mut().for_each(|(other, request)| other.tell(request));
    for (at, (other, _)) in others.iter_mut().enumerate() {
        assert!(!other.has_reply_within(WHILE), "request {at} shows the definition");
    }
    node.disk.unset("hold-sync");
    assert!(definer.has_reply_within(SOON));
    definer.receive().expect("a reply").expect("a definition");
    let reply = |(other, _): &mut (Iproto, Request<'_>)| {
        assert!(other.has_reply_within(SOON));
        other.receive().expect("a reply")
    };
    others.iter_mut().map(reply).collect()
}

#[test]
fn a_space_that_is_not_on_the_disk_is_shown_by_no_reply() {
    let node = SickNode::new("fsync");
    let mut server = node.disk.start();
    let mut admin = node.admin();
    super::make_space(&mut admin, 512, "old");
    let (new, same_name, tuple) = (space(513, "new"), space(514, "new"), row(1, "ada"));
    let by_name = Request::Insert(Put { space: SpaceRef::Name(b"new"), tuple: &tuple });
    let mut others = [
        (node.admin(), insert(280, &same_name)),
        // It has no index.
        (node.admin(), insert(513, &tuple)),
        (node.admin(), by_name),
        // The header shows the version, also of what has nothing to do with it.
        (node.admin(), Request::Ping),
        (node.guest(), Request::Ping),
        (node.admin(), insert(600, &tuple)),
    ];
    let replies = all_wait(&node, &insert(280, &new), &mut others);
    let codes = replies.iter().map(|reply| reply.as_ref().map_or_else(|(code, _)| *code, |_| 0));
    assert_eq!(codes.collect::<Vec<_>>(), [3, 35, 35, 0, 0, 36]);
    server.kill().expect("killed");
}

#[test]
fn rights_that_are_not_on_the_disk_are_shown_by_no_reply() {
    let node = SickNode::new("fsync");
    let mut server = node.disk.start();
    let mut admin = node.admin();
    super::make_space(&mut admin, 512, "old");
    let tuple = row(1, "ada");
    // The guest may read and write all.
    let grant = array(&[int(1), int(0), text("universe"), int(0), int(24 | 3)]);
    let mut guest = node.guest();
    let (code, message) = guest.ask(&insert(512, &tuple)).unwrap_err();
    assert_eq!(code, 42, "{message}");
    let put = Request::Replace(Put { space: SpaceRef::Id(312), tuple: &grant });
    // Guests know of it by what they may do now, and by a name that is not theirs.
    let wrong = Request::Insert(Put { space: SpaceRef::Id(600), tuple: &tuple });
    let mut others = [
        (guest, Request::Replace(Put { space: SpaceRef::Id(512), tuple: &tuple })),
        (node.guest(), wrong),
    ];
    let replies = all_wait(&node, &put, &mut others);
    assert_eq!(replies[0], Ok(vec![tuple.clone()]));
    assert!(replies[1].is_err());

    // They are taken back: the error shows it.
    let back = array(&[int(1), int(0), text("universe"), int(0), int(24)]);
    let put = Request::Replace(Put { space: SpaceRef::Id(312), tuple: &back });
    let mut others =
        [(node.guest(), Request::Replace(Put { space: SpaceRef::Id(512), tuple: &tuple }))];
    let replies = all_wait(&node, &put, &mut others);
    assert_eq!(replies[0].as_ref().unwrap_err().0, 42);
    server.kill().expect("killed");
}
