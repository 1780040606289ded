//! What the fuzz target `acl_rules` checks; the ordinary tests replay the kept corpus through it.
//!
//! The first byte chooses what the others are: a file of users behind an `f`, otherwise rules, one
//! a line.

use crate::common::{TABLE, context};
use ladon_identity::{User, Users, read_file, write_file};

pub fn check(data: &[u8]) {
    match data {
        [b'f', text @ ..] => file(text),
        [_, text @ ..] => rules(text),
        [] => {}
    }
}

/// Rules are refused, or make a user whose description makes the same user.
fn rules(text: &[u8]) {
    let new = User::new(b"u", context());
    match new.changed_by(text.split(|&byte| byte == b'\n'), context()) {
        Ok(user) => reads_back(&user),
        Err(error) => assert!(error.reply().starts_with(b"ERR ")),
    }
}

pub fn reads_back(user: &User) {
    let described = user.description();
    let words = described.split(|&byte| byte == b' ');
    let again = User::new(b"u", context()).changed_by(words, context());
    let again = again.unwrap_or_else(|error| {
        panic!("{}: {}", described.escape_ascii(), error.reply().escape_ascii())
    });
    let again_described = again.description();
    assert!(
        again_described == described && again.fields() == user.fields(),
        "{} reads back as {}",
        described.escape_ascii(),
        again_described.escape_ascii()
    );
}

/// A file is refused, or its users are the ones of the file that they are saved to.
fn file(text: &[u8]) {
    let Ok(made) = read_file(text, "users.acl", context()) else { return };
    let mut users = Users::new(&TABLE);
    users.replace(made, &TABLE);
    let saved = write_file(&users);
    let again = read_file(&saved, "saved.acl", context())
        .unwrap_or_else(|error| panic!("{}", error.text().escape_ascii()));
    assert_eq!(again.len(), users.iter().len());
    users.replace(again, &TABLE);
    assert_eq!(write_file(&users).escape_ascii().to_string(), saved.escape_ascii().to_string());
}
