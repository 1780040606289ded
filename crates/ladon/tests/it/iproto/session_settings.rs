//! `_session_settings`, and `CALL "box.info"`.

use super::Node;
use super::client::{Iproto, array, int, text};
use ladon_iproto::Request;
use ladon_iproto::request::{Delete, IndexRef, Put, SpaceRef, Update};

const SETTINGS: u32 = 380;
const TRUE: &[u8] = &[0xc3];
const FALSE: &[u8] = &[0xc2];

fn setting(name: &str, value: &[u8]) -> Vec<u8> {
    array(&[text(name), value.to_vec()])
}

fn set(client: &mut Iproto, name: &str, field: u64, value: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let (key, operation) = (array(&[text(name)]), [text("="), int(field), value.to_vec()]);
    let operations = array(&[array(&operation)]);
    let space = SpaceRef::Name(b"_session_settings");
    let (key, operations) = (&key[..], &operations[..]);
    let index = IndexRef::Id(0);
    let update = Update { space, index, key, operations, index_base: 1 };
    client.ask(&Request::Update(update)).map_err(|(code, message)| format!("{code} {message}"))
}

#[test]
fn each_session_has_settings_of_its_own() {
    let node = Node::new("fsync");
    let mut server = node.start();
    let mut guest = node.guest();
    let mut admin = node.admin();
    let all = guest.select(SETTINGS, 0, &array(&[]));
    assert_eq!(all.len(), 10);
    assert_eq!(all[0], setting("error_marshaling_enabled", FALSE));
    assert_eq!(all[1], setting("sql_default_engine", &text("memtx")));
    let name = "sql_full_metadata";
    assert_eq!(set(&mut guest, name, 2, TRUE), Ok(vec![setting(name, TRUE)]));
    assert_eq!(guest.select(SETTINGS, 0, &array(&[text(name)])), [setting(name, TRUE)]);
    assert_eq!(admin.select(SETTINGS, 0, &array(&[text(name)])), [setting(name, FALSE)]);
    let called = admin.call("box.space._session_settings:get", &array(&[text(name)]));
    assert_eq!(called, Ok(vec![setting(name, FALSE)]));
    let engine = "sql_default_engine";
    let vinyl = text("vinyl");
    assert_eq!(set(&mut guest, engine, 2, &vinyl), Ok(vec![setting(engine, &vinyl)]));
    for (name, field, value, expected) in [
        (name, 2, int(5), "209 Session setting sql_full_metadata expected a value of type boolean"),
        (
            engine,
            2,
            TRUE.to_vec(),
            "209 Session setting sql_default_engine expected a value of type string",
        ),
        (engine, 2, text("x"), "57 Space engine 'x' does not exist"),
        (name, 3, int(5), "38 Tuple field count 3 does not match space field count 2"),
        (
            name,
            1,
            text("other"),
            "94 Attempt to modify a tuple field which is part of primary index in space '_session_settings'",
        ),
    ] {
        assert_eq!(set(&mut guest, name, field, &value), Err(expected.to_owned()));
    }
    assert_eq!(set(&mut guest, "nothing", 2, TRUE), Ok(vec![]));
    // Nothing of that was done.
    assert_eq!(guest.select(SETTINGS, 0, &array(&[text(name)])), [setting(name, TRUE)]);
    assert_eq!(guest.select(SETTINGS, 0, &array(&[text(engine)])), [setting(engine, &vinyl)]);
    let space = SpaceRef::Id(SETTINGS);
    let tuple = &setting(name, FALSE)[..];
    let key = &array(&[text(name)])[..];
    for (request, what) in [
        (Request::Insert(Put { space, tuple }), "replace()"),
        (Request::Replace(Put { space, tuple }), "replace()"),
        (Request::Delete(Delete { space, index: IndexRef::Id(0), key }), "delete()"),
    ] {
        let expected = format!("_session_settings space does not support {what}");
        assert_eq!(guest.ask(&request), Err((5, expected)));
    }
    server.kill().expect("killed");
}

#[test]
fn box_info_tells_what_the_server_is() {
    let node = Node::new("fsync");
    let mut server = node.start();
    let mut admin = node.admin();
    let info = admin.call("box.info", &array(&[])).expect("facts");
    let shown = String::from_utf8_lossy(&info[0]).into_owned();
    for part in ["version", "2.11.0", "status", "running", "uuid", "ro", "uptime", "pid"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(info.len(), 1);
    let unknown = admin.call("box.info:nothing", &array(&[])).expect_err("it is no function");
    assert_eq!(unknown, (33, "Procedure 'box.info:nothing' is not defined".to_owned()));
    let denied = node.guest().call("box.info", &array(&[])).expect_err("guest may call nothing");
    assert_eq!(denied.0, 42);
    server.kill().expect("killed");
}
