//! Bitmaps: strings, looked at bit by bit. Bit 0 is the highest of the first byte.

mod bit;
mod bitop;
mod field;
mod integer;
mod kernel;
mod range;

use ladon_kernel::command::error::CommandError;
use ladon_kernel::command::flags::Flags;
use ladon_kernel::command::spec::{Code, Part};
use ladon_resp::parse_i64;

pub(crate) const COMMANDS: &[Code] = &[
    Code::on_keys("setbit", bit::setbit).with(Flags::QUICK).at(Part::Bit(2)),
    Code::on_keys("getbit", bit::getbit).at(Part::Bit(2)),
    Code::on_keys("bitcount", range::bitcount).at(Part::Whole),
    Code::on_keys("bitpos", range::bitpos),
    Code::on_keys("bitop", bitop::bitop),
    Code::on_keys("bitfield", field::bitfield).with_key_flags(field::key_flags),
    Code::on_keys("bitfield_ro", field::bitfield_ro),
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
