//! Judges one transcript by the other.

use std::fmt;

use regex_lite::Regex;

use crate::play::{Entry, Transcript};
use crate::reply::Reply;
use crate::script::{Check, Expect, Script};

/// A reply that differs from the expected one.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The script's name and the line.
    pub place: String,
    /// The line's text.
    pub text: String,
    /// The expected reply, printed.
    pub wanted: String,
    /// The actual reply, printed.
    pub got: String,
}

impl Mismatch {
    pub(crate) fn of(script: &Script, subject: &Entry, wanted: String, got: String) -> Mismatch {
        let place = format!("{}:{}", script.name, subject.step.line);
        Mismatch { place, text: subject.step.text.clone(), wanted, got }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}: {}", self.place, self.text)?;
        writeln!(out, "    wanted  {}", shorten(&self.wanted, &self.got))?;
        write!(out, "    got     {}", shorten(&self.got, &self.wanted))
    }
}

/// Long replies are cut around the first difference.
fn shorten(text: &str, other: &str) -> String {
    const WIDTH: usize = 600;
    let same = text.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let start = same.saturating_sub(80);
    let length = text.chars().count();
    if length <= WIDTH {
        return text.into();
    }
    let part: String = text.chars().skip(start).take(WIDTH).collect();
    let open = if start > 0 { "... " } else { "" };
    let close = if start + WIDTH < length { " ..." } else { "" };
    format!("{open}{part}{close}")
}

/// Compares Ladon's replies (`subject`) with the real server's (`reference`). If a step has its own
/// expectation, the reference does not count.
pub fn compare(script: &Script, reference: &Transcript, subject: &Transcript) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    let pairs = reference.entries.iter().zip(&subject.entries);
    for (reference, subject) in pairs {
        if let Some((wanted, got)) = judge(reference, subject) {
            mismatches.push(Mismatch::of(script, subject, wanted, got));
        }
    }
    if reference.entries.len() != subject.entries.len() {
        mismatches.push(Mismatch {
            place: script.name.clone(),
            text: "the number of replies".into(),
            wanted: reference.entries.len().to_string(),
            got: subject.entries.len().to_string(),
        });
    }
    mismatches
}

/// `None` if `subject` is right, otherwise the expected and the actual reply.
fn judge(reference: &Entry, subject: &Entry) -> Option<(String, String)> {
    match subject.step.check {
        Check::Approx(by) if counts(subject) && near(&reference.reply, &subject.reply, by) => None,
        _ => judge_text(recorded(reference).as_deref(), subject, |text| text),
    }
}

/// As `judge`, with the recorded text of the reference's reply. A text is cut as those recorded
/// were.
pub(crate) fn judge_recorded(
    wanted: Option<&String>,
    subject: &Entry,
    cut: impl Fn(String) -> String,
) -> Option<(String, String)> {
    match (wanted, &subject.step.check) {
        (Some(wanted), Check::Approx(by)) if near_text(wanted, &compared(subject), *by) => None,
        _ => judge_text(wanted.map(String::as_str), subject, cut),
    }
}

/// The text with which replies to this step are compared; `None` if the reference does not count.
pub(crate) fn recorded(reference: &Entry) -> Option<String> {
    counts(reference).then(|| compared(reference))
}

fn counts(entry: &Entry) -> bool {
    entry.step.expect == Expect::Reference && entry.step.check != Check::Any
}

fn judge_text(
    wanted: Option<&str>,
    subject: &Entry,
    cut: impl Fn(String) -> String,
) -> Option<(String, String)> {
    let step = &subject.step;
    let loose = || mask(&subject.reply.loose(), &step.masks);
    match (&step.expect, wanted) {
        (Expect::Text(text), _) => {
            let got = loose();
            (got != *text).then(|| (text.clone(), got))
        }
        (Expect::Regex(pattern), _) => {
            let got = loose();
            let matches = Regex::new(pattern).is_ok_and(|regex| regex.is_match(&got));
            (!matches).then(|| (format!("/{pattern}/"), got))
        }
        (Expect::Reference, Some(wanted)) => {
            let got = cut(compared(subject));
            (wanted != got).then(|| (wanted.into(), got))
        }
        (Expect::Reference, None) => {
            let got = &subject.reply;
            let dead = matches!(got, Reply::Closed | Reply::Timeout | Reply::Malformed(_));
            dead.then(|| ("a reply".into(), got.show()))
        }
    }
}

