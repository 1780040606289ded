//! Ranges in arguments: of ranks, of scores (`1 (5 -inf`), of members (`- [a (b +`).

use crate::shared::float::parse_bound;
use ladon_engine::types::sorted_set::{LexBound, LexRange, ScoreRange, SortedSet};
use ladon_kernel::command::args;
use ladon_kernel::command::error::CommandError;
use std::ops::{Bound, Range};

/// Which members a command means.
#[derive(Clone, Copy, Debug)]
pub(super) enum Members<'a> {
    /// First and last rank; negative ones count from the end.
    Ranks(i64, i64),
    Scores(ScoreRange),
    Lex(LexRange<'a>),
}

impl<'a> Members<'a> {
    pub(super) fn by_rank(first: &[u8], last: &[u8]) -> Result<Members<'a>, CommandError> {
        Ok(Members::Ranks(args::integer(first)?, args::integer(last)?))
    }

    pub(super) fn by_score(min: &[u8], max: &[u8]) -> Result<Members<'a>, CommandError> {
        let bound = |text: &[u8]| match text {
            [b'(', rest @ ..] => parse_bound(rest).map(Bound::Excluded),
            _ => parse_bound(text).map(Bound::Included),
        };
        match (bound(min), bound(max)) {
            (Some(min), Some(max)) => Ok(Members::Scores(ScoreRange { min, max })),
            _ => Err(CommandError::text("ERR min or max is not a float")),
        }
    }

    pub(super) fn by_lex(min: &'a [u8], max: &'a [u8]) -> Result<Members<'a>, CommandError> {
        let bound = |text: &'a [u8]| match text {
            b"-" => Some(LexBound::Lowest),
            b"+" => Some(LexBound::Highest),
            [b'(', member @ ..] => Some(LexBound::Excluded(member)),
            [b'[', member @ ..] => Some(LexBound::Included(member)),
            _ => None,
        };
        match (bound(min), bound(max)) {
            (Some(min), Some(max)) => Ok(Members::Lex(LexRange { min, max })),
            _ => Err(CommandError::text("ERR min or max not valid string range item")),
        }
    }

    /// Their ranks, counted from the first member.
    pub(super) fn ranks(&self, set: &SortedSet) -> Range<usize> {
        match self {
            Members::Ranks(first, last) => ranks(*first, *last, set.len()),
            Members::Scores(range) => set.ranks_by_score(range),
            Members::Lex(range) => set.ranks_by_lex(range),
        }
    }
}

/// Ranks as a client gives them, of a set that has so many members.
pub(super) fn ranks(first: i64, last: i64, len: usize) -> Range<usize> {
    let from_start = |rank: i64| if rank < 0 { rank.saturating_add(len as i64) } else { rank };
    let (first, last) = (from_start(first).max(0), from_start(last).min(len as i64 - 1));
    if first > last { 0..0 } else { first as usize..last as usize + 1 }
}
