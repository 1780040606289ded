//! Makes a failing round small: leaves out requests as long as something still differs (Zeller's
//! ddmin), and lines of programs.

use std::io;

use super::duel::{Difference, Duel};
use super::generate::Round;
use super::program;

/// The most rounds to try; each takes some milliseconds.
const TRIES_MAX: usize = 600;

/// The smallest round found that still differs, and how. `difference` is the whole round's.
///
/// # Errors
/// If a server cannot be reached.
pub fn shrink(
    duel: &mut Duel,
    round: &Round,
    difference: Difference,
) -> io::Result<(Round, Difference)> {
    let mut best = Round { requests: round.requests[..=difference.at].to_vec(), ..round.clone() };
    let mut difference = difference;
    // What depends on how requests meet in one batch stays pipelined.
    let one_by_one = Round { pipeline: 1, ..best.clone() };
    if let Some(found) = duel.play(&one_by_one)? {
        (best, difference) = (one_by_one, found);
    }
    let (requests, difference) = fewest(best.requests.clone(), difference, |requests| {
        duel.play(&Round { requests: requests.to_vec(), ..best.clone() })
    })?;
    best.requests = requests;
    shorten_programs(duel, best, difference)
}

/// The fewest requests found that still make a difference when `play` plays them, and which.
///
/// # Errors
/// Those of `play`.
pub fn fewest<R: Clone, D>(
    mut best: Vec<R>,
    mut difference: D,
    mut play: impl FnMut(&[R]) -> io::Result<Option<D>>,
) -> io::Result<(Vec<R>, D)> {
    let mut tries = 0;
    let mut size = best.len().div_ceil(2);
    while size > 0 && tries < TRIES_MAX {
        let mut at = 0;
        let mut shorter = false;
        while at < best.len() && tries < TRIES_MAX {
            let end = (at + size).min(best.len());
            let candidate = [&best[..at], &best[end..]].concat();
            tries += 1;
            match play(&candidate)? {
                Some(found) => (best, difference, shorter) = (candidate, found, true),
                None => at = end,
            }
        }
        if !(shorter && size == 1) {
            size /= 2;
        }
    }
    Ok((best, difference))
}

/// Leaves out lines of Lua programs.
fn shorten_programs(
    duel: &mut Duel,
    mut best: Round,
    mut difference: Difference,
) -> io::Result<(Round, Difference)> {
    let mut tries = 0;
    'again: while tries < TRIES_MAX {
        for (at, request) in best.requests.iter().enumerate() {
            for (word, text) in request.words.iter().enumerate() {
                for shorter in program::shorter(text) {
                    let mut candidate = best.clone();
                    candidate.requests[at].words[word] = shorter;
                    tries += 1;
                    if let Some(found) = duel.play(&candidate)? {
                        (best, difference) = (candidate, found);
                        continue 'again;
                    }
                }
            }
        }
        break;
    }
    Ok((best, difference))
}
