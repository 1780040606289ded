//! `LPOS`: the position of an element.

use ladon_engine::types::list::{End, ListValue, Needle};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::slices::{Headed, Room, Slices};
use ladon_resp::Reply;
use std::ops::ControlFlow::{Break, Continue};

/// Which elements are looked for.
#[derive(Clone, Copy)]
struct Search {
    /// Matches to skip before the first that counts.
    skip: usize,
    backwards: bool,
    /// How many matches; `None` for one match without an array; zero for all.
    count: Option<usize>,
    /// How many elements are compared; zero for all.
    compared_max: usize,
}

impl Search {
    fn read(options: &[&[u8]]) -> Result<Search, CommandError> {
        const RANK_ZERO: &str = "ERR RANK can't be zero: use 1 to start from the first match, 2 \
                                 from the second ... or use negative to start from the end of the \
                                 list";
        let mut search = Search { skip: 0, backwards: false, count: None, compared_max: 0 };
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

    /// The indexes of the matches in the order of the search; `None` if that takes more than
    /// `patience` comparisons.
    fn matches(&self, list: &ListValue, element: &[u8], patience: usize) -> Option<Vec<usize>> {
        let needle = Needle::new(element);
        let compared_max = if self.compared_max == 0 { usize::MAX } else { self.compared_max };
        let may_be_long = compared_max.min(list.len()) > patience;
        let mut compared_left = if may_be_long { patience } else { compared_max };
        let wanted = match self.count {
            None => 1,
            Some(0) => usize::MAX,
            Some(count) => count,
        };
        let (mut to_skip, mut found) = (self.skip, Vec::new());
        let from = if self.backwards { End::Back } else { End::Front };
        let ended = list.search(from, |index, element| {
            if needle.is(element) {
                match to_skip.checked_sub(1) {
                    Some(left) => to_skip = left,
                    None => found.push(index),
                }
            }
            compared_left -= 1;
            if found.len() == wanted {
                Break(true)
            } else if compared_left == 0 {
                Break(!may_be_long)
            } else {
                Continue(())
            }
        });
        (ended != Break(false)).then_some(found)
    }

    /// Writes what precedes the indexes, or the single index.
    fn begin(&self, found: &[usize], reply: &mut Reply<'_>) {
        match (self.count, found.first()) {
            (None, Some(&index)) => reply.integer(index as i64),
            (None, None) => reply.null(),
            (Some(_), _) => reply.array(found.len()),
        }
    }

    fn reply_of(self, list: &ListValue, element: &[u8]) -> Box<dyn Slices> {
        let found = self.matches(list, element, usize::MAX).unwrap_or_default();
        let rest = if self.count.is_some() { found.clone() } else { Vec::new() };
        Box::new(Headed::new(move |reply| self.begin(&found, reply), Rest(rest.into_iter())))
    }
}

pub(super) fn lpos(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let search = Search::read(&args[3..])?;
    let (db, key, element) = (ctx.db(), ctx.first_key(args), args[2]);
    // The element may be found quickly.
    let patience = ctx.large_aside().elements();
    let tx = ctx.tx();
    let mut found = match tx.read_value::<ListValue>(db, key)? {
        None => Some(Vec::new()),
        Some(list) => search.matches(list, element, patience),
    };
    if found.is_none() {
        if let Some(frozen) = tx.freeze::<ListValue>(db, key) {
            let element = element.to_vec();
            ctx.reply_aside(move |_| search.reply_of(&frozen, &element));
            return Ok(());
        }
        let list = tx.get_value::<ListValue>(db, key)?;
        found = list.and_then(|list| search.matches(list, element, usize::MAX));
    }
    let found = found.unwrap_or_default();
    search.begin(&found, &mut ctx.reply);
    if search.count.is_some() {
        found.iter().for_each(|&index| ctx.reply.integer(index as i64));
    }
    Ok(())
}

/// Indexes that are still to be sent.
struct Rest(std::vec::IntoIter<usize>);

impl Slices for Rest {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        while self.0.len() > 0 && room.take(reply) {
            self.0.next().into_iter().for_each(|index| reply.integer(index as i64));
        }
        self.0.len() > 0
    }
}
