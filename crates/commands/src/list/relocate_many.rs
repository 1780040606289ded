//! Several elements from one list to another: LMOVEM, BLMOVEM.
//!
//! `OBO` arranges the elements as if each were pushed before the next is popped, `BULK` leaves them
//! in the order of the source. The reply has them as the destination does, from front to back. As
//! in Redis, all of them leave the source before the first arrives, also within one list.

use super::shared::{end, popped, pushed};
use ladon_engine::types::list::{Elements, End, ListValue};
use ladon_engine::{EventClass, Object, Tx, ValueRef};
use ladon_kernel::blocking::Wanted;
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_record::{DbId, ValueKind};

/// How many elements to move, in which order.
struct Amount {
    count: usize,
    /// All of them, or none.
    exactly: bool,
    /// They keep their order.
    bulk: bool,
}

impl Amount {
    /// `[COUNT count | EXACTLY count] [OBO | BULK]`, both or none.
    fn read(words: &[&[u8]]) -> Result<Amount, CommandError> {
        let (selector, count, order) = match words {
            [] => return Ok(Amount { count: 1, exactly: false, bulk: false }),
            &[selector, count, order] => (selector, count, order),
            _ => return Err(CommandError::Syntax),
        };
        let exactly = is(selector, "exactly");
        if !exactly && !is(selector, "count") {
            return Err(CommandError::Syntax);
        }
        let count = args::integer_or(count, 1.., "ERR count should be greater than 0")?;
        let bulk = is(order, "bulk");
        if !bulk && !is(order, "obo") {
            return Err(CommandError::Syntax);
        }
        Ok(Amount { count: usize::try_from(count).unwrap_or(usize::MAX), exactly, bulk })
    }

    /// Elements that the source must have.
    fn needed(&self) -> usize {
        if self.exactly { self.count } else { 1 }
    }
}

pub(super) fn lmovem(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let ends = (end(args[3])?, end(args[4])?);
    let amount = Amount::read(&args[5..])?;
    if !move_elements(ctx, args, ends, &amount)? {
        ctx.reply.null_array();
    }
    Ok(())
}

pub(super) fn blmovem(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let ends = (end(args[3])?, end(args[4])?);
    let amount = Amount::read(&args[6..])?;
    let deadline_ms = args::timeout_seconds(args[5], ctx.now_ms)?;
    let (db, source) = (ctx.db(), ctx.key(args[1]));
    let length = ctx.tx().get_value::<ListValue>(db, source)?.map_or(0, ListValue::len);
    let may_take = length >= amount.needed() && ctx.may_take(db, source, ValueKind::List);
    if !may_take || !move_elements(ctx, args, ends, &amount)? {
        let wanted = Wanted {
            kind: ValueKind::List,
            hears_loss: false,
            is_ready: Some(is_ready),
            look_at: None,
        };
        ctx.block_or_answer_null(args, 1..2, wanted, deadline_ms);
    }
    Ok(())
}

/// Whether a waiting BLMOVEM finds as many elements as it needs.
fn is_ready(tx: &mut Tx<'_>, db: DbId, args: &[&[u8]]) -> bool {
    let Ok(amount) = Amount::read(&args[6..]) else { return true };
    let source = tx.key(args[1]);
    match tx.peek(db, source).map(|entry| entry.value()) {
        Some(ValueRef::Object(Object::List(list))) => list.len() >= amount.needed(),
        _ => false,
    }
}

/// Moves elements and replies with them; `false` if the source has too few.
fn move_elements(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    (from, to): (End, End),
    amount: &Amount,
) -> Result<bool, CommandError> {
    let (source, destination) = (ctx.key(args[1]), ctx.key(args[2]));
    let db = ctx.db();
    let (tx, reply) = ctx.tx_and_reply();
    let length = tx.get_value::<ListValue>(db, source)?.map_or(0, ListValue::len);
    if length < amount.needed() {
        return Ok(false);
    }
    // One by one they are pushed as they are popped. What keeps its order is pushed from its far
    // end on, if it comes to the front.
    let reversed = amount.bulk && from == to;
    let mut elements = Elements::default();
    if source.bytes == destination.bytes {
        let ends = (from, to);
        tx.list_rotate_many(db, source, ends, amount.count, reversed, &mut elements)?;
        tx.notify(EventClass::LIST, pushed(to), db, source);
        tx.notify(EventClass::LIST, popped(from), db, source);
    } else {
        // Nothing may have moved if the destination is of another type.
        tx.get_value::<ListValue>(db, destination)?;
        tx.list_pop(db, source, from, amount.count, |_| (), |(), element| elements.push(element))?;
        tx.list_push(db, destination, to, elements.in_order(reversed).into_iter())?;
        tx.count_two_as_one();
        tx.notify(EventClass::LIST, pushed(to), db, destination);
        tx.notify_removal(EventClass::LIST, popped(from), db, source);
    }
    // The last that is pushed to the front is the first of the list.
    let pushed_backwards = to == End::Front;
    reply.array(elements.len());
    for element in elements.in_order(reversed != pushed_backwards) {
        reply.bulk(element);
    }
    Ok(true)
}
