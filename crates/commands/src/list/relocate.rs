//! From one list to another: LMOVE, RPOPLPUSH.

use super::shared::{end, popped, pushed};
use ladon_engine::types::list::{End, ListValue};
use ladon_engine::{EventClass, Key};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(super) fn lmove(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (from, to) = (end(args[3])?, end(args[4])?);
    relocate(ctx, args, from, to)
}

pub(super) fn rpoplpush(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    relocate(ctx, args, End::Back, End::Front)
}

fn relocate(ctx: &mut Ctx<'_>, args: &[&[u8]], from: End, to: End) -> CommandResult {
    let (source, destination) = (ctx.key(args[1]), ctx.key(args[2]));
    match move_element(ctx, source, destination, from, to)? {
        Some(element) => ctx.reply.bulk(element),
        None => ctx.reply.null(),
    }
    Ok(())
}

/// Moves an element from one list to another, or to the same; returns the element.
pub(super) fn move_element(
    ctx: &mut Ctx<'_>,
    source: Key<'_>,
    destination: Key<'_>,
    from: End,
    to: End,
) -> Result<Option<Vec<u8>>, CommandError> {
    let db = ctx.db();
    let tx = ctx.tx();
    if tx.get_value::<ListValue>(db, source)?.is_none() {
        return Ok(None);
    }
    if source.bytes == destination.bytes {
        let moved = tx.list_rotate(db, source, from, to)?;
        tx.notify(EventClass::LIST, pushed(to), db, source);
        tx.notify(EventClass::LIST, popped(from), db, source);
        return Ok(moved);
    }
    // Check the destination first, because nothing may have moved if it is of another type.
    tx.get_value::<ListValue>(db, destination)?;
    let mut moved = None;
    tx.list_pop(db, source, from, 1, |_| (), |(), element| moved = Some(element.to_vec()))?;
    if let Some(element) = &moved {
        tx.list_push(db, destination, to, [&element[..]].into_iter())?;
        tx.count_two_as_one();
        tx.notify(EventClass::LIST, pushed(to), db, destination);
        tx.notify_removal(EventClass::LIST, popped(from), db, source);
    }
    Ok(moved)
}
