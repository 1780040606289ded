//! Files of users, and `user` lines of redis.conf.

use crate::common::{TABLE, context, words};
use ladon_identity::{ConfiguredUsers, Users, read_file, write_file};
use std::sync::Arc;

fn errors(text: &str) -> String {
    let errors = read_file(text.as_bytes(), "/etc/users.acl", context()).expect_err("it is wrong");
    String::from_utf8(errors.reply()).expect("UTF-8")
}

#[test]
fn users_are_read_and_written() {
    let text =
        "\nuser alice on nopass ~alice +@all (+get ~rw*)\r\n\tuser bob off >p %R~r +get  ~x\n";
    let mut users = Users::new(&TABLE);
    users.set(b"bob", words("on"), context()).expect("rules");
    users.set(b"gone", words("on"), context()).expect("rules");
    let held: Vec<_> = users.iter().map(Arc::clone).collect();
    users.replace(read_file(text.as_bytes(), "f", context()).expect("users"), &TABLE);
    let there: Vec<bool> = held.iter().map(|user| users.current(user).is_some()).collect();
    assert_eq!(there, [true, true, false], "bob, default and gone");
    let saved = String::from_utf8(write_file(&users)).expect("UTF-8");
    let hash = "148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940";
    assert_eq!(
        saved,
        format!(
            "user alice on nopass sanitize-payload ~alice resetchannels +@all (~rw* resetchannels \
         -@all +get)\n\
         user bob off sanitize-payload #{hash} %R~r ~x resetchannels -@all +get\n\
         user default on nopass sanitize-payload ~* &* +@all\n"
        )
    );
    let before = saved.clone();
    users.replace(read_file(saved.as_bytes(), "f", context()).expect("users"), &TABLE);
    assert_eq!(write_file(&users), before.into_bytes());
}

#[test]
fn all_errors_of_a_file_are_found() {
    let text = "user app on +nosuch +nope\nuser app off\nhello\nuser x bogus %Z >p\nuser a\tb on\n\
        # comment\nuser\nuser y (+get\n";
    assert_eq!(
        errors(text),
        "ERR /etc/users.acl:1: Error in applying operation '+nosuch': Unknown command or category \
         name in ACL. /etc/users.acl:1: Error in applying operation '+nope': Unknown command or \
         category name in ACL. WARNING: Duplicate user 'app' found on line 2. /etc/users.acl:3 \
         should start with user keyword followed by the username. /etc/users.acl:4: Syntax error. \
         '/etc/users.acl:5: username 'a\tb' contains invalid characters. /etc/users.acl:6 should \
         start with user keyword followed by the username. /etc/users.acl:7 should start with user \
         keyword followed by the username. /etc/users.acl:8: Unmatched parenthesis in selector \
         definition.WARNING: ACL errors detected, no change to the previously active ACL rules was \
         performed"
    );
    assert!(errors("user default on\nuser default off").contains("Duplicate user 'default'"));
    assert_eq!(read_file(b" \n\n", "f", context()), Ok(vec![]));
}

#[test]
fn lines_of_a_configuration_are_checked_and_then_applied() {
    let mut lines = ConfiguredUsers::default();
    let mut add = |name: &str, rules: &str| {
        let added = lines.add(name.as_bytes(), words(rules), context());
        added.map_err(|error| String::from_utf8(error.text()).expect("UTF-8"))
    };
    assert_eq!(add("alice", "on (~a +get)"), Ok(()));
    assert_eq!(add("bob", "+get"), Ok(()));
    assert_eq!(add("default", "on >p"), Ok(()));
    assert_eq!(
        add("bob", "+get"),
        Err("Error in user declaration 'bob': Duplicate user found. A user can only be defined \
            once in config files"
            .to_owned())
    );
    assert_eq!(
        add("eve", "on bogus"),
        Err("Error in user declaration 'bogus': Syntax error".to_owned())
    );
    assert!(add("eve", "(on").is_err());
    let mut users = Users::new(&TABLE);
    assert_eq!(lines.load(&mut users, context()), Ok(vec![b"bob".to_vec()]), "bob is off");
    assert_eq!(users.iter().len(), 3);
    assert!(!users.default_user().is_unlimited(), "a line makes the default user anew");
}

#[test]
fn unknown_commands_are_errors_when_lines_are_applied() {
    let mut lines = ConfiguredUsers::default();
    assert_eq!(lines.add(b"alice", words("on +get"), context()), Ok(()));
    assert_eq!(lines.add(b"bob", words("+nosuch"), context()), Ok(()));
    let mut users = Users::new(&TABLE);
    let error = lines.load(&mut users, context()).expect_err("a rule is wrong");
    assert_eq!(
        String::from_utf8(error.text()).expect("UTF-8"),
        "Error loading ACL rule '+nosuch' for the user named 'bob': Unknown command or category \
         name in ACL"
    );
    assert_eq!(users.iter().len(), 1, "none was made");
    let mut lines = ConfiguredUsers::default();
    lines.add(b"a b", words("on"), context()).expect("the name is looked at later");
    let error = lines.load(&mut users, context()).expect_err("the name is wrong");
    assert_eq!(error.text(), b"Spaces not allowed in ACL usernames");
}
