//! Selectors, keys, channels and databases, as `tests/unit/acl-v2.tcl` of Redis has them.

use crate::common::{TABLE, change, context, description, error, user};
use ladon_identity::{
    Channel, ChannelsLeft, Denied, Key, KeyAccess, Request, RequestDatabases, User,
};

const READ: KeyAccess = KeyAccess::READ;
const WRITE: KeyAccess = KeyAccess::WRITE;
const BOTH: KeyAccess = KeyAccess::BOTH;

fn run(user: &User, command: &str, keys: &[(&str, KeyAccess)]) -> Result<usize, Denied> {
    let keys: Vec<Key<'_>> = (1..)
        .zip(keys)
        .map(|(word, &(name, access))| Key { word, name: name.as_bytes(), access })
        .collect();
    let request = Request {
        command: TABLE.find(command.as_bytes()).expect("the table has the command"),
        argument: None,
        keys: &keys,
        channels: &[],
        databases: RequestDatabases::These(&[(0, 0)]),
    };
    user.check(&TABLE, &request)
}

fn listen(user: &User, channel: &str, is_pattern: bool) -> Result<usize, Denied> {
    let request = Request {
        command: TABLE.find(b"subscribe").expect("the table has the command"),
        argument: None,
        keys: &[],
        channels: &[Channel { word: 1, name: channel.as_bytes(), is_pattern }],
        databases: RequestDatabases::These(&[]),
    };
    user.check(&TABLE, &request)
}

fn in_databases(user: &User, databases: RequestDatabases<'_>) -> Result<usize, Denied> {
    let command = TABLE.find(b"select").expect("the table has the command");
    let request = Request { command, argument: None, keys: &[], channels: &[], databases };
    user.check(&TABLE, &request)
}

#[test]
fn a_request_must_fit_into_one_selector() {
    let user = user("on nopass (+@write ~write::*) (+@read ~read::*)");
    assert_eq!(run(&user, "ping", &[]), Err(Denied::Command));
    assert_eq!(run(&user, "set", &[("write::foo", WRITE)]), Ok(1));
    assert_eq!(run(&user, "get", &[("read::foo", READ)]), Ok(2));
    assert_eq!(run(&user, "get", &[("write::foo", READ)]), Err(Denied::Key(1)));
    assert_eq!(run(&user, "set", &[("read::foo", WRITE)]), Err(Denied::Key(1)));
}

#[test]
fn the_selector_that_got_furthest_says_what_is_denied() {
    let user = user("+mget ~key (+mget ~key ~otherkey)");
    let keys = |names: &[&'static str]| -> Vec<(&str, KeyAccess)> {
        names.iter().map(|&name| (name, READ)).collect()
    };
    assert_eq!(run(&user, "get", &keys(&["key"])), Err(Denied::Command));
    let denied = run(&user, "mget", &keys(&["otherkey", "someotherkey"]));
    assert_eq!(denied, Err(Denied::Key(2)));
    let denied = run(&user, "mget", &keys(&["key", "otherkey", "someotherkey"]));
    assert_eq!(denied, Err(Denied::Key(3)));
}

#[test]
fn selectors_are_read_from_one_word_or_several() {
    let user = user("(~key1 +get ) ( ~key2 +get ) ( ~key3 +get) (~key4 +get)");
    let keys: Vec<Vec<u8>> =
        user.fields().selectors.into_iter().map(|selector| selector.keys).collect();
    assert_eq!(keys, [&b"~key1"[..], b"~key2", b"~key3", b"~key4"]);
    let one_word = User::new(b"u", context()).changed_by([&b"( ~key1  +get )"[..]], context());
    assert_eq!(one_word.expect("a selector").fields().selectors[0].keys, b"~key1");
    assert_eq!(change(&user, "clearselectors").fields().selectors, []);
    let fields = change(&user, "reset ()").fields();
    assert_eq!(fields.selectors[0].commands, b"-@all");
    assert_eq!((&*fields.selectors[0].keys, &*fields.selectors[0].channels), (&b""[..], &b""[..]));
}

#[test]
fn wrong_selectors_are_refused() {
    let cases = [
        ("(this-is-invalid)", "Error in ACL SETUSER modifier '(this-is-invalid)': Syntax error"),
        ("(+PING (+SELECT (+DEL", "Unmatched parenthesis in acl selector starting at '(+PING'."),
        ("(", "Unmatched parenthesis in acl selector starting at '('."),
        (")", "Error in ACL SETUSER modifier ')': Syntax error"),
        (
            "(+PING (+SELECT (+DEL )",
            "Error in ACL SETUSER modifier '(+PING (+SELECT (+DEL )': Syntax error",
        ),
        ("(on)", "Error in ACL SETUSER modifier '(on)': Syntax error"),
        (
            "(~a) +get)",
            "Error in ACL SETUSER modifier '+get)': Unknown command or category name \
            in ACL",
        ),
    ];
    for (rules, expected) in cases {
        assert_eq!(error(rules), format!("ERR {expected}"));
    }
    assert!(error("(&* &fail)").contains("'(&* &fail)': Adding a pattern after the *"));
    // A description of this selector would be read as a selector and rules of the root.
    let inner = User::new(b"u", context()).changed_by([&b"(~a) +@all)"[..]], context());
    assert!(inner.is_err());
}

