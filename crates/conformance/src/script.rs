//! A script: commands and directives, one a line.
//!
//! ```text
//! # comment
//! set key "a value"              a command; its reply is compared exactly
//! @unordered smembers s          the elements in any order
//! @deep command docs client      the elements of every level in any order
//! @lines info stats              the lines of a text in any order
//! @approx 2 ttl key              every number may differ by 2
//! @shape spop s 2                types and lengths only
//! @type-only time                the outermost type (of an error: its first word) only
//! @any info                      not compared (but there must be a reply)
//! @fields redis_version,uptime info   both replies have these fields
//! @mask /id=[0-9]+/id=N/ client info  a substitution on both replies first
//! @rep 100 sadd s ${i}           the command a hundred times, i = 0, 1, ...
//! @scan scan 0 match a*          the whole iteration; the distinct elements, sorted
//! @expect -ERR text              before a command: Redis 7.2 says this where 7.0 says otherwise;
//!                                Ladon has to answer it, whatever the reference says
//! @expect-match REGEX            the same, by a regular expression over the printed reply
//! @conn b                        go on with connection b (opened if new); the first one is "a"
//! @reconnect                     close this connection and open it anew
//! @raw "*1\r\n..."               send bytes as they are; replies are read by @read and @eof
//! @send blpop k 0                send a command without reading
//! @read 2                        read two replies
//! @eof                           read what comes until the server closes the connection
//! @silence 50                    nothing may come for 50 ms
//! @sleep 20                      wait 20 ms
//! @let id client id              keep a reply as ${id}
//! @poll "text" info persistence  repeat until the printed reply holds the text
//! @only 2                        this script is for RESP2 only (or 3)
//! ```

use std::fmt;

use crate::words;

/// How a reply is compared with the reference's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// Byte for byte.
    Exact,
    /// The outermost elements in any order.
    Unordered,
    /// The elements of every level in any order.
    Deep,
    /// The lines of a text in any order.
    Lines,
    /// Integers, and strings that are integers, may differ by this much.
    Approx(i64),
    /// Types and lengths, not contents.
    Shape,
    /// The outermost type; an error's first word.
    TypeOnly,
    /// Not at all.
    Any,
    /// A text of `name:value` or `name=value` fields that has (at least) these names.
    Fields(Vec<String>),
}

/// The reply that Ladon has to give where the reference is not the standard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The reference is right.
    Reference,
    /// This printed reply (loose form).
    Text(String),
    /// A printed reply (loose form) that this regular expression matches.
    Regex(String),
}

/// One line that does something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a command, read its reply.
    Command(Vec<Vec<u8>>),
    /// The command so many times, with `${i}`.
    Repeat(u64, Vec<Vec<u8>>),
    /// A whole cursor iteration of the command, whose cursor is the word that says `0`.
    Scan(Vec<Vec<u8>>),
    /// Continue on the connection of this name.
    Switch(String),
    /// Close and open anew.
    Reconnect,
    /// Bytes as they are.
    Raw(Vec<u8>),
    /// A command whose reply is not read here.
    Send(Vec<Vec<u8>>),
    /// Read so many replies.
    Read(u64),
    /// Read until the connection is closed.
    Eof,
    /// Nothing may come for so many milliseconds.
    Silence(u64),
    /// Milliseconds to wait.
    Sleep(u64),
    /// Keep a reply's text under a name.
    Let(String, Vec<Vec<u8>>),
    /// Repeat until the printed reply holds the text.
    Poll(String, Vec<Vec<u8>>),
}

/// An action, with how to judge it and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The line in the file, from 1.
    pub line: usize,
    /// The line's text.
    pub text: String,
    /// What to do.
    pub action: Action,
    /// How to compare.
    pub check: Check,
    /// Regular expressions with what replaces their matches, before comparing.
    pub masks: Vec<(String, String)>,
    /// What Ladon has to say.
    pub expect: Expect,
}

/// A parsed script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// `family/topic`.
    pub name: String,
    /// The one protocol version that it is for, if it is not for both.
    pub only: Option<u8>,
    /// The steps in order.
    pub steps: Vec<Step>,
}

/// A line that is not a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The script's name.
    pub script: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.script, self.line, self.why)
    }
}

impl std::error::Error for ScriptError {}

impl Script {
    /// Whether it is played in this protocol version.
    pub fn is_for(&self, protocol: u8) -> bool {
        self.only.is_none_or(|only| only == protocol)
    }

    /// Parses a script's text.
    ///
    /// # Errors
    /// The first line that is not a step.
    pub fn parse(name: &str, text: &str) -> Result<Script, ScriptError> {
        let mut script = Script { name: name.into(), only: None, steps: Vec::new() };
        let mut pending = Pending::default();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let error = |why| ScriptError { script: name.into(), line: line_number, why };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(version) = line.strip_prefix("@only ") {
                let version = version.trim().parse().map_err(|_| error("@only 2 or 3".into()))?;
                script.only = Some(version);
                continue;
            }
            let Some(action) = parse_line(line, &mut pending).map_err(error)? else { continue };
            let pending = std::mem::take(&mut pending);
            script.steps.push(Step {
                line: line_number,
                text: line.into(),
                action,
                check: pending.check.unwrap_or(Check::Exact),
                masks: pending.masks,
                expect: pending.expect.unwrap_or(Expect::Reference),
            });
        }
        Ok(script)
    }
}

