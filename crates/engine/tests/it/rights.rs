//! Definitions ask for rights, and leave nothing behind that another user would come into.

use crate::spaces::{Node, array, dump, index_tuple, number, space_tuple, text};
use ladon_engine::{AllRights, DefinitionRights, Privilege, RightsObject, access_denied};
use ladon_msgpack::write;
use ladon_record::Record;
use ladon_space::{BoxError, Space, Written};
use ladon_system_spaces as system;

/// Of a user who may do nothing.
struct NoRights;

impl DefinitionRights for NoRights {
    fn check_definition(
        &self,
        object: &RightsObject<'_>,
        privilege: Privilege,
    ) -> Result<(), BoxError> {
        Err(access_denied(privilege, object.kind, object.name, "x"))
    }

    fn check_write(&self, space: &RightsObject<'_>) -> Result<(), BoxError> {
        self.check_definition(space, Privilege::WRITE)
    }

    fn check_password(&self, _: u32, _: &[u8], _: &[u8]) -> Result<bool, BoxError> {
        Ok(true)
    }
}

fn define(
    node: &Node,
    space: u32,
    rights: &dyn DefinitionRights,
    statement: impl FnOnce(&mut Space) -> Result<Written, BoxError>,
) -> Result<(), String> {
    let append = |record: Record<'_>| node.append(&record);
    let mut scratch = node.scratch.borrow_mut();
    let (done, _) = node.keyspace.define((space, rights), &mut scratch, statement, append);
    done.map(drop).map_err(|error| error.message)
}

fn by_admin(node: &Node, space: u32, tuple: &[u8]) -> Result<(), String> {
    define(node, space, &AllRights, |space| space.replace(tuple))
}

fn user_tuple(id: u64, name: &str, kind: &str) -> Vec<u8> {
    let empty = |out: &mut Vec<u8>| write::map(out, 0);
    let none = |out: &mut Vec<u8>| write::array(out, 0);
    let (name, kind) = (text(name.into()), text(kind.into()));
    array(&[&number(id), &number(1), &name, &kind, &empty, &none, &number(0)])
}

fn grant_tuple(grantee: u64, kind: &str, object: u64, privileges: u64) -> Vec<u8> {
    let kind = text(kind.into());
    array(&[&number(1), &number(grantee), &kind, &number(object), &number(privileges)])
}

fn deletes(key: Vec<u8>) -> impl FnOnce(&mut Space) -> Result<Written, BoxError> {
    move |space| space.delete(0, &key)
}

#[test]
fn who_has_no_rights_defines_nothing() {
    let node = Node::new();
    by_admin(&node, system::SPACE, &space_tuple(512, "rows".into())).unwrap();
    by_admin(&node, system::INDEX, &index_tuple(512, 0, "tree", true, 0)).unwrap();
    let row = array(&[&number(1), &number(1), &number(1)]);
    node.write(512, |space| space.replace(&row)).unwrap();
    by_admin(&node, system::USER, &user_tuple(50, "one", "user")).unwrap();
    let before = (dump(&node.keyspace), node.reserved());
    let truncation = array(&[&number(512), &number(1)]);
    for (space, tuple, denied) in [
        (system::TRUNCATE, truncation, "Write access to space 'rows'"),
        (system::SPACE, space_tuple(512, "mine".into()), "Alter access to space 'mine'"),
        (system::SPACE, space_tuple(513, "new".into()), "Create access to space 'new'"),
        (system::INDEX, index_tuple(512, 1, "tree", false, 1), "Create access to space 'rows'"),
        (system::INDEX, index_tuple(512, 0, "tree", true, 0), "Alter access to space 'rows'"),
        (system::USER, user_tuple(1, "admin", "user"), "Alter access to user 'admin'"),
        (system::USER, user_tuple(51, "new", "role"), "Create access to role 'new'"),
        (system::PRIV, grant_tuple(50, "role", 31, 4), "Grant access to role 'super'"),
        (system::PRIV, grant_tuple(50, "universe", 0, 3), "Grant access to universe ''"),
    ] {
        let refused = define(&node, space, &NoRights, |space| space.replace(&tuple));
        assert_eq!(refused.unwrap_err(), format!("{denied} is denied for user 'x'"));
    }
    for (space, key, denied) in [
        (system::SPACE, array(&[&number(512)]), "Drop access to space 'rows'"),
        (system::INDEX, array(&[&number(512), &number(0)]), "Drop access to space 'rows'"),
        (system::USER, array(&[&number(50)]), "Drop access to user 'one'"),
    ] {
        let refused = define(&node, space, &NoRights, deletes(key));
        assert_eq!(refused.unwrap_err(), format!("{denied} is denied for user 'x'"));
    }
    assert_eq!((dump(&node.keyspace), node.reserved()), before);
}

