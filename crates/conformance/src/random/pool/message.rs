//! Words of messages: channels, patterns, clients.

use super::{any_key, texts};
use crate::random::rng::Rng;

/// Kinds of words, named as in the grammar's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A channel, sometimes one of the keyspace's events or of invalidations.
    Channel,
    /// A glob over channels.
    ChannelPattern,
    /// One of the round's clients.
    Client,
    /// What keys may begin with.
    Prefix,
    /// A wait without end, or none.
    Endless,
}

impl Word {
    pub(super) fn named(name: &str) -> Option<Word> {
        Some(match name {
            "channel" => Word::Channel,
            "channelpattern" => Word::ChannelPattern,
            "client" => Word::Client,
            "prefix" => Word::Prefix,
            "endless" => Word::Endless,
            _ => return None,
        })
    }

    /// Makes one up.
    pub(super) fn make(self, rng: &mut Rng) -> Vec<u8> {
        match self {
            Word::Channel => channel(rng),
            Word::ChannelPattern => texts(
                rng,
                &["n*", "n?", "[mn]1", "*", "m1", "", "__key*__:*", "__keyevent@0__:*", "\\*"],
            ),
            Word::Client if rng.percent(5) => texts(rng, &["0", "-1", "999999999", "a", ""]),
            Word::Client => format!("$client{}", rng.below(4)).into(),
            Word::Prefix => texts(rng, &["k", "l", "x1", "z", "", "h", "kk", "s2", "none"]),
            Word::Endless => texts(rng, &["0", "0", "0", "0", "10000", "-1", "a", "1e400", "nan"]),
        }
    }
}

fn channel(rng: &mut Rng) -> Vec<u8> {
    match rng.below(20) {
        0 => Vec::new(),
        1 => b"\xff\r\n\x00".to_vec(),
        2 => b"__redis__:invalidate".to_vec(),
        3 => [b"__keyspace@0__:", any_key(rng).as_slice()].concat(),
        4 => [b"__keyspace@1__:", any_key(rng).as_slice()].concat(),
        5 => texts(rng, &["__keyevent@0__:del", "__keyevent@0__:set", "__keyevent@0__:new"]),
        _ => texts(rng, &["n1", "n1", "n2", "m1"]),
    }
}