#[test]
fn keys_are_read_and_written_with_separate_rights() {
    let copy = |user: &User, from: &'static str, to: &'static str| {
        run(user, "copy", &[(from, READ), (to, WRITE)])
    };
    let both = user("%R~read* %W~write* +@all");
    assert_eq!(run(&both, "get", &[("readstr", READ)]), Ok(0));
    assert_eq!(run(&both, "set", &[("readstr", WRITE)]), Err(Denied::Key(1)));
    assert_eq!(run(&both, "set", &[("writestr", BOTH)]), Err(Denied::Key(1)));
    assert_eq!(copy(&both, "read", "write"), Ok(0));
    assert_eq!(copy(&both, "write", "read"), Err(Denied::Key(1)));
    assert_eq!(run(&both, "del", &[("read", KeyAccess::NONE)]), Ok(0));
    assert_eq!(run(&both, "del", &[("other", KeyAccess::NONE)]), Err(Denied::Key(1)));
    let apart = user("(%R~read* +@all) (%W~write* +@all)");
    assert_eq!(copy(&apart, "read", "write"), Err(Denied::Key(2)));
}

#[test]
fn rights_of_one_pattern_add_up() {
    let keys = |rules: &str| String::from_utf8(user(rules).fields().root.keys).expect("UTF-8");
    assert_eq!(keys("%R~foo %W~foo %RW~bar"), "~foo ~bar");
    assert_eq!(keys("%R~foo1 %w~bar1 ~baz1"), "%R~foo1 %W~bar1 ~baz1");
    assert_eq!(keys("%RW~* ~foo"), "~*", "rules may add nothing to it");
    assert_eq!(keys("%R~* ~foo"), "%R~* ~foo");
    assert_eq!(keys("~a ~* resetkeys ~b"), "~b");
}

#[test]
fn channels_match_and_patterns_must_be_the_same() {
    let some = user("+@pubsub resetchannels &foo:1 &bar:*");
    assert_eq!(listen(&some, "foo:1", false), Ok(0));
    assert_eq!(listen(&some, "bar:2", false), Ok(0));
    assert_eq!(listen(&some, "zap:3", false), Err(Denied::Channel(1)));
    assert_eq!(listen(&some, "foo:1", true), Ok(0));
    assert_eq!(listen(&some, "bar:*", true), Ok(0));
    assert_eq!(listen(&some, "bar:baz", true), Err(Denied::Channel(1)));
    assert_eq!(listen(&user("+@pubsub"), "foo", false), Err(Denied::Channel(1)));
    assert_eq!(listen(&change(&some, "allchannels"), "bar:baz", true), Ok(0));
    assert_eq!(
        description(&user("on nopass resetchannels &foo +@all")),
        "on nopass sanitize-payload resetchannels &foo +@all",
    );
}

#[test]
fn subscriptions_end_when_their_right_is_lost() {
    let before = user("resetchannels &foo:1 &bar:* &orders");
    let same = change(&before, "resetchannels &foo:1 &bar:* &orders &baz:qaz &zoo:*");
    assert!(ChannelsLeft::after(&before, &same).is_none());
    assert!(ChannelsLeft::after(&before, &change(&before, "allchannels")).is_none());
    let fewer = change(&before, "resetchannels &foo:*");
    let left = ChannelsLeft::after(&before, &fewer).expect("some are lost");
    assert!(left.allows(b"foo:1", false) && !left.allows(b"bar:1", false));
    assert!(left.allows(b"foo:*", true) && !left.allows(b"bar:*", true));
    let all = user("allchannels");
    let none = change(&all, "resetchannels");
    assert!(!ChannelsLeft::after(&all, &none).expect("all are lost").allows(b"foo", true));
}

#[test]
fn databases_are_allowed_by_number() {
    const SELECTED: usize = 0;
    let these = |numbers: &[(usize, u32)]| {
        in_databases(&user("db=0,2 +@all"), RequestDatabases::These(numbers))
    };
    assert_eq!(these(&[(SELECTED, 2)]), Ok(0));
    assert_eq!(these(&[(SELECTED, 1)]), Err(Denied::Database(0)));
    assert_eq!(these(&[(SELECTED, 0), (1, 3)]), Err(Denied::Database(1)));
    assert_eq!(these(&[]), Ok(0), "a request without data");
    assert_eq!(
        in_databases(&user("db=0,2 +@all"), RequestDatabases::Each(3)),
        Err(Denied::Database(0)),
    );
    assert_eq!(in_databases(&user("db=0,1,2,900 +@all"), RequestDatabases::Each(3)), Ok(0));
    let both = user("~a:* +get (~b:* +set) db=0,2");
    assert_eq!(
        description(&both),
        "off sanitize-payload ~a:* resetchannels db=0,2 -@all +get (~b:* resetchannels -@all +set)",
    );
    // Another selector has the database but not the command.
    assert_eq!(in_databases(&both, RequestDatabases::These(&[(0, 1)])), Err(Denied::Command));
    assert_eq!(
        description(&change(&both, "clearselectors resetdbs")),
        "off sanitize-payload ~a:* resetchannels resetdbs -@all +get"
    );
    assert_eq!(change(&both, "db=3,1,3").fields().root.databases, "db=1,3");
    assert_eq!(change(&both, "ALLDBS").fields().root.databases, "alldbs");
}

#[test]
fn every_key_is_one_rule() {
    let sort = Request {
        command: TABLE.find(b"sort").expect("the table has the command"),
        argument: None,
        keys: &[Key { word: 1, name: b"mylist", access: READ }],
        channels: &[],
        databases: RequestDatabases::These(&[]),
    };
    let may = |rules: &str| user(rules).allows_every_key(&TABLE, &sort, READ);
    assert!(!may("(+sort ~mylist)"));
    assert!(!may("(+sort ~mylist ~v*)"));
    assert!(!may("(+sort ~mylist %W~*)"));
    assert!(may("(+sort ~mylist %R~*)"));
    assert!(may("(+sort allkeys)"));
    assert!(!may("~* (+sort ~mylist)"), "not in the same selector");
}
