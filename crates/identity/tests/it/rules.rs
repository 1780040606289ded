//! Rules about users and commands, as `tests/unit/acl.tcl` of Redis has them.

use crate::common::{TABLE, change, commands, context, description, error, user, words};
use ladon_identity::{Credentials, Denied, Request, RequestDatabases, RuleContext, User};

const HASH: &str = "34344e4d60c2b6d639b7bd22e18f2b0b91bc34bf0ac5f9952744435093cfb4e6";

/// Whether the user may run `name`, or `container|subcommand`, with this argument.
fn may(user: &User, name: &str, argument: &str) -> bool {
    let request = Request {
        command: TABLE.find(name.as_bytes()).expect("the table has the command"),
        argument: Some(argument.as_bytes()),
        keys: &[],
        channels: &[],
        databases: RequestDatabases::These(&[]),
    };
    match user.check(&TABLE, &request) {
        Ok(_) => true,
        Err(denied) => {
            assert_eq!(denied, Denied::Command);
            false
        }
    }
}

#[test]
fn a_new_user_is_off_and_may_nothing() {
    let new = User::new(b"u", context());
    assert_eq!(description(&new), "off sanitize-payload resetchannels -@all");
    assert!(!new.is_unlimited());
    assert!(!may(&new, "get", ""));
    let with_channels = RuleContext { all_channels_at_first: true, ..context() };
    let new = User::new(b"u", with_channels);
    assert_eq!(description(&new), "off sanitize-payload &* -@all");
    let reset = new.changed_by(words("resetchannels reset"), with_channels).expect("rules");
    assert_eq!(reset, new);
}

#[test]
fn only_the_passwords_of_the_user_let_in_when_on() {
    let login = |user: &User, password: &str| user.authenticate(password.as_bytes());
    let off = user(">passwd1");
    assert_eq!(login(&off, "passwd1"), Credentials::Wrong);
    let on = change(&off, "on >passwd2 >passwd2");
    assert_eq!(on.passwords().len(), 2);
    assert_eq!(login(&on, "passwd1"), Credentials::Right);
    assert_eq!(login(&on, "passwd2"), Credentials::Right);
    assert_eq!(login(&on, "passwd3"), Credentials::Wrong);
    assert_eq!(login(&change(&on, "<passwd1"), "passwd1"), Credentials::Wrong);
    let hashed = change(&on, &format!("#{HASH}"));
    assert_eq!(login(&hashed, "passwd4"), Credentials::Right);
    assert!(hashed.fields().passwords.contains(&HASH.to_owned()));
    assert_eq!(login(&change(&hashed, &format!("!{HASH}")), "passwd4"), Credentials::Wrong);
    let any = change(&on, "nopass");
    assert_eq!((login(&any, "zipzap"), any.passwords()), (Credentials::Right, &[][..]));
    assert_eq!(login(&change(&any, ">p"), "zipzap"), Credentials::Wrong);
    assert_eq!(login(&change(&any, "resetpass"), "zipzap"), Credentials::Wrong);
}

#[test]
fn errors_are_the_ones_of_redis() {
    let cases = [
        (
            "#12",
            "'#12': The password hash must be exactly 64 characters and contain only \
            lowercase hexadecimal characters",
        ),
        (
            "!ABC",
            "'!ABC': The password hash must be exactly 64 characters and contain only \
            lowercase hexadecimal characters",
        ),
        ("<none", "'<none': The password you are trying to remove from the user does not exist"),
        ("+nosuch", "'+nosuch': Unknown command or category name in ACL"),
        ("-@nosuch", "'-@nosuch': Unknown command or category name in ACL"),
        ("+config|asdf", "'+config|asdf': Unknown command or category name in ACL"),
        ("-config|asdf", "'-config|asdf': Unknown command or category name in ACL"),
        ("-select|1", "'-select|1': Unknown command or category name in ACL"),
        ("+get|key1|key2", "'+get|key1|key2': Unknown command or category name in ACL"),
        (
            "+config|get|appendonly",
            "'+config|get|appendonly': Allowing first-arg of a subcommand \
            is not supported",
        ),
        ("+select|", "'+select|': Syntax error"),
        ("bogus", "'bogus': Syntax error"),
        ("%X~a", "'%X~a': Syntax error"),
        ("%~a", "'%~a': Syntax error"),
        ("%RR~a", "'%RR~a': Syntax error"),
        ("%", "'%': Syntax error"),
        (
            "~* ~a",
            "'~a': Adding a pattern after the * pattern (or the 'allkeys' flag) is not \
            valid and does not have any effect. Try 'resetkeys' to start with an empty list of \
            patterns",
        ),
        (
            "allchannels &a",
            "'&a': Adding a pattern after the * pattern (or the 'allchannels' \
            flag) is not valid and does not have any effect. Try 'resetchannels' to start with an \
            empty list of channels",
        ),
        ("db=2147483648", "'db=2147483648': The provided database ID is out of range"),
        ("db=", "'db=': Syntax error"),
        ("db=1,", "'db=1,': Syntax error"),
    ];
    for (rules, expected) in cases {
        assert_eq!(error(rules), format!("ERR Error in ACL SETUSER modifier {expected}"));
    }
    let blank = User::new(b"u", context()).changed_by([&b"~a b"[..]], context());
    assert!(blank.is_err());
    let blank = User::new(b"u", context()).changed_by([&b"+select|a b"[..]], context());
    assert!(blank.is_err(), "it could not be described");
}

