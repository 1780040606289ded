//! Registers of 6 bits, packed from the lowest bit of each byte on.

use super::{HEADER_BYTES, Histogram, Position, REGISTERS};
use std::ops::Range;

const BITS: usize = 6;
/// Length of a dense HyperLogLog.
pub(crate) const BYTES: usize = HEADER_BYTES + REGISTERS * BITS / 8;
const COUNT_MAX: u16 = (1 << BITS) - 1;

/// Eight registers are six bytes.
const GROUP_BYTES: usize = 6;
const GROUP_REGISTERS: usize = 8;

/// Byte and bit at which a register begins.
#[inline]
fn place(index: usize) -> (usize, usize) {
    (index * BITS / 8, index * BITS % 8)
}

/// A register.
#[inline]
pub(crate) fn get(packed: &[u8], index: usize) -> u8 {
    let (byte, bit) = place(index);
    let next = packed.get(byte + 1).copied().unwrap_or(0);
    (u16::from_le_bytes([packed[byte], next]) >> bit & COUNT_MAX) as u8
}

/// Raises a register to at least a count; the bytes that this changed, if it was lower.
#[inline]
pub(crate) fn raise(packed: &mut [u8], position: Position) -> Option<Range<usize>> {
    if position.count <= get(packed, position.index) {
        return None;
    }
    let (byte, bit) = place(position.index);
    let (mask, count) = (COUNT_MAX << bit, u16::from(position.count) << bit);
    packed[byte] = packed[byte] & !(mask as u8) | count as u8;
    if bit + BITS <= 8 {
        return Some(byte..byte + 1);
    }
    packed[byte + 1] = packed[byte + 1] & !((mask >> 8) as u8) | (count >> 8) as u8;
    Some(byte..byte + 2)
}

/// The eight registers of six bytes.
#[inline(always)]
fn unpack(group: &[u8; GROUP_BYTES]) -> [u8; GROUP_REGISTERS] {
    let [a, b, c, d, e, f] = *group;
    let bits = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
    // Doubles the distance between halves, quarters and eighths of the bits.
    let bits = bits & 0xff_ffff | (bits & 0xff_ffff << 24) << 8;
    let bits = bits & 0x0000_0fff_0000_0fff | (bits & 0x00ff_f000_00ff_f000) << 4;
    let bits = bits & 0x003f_003f_003f_003f | (bits & 0x0fc0_0fc0_0fc0_0fc0) << 2;
    bits.to_le_bytes()
}

/// Raises each register to the packed one.
pub(crate) fn merge_into(registers: &mut [u8; REGISTERS], packed: &[u8]) {
    let (groups, _) = packed.as_chunks::<GROUP_BYTES>();
    let (targets, _) = registers.as_chunks_mut::<GROUP_REGISTERS>();
    for (target, group) in targets.iter_mut().zip(groups) {
        let counts = unpack(group);
        for (register, count) in target.iter_mut().zip(counts) {
            *register = count.max(*register);
        }
    }
}

/// How many registers have each count.
pub(crate) fn histogram(packed: &[u8]) -> Histogram {
    let (groups, _) = packed.as_chunks::<GROUP_BYTES>();
    Histogram::of_groups(groups.iter().map(unpack))
}
