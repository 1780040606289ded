//! What SRANDMEMBER, HRANDFIELD and ZRANDMEMBER may be told.

use crate::args::{self, is};
use crate::error::CommandError;

/// How many elements by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// One, as a single reply.
    One,
    /// So many different ones, at most as many as there are.
    Distinct(usize),
    /// So many, each drawn on its own.
    WithRepeats(usize),
}

impl Wanted {
    /// Reads `[count [word]]`, where `word` asks for what stands behind the elements; whether it does.
    pub(crate) fn parse(
        words: &[&[u8]],
        word: Option<&str>,
    ) -> Result<(Wanted, bool), CommandError> {
        let Some((count, rest)) = words.split_first() else { return Ok((Wanted::One, false)) };
        if word.is_none() && !rest.is_empty() {
            return Err(CommandError::Syntax);
        }
        let count = args::integer_between(count, -i64::MAX, i64::MAX)?;
        let with_values = match (rest, word) {
            ([], _) => false,
            ([option], Some(word)) if is(option, word) => true,
            _ => return Err(CommandError::Syntax),
        };
        // Twice as many words must still be countable.
        if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
            return Err(CommandError::OutOfRange);
        }
        let number = count.unsigned_abs() as usize;
        let wanted =
            if count >= 0 { Wanted::Distinct(number) } else { Wanted::WithRepeats(number) };
        Ok((wanted, with_values))
    }
}
