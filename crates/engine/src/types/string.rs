//! Strings: in the entry, as an integer, or boxed when long.

use crate::object::Object;
use crate::table::entry::{ValueInit, ValueRef};
use crate::types::integer::{parse_int, write_int};
use ladon_model::varint;
use std::borrow::Cow;
use std::ops::Range;

/// Longer strings are boxed.
pub const INLINE_BYTES_MAX: usize = 16 << 10;

/// A string that grew in place is boxed from this length on: there it can continue to grow without
/// moving the key.
pub(crate) const GROWN_INLINE_BYTES_MAX: usize = 2048;

/// The `OBJECT ENCODING` of a short string.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// "int" if it is one.
    Shortest,
    /// "embstr", integer or not.
    Text,
    /// "raw".
    Grown,
}

/// The representation for a string's bytes.
#[inline]
pub(crate) fn init(bytes: &[u8], form: Form) -> ValueInit<'_> {
    let inline_max = if form == Form::Grown { GROWN_INLINE_BYTES_MAX } else { INLINE_BYTES_MAX };
    if bytes.len() > inline_max {
        return ValueInit::Object(Box::new(Object::String(bytes.to_vec().into())));
    }
    if form == Form::Shortest
        && let Some(int) = parse_int(bytes)
    {
        return ValueInit::Int(int);
    }
    ValueInit::Bytes { bytes, grown: form == Form::Grown }
}

/// A string's bytes, whatever its representation; `None` if the value is no string.
pub fn bytes(value: ValueRef<'_>) -> Option<Cow<'_, [u8]>> {
    match value {
        ValueRef::Bytes { bytes, .. } => Some(Cow::Borrowed(bytes)),
        ValueRef::Int(int) => {
            let mut out = Vec::with_capacity(20);
            write_int(int, &mut out);
            Some(Cow::Owned(out))
        }
        ValueRef::Object(Object::String(bytes)) => Some(Cow::Borrowed(bytes)),
        ValueRef::Object(_) => None,
    }
}

const OP_WRITE_AT: u8 = 1;

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

/// Applies what `encode_write_at` wrote; `None` if it is malformed.
pub(crate) fn apply_op(string: &mut Vec<u8>, op: &[u8]) -> Option<()> {
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
