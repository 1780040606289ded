//! Whole numbers and floating-point ones, around the edges of what commands take.

use super::texts;
use crate::random::rng::Rng;

pub(super) fn small(rng: &mut Rng) -> i64 {
    rng.below(24) as i64 - 4
}

pub(super) fn integer(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0..=3 => small(rng).to_string().into(),
        4 => (rng.bits() as i64).to_string().into(),
        5 => ((rng.bits() % 200_000) as i64 - 100_000).to_string().into(),
        6 => texts(
            rng,
            &[
                "9223372036854775807",
                "-9223372036854775808",
                "9223372036854775806",
                "-9223372036854775807",
                "4294967295",
                "4294967296",
                "2147483647",
                "2147483648",
                "-2147483648",
                "-2147483649",
                "255",
                "256",
                "127",
                "128",
                "32767",
                "32768",
                "65535",
                "65536",
                "-32768",
                "-32769",
                "12",
                "13",
                "4095",
                "4096",
                "8388607",
                "8388608",
                "-8388608",
                "-8388609",
            ],
        ),
        _ => texts(
            rng,
            &[
                "9223372036854775808",
                "-9223372036854775809",
                "",
                "a",
                "1.5",
                " 1",
                "01",
                "+1",
                "-0",
                "1e3",
                "18446744073709551615",
                "--1",
            ],
        ),
    }
}

pub(super) fn field_value(rng: &mut Rng) -> Vec<u8> {
    match rng.below(3) {
        0 => ((rng.bits() as i64) >> 2).to_string().into(),
        1 => {
            let edge = 1i64 << rng.below(62);
            (if rng.percent(50) { edge } else { -edge } + rng.below(3) as i64 - 1)
                .to_string()
                .into()
        }
        _ => texts(
            rng,
            &["0", "1", "-1", "9223372036854775807", "9223372036854775808", "a", "", "1.5"],
        ),
    }
}

pub(super) fn index(rng: &mut Rng) -> Vec<u8> {
    match rng.below(16) {
        0 => integer(rng),
        1 => texts(
            rng,
            &["-9223372036854775808", "9223372036854775807", "-1000", "1000", "a", "1.0", ""],
        ),
        2..=4 => texts(rng, &["0", "-1"]),
        _ => (rng.below(30) as i64 - 12).to_string().into(),
    }
}

pub(super) fn offset(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(
            rng,
            &["-1", "536870912", "536870911", "9223372036854775807", "a", "4611686018427387904"],
        ),
        1 => rng.below(4000).to_string().into(),
        _ => rng.below(70).to_string().into(),
    }
}

pub(super) fn count(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(
            rng,
            &[
                "-1",
                "-9223372036854775808",
                "9223372036854775807",
                "9223372036854775808",
                "a",
                "",
                "1.5",
                "4294967296",
            ],
        ),
        1 => b"0".to_vec(),
        _ => rng.below(12).to_string().into(),
    }
}

pub(super) fn few(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(
            rng,
            &["-9223372036854775808", "9223372036854775807", "9223372036854775808", "a", ""],
        ),
        _ => (rng.below(24) as i64 - 12).to_string().into(),
    }
}

/// Without a negative zero, whose sign Redis loses when it packs a sorted set.
pub(super) fn float(rng: &mut Rng) -> Vec<u8> {
    match rng.below(6) {
        0 => plain_float(rng),
        1 => format!("{:e}", f64::from_bits(rng.bits())).replace("NaN", "nan").into(),
        2 => {
            let number = (rng.bits() >> 11) as f64 / (1u64 << rng.below(60)) as f64;
            number.to_string().into()
        }
        3 => integer(rng),
        _ => texts(
            rng,
            &[
                "0.1",
                "-0.1",
                "3.141592653589793",
                "1e-5",
                "1e21",
                "1e20",
                "1e17",
                "1e16",
                "123456789012345680000",
                "9007199254740993",
                "0.30000000000000004",
                "5e-324",
                "2.2250738585072014e-308",
                "1.7976931348623157e308",
                "-1e308",
                "1e308",
                "1e400",
                "-1e400",
                "inf",
                "-inf",
                "+inf",
                "Infinity",
                "-infinity",
                "nan",
                "-nan",
                "0x1p3",
                "0x10",
                "0x",
                "1.",
                ".5",
                "-.5",
                ".",
                "1e",
                "1e+2",
                "1E2",
                "+1.5",
                " 1",
                "1 ",
                "1,5",
                "1_0",
                "0.00000000000000001",
                "1234567890.12345678901",
                "17.123456789012345678",
                "",
            ],
        ),
    }
}

pub(super) fn plain_float(rng: &mut Rng) -> Vec<u8> {
    let number = rng.below(20_000) as f64 / 8.0 - 1000.0;
    number.to_string().into()
}

pub(super) fn score(rng: &mut Rng) -> Vec<u8> {
    if rng.percent(50) { plain_score(rng) } else { float(rng) }
}

pub(super) fn plain_score(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => plain_float(rng),
        1 => texts(rng, &["inf", "-inf", "0", "1e10", "0.5", "1e15"]),
        _ => small(rng).to_string().into(),
    }
}
