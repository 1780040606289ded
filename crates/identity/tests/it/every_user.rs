//! Any rules: a user's description makes the same user, and the matcher allows what a slow reading
//! of the rules allows.

use crate::check::{check, reads_back};
use crate::common::{TABLE, context};
use ladon_identity::{Channel, CommandId, Key, KeyAccess, Request, RequestDatabases, User};
use proptest::prelude::*;

const RULES: [&str; 52] = [
    "on",
    "off",
    "nopass",
    ">p",
    ">q",
    "<p",
    "resetpass",
    "clearselectors",
    "reset",
    "~*",
    "~a*",
    "~b",
    "%R~a*",
    "%W~a*",
    "%RW~*",
    "%R~*",
    "%W~b",
    "resetkeys",
    "allkeys",
    "&*",
    "&a*",
    "&b",
    "resetchannels",
    "allchannels",
    "+@all",
    "-@all",
    "nocommands",
    "+get",
    "-get",
    "+SET",
    "+@read",
    "-@read",
    "+@write",
    "-@write",
    "+@Slow",
    "-@slow",
    "-@fast",
    "+client",
    "-client",
    "+client|id",
    "-client|id",
    "+Client|Kill",
    "+select|0",
    "+select|1",
    "-select",
    "+select",
    "+@connection",
    "-@connection",
    "db=0",
    "db=0,1",
    "alldbs",
    "resetdbs",
];

fn any_rule() -> impl Strategy<Value = String> {
    let word = prop::sample::select(&RULES[..]);
    let inner = prop::collection::vec(prop::sample::select(&RULES[9..]), 0..8);
    prop_oneof![
        6 => word.prop_map(str::to_owned),
        1 => inner.prop_map(|words| format!("({})", words.join(" "))),
    ]
}

/// The rules of each selector, in order, as they were written.
struct SlowUser(Vec<Vec<String>>);

impl SlowUser {
    fn apply(&mut self, rule: &str) {
        match rule {
            "on" | "off" | "nopass" | ">p" | ">q" | "<p" | "resetpass" => {}
            "clearselectors" => self.0.truncate(1),
            "reset" => self.0 = vec![Vec::new()],
            _ => match rule.strip_prefix('(') {
                Some(inside) => {
                    let words = inside.trim_end_matches(')').split_whitespace();
                    self.0.push(words.map(str::to_owned).collect());
                }
                None => self.0[0].push(rule.to_owned()),
            },
        }
    }
}

/// Whether a rule about commands is about this one: by name, as its container, or by a category
/// that it or its container has.
fn is_about(name: &str, command: CommandId) -> bool {
    let with_container = [Some(command), TABLE.parent(command)];
    let mut related = with_container.into_iter().flatten();
    match name.strip_prefix('@') {
        Some("all") => true,
        Some(category) => {
            let bit = TABLE.category(category.as_bytes()).expect("a category");
            related.any(|id| TABLE.is_in(id, bit))
        }
        None => related.any(|id| TABLE.name(id) == name),
    }
}

fn slow_command(rules: &[String], command: CommandId, argument: &str) -> bool {
    let (mut allowed, mut arguments) = (false, Vec::new());
    for rule in rules {
        let rule = rule.to_lowercase();
        let (sign, name) = match rule.as_str() {
            "nocommands" => ("-", "@all"),
            other if other.starts_with(['+', '-']) => other.split_at(1),
            _ => continue,
        };
        match name.strip_prefix("select|") {
            Some(first) if TABLE.name(command) == "select" => arguments.push(first.to_owned()),
            Some(_) => {}
            None if is_about(name, command) => {
                allowed = sign == "+";
                arguments.clear();
            }
            None => {}
        }
    }
    allowed || TABLE.is_no_auth(command) || arguments.iter().any(|first| first == argument)
}

/// The glob patterns above: the text, or what begins with what is before a star. As in Redis, a
/// star does not match the empty text.
fn slow_match(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(before) => !name.is_empty() && name.starts_with(before),
        None => pattern == name,
    }
}

