//! Loops over bits, several words at a time.

mod combine;
mod count;
mod find;

pub(super) use combine::{Operation, combine};
pub(super) use count::count_ones;
pub(super) use find::find;

/// The bits of a byte from `first` on, 0 being the highest.
#[inline]
fn from_bit(first: u64) -> u8 {
    0xff >> (first % 8)
}

/// The bits of a byte up to `last`.
#[inline]
fn up_to_bit(last: u64) -> u8 {
    0xff << (7 - last % 8)
}

#[cfg(test)]
mod tests;
