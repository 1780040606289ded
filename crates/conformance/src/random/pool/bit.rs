//! Places and types of bits.

use super::texts;
use crate::random::rng::Rng;

pub(super) fn bit_offset(rng: &mut Rng) -> Vec<u8> {
    match rng.below(10) {
        0 => texts(
            rng,
            &["-1", "4294967296", "a", "", "9223372036854775807", "1.0", "18446744073709551616"],
        ),
        1 => rng.below(40_000).to_string().into(),
        _ => rng.below(200).to_string().into(),
    }
}

pub(super) fn bit_type(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(
            rng,
            &[
                "u0", "u64", "u65", "i0", "i65", "f8", "u", "i", "8", "U8", "I8", "u 8", "i-1",
                "u63", "i64", "i1", "u1", "u08",
            ],
        ),
        _ => format!("{}{}", rng.pick(&["u", "i"]), 1 + rng.below(63)).into(),
    }
}

pub(super) fn field_offset(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(
            rng,
            &[
                "-1",
                "#",
                "#-1",
                "a",
                "4294967296",
                "4294967295a",
                "#4294967296",
                "##1",
                "9223372036854775807",
                "#9223372036854775807",
                "+1",
                " 1",
            ],
        ),
        1..=3 => format!("#{}", rng.below(20)).into(),
        _ => rng.below(300).to_string().into(),
    }
}
