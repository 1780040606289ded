//! Lists.

mod blocking;
mod edit;
mod ends;
mod look;
mod position;
mod relocate;

use crate::kernel::args::is;
use crate::kernel::error::CommandError;
use crate::kernel::spec::{CommandSpec, Flags, KeySpec, Part};
use ladon_engine::types::list::{Element, End};
use ladon_resp::Reply;

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE;
const TAKE: Flags = Flags::WRITE.or(Flags::FAST);
const GROW: Flags = Flags::WRITE.or(Flags::DENYOOM);
const PUSH: Flags = GROW.or(Flags::FAST);
const FIRST: KeySpec = KeySpec::FIRST;
const BLOCKING: Flags = WRITE.or(Flags::BLOCKING);
/// All but the timeout.
const ALL_BUT_LAST: KeySpec = KeySpec::Range { first: 1, last: -2, step: 1 };
const TWO_KEYS: KeySpec = KeySpec::Range { first: 1, last: 2, step: 1 };

pub(crate) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::on_keys("lpush", -3, PUSH, FIRST, ends::lpush).at(Part::Whole),
    CommandSpec::on_keys("rpush", -3, PUSH, FIRST, ends::rpush).at(Part::Whole),
    CommandSpec::on_keys("lpushx", -3, PUSH, FIRST, ends::lpushx).at(Part::Whole),
    CommandSpec::on_keys("rpushx", -3, PUSH, FIRST, ends::rpushx).at(Part::Whole),
    CommandSpec::on_keys("lpop", -2, TAKE, FIRST, ends::lpop).at(Part::Whole),
    CommandSpec::on_keys("rpop", -2, TAKE, FIRST, ends::rpop).at(Part::Whole),
    CommandSpec::on_keys("llen", 2, READ.or(Flags::FAST), FIRST, look::llen).at(Part::Whole),
    CommandSpec::on_keys("lrange", 4, READ, FIRST, look::lrange).at(Part::Whole),
    CommandSpec::on_keys("lindex", 3, READ, FIRST, look::lindex).at(Part::Whole),
    CommandSpec::on_keys("lpos", -3, READ, FIRST, position::lpos),
    CommandSpec::on_keys("lset", 4, GROW, FIRST, edit::lset),
    CommandSpec::on_keys("linsert", 5, GROW, FIRST, edit::linsert),
    CommandSpec::on_keys("lrem", 4, WRITE, FIRST, edit::lrem),
    CommandSpec::on_keys("ltrim", 4, WRITE, FIRST, edit::ltrim),
    CommandSpec::on_keys("lmove", 5, GROW, TWO_KEYS, relocate::lmove),
    CommandSpec::on_keys("rpoplpush", 3, GROW, TWO_KEYS, relocate::rpoplpush),
    CommandSpec::on_keys(
        "lmpop",
        -4,
        WRITE.or(Flags::MOVABLEKEYS),
        KeySpec::Counted { count_at: 1 },
        ends::lmpop,
    ),
    CommandSpec::on_keys("blpop", -3, BLOCKING, ALL_BUT_LAST, blocking::blpop),
    CommandSpec::on_keys("brpop", -3, BLOCKING, ALL_BUT_LAST, blocking::brpop),
    CommandSpec::on_keys("blmove", 6, GROW.or(BLOCKING), TWO_KEYS, blocking::blmove),
    CommandSpec::on_keys("brpoplpush", 4, GROW.or(BLOCKING), TWO_KEYS, blocking::brpoplpush),
    CommandSpec::on_keys(
        "blmpop",
        -5,
        BLOCKING.or(Flags::MOVABLEKEYS),
        KeySpec::Counted { count_at: 2 },
        blocking::blmpop,
    ),
];

/// An element as a reply.
#[inline]
fn reply_element(reply: &mut Reply<'_>, element: Element<'_>) {
    match element {
        Element::Int(int) => reply.bulk_int(int),
        Element::Bytes(bytes) => reply.bulk(bytes),
    }
}

/// `LEFT` or `RIGHT`.
fn end(argument: &[u8]) -> Result<End, CommandError> {
    if is(argument, "left") {
        Ok(End::Front)
    } else if is(argument, "right") {
        Ok(End::Back)
    } else {
        Err(CommandError::Syntax)
    }
}

/// An index of a list of `len` elements, as clients count: from the back where it is negative.
fn index_of(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add_unsigned(len as u64)? } else { index };
    usize::try_from(index).ok().filter(|&index| index < len)
}

/// What `start` to `stop`, both counted as clients count and with the last one in, are in a list
/// of `len` elements.
fn range_of(start: i64, stop: i64, len: usize) -> std::ops::Range<usize> {
    let from_front = |index: i64| if index < 0 { index + len as i64 } else { index };
    let start = from_front(start).max(0) as usize;
    let stop = from_front(stop).min(len as i64 - 1);
    if stop < 0 || start > stop as usize { 0..0 } else { start..stop as usize + 1 }
}
