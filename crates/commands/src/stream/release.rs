//! Giving pending entries back to the group: XNACK.

use super::id;
use super::shared::no_key_or_group;
use ladon_engine::types::stream::{Step, Stream, StreamId};
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_resp::parse_i64;

/// How often the most hopeless entry counts as delivered.
const COUNT_MAX: u64 = i64::MAX as u64;

/// What becomes of the number of deliveries.
#[derive(Clone, Copy)]
enum Mode {
    /// This one does not count.
    Silent,
    Fail,
    /// Nobody is to try again.
    Fatal,
}

struct Options {
    ids: Vec<StreamId>,
    retry_count: Option<u64>,
    /// Existing entries that are not pending become so.
    forces: bool,
}

impl Options {
    fn parse(words: &[&[u8]]) -> Result<Options, CommandError> {
        let [word, number, rest @ ..] = words else { return Err(CommandError::Syntax) };
        if !is(word, "ids") {
            return Err(CommandError::Syntax);
        }
        let (texts, mut words) = id::counted(number, rest)?;
        let mut options = Options { ids: Vec::new(), retry_count: None, forces: false };
        while let [word, rest @ ..] = words {
            words = rest;
            if is(word, "force") {
                options.forces = true;
            } else if is(word, "retrycount")
                && let [value, rest @ ..] = rest
            {
                let count = parse_i64(value).and_then(|count| u64::try_from(count).ok());
                let error = CommandError::text("ERR Invalid RETRYCOUNT option argument for XNACK");
                options.retry_count = Some(count.ok_or(error)?);
                words = rest;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        options.ids = id::all(texts)?;
        Ok(options)
    }
}

pub(super) fn xnack(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let mode = match args[3] {
        word if is(word, "silent") => Mode::Silent,
        word if is(word, "fail") => Mode::Fail,
        word if is(word, "fatal") => Mode::Fatal,
        _ => return Err(CommandError::Syntax),
    };
    let Options { ids, retry_count, forces } = Options::parse(&args[4..])?;
    let (db, key, group) = (ctx.db(), ctx.first_key(args), args[2]);
    let stream = ctx.tx().get_value::<Stream>(db, key)?;
    if stream.is_none_or(|stream| stream.group(group).is_none()) {
        return Err(no_key_or_group(args[1], group));
    }
    let released = ctx.tx().stream_change(db, key, |stream| {
        let mut count = 0;
        for id in ids {
            let pending = stream.group(group).and_then(|group| group.pending_entry(id));
            let before = match pending {
                Some(pending) => pending.count,
                None if forces && stream.contains(id) => 0,
                None => continue,
            };
            let by_mode = match mode {
                Mode::Silent => before.saturating_sub(1),
                Mode::Fail => before,
                Mode::Fatal => COUNT_MAX,
            };
            let released = vec![(id, retry_count.unwrap_or(by_mode))];
            stream.apply(Step::Release { group, released });
            count += 1;
        }
        count
    })?;
    ctx.reply.integer(released.unwrap_or(0));
    Ok(())
}
