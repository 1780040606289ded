//! `DUMP`: a value as bytes that `RESTORE` reads, here, on Redis and on Valkey.
//!
//! A payload is written in the oldest version of RDB since Redis 7.0 that has all of the value. A
//! large one is made aside from a frozen value, and sent from its own memory.

use ladon_engine::{EntryRef, ValueRef};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::aside::is_much;
use ladon_kernel::long::slices::{Keeping, Room, Slices};
use ladon_rdb::Fault;
use ladon_resp::{Proto, Reply};
use ladon_transfer::payload;
use std::ops::Range;
use std::sync::Arc;

pub(super) fn dump(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key, large) = (ctx.db(), ctx.first_key(args), ctx.large_aside());
    let (tx, reply) = ctx.tx_and_reply();
    match tx.read(db, key) {
        None => reply.null(),
        Some(entry) if !is_much(large, entry) => reply.bulk(made(entry)?),
        Some(_) => {
            let Some(frozen) = tx.freeze_object(db, key) else {
                unreachable!("what is large is an object, and was just found")
            };
            ctx.reply_aside(move |_| Box::new(Payload::new(payload(ValueRef::Object(&frozen)))));
        }
    }
    Ok(())
}

fn made(entry: EntryRef<'_>) -> Result<Vec<u8>, CommandError> {
    payload(entry.value()).map_err(CommandError::err)
}

/// A long payload as a reply, in slices that refer to its memory.
enum Payload {
    /// Before its head.
    Made(Arc<Vec<u8>>),
    /// What is to be sent of it.
    Sending(Arc<Vec<u8>>, Range<usize>),
    /// There is none.
    Failed(Fault),
    Done,
}

impl Payload {
    fn new(made: Result<Vec<u8>, Fault>) -> Payload {
        made.map_or_else(Payload::Failed, |payload| Payload::Made(Arc::new(payload)))
    }
}

impl Slices for Payload {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        match self {
            Payload::Made(payload) => {
                reply.bulk_header(payload.len());
                let range = 0..payload.len();
                *self = Payload::Sending(Arc::clone(payload), range);
                return true;
            }
            Payload::Sending(payload, range) if !Range::is_empty(range) => {
                room.refer(payload, range);
                return true;
            }
            Payload::Sending(..) => reply.raw(b"\r\n"),
            Payload::Failed(fault) => reply.error(format!("ERR {fault}")),
            Payload::Done => {}
        }
        *self = Payload::Done;
        false
    }

    /// It depends on no value any more.
    fn keep(&mut self, _: Proto, _: usize) -> Keeping {
        Keeping::Own(None)
    }

    fn memory(&self) -> usize {
        match self {
            Payload::Made(payload) | Payload::Sending(payload, _) => payload.capacity(),
            Payload::Failed(_) | Payload::Done => 0,
        }
    }
}
