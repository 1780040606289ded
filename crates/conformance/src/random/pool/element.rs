//! What values hold: fields, members, texts, and words that belong somewhere else.

use super::{any_key, float, integer, small, texts};
use crate::random::rng::Rng;

pub(super) fn field(rng: &mut Rng) -> Vec<u8> {
    match rng.below(12) {
        0 => value(rng),
        1 => small(rng).to_string().into(),
        2 => texts(rng, &["f1", "f2"]),
        _ => format!("f{}", rng.below(14)).into(),
    }
}

pub(super) fn member(rng: &mut Rng) -> Vec<u8> {
    match rng.below(12) {
        0 => value(rng),
        1..=4 => small(rng).to_string().into(),
        5 => format!("m{}", rng.below(400)).into(),
        _ => format!("m{}", rng.below(20)).into(),
    }
}

pub(super) fn value(rng: &mut Rng) -> Vec<u8> {
    match rng.below(10) {
        0..=2 => integer(rng),
        3 => float(rng),
        4 => b"\x00\x01\xff\r\n\x80".to_vec(),
        5 => {
            // Around the lengths at which encodings change.
            let length =
                *rng.pick(&[8, 9, 20, 21, 43, 44, 45, 63, 64, 65, 127, 128, 255, 256, 300, 2000]);
            vec![*rng.pick(b"ab0"); length]
        }
        6 => (0..rng.below(12)).map(|_| rng.bits() as u8).collect(),
        _ => texts(
            rng,
            &[
                "",
                "a",
                "b",
                "ab",
                "hello world",
                "Hello",
                "3.0",
                "1e5",
                "0x10",
                " 1",
                "1 ",
                "01",
                "+1",
                "-0",
                "nan",
            ],
        ),
    }
}

/// Words that mean something to some command.
const OPTIONS: &str = "
    NX XX GT LT CH INCR EX PX KEEPTTL PERSIST GET LIMIT COUNT MATCH BY STORE ALPHA DESC REV
    BYSCORE BYLEX WITHSCORES WITHVALUES WITHSCORE FIELDS FNX FXX WEIGHTS AGGREGATE SUM
    OVERFLOW SAT LEFT RIGHT REPLACE DB TYPE get limit ex NOVALUES BIT BYTE RANK MAXLEN MINID
    STREAMS NOACK JUSTID FORCE MKSTREAM > $ ~ = IDX LEN * # -1 0 2
";

pub(super) fn junk(rng: &mut Rng) -> Vec<u8> {
    match rng.below(4) {
        0 => value(rng),
        1 => any_key(rng),
        _ => {
            let options: Vec<&str> = OPTIONS.split_ascii_whitespace().collect();
            texts(rng, &options)
        }
    }
}