/// What is compared of a reply, as text.
fn compared(entry: &Entry) -> String {
    let (step, reply) = (&entry.step, &entry.reply);
    let show = |reply: &Reply| mask(&reply.show(), &step.masks);
    match &step.check {
        Check::Exact | Check::Approx(_) | Check::Any => show(reply),
        Check::Unordered => show(&sorted(reply, false)),
        Check::Deep => show(&sorted(reply, true)),
        Check::Lines => lines(&show(reply)),
        Check::Shape => shape(reply),
        Check::TypeOnly => kind(reply),
        Check::Fields(names) => missing(reply, names),
    }
}

fn mask(text: &str, masks: &[(String, String)]) -> String {
    let mut text = text.to_string();
    for (pattern, replacement) in masks {
        match Regex::new(pattern) {
            Ok(regex) => text = regex.replace_all(&text, replacement.as_str()).into_owned(),
            Err(error) => return format!("a bad mask: {error}"),
        }
    }
    text
}

fn sorted(reply: &Reply, deep: bool) -> Reply {
    let inner = |item: &Reply| if deep { sorted(item, true) } else { item.clone() };
    let sort = |items: &[Reply]| {
        let mut items: Vec<Reply> = items.iter().map(inner).collect();
        items.sort_by_key(Reply::show);
        items
    };
    match reply {
        Reply::Array(items) => Reply::Array(sort(items)),
        Reply::Set(items) => Reply::Set(sort(items)),
        Reply::Map(pairs) => {
            let mut pairs: Vec<(Reply, Reply)> =
                pairs.iter().map(|(key, value)| (inner(key), inner(value))).collect();
            pairs.sort_by_key(|(key, _)| key.show());
            Reply::Map(pairs)
        }
        other => other.clone(),
    }
}

/// The lines of a printed text, sorted; the quotes at its ends count as no part of a line.
fn lines(text: &str) -> String {
    let mut lines: Vec<&str> = text.trim_matches('"').split("\\r\\n").collect();
    lines.sort_unstable();
    lines.join("\n")
}