/// Modifiers that wait for their command.
#[derive(Default)]
struct Pending {
    check: Option<Check>,
    masks: Vec<(String, String)>,
    expect: Option<Expect>,
}

/// Parses one line; `None` if it only modifies the next one.
fn parse_line(line: &str, pending: &mut Pending) -> Result<Option<Action>, String> {
    let Some(directive) = line.strip_prefix('@') else {
        return Ok(Some(Action::Command(words::split(line)?)));
    };
    let (name, rest) = directive.split_once(' ').unwrap_or((directive, ""));
    let rest = rest.trim_start();
    match modify(name, rest, pending)? {
        Some("") => Ok(None),
        Some(command) => parse_line(command, pending),
        None => action(name, rest).map(Some),
    }
}

/// Notes what a directive changes about the next command; what follows the directive on its
/// line, which may be that command. `None` if it is no such directive.
fn modify<'a>(name: &str, rest: &'a str, pending: &mut Pending) -> Result<Option<&'a str>, String> {
    let (check, rest) = match name {
        "unordered" => (Check::Unordered, rest),
        "deep" => (Check::Deep, rest),
        "lines" => (Check::Lines, rest),
        "shape" => (Check::Shape, rest),
        "type-only" => (Check::TypeOnly, rest),
        "any" => (Check::Any, rest),
        "approx" => {
            let (by, rest) = first(rest)?;
            (Check::Approx(number(by)?), rest)
        }
        "fields" => {
            let (names, rest) = first(rest)?;
            (Check::Fields(names.split(',').map(String::from).collect()), rest)
        }
        "mask" => {
            let parts: Vec<&str> = rest.splitn(4, '/').collect();
            let ["", pattern, replacement, rest] = parts[..] else {
                return Err("@mask /REGEX/REPLACEMENT/".into());
            };
            pending.masks.push((pattern.into(), replacement.into()));
            return Ok(Some(rest.trim_start()));
        }
        "expect" => {
            pending.expect = Some(Expect::Text(rest.into()));
            return Ok(Some(""));
        }
        "expect-match" => {
            pending.expect = Some(Expect::Regex(rest.into()));
            return Ok(Some(""));
        }
        _ => return Ok(None),
    };
    pending.check = Some(check);
    Ok(Some(rest))
}

/// What a directive does by itself.
fn action(name: &str, rest: &str) -> Result<Action, String> {
    Ok(match name {
        "rep" => {
            let (count, rest) = first(rest)?;
            Action::Repeat(number(count)?, words::split(rest)?)
        }
        "scan" => Action::Scan(words::split(rest)?),
        "conn" => Action::Switch(rest.into()),
        "reconnect" => Action::Reconnect,
        "raw" => {
            let bytes: Vec<Vec<u8>> =
                words::split(rest)?.iter().map(|word| words::expand(word)).collect();
            Action::Raw(bytes.concat())
        }
        "send" => Action::Send(words::split(rest)?),
        "read" => Action::Read(number(rest)?),
        "eof" => Action::Eof,
        "silence" => Action::Silence(number(rest)?),
        "sleep" => Action::Sleep(number(rest)?),
        "let" => {
            let (name, rest) = first(rest)?;
            Action::Let(name.into(), words::split(rest)?)
        }
        "poll" => {
            let mut words = words::split(rest)?;
            if words.len() < 2 {
                return Err("@poll TEXT COMMAND".into());
            }
            let text = String::from_utf8_lossy(&words.remove(0)).into_owned();
            Action::Poll(text, words)
        }
        _ => return Err(format!("an unknown directive @{name}")),
    })
}

fn first(rest: &str) -> Result<(&str, &str), String> {
    if rest.is_empty() {
        return Err("an argument is missing".into());
    }
    let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    Ok((word, rest.trim_start()))
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.trim().parse().map_err(|_| format!("not a number: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Script {
        Script::parse("t", text).expect("a good script")
    }

    #[test]
    fn modifiers_wait_for_their_command() {
        let script = parse("# c\n@expect :1\n@mask /a+/b/ @approx 2 ttl k\n@only 3\nget k");
        assert_eq!(script.only, Some(3));
        let [first, second] = &script.steps[..] else { panic!("{script:?}") };
        assert_eq!(first.check, Check::Approx(2));
        assert_eq!(first.masks, [("a+".into(), "b".into())]);
        assert_eq!(first.expect, Expect::Text(":1".into()));
        assert_eq!(first.action, Action::Command(vec![b"ttl".to_vec(), b"k".to_vec()]));
        assert_eq!((second.line, &second.check), (5, &Check::Exact));
    }

    #[test]
    fn says_what_is_wrong() {
        let error = Script::parse("t", "get k\n@nonsense").expect_err("a bad line");
        assert_eq!(error.to_string(), "t:2: an unknown directive @nonsense");
    }
}
