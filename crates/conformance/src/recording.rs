//! What the real server answered to the scripts, kept as text beside them, so that Ladon can be
//! judged where no real server is installed.
//!
//! ```text
//! ## string/set
//! set k v
//!     +OK
//! ttl k
//!     :-1
//! ```
//!
//! A step has the text with which its reply is compared: sorted, masked, or a shape only, as the
//! script says. So recording anew changes only what differs. Steps whose reply is not compared with
//! the real server's are left out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::compare::{Mismatch, judge_recorded, recorded};
use crate::play::{Entry, Transcript};
use crate::script::Script;

/// A longer text is recorded as its hash.
const TEXT_CHARACTERS_MAX: usize = 2000;

const SCRIPT_MARK: &str = "## ";
const REPLY_INDENT: &str = "    ";

/// One step: the script's line, and the text that its reply has to give.
type Step = (String, String);

/// The recorded replies to some scripts, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording(BTreeMap<String, Vec<Step>>);

impl Recording {
    /// Adds the real server's replies to a script. If they pass for those already recorded (a time
    /// to live may be a millisecond less), these stay.
    pub fn add(&mut self, script: &Script, reference: &Transcript) {
        if self.is_current(script, reference) {
            return;
        }
        let steps = reference
            .entries
            .iter()
            .filter_map(|entry| Some((entry.step.text.clone(), shorten(recorded(entry)?))));
        self.0.insert(script.name.clone(), steps.collect());
    }

    fn is_current(&self, script: &Script, reference: &Transcript) -> bool {
        let Some(steps) = self.0.get(&script.name) else { return false };
        let compared: Vec<&Entry> =
            reference.entries.iter().filter(|entry| recorded(entry).is_some()).collect();
        let passes = |(line, wanted): &Step, entry: &Entry| {
            *line == entry.step.text && judge_recorded(Some(wanted), entry, shorten).is_none()
        };
        steps.len() == compared.len()
            && steps.iter().zip(compared).all(|(step, entry)| passes(step, entry))
    }

    /// Forgets scripts that are not among these.
    pub fn keep_only(&mut self, scripts: &[Script]) {
        self.0.retain(|name, _| scripts.iter().any(|script| script.name == *name));
    }

    /// Reads what [`Recording::write`] has written.
    ///
    /// # Errors
    /// The first line that does not belong where it is.
    pub fn parse(text: &str) -> Result<Recording, String> {
        let mut scripts: BTreeMap<String, Vec<Step>> = BTreeMap::new();
        let mut steps = None;
        for (index, line) in text.lines().enumerate() {
            let misplaced = || format!("line {}: {line}", index + 1);
            if let Some(name) = line.strip_prefix(SCRIPT_MARK) {
                steps = Some(scripts.entry(name.into()).or_default());
                continue;
            }
            let steps = steps.as_mut().ok_or_else(misplaced)?;
            match line.strip_prefix(REPLY_INDENT) {
                None => steps.push((line.into(), String::new())),
                Some(part) => {
                    let (_, reply) = steps.last_mut().ok_or_else(misplaced)?;
                    reply.push_str(part);
                    reply.push('\n');
                }
            }
        }
        for (_, reply) in scripts.values_mut().flatten() {
            reply.pop();
        }
        Ok(Recording(scripts))
    }

    /// The recording as text.
    pub fn write(&self) -> String {
        let mut text = String::new();
        for (name, steps) in &self.0 {
            let _ = writeln!(text, "{SCRIPT_MARK}{name}");
            for (line, reply) in steps {
                let _ = writeln!(text, "{line}");
                for part in reply.split('\n') {
                    let _ = writeln!(text, "{REPLY_INDENT}{part}");
                }
            }
        }
        text
    }

    /// Compares Ladon's replies to a script with the recorded ones.
    pub fn compare(&self, script: &Script, subject: &Transcript) -> Vec<Mismatch> {
        let steps = self.0.get(&script.name).map(Vec::as_slice).unwrap_or_default();
        let mut steps = steps.iter();
        let mut mismatches = Vec::new();
        for entry in &subject.entries {
            let found = match recorded(entry) {
                None => judge_recorded(None, entry, shorten),
                Some(_) => match steps.next() {
                    Some((line, wanted)) if *line == entry.step.text => {
                        judge_recorded(Some(wanted), entry, shorten)
                    }
                    _ => {
                        mismatches.push(unrecorded(script, entry));
                        return mismatches;
                    }
                },
            };
            if let Some((wanted, got)) = found {
                mismatches.push(Mismatch::of(script, entry, wanted, got));
            }
        }
        if let (Some(_), Some(last)) = (steps.next(), subject.entries.last()) {
            mismatches.push(unrecorded(script, last));
        }
        mismatches
    }
}

