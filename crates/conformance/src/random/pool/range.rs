//! Ends of ranges, and patterns.

use super::{member, plain_score, score, texts};
use crate::random::rng::Rng;

pub(super) fn score_bound(rng: &mut Rng) -> Vec<u8> {
    let open: &[u8] = if rng.percent(30) { b"(" } else { b"" };
    let bound = match rng.below(5) {
        0 => texts(rng, &["-inf", "+inf", "inf"]),
        1 => score(rng),
        _ => plain_score(rng),
    };
    [open, &bound].concat()
}

pub(super) fn lex_bound(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(rng, &["-", "+"]),
        1 => b"-".to_vec(),
        2 => b"+".to_vec(),
        3 => texts(rng, &["", "a", "(", "[", "--", "-a", "+a", "]a"]),
        _ => [texts(rng, &["[", "("]), member(rng)].concat(),
    }
}

pub(super) fn pattern(rng: &mut Rng) -> Vec<u8> {
    texts(
        rng,
        &[
            "*", "*", "?1", "m*", "[hz]*", "f[0-4]", "[^m]*", "m[9-0]", "*1*", "", "\\*", "[",
            "[a", "[^", "**", "?", "h?", "k1", "m1?", "*\\", "[\\]]", "m[", "f[1-", "[a-",
            "*[0-9]",
        ],
    )
}

pub(super) fn sort_pattern(rng: &mut Rng) -> Vec<u8> {
    texts(
        rng,
        &[
            "w_*", "w_*", "wh_*->f1", "wh_*->f2", "#", "nosort", "w_", "*", "wh_*->", "wh_*-f1",
            "", "h*->f1", "*->f1", "w_*->",
        ],
    )
}