#[test]
fn a_refused_change_changes_nothing() {
    let before = user("on >p ~a +get");
    assert!(before.changed_by(words("resetkeys -@all off bogus"), context()).is_err());
    assert_eq!(before, user("on >p ~a +get"));
}

#[test]
fn commands_and_classes_are_allowed_and_forbidden() {
    let all = user("allcommands");
    assert!(may(&all, "ping", ""));
    let one_less = change(&all, "-ping");
    assert!(may(&one_less, "incr", "k") && !may(&one_less, "ping", ""));
    let sets = change(&all, "-@all +@set +acl");
    assert!(may(&sets, "sadd", "k") && !may(&sets, "get", "k"));
    let no_strings = change(&sets, "+@all -@string");
    assert!(may(&no_strings, "sadd", "k") && !may(&no_strings, "set", "k"));
    assert!(may(&user(""), "auth", ""), "what needs no authentication needs no right");
}

#[test]
fn subcommands_are_allowed_and_forbidden_alone() {
    let some = user("+@all -client +client|id +client|setname");
    assert_eq!(commands(&some), "+@all -client +client|id +client|setname");
    assert!(may(&some, "client|id", "") && !may(&some, "client|kill", ""));
    let one_less = user("+@all -client|kill");
    assert_eq!(commands(&one_less), "+@all -client|kill");
    assert!(may(&one_less, "client|id", "") && !may(&one_less, "client|kill", ""));
    let config = user("+config -config|set");
    assert_eq!(commands(&config), "-@all +config -config|set");
    assert!(may(&config, "config|get", "") && !may(&config, "config|set", ""));
    assert!(may(&user("+@slow"), "memory|stats", ""), "a container's class holds its subcommands");
}

#[test]
fn a_first_argument_is_allowed_alone() {
    let zero = user("+acl +SELECT|0 +debug|Object");
    assert_eq!(commands(&zero), "-@all +acl +select|0 +debug|object");
    assert!(may(&zero, "select", "0") && !may(&zero, "select", "1"));
    assert!(may(&zero, "debug", "OBJECT") && !may(&zero, "debug", "segfault"));
    assert!(!may(&change(&zero, "-select"), "select", "0"));
    assert!(!may(&change(&zero, "-@connection"), "select", "0"));
    assert!(may(&change(&zero, "+select"), "select", "1"));
}

#[test]
fn rules_are_compacted_without_loss() {
    let cases = [
        ("+@all -@hash -@slow +hget", "+@all -@hash -@slow +hget"),
        ("+@all -@hash -@slow +hget -@hash", "+@all -@slow +hget -@hash"),
        ("+@all -@slow +hget -@hash +@hash", "+@all -@slow +hget +@hash"),
        ("+hget -@all", "-@all"),
        ("-@string -@slow +@all", "+@all"),
        ("-@all +@HASH +@hash +@HaSh", "-@all +@hash"),
        ("-@all +HGET +hget +hGeT", "-@all +hget"),
        ("+@hash +@slow +@set +@set +@slow +@hash", "-@all +@set +@slow +@hash"),
        ("+hget -hset +hset -hget", "-@all +hset -hget"),
        (
            "+client|list +client|list +config|get +config +acl|list -acl",
            "-@all +client|list +config -acl",
        ),
        ("+select|0 +select|0 +debug|segfault +debug", "-@all +select|0 +debug"),
        ("-@all -@dangerous", "-@all -@dangerous"),
        ("+config +config|get -config|set +config", "-@all +config"),
        ("+memory|doctor +memory +@all +client|id", "+@all +client|id"),
    ];
    for (rules, expected) in cases {
        assert_eq!(commands(&user(rules)), expected, "{rules}");
    }
    for category in crate::common::CATEGORIES {
        assert_eq!(commands(&user(&format!("+@all -@{category}"))), format!("+@all -@{category}"));
        assert_eq!(commands(&user(&format!("+@{category}"))), format!("-@all +@{category}"));
    }
}

#[test]
fn reset_makes_a_new_user() {
    let used = user("on >p ~a &c db=1 +@all (+get ~b) skip-sanitize-payload");
    let reset = change(&used, "reset");
    assert_eq!(reset, User::new(b"u", context()));
    assert_eq!(
        description(&user("skip-sanitize-payload")).split(' ').nth(1),
        Some("skip-sanitize-payload")
    );
}

#[test]
fn unlimited_is_seen() {
    assert!(user("~* &* +@all").is_unlimited());
    assert!(user("(~* &* +@all)").is_unlimited());
    for rules in ["~* &* +@all -ping", "&* +@all", "~* +@all", "~* &* +@all db=0"] {
        assert!(!user(rules).is_unlimited(), "{rules}");
    }
    assert!(!change(&user("~* &* +@all"), "-get").is_unlimited());
}
