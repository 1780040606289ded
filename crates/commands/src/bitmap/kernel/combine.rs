//! Combining strings bit by bit. Shorter ones go on as zeros.

/// How a bit of the result is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Set in all.
    And,
    /// Set in any.
    Or,
    /// Set in an odd number.
    Xor,
    /// Not set in the one source.
    Not,
    /// Set in the first and in no other.
    Diff,
    /// Not set in the first but in any other.
    Diff1,
    /// Set in the first and in any other.
    AndOr,
    /// Set in exactly one.
    One,
}

/// A block of a source, of the result and of a third string fit into the first-level cache
/// together.
const BLOCK_BYTES: usize = 8192;

/// The result: as long as the longest source.
pub(crate) fn combine(operation: Operation, sources: &[&[u8]]) -> Vec<u8> {
    let length = sources.iter().map(|source| source.len()).max().unwrap_or(0);
    let mut result = vec![0; length];
    let mut other = [0; BLOCK_BYTES];
    for (index, block) in result.chunks_mut(BLOCK_BYTES).enumerate() {
        let from = index * BLOCK_BYTES;
        let piece = |source: &&'_ [u8]| -> std::ops::Range<usize> {
            let from = from.min(source.len());
            from..source.len().min(from + BLOCK_BYTES)
        };
        let mut pieces = sources.iter().map(|source| &source[piece(source)]);
        let other = &mut other[..block.len()];
        match operation {
            Operation::And => {
                copy(block, pieces.next().unwrap_or_default());
                pieces.for_each(|piece| and(block, piece));
            }
            Operation::Or => pieces.for_each(|piece| or(block, piece)),
            Operation::Xor => pieces.for_each(|piece| xor(block, piece)),
            Operation::Not => {
                pieces.for_each(|piece| or(block, piece));
                block.iter_mut().for_each(|byte| *byte = !*byte);
            }
            Operation::One => {
                other.fill(0);
                pieces.for_each(|piece| count_to_two(block, other, piece));
                and_not(block, other);
            }
            Operation::Diff | Operation::Diff1 | Operation::AndOr => {
                copy(other, pieces.next().unwrap_or_default());
                pieces.for_each(|piece| or(block, piece));
                match operation {
                    Operation::AndOr => and(block, other),
                    Operation::Diff1 => and_not(block, other),
                    _ => not_and(block, other),
                }
            }
        }
    }
    result
}

fn copy(block: &mut [u8], piece: &[u8]) {
    block[..piece.len()].copy_from_slice(piece);
    block[piece.len()..].fill(0);
}

fn and(block: &mut [u8], piece: &[u8]) {
    block.iter_mut().zip(piece).for_each(|(byte, other)| *byte &= other);
    block[piece.len()..].fill(0);
}

fn or(block: &mut [u8], piece: &[u8]) {
    block.iter_mut().zip(piece).for_each(|(byte, other)| *byte |= other);
}

fn xor(block: &mut [u8], piece: &[u8]) {
    block.iter_mut().zip(piece).for_each(|(byte, other)| *byte ^= other);
}

fn and_not(block: &mut [u8], piece: &[u8]) {
    block.iter_mut().zip(piece).for_each(|(byte, other)| *byte &= !other);
}

fn not_and(block: &mut [u8], piece: &[u8]) {
    block.iter_mut().zip(piece).for_each(|(byte, other)| *byte = !*byte & other);
}

/// `any` collects the bits set at least once, `many` those set more than once.
fn count_to_two(any: &mut [u8], many: &mut [u8], piece: &[u8]) {
    for ((any, many), byte) in any.iter_mut().zip(many).zip(piece) {
        *many |= *any & byte;
        *any |= byte;
    }
}