fn slow_key(rules: &[String], key: &str, wanted: KeyAccess) -> bool {
    let since = rules.iter().rposition(|rule| rule == "resetkeys").map_or(0, |place| place + 1);
    let rules = &rules[since..];
    if rules.iter().any(|rule| rule == "~*" || rule == "allkeys") {
        return true;
    }
    let patterns: Vec<(&str, &str)> = rules
        .iter()
        .filter(|rule| rule.starts_with(['~', '%']))
        .filter_map(|rule| rule.split_once('~'))
        .collect();
    patterns.iter().any(|(_, pattern)| {
        let allows = |letter: char| {
            patterns.iter().any(|(letters, other)| {
                other == pattern && (letters.is_empty() || letters.contains(letter))
            })
        };
        slow_match(pattern, key) && allows('R') >= wanted.read && allows('W') >= wanted.write
    })
}

fn slow_channel(rules: &[String], channel: &str, is_pattern: bool) -> bool {
    let since = rules.iter().rposition(|rule| rule == "resetchannels").map_or(0, |place| place + 1);
    rules[since..].iter().any(|rule| match rule.strip_prefix('&') {
        Some("*") => true,
        Some(pattern) if is_pattern => pattern == channel,
        Some(pattern) => slow_match(pattern, channel),
        None => rule == "allchannels",
    })
}

fn slow_database(rules: &[String], database: u32) -> bool {
    let last = rules.iter().rev().find(|rule| rule.starts_with("db=") || rule.ends_with("dbs"));
    match last.map_or("alldbs", String::as_str) {
        "alldbs" => true,
        "resetdbs" => false,
        list => list[3..].split(',').any(|number| number == database.to_string()),
    }
}

/// A user by rules, of which the wrong ones are left out, and the same read slowly.
fn make(rules: &[String]) -> (User, SlowUser) {
    let (mut user, mut slow) = (User::new(b"u", context()), SlowUser(vec![Vec::new()]));
    for rule in rules {
        if let Ok(changed) = user.changed_by([rule.as_bytes()], context()) {
            user = changed;
            slow.apply(rule);
        }
    }
    (user, slow)
}

/// Pieces of rules and of lines, put together at random.
const PIECES: [&str; 30] = [
    "(", ")", " ", "\n", "~", "%R~", "%W~", "&", "+", "-", "@all", "@read", "get", "select",
    "client", "|", "*", "a", "\0", "\t", "\x0b", "db=", "1", ",", "user ", ">", "<", "on", "()",
    "\u{e4}",
];

proptest! {
    #[test]
    fn any_text_is_refused_or_reads_back(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24),
        is_file in any::<bool>(),
    ) {
        let text = pieces.concat();
        check(format!("{}{text}", if is_file { "fuser u " } else { "r" }).as_bytes());
    }

    #[test]
    fn a_description_makes_the_same_user(rules in prop::collection::vec(any_rule(), 0..16)) {
        reads_back(&make(&rules).0);
    }

    #[test]
    fn the_matcher_agrees_with_the_rules(
        rules in prop::collection::vec(any_rule(), 0..16),
        argument in prop::sample::select(&["0", "1", "2"][..]),
        key in prop::sample::select(&["a", "ab", "b", "c", ""][..]),
        channel in prop::sample::select(&["a", "a*", "b", "c"][..]),
        is_pattern in any::<bool>(),
        (read, write) in any::<(bool, bool)>(),
        database in 0u32..3,
    ) {
        let (user, slow) = make(&rules);
        let access = KeyAccess { read, write };
        for command in TABLE.ids() {
            let keys = [Key { word: 1, name: key.as_bytes(), access }];
            let channels = [Channel { word: 2, name: channel.as_bytes(), is_pattern }];
            let databases = [(0, database)];
            let request = Request {
                command,
                argument: Some(argument.as_bytes()),
                keys: &keys,
                channels: &channels,
                databases: RequestDatabases::These(&databases),
            };
            let fits = slow.0.iter().position(|rules| {
                slow_command(rules, command, argument)
                    && (slow_key(rules, key, access))
                    && slow_channel(rules, channel, is_pattern)
                    && slow_database(rules, database)
            });
            prop_assert_eq!(user.check(&TABLE, &request).ok(), fits, "{}", TABLE.name(command));
            prop_assert!(fits.is_some() || !user.is_unlimited());
        }
    }
}
