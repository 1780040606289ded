//! Removing entries by their ids: XDEL, XDELEX, XACKDEL.

use super::id;
use ladon_engine::types::stream::{References, Step, Stream, StreamId};
use ladon_engine::{EventClass, StreamEdit};
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(super) fn xdel(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    // As in Redis, ids are not read if there is no stream.
    if ctx.tx().get_value::<Stream>(db, key)?.is_none() {
        ctx.reply.integer(0);
        return Ok(());
    }
    let ids = id::all(&args[2..])?;
    let removed = ctx.tx().stream_change(db, key, |stream| {
        let mut removed = 0;
        for id in ids {
            if stream.contains(id) {
                stream.apply(Step::Remove { ids: vec![id] });
                removed += 1;
            }
        }
        removed
    })?;
    if removed.is_some_and(|removed| removed != 0) {
        ctx.tx().notify(EventClass::STREAM, "xdel", db, key);
    }
    ctx.reply.integer(removed.unwrap_or(0));
    Ok(())
}

/// What a word says about references to removed entries.
pub(super) fn references(word: &[u8]) -> Option<References> {
    match word.len() {
        7 if is(word, "keepref") => Some(References::Keep),
        6 if is(word, "delref") => Some(References::Remove),
        5 if is(word, "acked") => Some(References::Spare),
        _ => None,
    }
}

/// The arguments of XDELEX and XACKDEL after the key and the group.
struct Request {
    references: References,
    ids: Vec<StreamId>,
}

impl Request {
    fn parse(mut words: &[&[u8]]) -> Result<Request, CommandError> {
        let (mut found, mut ids) = (None, None);
        while let [word, rest @ ..] = words {
            words = rest;
            if found.is_none() && references(word).is_some() {
                found = references(word);
            } else if is(word, "ids")
                && let [number, rest @ ..] = rest
            {
                let (texts, rest) = id::counted(number, rest)?;
                ids = Some(texts);
                words = rest;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        let texts = ids.ok_or(CommandError::text("ERR IDS option is required"))?;
        let references = found.unwrap_or(References::Keep);
        Ok(Request { references, ids: id::all(texts)? })
    }
}

/// What became of an id, as the reply says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// There is no such entry, or it was not pending.
    Unknown = -1,
    Removed = 1,
    /// The entry stays, because a group needs it.
    Spared = 2,
}

pub(super) fn xdelex(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let Request { references, ids } = Request::parse(&args[2..])?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let count = ids.len();
    let fates = ctx.tx().stream_change(db, key, |stream| {
        ids.into_iter().map(|id| remove(stream, id, references)).collect::<Vec<_>>()
    })?;
    answer(ctx, args, fates.unwrap_or_else(|| vec![Fate::Unknown; count]), true)
}

/// Removes an entry, if the groups allow it.
fn remove(stream: &mut StreamEdit<'_>, id: StreamId, references: References) -> Fate {
    if references == References::Remove {
        stream.remove_references(id);
    }
    if !stream.contains(id) {
        return Fate::Unknown;
    }
    // As in Redis, nothing counts as acknowledged where there is no group.
    let is_spared =
        references == References::Spare && (stream.group_count() == 0 || stream.is_needed(id));
    if is_spared {
        return Fate::Spared;
    }
    stream.apply(Step::Remove { ids: vec![id] });
    Fate::Removed
}

pub(super) fn xackdel(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let Request { references, ids } = Request::parse(&args[3..])?;
    let (db, key, group) = (ctx.db(), ctx.first_key(args), args[2]);
    let count = ids.len();
    let mut is_removed = false;
    let fates = ctx.tx().stream_change(db, key, |stream| {
        let of_id = |id| {
            let of = stream.group(group);
            if of.is_none_or(|group| group.pending_entry(id).is_none()) {
                return Fate::Unknown;
            }
            stream.apply(Step::Acknowledge { group, ids: vec![id] });
            let spares = references == References::Spare && stream.is_needed(id);
            if !spares {
                is_removed |= remove(stream, id, references) == Fate::Removed;
            }
            if spares { Fate::Spared } else { Fate::Removed }
        };
        ids.into_iter().map(of_id).collect::<Vec<_>>()
    })?;
    answer(ctx, args, fates.unwrap_or_else(|| vec![Fate::Unknown; count]), is_removed)
}

/// Answers what became of each id, and notifies if an entry was removed and `may_notify`.
fn answer(ctx: &mut Ctx<'_>, args: &[&[u8]], fates: Vec<Fate>, may_notify: bool) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    if may_notify && fates.contains(&Fate::Removed) {
        ctx.tx().notify(EventClass::STREAM, "xdel", db, key);
    }
    ctx.reply.array(fates.len());
    fates.into_iter().for_each(|fate| ctx.reply.integer(fate as i64));
    Ok(())
}
