//! Lists.

mod blocking;
mod edit;
mod ends;
mod position;
mod read;
mod relocate;

use crate::kernel::args::is;
use crate::kernel::error::CommandError;
use crate::kernel::spec::{Code, Part};
use ladon_engine::types::list::{Element, End};
use ladon_resp::Reply;

pub(crate) const COMMANDS: &[Code] = &[
    Code::on_keys("lpush", ends::lpush).at(Part::Whole),
    Code::on_keys("rpush", ends::rpush).at(Part::Whole),
    Code::on_keys("lpushx", ends::lpushx).at(Part::Whole),
    Code::on_keys("rpushx", ends::rpushx).at(Part::Whole),
    Code::on_keys("lpop", ends::lpop).at(Part::Whole),
    Code::on_keys("rpop", ends::rpop).at(Part::Whole),
    Code::on_keys("llen", read::llen).at(Part::Whole),
    Code::on_keys("lrange", read::lrange).at(Part::Whole),
    Code::on_keys("lindex", read::lindex).at(Part::Whole),
    Code::on_keys("lpos", position::lpos),
    Code::on_keys("lset", edit::lset),
    Code::on_keys("linsert", edit::linsert),
    Code::on_keys("lrem", edit::lrem),
    Code::on_keys("ltrim", edit::ltrim),
    Code::on_keys("lmove", relocate::lmove),
    Code::on_keys("rpoplpush", relocate::rpoplpush),
    Code::on_keys("lmpop", ends::lmpop),
    Code::on_keys("blpop", blocking::blpop),
    Code::on_keys("brpop", blocking::brpop),
    Code::on_keys("blmove", blocking::blmove),
    Code::on_keys("brpoplpush", blocking::brpoplpush),
    Code::on_keys("blmpop", blocking::blmpop),
];

/// An element as a reply.
#[inline]
fn reply_element(reply: &mut Reply<'_>, element: Element<'_>) {
    match element {
        Element::Int(int) => reply.bulk_int(int),
        Element::Bytes(bytes) => reply.bulk(bytes),
    }
}

/// The event of a push at this end.
fn pushed(end: End) -> &'static str {
    match end {
        End::Front => "lpush",
        End::Back => "rpush",
    }
}

/// The event of a pop from this end.
fn popped(end: End) -> &'static str {
    match end {
        End::Front => "lpop",
        End::Back => "rpop",
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

/// The index in a list of `len` elements for a client's index, which counts from the back if
/// negative.
fn index_of(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add_unsigned(len as u64)? } else { index };
    usize::try_from(index).ok().filter(|&index| index < len)
}

/// The range in a list of `len` elements for a client's inclusive `start` and `stop`.
fn range_of(start: i64, stop: i64, len: usize) -> std::ops::Range<usize> {
    let from_front = |index: i64| if index < 0 { index + len as i64 } else { index };
    let start = from_front(start).max(0) as usize;
    let stop = from_front(stop).min(len as i64 - 1);
    if stop < 0 || start > stop as usize { 0..0 } else { start..stop as usize + 1 }
}
