//! What several commands on lists need: their ends, the events at these, indexes and elements.

use ladon_engine::types::list::{Element, End};
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::CommandError;
use ladon_resp::Reply;

/// An element as a reply.
#[inline]
pub(super) fn reply_element(reply: &mut Reply<'_>, element: Element<'_>) {
    match element {
        Element::Int(int) => reply.bulk_int(int),
        Element::Bytes(bytes) => reply.bulk(bytes),
    }
}

/// The event of a push at this end.
pub(super) fn pushed(end: End) -> &'static str {
    match end {
        End::Front => "lpush",
        End::Back => "rpush",
    }
}

/// The event of a pop from this end.
pub(super) fn popped(end: End) -> &'static str {
    match end {
        End::Front => "lpop",
        End::Back => "rpop",
    }
}

/// `LEFT` or `RIGHT`.
pub(super) fn end(argument: &[u8]) -> Result<End, CommandError> {
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
pub(super) fn index_of(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add_unsigned(len as u64)? } else { index };
    usize::try_from(index).ok().filter(|&index| index < len)
}

/// The range in a list of `len` elements for a client's inclusive `start` and `stop`.
pub(super) fn range_of(start: i64, stop: i64, len: usize) -> std::ops::Range<usize> {
    let from_front = |index: i64| if index < 0 { index + len as i64 } else { index };
    let start = from_front(start).max(0) as usize;
    let stop = from_front(stop).min(len as i64 - 1);
    if stop < 0 || start > stop as usize { 0..0 } else { start..stop as usize + 1 }
}
