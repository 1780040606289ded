//! Bitmaps: strings, looked at bit by bit. Bit 0 is the highest of the first byte.

mod bit;
mod bitop;
mod field;
mod integer;
mod kernel;
mod range;

use crate::kernel::error::CommandError;
use crate::kernel::spec::{CommandSpec, Flags, KeySpec, Part};
use ladon_resp::parse_i64;

const READ: Flags = Flags::READONLY;
const READ_FAST: Flags = READ.or(Flags::FAST);
const WRITE: Flags = Flags::WRITE.or(Flags::DENYOOM);
/// Not fast in Redis' sense, but quick enough to be timed with its batch.
const WRITE_QUICK: Flags = WRITE.or(Flags::QUICK);
const AFTER_OPERATION: KeySpec = KeySpec::Range { first: 2, last: -1, step: 1 };

pub(crate) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::on_keys("setbit", 4, WRITE_QUICK, KeySpec::FIRST, bit::setbit).at(Part::Bit(2)),
    CommandSpec::on_keys("getbit", 3, READ_FAST, KeySpec::FIRST, bit::getbit).at(Part::Bit(2)),
    CommandSpec::on_keys("bitcount", -2, READ, KeySpec::FIRST, range::bitcount).at(Part::Whole),
    CommandSpec::on_keys("bitpos", -3, READ, KeySpec::FIRST, range::bitpos),
    CommandSpec::on_keys("bitop", -4, WRITE, AFTER_OPERATION, bitop::bitop),
    CommandSpec::on_keys("bitfield", -2, WRITE, KeySpec::FIRST, field::bitfield),
    CommandSpec::on_keys("bitfield_ro", -2, READ_FAST, KeySpec::FIRST, field::bitfield_ro),
];

/// A bit's position; the byte that it is in must lie within `bytes_max`.
#[inline]
fn bit_offset(argument: &[u8], bytes_max: u64) -> Result<u64, CommandError> {
    scaled_offset(argument, 1, bytes_max)
}

/// As `bit_offset`, of the field with this number where every field has `scale` bits.
#[inline]
fn scaled_offset(argument: &[u8], scale: i64, bytes_max: u64) -> Result<u64, CommandError> {
    parse_i64(argument)
        .and_then(|offset| offset.checked_mul(scale))
        .and_then(|offset| u64::try_from(offset).ok())
        .filter(|offset| offset / 8 < bytes_max)
        .ok_or(CommandError::text("ERR bit offset is not an integer or out of range"))
}