#[test]
fn a_user_goes_with_nothing_left_of_it() {
    let node = Node::new();
    let dropped = |id: u64| define(&node, system::USER, &AllRights, deletes(array(&[&number(id)])));
    let has_objects = Err("Failed to drop user or role 'one': the user has objects".to_owned());
    by_admin(&node, system::USER, &user_tuple(50, "one", "user")).unwrap();
    by_admin(&node, system::USER, &user_tuple(51, "other", "user")).unwrap();
    for (grant, key) in [
        (grant_tuple(50, "universe", 0, 3), (50, "universe", 0)),
        // Another user's right to this one: the next one of the number would come under it.
        (grant_tuple(51, "user", 50, 128), (51, "user", 50)),
    ] {
        by_admin(&node, system::PRIV, &grant).unwrap();
        assert_eq!(dropped(50), has_objects);
        let key = array(&[&number(key.0), &text(key.1.into()), &number(key.2)]);
        define(&node, system::PRIV, &AllRights, deletes(key)).unwrap();
    }
    let mut owned = space_tuple(512, "owned".into());
    let owner = owned.iter().position(|byte| *byte == 1).expect("the owner");
    owned[owner] = 50;
    by_admin(&node, system::SPACE, &owned).unwrap();
    assert_eq!(dropped(50), has_objects);
    define(&node, system::SPACE, &AllRights, deletes(array(&[&number(512)]))).unwrap();
    assert_eq!(dropped(50), Ok(()));
    for id in [0, 1, 2, 31] {
        assert!(dropped(id).unwrap_err().ends_with("the user or the role is a system"), "{id}");
    }
}

#[test]
fn roles_make_no_loop() {
    let node = Node::new();
    for (id, name) in [(60, "a"), (61, "b"), (62, "c")] {
        by_admin(&node, system::USER, &user_tuple(id, name, "role")).unwrap();
    }
    let grant =
        |grantee, role| by_admin(&node, system::PRIV, &grant_tuple(grantee, "role", role, 4));
    assert_eq!((grant(60, 61), grant(61, 62)), (Ok(()), Ok(())));
    let looped = "Granting role 'a' to role 'c' would create a loop";
    assert_eq!(grant(62, 60).unwrap_err(), looped);
    assert!(grant(60, 60).is_err());
    assert_eq!(grant(60, 62), Ok(()));
}

#[test]
fn a_session_of_a_dropped_user_is_known_by_its_version() {
    let node = Node::new();
    by_admin(&node, system::USER, &user_tuple(50, "one", "user")).unwrap();
    let spaces = &node.keyspace.spaces;
    let version = spaces.access_version();
    assert!(!spaces.was_dropped_since(50, version));
    define(&node, system::USER, &AllRights, deletes(array(&[&number(50)]))).unwrap();
    by_admin(&node, system::USER, &user_tuple(50, "two", "user")).unwrap();
    assert!(spaces.was_dropped_since(50, version));
    assert!(!spaces.was_dropped_since(50, spaces.access_version()));
}
