//! Finding the first bit that is set, or is not.

use super::{from_bit, up_to_bit};

/// The first bit that is `wanted` among those from `first` to `last`, both within `bytes`,
/// `first` not behind `last`.
pub(crate) fn find(bytes: &[u8], first: u64, last: u64, wanted: bool) -> Option<u64> {
    let (first_at, last_at) = ((first / 8) as usize, (last / 8) as usize);
    let (head, tail) = (from_bit(first), up_to_bit(last));
    // Inverts the bytes if zeros are searched for.
    let of = |at: usize| if wanted { bytes[at] } else { !bytes[at] };
    let position = |at: usize, byte: u8| at as u64 * 8 + u64::from(byte.leading_zeros());
    if first_at == last_at {
        let byte = of(first_at) & head & tail;
        return (byte != 0).then(|| position(first_at, byte));
    }
    let byte = of(first_at) & head;
    if byte != 0 {
        return Some(position(first_at, byte));
    }
    let skip = if wanted { 0 } else { 0xff };
    if let Some(at) = first_other(&bytes[first_at + 1..last_at], skip) {
        let at = first_at + 1 + at;
        return Some(position(at, of(at)));
    }
    let byte = of(last_at) & tail;
    (byte != 0).then(|| position(last_at, byte))
}

/// Offset of the first byte that is not `skip`.
fn first_other(bytes: &[u8], skip: u8) -> Option<usize> {
    /// Bytes compared together, without branches, which a compiler turns into few instructions.
    const BLOCK: usize = 64;
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let other = |block: &[u8; BLOCK]| block.iter().fold(0, |all, byte| all | (byte ^ skip)) != 0;
    let whole = blocks.iter().position(other).unwrap_or(blocks.len()) * BLOCK;
    bytes[whole..].iter().position(|&byte| byte != skip).map(|at| whole + at)
}
