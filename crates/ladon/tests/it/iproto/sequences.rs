//! Sequences fill in fields, durably.

use super::client::{Iproto, array, int, text};
use super::{Node, make_space, row};
use ladon_iproto::Request;
use ladon_iproto::request::{Put, SpaceRef};

const NIL: &[u8] = &[0xc0];
const NO: &[u8] = &[0xc2];

fn insert(client: &mut Iproto, space: u32, tuple: &[u8]) -> Result<Vec<Vec<u8>>, (u32, String)> {
    client.ask(&Request::Insert(Put { space: SpaceRef::Id(space), tuple }))
}

/// A sequence that counts by `step` up to `max`.
fn sequence(id: u64, name: &str, step: u64, max: u64) -> Vec<u8> {
    let (step, max) = (int(step), int(max));
    array(&[int(id), int(1), text(name), step, int(1), max, int(1), int(0), NO.to_vec()])
}

fn filler(space: u64, sequence: u64, field: u64) -> Vec<u8> {
    array(&[int(space), int(sequence), NO.to_vec(), int(field), text("")])
}

fn unnumbered(name: &str) -> Vec<u8> {
    array(&[NIL.to_vec(), text(name)])
}

#[test]
fn sequences_fill_in_fields_and_go_on_after_kill() {
    let node = Node::new("fsync");
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin, 512, "users");
    admin.insert(284, &sequence(1, "ids", 1, 100));
    admin.insert(340, &filler(512, 1, 0));
    assert_eq!(insert(&mut admin, 512, &unnumbered("ada")), Ok(vec![row(1, "ada")]));
    assert_eq!(insert(&mut admin, 512, &row(10, "bob")), Ok(vec![row(10, "bob")]));
    let called = admin.call("box.space.users:insert", &array(&[unnumbered("eve")]));
    assert_eq!(called, Ok(vec![client_row(11, "eve")]));
    // A number is used also where the statement fails, so that the next one goes on.
    admin.update(285, &array(&[int(1)]), &array(&[array(&[text("="), int(1), int(9)])]));
    let twice = insert(&mut admin, 512, &unnumbered("dan")).expect_err("10 is there");
    assert_eq!(twice.0, 3, "{twice:?}");
    server.kill().expect("killed");
    let mut server = node.start();
    let mut admin = node.admin();
    let twice = insert(&mut admin, 512, &unnumbered("dan")).expect_err("11 is there as well");
    assert_eq!(twice.0, 3, "{twice:?}");
    assert_eq!(insert(&mut admin, 512, &unnumbered("dan")), Ok(vec![row(12, "dan")]));
    crate::live::call(&mut server.connect().expect("connects"), &["SAVE"]);
    server.kill().expect("killed");
    let mut server = node.start();
    let mut admin = node.admin();
    assert_eq!(insert(&mut admin, 512, &unnumbered("fay")), Ok(vec![row(13, "fay")]));
    assert_eq!(admin.select(285, 0, &array(&[int(1)])), [array(&[int(1), int(13)])]);
    server.kill().expect("killed");
}

#[test]
fn sequences_are_refused_in_tarantools_words() {
    let node = Node::new("write");
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin, 512, "users");
    let refused = |code: u32, message: &str| Err((code, message.to_owned()));
    let step = "Failed to create sequence 'ids': step option must be non-zero";
    assert_eq!(insert(&mut admin, 284, &sequence(1, "ids", 0, 100)), refused(142, step));
    let start = "Failed to create sequence 'ids': max must be greater than or equal to min";
    assert_eq!(insert(&mut admin, 284, &sequence(1, "ids", 1, 0)), refused(142, start));
    admin.insert(284, &sequence(1, "ids", 1, 2));
    let none = "Sequence '7' does not exist";
    assert_eq!(insert(&mut admin, 340, &filler(512, 7, 0)), refused(145, none));
    let other = "Can't create or modify index 'pk' in space 'users': sequence field must be a part \
                 of the index";
    assert_eq!(insert(&mut admin, 340, &filler(512, 1, 1)), refused(14, other));
    admin.insert(340, &filler(512, 1, 0));
    let drop_index = |admin: &mut Iproto, index: u64| {
        let key = array(&[int(512), int(index)]);
        let (space, index) = (SpaceRef::Id(288), ladon_iproto::request::IndexRef::Id(0));
        admin.ask(&Request::Delete(ladon_iproto::request::Delete { space, index, key: &key }))
    };
    let others = "Can't drop primary key in space 'users' while secondary keys exist";
    assert_eq!(drop_index(&mut admin, 0), refused(17, others));
    assert!(drop_index(&mut admin, 1).is_ok());
    let filled = "Can't modify space 'users': can not drop primary key while space sequence exists";
    assert_eq!(drop_index(&mut admin, 0), refused(12, filled));
    let in_use = "Can't drop sequence 'ids': the sequence is in use";
    let drop = |admin: &mut Iproto| {
        let key = array(&[int(1)]);
        let (space, index) = (SpaceRef::Id(284), ladon_iproto::request::IndexRef::Id(0));
        admin.ask(&Request::Delete(ladon_iproto::request::Delete { space, index, key: &key }))
    };
    assert_eq!(drop(&mut admin), refused(144, in_use));
    for id in 1..=2 {
        assert_eq!(insert(&mut admin, 512, &unnumbered("ada")), Ok(vec![row(id, "ada")]));
    }
    let end = "Sequence 'ids' has overflowed";
    assert_eq!(insert(&mut admin, 512, &unnumbered("ada")), refused(147, end));
    admin.delete(340, &array(&[int(512)]));
    let data = "Can't drop sequence 'ids': the sequence has data";
    assert_eq!(drop(&mut admin), refused(144, data));
    admin.delete(285, &array(&[int(1)]));
    assert_eq!(drop(&mut admin), Ok(vec![sequence(1, "ids", 1, 2)]));
    // Without a sequence, nil is no number.
    let nil =
        "Tuple field 1 type does not match one required by operation: expected unsigned, got nil";
    assert_eq!(insert(&mut admin, 512, &unnumbered("ada")), refused(23, nil));
    // Who may write the space may not use any sequence.
    admin.insert(284, &sequence(2, "ids", 1, 9));
    admin.insert(340, &filler(512, 2, 0));
    admin.insert(312, &array(&[int(1), int(0), text("space"), int(512), int(3)]));
    let denied = "Write access to sequence 'ids' is denied for user 'guest'";
    let mut guest = node.guest();
    assert_eq!(insert(&mut guest, 512, &unnumbered("eve")), refused(42, denied));
    admin.insert(312, &array(&[int(1), int(0), text("sequence"), int(2), int(2)]));
    assert_eq!(insert(&mut guest, 512, &row(7, "eve")), Ok(vec![row(7, "eve")]));
    assert_eq!(insert(&mut guest, 512, &unnumbered("eve")), Ok(vec![row(8, "eve")]));
    server.kill().expect("killed");
}

fn client_row(id: u64, name: &str) -> Vec<u8> {
    super::client::normal(row(id, name))
}
