//! All users: names, the default user, and what connections notice.

use crate::common::{TABLE, context, words};
use ladon_identity::{DEFAULT_USER, DeleteError, Users};
use std::sync::Arc;

fn set(users: &mut Users, name: &str, rules: &str) {
    users.set(name.as_bytes(), words(rules), context()).expect("the rules are right");
}

#[test]
fn there_is_a_default_user() {
    let mut users = Users::new(&TABLE);
    let default = users.default_user();
    assert!(default.is_unlimited() && users.new_connections_are_in());
    assert_eq!(default.line(), b"user default on nopass sanitize-payload ~* &* +@all");
    set(&mut users, "b", "");
    set(&mut users, "a", "on");
    let names: Vec<&[u8]> = users.iter().map(|user| user.name()).collect();
    assert_eq!(names, [&b"a"[..], b"b", b"default"]);
    set(&mut users, "default", "off");
    assert!(!users.new_connections_are_in());
}

#[test]
fn names_have_no_blanks() {
    let mut users = Users::new(&TABLE);
    for name in [&b"a a"[..], b"a\0", b"\n"] {
        let error = users.set(name, words("on"), context()).expect_err("the name is wrong");
        assert_eq!(error.reply(), b"ERR Usernames can't contain spaces or null characters");
    }
    let error = users.set(b"a", words("on bogus"), context()).expect_err("the rule is wrong");
    assert_eq!(error.reply(), b"ERR Error in ACL SETUSER modifier 'bogus': Syntax error");
    assert!(users.get(b"a").is_none());
}

#[test]
fn the_default_user_stays() {
    let mut users = Users::new(&TABLE);
    set(&mut users, "a", "on");
    let both = [&b"a"[..], DEFAULT_USER];
    assert_eq!(users.delete(both), Err(DeleteError));
    assert_eq!(DeleteError.to_string(), "ERR The 'default' user cannot be removed");
    assert_eq!(users.delete([&b"a"[..], b"a", b"none"]), Ok(1));
}

#[test]
fn a_connection_notices_changes_by_one_number() {
    let mut users = Users::new(&TABLE);
    set(&mut users, "a", "on +get");
    let (held, seen) = (Arc::clone(users.get(b"a").expect("a user")), users.generation());
    assert!(users.set(b"a", words("bogus"), context()).is_err());
    assert_eq!(users.delete([&b"none"[..]]), Ok(0));
    assert_eq!(users.generation(), seen, "nothing was changed");
    set(&mut users, "a", "-get");
    assert!(users.generation() > seen);
    let now = users.current(&held).expect("the user is there");
    assert_ne!(**now, *held);
    assert_eq!(users.delete([&b"a"[..]]), Ok(1));
    assert!(users.current(&held).is_none());
    set(&mut users, "a", "on +get");
    assert!(users.current(&held).is_none(), "another user of that name");
}

#[test]
fn names_and_passwords_let_in() {
    let mut users = Users::new(&TABLE);
    set(&mut users, "a", "on >p");
    assert!(users.authenticate(b"a", b"p").is_some());
    assert!(users.authenticate(b"a", b"q").is_none());
    assert!(users.authenticate(b"none", b"p").is_none());
    users.set_default_password(Some(b"secret"), context());
    assert!(!users.new_connections_are_in());
    assert!(users.authenticate(DEFAULT_USER, b"secret").is_some());
    users.set_default_password(Some(b"other"), context());
    assert!(users.authenticate(DEFAULT_USER, b"secret").is_none());
    users.set_default_password(None, context());
    assert!(users.new_connections_are_in() && users.default_user().is_unlimited());
}
