//! `LPOS`: where an element stands.

use crate::args::{self, is};
use crate::ctx::Ctx;
use crate::error::{CommandError, CommandResult};
use ladon_engine::types::list::{End, ListValue, Needle};
use std::ops::ControlFlow::{Break, Continue};

/// What is looked for, and how.
struct Search<'a> {
    needle: Needle<'a>,
    /// Matches to pass over before the first that counts.
    skip: usize,
    backwards: bool,
    /// How many matches; `None` for the one, not in an array; zero for all.
    count: Option<usize>,
    /// How many elements are compared; zero for all.
    compared_max: usize,
}

impl<'a> Search<'a> {
    fn read(element: &'a [u8], options: &[&[u8]]) -> Result<Search<'a>, CommandError> {
        const RANK_ZERO: &str = "ERR RANK can't be zero: use 1 to start from the first match, 2 \
                                 from the second ... or use negative to start from the end of the \
                                 list";
        let mut search = Search {
            needle: Needle::new(element),
            skip: 0,
            backwards: false,
            count: None,
            compared_max: 0,
        };
        let mut options = options.iter().copied();
        while let Some(option) = options.next() {
            let Some(value) = options.next() else { return Err(CommandError::Syntax) };
            if is(option, "rank") {
                let rank = args::integer_between(value, -i64::MAX, i64::MAX)?;
                if rank == 0 {
                    return Err(CommandError::text(RANK_ZERO));
                }
                search.backwards = rank < 0;
                search.skip = rank.unsigned_abs() as usize - 1;
            } else if is(option, "count") {
                let count = args::integer_or(value, 0.., "ERR COUNT can't be negative")?;
                search.count = Some(count as usize);
            } else if is(option, "maxlen") {
                let max = args::integer_or(value, 0.., "ERR MAXLEN can't be negative")?;
                search.compared_max = max as usize;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(search)
    }

    /// The indexes of what counts, in the order in which they are found.
    fn matches(&self, list: &ListValue) -> Vec<usize> {
        let mut compared_left = if self.compared_max == 0 { usize::MAX } else { self.compared_max };
        let wanted = match self.count {
            None => 1,
            Some(0) => usize::MAX,
            Some(count) => count,
        };
        let (mut to_skip, mut found) = (self.skip, Vec::new());
        let from = if self.backwards { End::Back } else { End::Front };
        let _ = list.search(from, |index, element| {
            if self.needle.is(element) {
                match to_skip.checked_sub(1) {
                    Some(left) => to_skip = left,
                    None => found.push(index),
                }
            }
            compared_left -= 1;
            if compared_left == 0 || found.len() == wanted { Break(()) } else { Continue(()) }
        });
        found
    }
}

pub(super) fn lpos(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let search = Search::read(args[2], &args[3..])?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    let list = tx.read_value::<ListValue>(db, key)?;
    let found = list.map_or_else(Vec::new, |list| search.matches(list));
    match (search.count, found.first()) {
        (None, Some(&index)) => reply.integer(index as i64),
        (None, None) => reply.null(),
        (Some(_), _) => {
            reply.array(found.len());
            found.iter().for_each(|&index| reply.integer(index as i64));
        }
    }
    Ok(())
}
