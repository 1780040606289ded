//! Words of streams: entries, groups and consumers.

use super::{texts, value};
use crate::random::rng::Rng;

/// Kinds of words, named as in the grammar's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// An entry's name, complete or not, rarely none.
    EntryId,
    /// What XADD takes, but for the clock's.
    NewEntryId,
    /// Where a range of a stream ends.
    EntryBound,
    /// What XREADGROUP goes on from.
    ReadFrom,
    /// A consumer group.
    Group,
    /// One of its consumers.
    Consumer,
    /// How long an entry has been idle: nothing, or longer than any has.
    Idle,
}

impl Word {
    pub(super) fn named(name: &str) -> Option<Word> {
        Some(match name {
            "entry" => Word::EntryId,
            "newentry" => Word::NewEntryId,
            "entrybound" => Word::EntryBound,
            "readfrom" => Word::ReadFrom,
            "group" => Word::Group,
            "consumer" => Word::Consumer,
            "idle" => Word::Idle,
            _ => return None,
        })
    }

    /// Makes one up.
    pub(super) fn make(self, rng: &mut Rng) -> Vec<u8> {
        match self {
            Word::EntryId => entry(rng),
            Word::NewEntryId => new_entry(rng),
            Word::EntryBound => entry_bound(rng),
            Word::ReadFrom if rng.percent(60) => b">".to_vec(),
            Word::ReadFrom => entry(rng),
            Word::Group if rng.percent(5) => texts(rng, &["", "none", "\u{80}"]),
            Word::Group => texts(rng, &["g1", "g1", "g2"]),
            Word::Consumer if rng.percent(5) => value(rng),
            Word::Consumer => texts(rng, &["c1", "c2", "c3"]),
            Word::Idle => texts(rng, &["0", "0", "0", "100000000", "-1", "a", "", "-100000000"]),
        }
    }
}

/// Few, so that they are met again.
fn entry(rng: &mut Rng) -> Vec<u8> {
    match rng.below(24) {
        0 => texts(
            rng,
            &[
                "0",
                "0-0",
                "18446744073709551615",
                "18446744073709551615-18446744073709551615",
                "18446744073709551616",
                "9223372036854775808-1",
                "-1",
                "1-",
                "-",
                "+",
                "$",
                "1-1-1",
                "1-a",
                "a",
                "",
                "01-01",
                "1-*",
                "+1-1",
                " 1-1",
                "1--1",
            ],
        ),
        1..=5 => rng.below(30).to_string().into(),
        _ => format!("{}-{}", rng.below(30), rng.below(5)).into(),
    }
}

/// Usually more than what is there: else hardly anything would be added.
fn new_entry(rng: &mut Rng) -> Vec<u8> {
    match rng.below(16) {
        0 => entry(rng),
        1..=5 => format!("{}-*", rng.below(30)).into(),
        6..=8 => b"29-*".to_vec(),
        9 => texts(rng, &["0-*", "18446744073709551615-*", "*-1", "a-*", "1-**", "-*"]),
        10 => format!("{}-*", 30 + rng.below(4000)).into(),
        _ => format!("{}-{}", rng.below(30), rng.below(5)).into(),
    }
}

fn entry_bound(rng: &mut Rng) -> Vec<u8> {
    match rng.below(6) {
        0 | 1 => texts(rng, &["-", "+"]),
        2 => [b"(".to_vec(), entry(rng)].concat(),
        _ => entry(rng),
    }
}
