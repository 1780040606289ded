//! What denied clients are told, and the log of denials.

use crate::common::user;
use ladon_identity::{
    AuditLog, BitsError, Context, Denied, Event, Field, Reason, generate_password,
};

#[test]
fn replies_are_the_ones_of_redis() {
    let user = user("");
    let told =
        |denied: Denied| String::from_utf8(denied.reply(&user, "config|set")).expect("UTF-8");
    assert_eq!(
        told(Denied::Command),
        "NOPERM User u has no permissions to run the 'config|set' command"
    );
    assert_eq!(told(Denied::Key(1)), "NOPERM No permissions to access a key");
    assert_eq!(told(Denied::Channel(1)), "NOPERM No permissions to access a channel");
    assert_eq!(told(Denied::Database(0)), "NOPERM No permissions to access database");
    assert_eq!(
        Denied::Key(1).script_reply(&user, "get"),
        b"ERR ACL failure in script: No permissions to access a key"
    );
    let dry =
        |denied: Denied| String::from_utf8(denied.dry_run(&user, "get", b"x")).expect("UTF-8");
    assert_eq!(dry(Denied::Command), "User u has no permissions to run the 'get' command");
    assert_eq!(dry(Denied::Key(1)), "User u has no permissions to access the 'x' key");
    assert_eq!(dry(Denied::Channel(1)), "User u has no permissions to access the 'x' channel");
    assert_eq!(dry(Denied::Database(1)), "User u has no permissions to access database x");
}

fn event(object: &str, now_ms: u64) -> Event<'_> {
    Event {
        reason: Reason::Command,
        context: Context::TopLevel,
        object: object.as_bytes(),
        username: b"antirez",
        client: "id=1 cmd=get",
        now_ms,
    }
}

#[test]
fn like_denials_within_a_minute_are_one_entry() {
    let mut log = AuditLog::default();
    log.add(&event("get", 1_000), 128);
    log.add(&event("set", 1_001), 128);
    log.add(&Event { client: "id=2 cmd=get", ..event("get", 61_000) }, 128);
    let entries: Vec<_> = log.entries().collect();
    assert_eq!((entries.len(), entries[0].count, entries[0].id), (2, 2, 0), "newest first");
    assert_eq!((entries[0].created_ms, entries[0].updated_ms), (1_000, 61_000));
    assert_eq!(entries[0].client, "id=2 cmd=get");
    log.add(&event("get", 121_001), 128);
    log.add(&Event { context: Context::Multi, ..event("get", 121_001) }, 128);
    log.add(&Event { username: b"x", ..event("get", 121_001) }, 128);
    log.add(&Event { reason: Reason::Key, ..event("get", 121_001) }, 128);
    assert_eq!(log.entries().len(), 6);
    assert_eq!(log.entries().map(|entry| entry.id).max(), Some(5));
    assert_eq!((log.denials().command, log.denials().key), (6, 1));
    log.reset_denials();
    assert_eq!(log.denials(), Default::default());
}

#[test]
fn the_log_is_bounded() {
    let mut log = AuditLog::default();
    let names: Vec<String> = (0..20).map(|number| format!("command{number}")).collect();
    names.iter().for_each(|name| log.add(&event(name, 0), 10));
    assert_eq!(log.entries().len(), 10);
    assert_eq!(log.entries().next().map(|entry| entry.id), Some(19));
    log.add(&event("last", 0), 0);
    assert_eq!(log.entries().len(), 0, "no length, no log");
    assert_eq!(log.denials().command, 21);
    log.add(&event("again", 0), 10);
    log.reset();
    assert_eq!(log.entries().len(), 0);
}

#[test]
fn entries_have_the_fields_of_redis() {
    let mut log = AuditLog::default();
    let login = Event { reason: Reason::Auth, context: Context::Lua, ..event("AUTH", 500) };
    log.add(&login, 128);
    let fields = log.entries().next().expect("an entry").fields(2_000);
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names.join(" "),
        "count reason context object username age-seconds client-info entry-id timestamp-created \
         timestamp-last-updated"
    );
    assert_eq!(fields[1].1, Field::Text(b"auth".to_vec()));
    assert_eq!(fields[2].1, Field::Text(b"lua".to_vec()));
    assert_eq!(fields[5].1, Field::Seconds(1.5));
    assert_eq!(fields[9].1, Field::Integer(500));
}

#[test]
fn passwords_have_the_bits_that_were_asked_for() {
    let made = |bits| generate_password(bits, |bytes| bytes.fill(0xab));
    assert_eq!(made(256).expect("bits").len(), 64);
    assert_eq!(made(5).expect("bits"), "ab");
    assert_eq!(made(4).expect("bits"), "a");
    assert_eq!(made(4096).expect("bits").len(), 1024);
    for bits in [0, -5, 4097, i64::MIN] {
        assert_eq!(made(bits), Err(BitsError));
    }
    assert_eq!(
        BitsError.to_string(),
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive \
         number up to 4096"
    );
}
