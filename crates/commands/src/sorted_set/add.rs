//! ZADD and ZINCRBY.

use crate::shared::float::parse_double;
use ladon_engine::EventClass;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use smallvec::SmallVec;

const NOT_A_NUMBER: CommandError = CommandError::text("ERR resulting score is not a number (NaN)");

pub(super) fn zadd(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (options, pairs) = Options::parse(args, Options::default())?;
    add(ctx, args, options, pairs)
}

pub(super) fn zincrby(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (options, pairs) = Options::parse(args, Options { incr: true, ..Options::default() })?;
    add(ctx, args, options, pairs)
}

#[derive(Clone, Copy, Default)]
struct Options {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
    ch: bool,
    incr: bool,
}

impl Options {
    /// The options, and the scores and members that follow them.
    fn parse<'a, 'b>(
        args: &'a [&'b [u8]],
        mut options: Options,
    ) -> Result<(Options, &'a [&'b [u8]]), CommandError> {
        let mut rest = &args[2..];
        while let [option, after @ ..] = rest {
            let flag = match option {
                _ if is(option, "NX") => &mut options.nx,
                _ if is(option, "XX") => &mut options.xx,
                _ if is(option, "GT") => &mut options.gt,
                _ if is(option, "LT") => &mut options.lt,
                _ if is(option, "CH") => &mut options.ch,
                _ if is(option, "INCR") => &mut options.incr,
                _ => break,
            };
            *flag = true;
            rest = after;
        }
        if rest.is_empty() || !rest.len().is_multiple_of(2) {
            return Err(CommandError::Syntax);
        }
        let Options { nx, xx, gt, lt, incr, .. } = options;
        if nx && xx {
            return Err(CommandError::text(
                "ERR XX and NX options at the same time are not compatible",
            ));
        }
        if nx && (gt || lt) || gt && lt {
            return Err(CommandError::text(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        if incr && rest.len() > 2 {
            return Err(CommandError::text(
                "ERR INCR option supports a single increment-element pair",
            ));
        }
        Ok((options, rest))
    }

    /// The new score of a member: `Ok(None)` if the options keep its old one.
    #[inline]
    fn decide(self, old: Option<f64>, given: f64) -> Result<Option<f64>, CommandError> {
        let Some(old) = old else { return Ok(Some(given).filter(|_| !self.xx)) };
        if self.nx {
            return Ok(None);
        }
        let score = if self.incr { old + given } else { given };
        if score.is_nan() {
            return Err(NOT_A_NUMBER);
        }
        let stays = self.gt && score <= old || self.lt && score >= old;
        Ok(Some(score).filter(|_| !stays))
    }
}

/// The result of the pairs.
#[derive(Default)]
struct Outcome {
    added: i64,
    updated: i64,
    /// The score of the last pair that the options allowed.
    score: Option<f64>,
    error: Option<CommandError>,
}

fn add(ctx: &mut Ctx<'_>, args: &[&[u8]], options: Options, pairs: &[&[u8]]) -> CommandResult {
    let mut scores: SmallVec<[f64; 8]> = SmallVec::new();
    for pair in pairs.chunks_exact(2) {
        scores.push(parse_double(pair[0]).ok_or(CommandError::NotFloat)?);
    }
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let change = |set: &mut ladon_engine::Scores<'_>| {
        let mut outcome = Outcome::default();
        for (pair, &given) in pairs.chunks_exact(2).zip(&scores) {
            let mut new = None;
            let old = set.update(pair[1], |old| {
                new = options.decide(old, given).unwrap_or_else(|error| {
                    outcome.error = Some(error);
                    None
                });
                new
            });
            let Some(score) = new else { continue };
            outcome.score = new;
            match old {
                None => outcome.added += 1,
                Some(old) if old != score => outcome.updated += 1,
                Some(_) => {}
            }
        }
        outcome
    };
    let outcome = if options.xx {
        ctx.tx().sorted_set_change(db, key, change)?.unwrap_or_default()
    } else {
        // The longest member is not searched for: a long one converts the set when it is added.
        ctx.tx().sorted_set_upsert(db, key, (scores.len(), pairs[1].len()), change)?
    };
    if outcome.added + outcome.updated > 0 {
        let event = if options.incr { "zincr" } else { "zadd" };
        ctx.tx().notify(EventClass::SORTED_SET, event, db, key);
    }
    if let Some(error) = outcome.error {
        return Err(error);
    }
    match outcome.score {
        Some(score) if options.incr => ctx.reply.double(score),
        None if options.incr => ctx.reply.null(),
        _ if options.ch => ctx.reply.integer(outcome.added + outcome.updated),
        _ => ctx.reply.integer(outcome.added),
    }
    Ok(())
}