fn unrecorded(script: &Script, entry: &Entry) -> Mismatch {
    let wanted = "a recorded reply: CONFORMANCE_RECORD=1 records the scripts anew".into();
    Mismatch::of(script, entry, wanted, entry.reply.show())
}

/// A text that is too long to keep, as its hash (FNV-1a).
fn shorten(text: String) -> String {
    let length = text.chars().count();
    if length <= TEXT_CHARACTERS_MAX {
        return text;
    }
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{length} characters with the hash {hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Reply;

    const SCRIPT: &str =
        "set k v\n@unordered smembers s\n@any info\n@expect :7\nfoo\n@approx 2 ttl k";

    fn play(replies: [Reply; 5]) -> (Script, Transcript) {
        let script = Script::parse("string/t", SCRIPT).expect("a good script");
        let steps = script.steps.iter().cloned().zip(replies);
        let entries = steps.map(|(step, reply)| Entry { step, reply }).collect();
        (script, Transcript { entries })
    }

    fn replies(set: &str, members: [&str; 2], ttl: i64) -> [Reply; 5] {
        let members = members.iter().map(|it| Reply::Bulk((*it).into())).collect();
        let [ok, info] = [set, "whatever"].map(|text| Reply::Simple(text.into()));
        [ok, Reply::Array(members), info, Reply::Integer(7), Reply::Integer(ttl)]
    }

    #[test]
    fn a_recording_reads_back_and_judges_as_the_server_would() {
        let (script, real) = play(replies("OK", ["b", "a"], 100));
        let mut recording = Recording::default();
        recording.add(&script, &real);
        let text = recording.write();
        assert_eq!(
            text,
            "## string/t\nset k v\n    +OK\n@unordered smembers s\n    [\"a\", \"b\"]\n\
             @approx 2 ttl k\n    :100\n"
        );
        let recording = Recording::parse(&text).expect("what was written");
        let wrong = |replies| recording.compare(&script, &play(replies).1).len();
        assert_eq!(wrong(replies("OK", ["a", "b"], 98)), 0);
        let mut again = recording.clone();
        again.add(&script, &play(replies("OK", ["a", "b"], 99)).1);
        assert_eq!(again, recording, "no change for a moment's difference");
        again.add(&script, &play(replies("OK", ["a", "b"], 9)).1);
        assert_ne!(again, recording);
        assert_eq!(wrong(replies("OK", ["a", "b"], 97)), 1);
        assert_eq!(wrong(replies("QUEUED", ["a", "c"], 100)), 2);
        let mut expected = replies("OK", ["a", "b"], 100);
        expected[3] = Reply::Integer(8);
        assert_eq!(wrong(expected), 1, "what the script itself expects");
    }

    #[test]
    fn a_changed_script_is_recorded_anew() {
        let (script, real) = play(replies("OK", ["b", "a"], 100));
        let mut recording = Recording::default();
        recording.add(&script, &real);
        let changed = Script::parse("string/t", &SCRIPT.replace("set k", "set l")).expect("good");
        let steps = changed.steps.iter().cloned().zip(replies("OK", ["b", "a"], 100));
        let entries = steps.map(|(step, reply)| Entry { step, reply }).collect();
        let found = recording.compare(&changed, &Transcript { entries });
        assert!(found[0].wanted.contains("CONFORMANCE_RECORD"), "{found:?}");
        assert!(Recording::parse("    +OK").is_err() && Recording::parse("get k").is_err());
    }

    #[test]
    fn empty_lines_of_a_reply_are_kept() {
        let text = "## t/t\n@lines info\n    \n    a\n    \nget k\n    \"\"\n";
        let recording = Recording::parse(text).expect("a recording");
        assert_eq!(recording.0["t/t"][0].1, "\na\n");
        assert_eq!(recording.write(), text);
    }

    #[test]
    fn long_texts_are_told_apart() {
        let [one, other] = ["a", "b"].map(|end| shorten("x".repeat(5000) + end));
        assert!(one != other && one.len() < 100, "{one}");
    }
}
