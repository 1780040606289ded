//! Registers as runs of equal ones.
//!
//! ```text
//! 00nnnnnn           ZERO: n + 1 registers are 0
//! 01nnnnnn nnnnnnnn  XZERO: the same for up to 16384, high bits first
//! 1vvvvvnn           VAL: n + 1 registers are v + 1
//! ```
//!
//! Whether runs are joined where they could be depends on the order of the changes. What is done
//! here is what Redis does, so that the bytes are the same.

use super::{HEADER_BYTES, Histogram, Invalid, Position, REGISTERS};
use smallvec::SmallVec;

const ZERO_LENGTH_MAX: usize = 64;
const VALUE_LENGTH_MAX: usize = 4;
/// A higher count needs the dense encoding.
const VALUE_MAX: u8 = 32;
const XZERO: u8 = 0x40;
const VALUE: u8 = 0x80;

/// Runs that are looked at after a change, for two that can be joined.
const JOIN_RUNS_MAX: usize = 5;

/// A run of equal registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// 0 for zeros.
    pub(crate) value: u8,
    /// How many registers.
    pub(crate) length: usize,
    /// How many bytes encode it. The last may be missing in a damaged value, and counts as 0.
    bytes: usize,
}

impl Run {
    #[inline]
    fn at(bytes: &[u8], at: usize) -> Option<Run> {
        let first = *bytes.get(at)?;
        let low = usize::from(first & 0x3f);
        Some(if first & VALUE != 0 {
            Run { value: (first >> 2 & 0x1f) + 1, length: usize::from(first & 3) + 1, bytes: 1 }
        } else if first & XZERO != 0 {
            let next = usize::from(bytes.get(at + 1).copied().unwrap_or(0));
            Run { value: 0, length: (low << 8 | next) + 1, bytes: 2 }
        } else {
            Run { value: 0, length: low + 1, bytes: 1 }
        })
    }

    /// Whether it is an XZERO.
    pub(crate) fn is_long(self) -> bool {
        self.bytes == 2
    }
}

type Encoded = SmallVec<[u8; 8]>;

fn push_zeros(length: usize, out: &mut Encoded) {
    if length > ZERO_LENGTH_MAX {
        let [high, low] = ((length - 1) as u16).to_be_bytes();
        out.extend_from_slice(&[high | XZERO, low]);
    } else if length > 0 {
        out.push((length - 1) as u8);
    }
}

fn push_value(value: u8, length: usize, out: &mut Encoded) {
    if length > 0 {
        out.push(encode_value(value, length));
    }
}

fn encode_value(value: u8, length: usize) -> u8 {
    VALUE | (value - 1) << 2 | (length - 1) as u8
}

/// Appends the runs of an empty HyperLogLog.
pub(super) fn push_empty(out: &mut Vec<u8>) {
    let mut runs = Encoded::new();
    push_zeros(REGISTERS, &mut runs);
    out.extend_from_slice(&runs);
}

/// The runs that these bytes encode.
pub(crate) fn runs(bytes: &[u8]) -> impl Iterator<Item = Run> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let run = Run::at(bytes, at)?;
        at += run.bytes;
        Some(run)
    })
}

/// How many registers have each count.
pub(super) fn histogram(bytes: &[u8]) -> Result<Histogram, Invalid> {
    let (mut histogram, mut total) = ([0; 64], 0);
    for run in runs(bytes) {
        histogram[usize::from(run.value)] += run.length as u32;
        total += run.length;
        if total > REGISTERS {
            return Err(Invalid::Content);
        }
    }
    if total == REGISTERS { Ok(Histogram(histogram)) } else { Err(Invalid::Content) }
}

/// What became of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raised {
    /// It was not lower.
    No,
    Yes,
    /// Nothing was changed: only the dense encoding can hold it.
    MustBeDense,
}

/// A run from which a search may begin, if registers are raised in ascending order. It lies two
/// runs before the last raised register: what precedes a run decides what it is joined with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    at: usize,
    first: usize,
}

impl Cursor {
    /// The beginning.
    pub(crate) fn start() -> Cursor {
        Cursor { at: HEADER_BYTES, first: 0 }
    }
}

/// Raises a register of a whole HyperLogLog to at least a count.
pub(super) fn raise(
    bytes: &mut Vec<u8>,
    position: Position,
    bytes_max: usize,
    cursor: &mut Cursor,
) -> Result<Raised, Invalid> {
    let Position { index, count } = position;
    if count > VALUE_MAX {
        // No register here is that high.
        return Ok(Raised::MustBeDense);
    }
    let Cursor { mut at, mut first } = *cursor;
    let mut before = [None; 2];
    let run = loop {
        let run = Run::at(bytes, at).ok_or(Invalid::Content)?;
        if index < first + run.length {
            break run;
        }
        before = [Some(Cursor { at, first }), before[0]];
        at += run.bytes;
        first += run.length;
    };
    if at + run.bytes > bytes.len() {
        return Err(Invalid::Content);
    }
    *cursor = before[1].unwrap_or(*cursor);
    if run.value >= count {
        return Ok(Raised::No);
    }
    let (left, right) = (index - first, first + run.length - 1 - index);
    let mut encoded = Encoded::new();
    let push_rest = |length, encoded: &mut Encoded| match run.value {
        0 => push_zeros(length, encoded),
        value => push_value(value, length, encoded),
    };
    push_rest(left, &mut encoded);
    push_value(count, 1, &mut encoded);
    push_rest(right, &mut encoded);
    if encoded.len() > run.bytes && bytes.len() + encoded.len() - run.bytes > bytes_max {
        return Ok(Raised::MustBeDense);
    }
    bytes.splice(at..at + run.bytes, encoded);
    join(bytes, before[0].map_or(at, |before| before.at));
    Ok(Raised::Yes)
}

/// Joins runs of the same count that follow each other, as far as a run can be long.
fn join(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..JOIN_RUNS_MAX {
        let Some(run) = Run::at(bytes, at) else { return };
        if run.value != 0
            && let Some(next) = Run::at(bytes, at + 1)
            && next.value == run.value
            && run.length + next.length <= VALUE_LENGTH_MAX
        {
            bytes[at + 1] = encode_value(run.value, run.length + next.length);
            bytes.remove(at);
            continue;
        }
        at += run.bytes;
    }
}
