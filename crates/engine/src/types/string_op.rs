//! What the log has of a change to a string: bytes written at an offset, or parts replaced.

use ladon_record::varint;
use smallvec::SmallVec;
use std::ops::Range;

const OP_WRITE_AT: u8 = 1;
const OP_REPLACE: u8 = 2;

/// Encodes a write of these bytes at this offset; zeros fill a gap.
pub(crate) fn encode_write_at(offset: usize, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(OP_WRITE_AT);
    varint::put(out, offset as u64);
    match bytes {
        // A single byte, for a bit; copying it would be a call.
        [byte] => out.push(*byte),
        _ => out.extend_from_slice(bytes),
    }
}

/// Reads what `encode_write_at` wrote.
pub(crate) fn decode_write_at(op: &[u8]) -> Option<(usize, &[u8])> {
    let (&tag, mut rest) = op.split_first()?;
    let offset = usize::try_from(varint::take(&mut rest)?).ok()?;
    (tag == OP_WRITE_AT).then_some((offset, rest))
}

/// A part of a string that is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement<'a> {
    /// Range in the old string.
    pub(crate) old: Range<usize>,
    pub(crate) new: &'a [u8],
}

/// Encodes that these parts of a string are replaced; they are in order and do not overlap. Nothing
/// if there are none.
pub(crate) fn encode_replace<'a>(
    parts: impl IntoIterator<Item = Replacement<'a>>,
    out: &mut Vec<u8>,
) {
    let mut end = 0;
    for Replacement { old, new } in parts {
        if out.is_empty() {
            out.push(OP_REPLACE);
        }
        varint::put(out, (old.start - end) as u64);
        varint::put(out, old.len() as u64);
        varint::put_bytes(out, new);
        end = old.end;
    }
}

/// Encodes what was written to these ranges of a string, whose length is the same as before. They
/// may be in any order.
pub(crate) fn encode_written(
    string: &[u8],
    written: &mut SmallVec<[Range<usize>; 4]>,
    out: &mut Vec<u8>,
) {
    written.sort_unstable_by_key(|range| range.start);
    written.dedup_by(|next, last| {
        let near = next.start < last.end + SAME_BYTES_MIN;
        if near {
            last.end = last.end.max(next.end);
        }
        near
    });
    match &written[..] {
        [] => {}
        [range] => encode_write_at(range.start, &string[range.clone()], out),
        ranges => {
            let part = |range: &Range<usize>| Replacement {
                old: range.clone(),
                new: &string[range.clone()],
            };
            encode_replace(ranges.iter().map(part), out);
        }
    }
}

/// Reads what `encode_replace` wrote.
pub(crate) fn decode_replace(op: &[u8]) -> Option<Vec<Replacement<'_>>> {
    let (&tag, mut rest) = op.split_first()?;
    if tag != OP_REPLACE || rest.is_empty() {
        return None;
    }
    let (mut parts, mut end) = (Vec::new(), 0usize);
    while !rest.is_empty() {
        let start = end.checked_add(usize::try_from(varint::take(&mut rest)?).ok()?)?;
        end = start.checked_add(usize::try_from(varint::take(&mut rest)?).ok()?)?;
        parts.push(Replacement { old: start..end, new: varint::take_bytes(&mut rest)? });
    }
    Some(parts)
}

/// Replaces parts of a string; `None`, and nothing done, if it is too short for them.
pub(crate) fn replace(string: &mut Vec<u8>, parts: &[Replacement<'_>]) -> Option<()> {
    let length = string.len();
    if parts.iter().any(|part| part.old.end > length) {
        return None;
    }
    // From the back, so that what is in front stays where it is.
    for Replacement { old, new } in parts.iter().rev() {
        if old.len() == new.len() {
            string[old.clone()].copy_from_slice(new);
        } else {
            string.splice(old.clone(), new.iter().copied());
        }
    }
    Some(())
}

/// Equal bytes between two differences from which on these are logged apart.
const SAME_BYTES_MIN: usize = 8;

/// How `new` differs from `old`: parts of the beginning where both are as long, then one part in
/// which they may differ in length.
pub(crate) fn differences<'a>(old: &[u8], new: &'a [u8]) -> Vec<Replacement<'a>> {
    let same_end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - same_end, new.len() - same_end);
    let mut parts: Vec<Replacement<'a>> = Vec::new();
    for at in (0..old_end.min(new_end)).filter(|&at| old[at] != new[at]) {
        match parts.last_mut() {
            Some(last) if at - last.old.end < SAME_BYTES_MIN => {
                *last = Replacement { old: last.old.start..at + 1, new: &new[last.old.start..=at] };
            }
            _ => parts.push(Replacement { old: at..at + 1, new: &new[at..=at] }),
        }
    }
    if old_end != new_end {
        let both = old_end.min(new_end);
        let start = match parts.last() {
            Some(last) if both - last.old.end < SAME_BYTES_MIN => last.old.start,
            _ => both,
        };
        if start != both {
            parts.pop();
        }
        parts.push(Replacement { old: start..old_end, new: &new[start..new_end] });
    }
    parts
}

/// Applies what `encode_write_at` or `encode_replace` wrote; `None` if it is malformed.
pub(crate) fn apply_op(string: &mut Vec<u8>, op: &[u8]) -> Option<()> {
    if op.first() == Some(&OP_REPLACE) {
        return replace(string, &decode_replace(op)?);
    }
    let (offset, bytes) = decode_write_at(op)?;
    write_at(string, offset, bytes);
    Some(())
}

/// Writes `bytes` at `offset` of `string`, zeros filling the gap.
pub(crate) fn write_at(string: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    extend_to(string, end);
    string[offset..end].copy_from_slice(bytes);
}

/// Makes `string` at least `length` bytes long, zeros at its end.
pub(crate) fn extend_to(string: &mut Vec<u8>, length: usize) {
    if string.len() >= length {
        return;
    }
    // A vector doubles; for a large string that would be much memory for what may be one bit.
    const DOUBLED_BYTES_MAX: usize = 1 << 20;
    if length > string.capacity() && length > DOUBLED_BYTES_MAX {
        if length / 2 > string.len() {
            // Zeroed memory of this size comes from the system untouched.
            let mut longer = vec![0; length + length / 8];
            longer[..string.len()].copy_from_slice(string);
            longer.truncate(length);
            *string = longer;
            return;
        }
        string.reserve_exact(length + length / 8 - string.len());
    }
    string.resize(length, 0);
}

/// Encodes what an edit wrote to `string`, which was `old_length` bytes long before and may have
/// grown by zeros. Nothing if nothing happened.
pub(crate) fn encode_edit(
    old_length: usize,
    string: &[u8],
    written: Range<usize>,
    out: &mut Vec<u8>,
) {
    let grew = string.len() > old_length;
    let written = match (written.is_empty(), grew) {
        (true, false) => return,
        // The last byte says how far it grew.
        (true, true) => string.len() - 1..string.len(),
        (false, true) => written.start..string.len(),
        (false, false) => written,
    };
    encode_write_at(written.start, &string[written], out);
}