fn near(wanted: &Reply, got: &Reply, by: i64) -> bool {
    let number = |reply: &Reply| match reply {
        Reply::Integer(value) => Some(*value),
        Reply::Bulk(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        _ => None,
    };
    if std::mem::discriminant(wanted) != std::mem::discriminant(got) {
        return false;
    }
    if let (Some(wanted), Some(got)) = (number(wanted), number(got)) {
        return wanted.abs_diff(got) <= by.unsigned_abs();
    }
    let (wanted_items, got_items) = (wanted.elements(), got.elements());
    if wanted_items.is_empty() || wanted_items.len() != got_items.len() {
        return wanted == got;
    }
    wanted_items.iter().zip(&got_items).all(|(wanted, got)| near(wanted, got, by))
}

/// As `near`, of printed replies: whole numbers may differ by this much.
fn near_text(wanted: &str, got: &str, by: i64) -> bool {
    let is_mark = |letter: char| matches!(letter, ' ' | ',' | '[' | ']' | '"' | ':');
    let parts = |text: &str| text.split(is_mark).map(str::to_owned).collect::<Vec<_>>();
    let (wanted_parts, got_parts) = (parts(wanted), parts(got));
    let marks = |text: &str| text.chars().filter(|&letter| is_mark(letter)).collect::<String>();
    marks(wanted) == marks(got)
        && wanted_parts.iter().zip(&got_parts).all(|(wanted, got)| {
            match (wanted.parse::<i64>(), got.parse::<i64>()) {
                (Ok(wanted), Ok(got)) => wanted.abs_diff(got) <= by.unsigned_abs(),
                _ => wanted == got,
            }
        })
}

pub(crate) fn shape(reply: &Reply) -> String {
    match reply {
        Reply::Array(_) | Reply::Set(_) | Reply::Push(_) | Reply::Map(_) => {
            let mut inner: Vec<String> = reply.elements().iter().map(shape).collect();
            inner.dedup();
            format!("{} of {} [{}]", kind(reply), reply.elements().len(), inner.join(", "))
        }
        other => kind(other),
    }
}

pub(crate) fn kind(reply: &Reply) -> String {
    match reply {
        Reply::Simple(_) => "simple string".into(),
        Reply::Error(text) => format!("error {}", text.split(' ').next().unwrap_or_default()),
        Reply::Integer(_) => "integer".into(),
        Reply::Bulk(_) => "bulk string".into(),
        Reply::Array(_) => "array".into(),
        Reply::Map(_) => "map".into(),
        Reply::Set(_) => "set".into(),
        Reply::Push(_) => "push".into(),
        Reply::Double(_) => "double".into(),
        Reply::Boolean(_) => "boolean".into(),
        Reply::BigNumber(_) => "big number".into(),
        Reply::Verbatim(format, _) => format!("verbatim {format}"),
        Reply::Attribute(_, reply) => format!("attribute and {}", kind(reply)),
        other => other.show(),
    }
}

/// Which of `names` are not fields of the text (`name:value` lines, or `name=value` words).
fn missing(reply: &Reply, names: &[String]) -> String {
    let text = match reply {
        Reply::Map(_) | Reply::Array(_) => {
            let keys = reply.elements();
            keys.iter().step_by(2).map(|key| format!("{}:\n", key.text())).collect()
        }
        other => other.text(),
    };
    let has = |name: &str| {
        text.split(['\n', ' ', ',', '\r'])
            .any(|field| field.split([':', '=']).next() == Some(name) && field.len() > name.len())
    };
    let absent: Vec<&str> = names.iter().map(String::as_str).filter(|name| !has(name)).collect();
    if absent.is_empty() {
        format!("{} with all fields", kind(reply))
    } else {
        format!("{} without {}", kind(reply), absent.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Step;

    fn judged(line: &str, wanted: &Reply, got: &Reply) -> bool {
        let script = Script::parse("t", line).expect("a good line");
        let step: Step = script.steps[0].clone();
        let entry = |reply: &Reply| Entry { step: step.clone(), reply: reply.clone() };
        let transcript = |reply: &Reply| Transcript { entries: vec![entry(reply)] };
        compare(&script, &transcript(wanted), &transcript(got)).is_empty()
    }

    fn text(text: &str) -> Reply {
        Reply::Bulk(text.into())
    }

    #[test]
    fn a_difference_is_found_and_an_allowed_one_is_not() {
        let (one, three) = (Reply::Integer(1), Reply::Integer(3));
        assert!(!judged("ttl k", &one, &three));
        assert!(!judged("@approx 1 ttl k", &one, &three));
        assert!(judged("@approx 2 ttl k", &one, &three));
        let ab = Reply::Array(vec![text("a"), text("b")]);
        let ba = Reply::Array(vec![text("b"), text("a")]);
        let aa = Reply::Array(vec![text("a"), text("a")]);
        assert!(!judged("smembers s", &ab, &ba));
        assert!(judged("@unordered smembers s", &ab, &ba));
        assert!(!judged("@unordered smembers s", &ab, &aa));
        assert!(judged("@shape spop s 2", &ab, &aa));
        assert!(!judged("@shape spop s 2", &ab, &Reply::Array(vec![text("a")])));
        assert!(judged("@mask /id=[0-9]+/id=N/ client info", &text("id=1"), &text("id=22")));
        assert!(!judged("@any ping", &one, &Reply::Closed));
    }

    #[test]
    fn an_expectation_counts_instead_of_the_reference() {
        let old = Reply::Error("ERR old".into());
        let new = Reply::Error("ERR new".into());
        assert!(judged("@expect -ERR new\nfoo", &old, &new));
        assert!(!judged("@expect -ERR new\nfoo", &old, &old));
        assert!(judged("@expect-match ^-ERR n.w$\nfoo", &old, &new));
        assert!(!judged("@expect-match ^-ERR n.w$\nfoo", &old, &old));
    }

    #[test]
    fn fields_are_looked_for_by_name() {
        let info = text("# Server\r\nredis_version:7\r\nport:1\r\n");
        assert!(judged("@fields redis_version,port info", &info, &info));
        assert!(!judged("@fields port info", &info, &text("# Server\r\nport_x:1\r\n")));
    }
}
