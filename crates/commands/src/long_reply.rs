//! Replies about large values, made in slices between which other connections are served.
//!
//! ```text
//! HGETALL h     freezes the value under its lock -> header -> commits, lets go of the lock
//!               -> the worker asks for a slice whenever the client has taken the last ones
//!               -> the connection's next request runs once the last slice is made
//! ```
//!
//! A long string goes into its reply as it is: a slice then refers to a part of its frozen memory, a
//! [`Block`], which is sent from where it stands.
//!
//! The reply is of the moment of the command, whatever happens to the value afterwards, and depends
//! on the LSN that the command has found. Inside `EXEC`, and where nobody wants the reply, replies
//! are made at once.

use crate::aside::Computed;
use crate::ctx::{Ctx, Later, Local};
use crate::execute::count_error;
use crate::node::Node;
use crate::session::{ReplyMode, Session};
use crate::table::CommandId;
use ladon_engine::Collection;
use ladon_resp::{Proto, Reply};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// From where on a value is large, and what a slice is; of the whole node.
#[derive(Debug)]
pub struct Slicing {
    /// Elements from which on a reply is made in slices.
    pub large_elements: AtomicUsize,
    /// Elements of a slice at most.
    pub slice_elements: AtomicUsize,
    /// Elements from which on a result is computed aside (`aside.rs`).
    pub aside_elements: AtomicUsize,
}

/// A tenth of a millisecond or two of work.
const SLICE_ELEMENTS: usize = 1024;
/// About a millisecond of unions and intersections.
const ASIDE_ELEMENTS: usize = 8192;
/// A slice ends with the element that goes beyond this.
const SLICE_BYTES: usize = 32 << 10;
/// Elements that take this much together are a large reply, however few they are.
const LARGE_BYTES: usize = 1 << 20;

/// This much of a string is about as much work as an element of something else.
const BYTES_LIKE_AN_ELEMENT: usize = 512;

/// A block has this much for each element that a slice may have: a quarter of a megabyte, which the
/// kernel copies in some ten microseconds.
const BLOCK_BYTES_LIKE_AN_ELEMENT: usize = 256;

/// A string that is a smaller part of what is long is copied: sending it by itself takes longer.
const PARTS_OF_LONG_MAX: usize = 16;

impl Default for Slicing {
    fn default() -> Self {
        Slicing {
            large_elements: (2 * SLICE_ELEMENTS).into(),
            slice_elements: SLICE_ELEMENTS.into(),
            aside_elements: ASIDE_ELEMENTS.into(),
        }
    }
}

/// Whether a value is large enough to be frozen and answered in slices.
#[derive(Clone, Copy)]
pub(crate) struct Large(usize);

impl Large {
    /// Nothing is.
    pub(crate) const NEVER: Large = Large(usize::MAX);

    /// Of values with so many elements, and bytes, together.
    pub(crate) fn is_total(self, elements: usize, bytes: usize) -> bool {
        elements >= self.0 || self.0 != usize::MAX && bytes >= LARGE_BYTES
    }

    /// Of strings of so many bytes together.
    pub(crate) fn is_total_string(self, bytes: usize) -> bool {
        self.is_long(bytes) || self.is_total(0, bytes)
    }

    /// Of a string of which so many bytes are looked at, or go into the reply.
    pub(crate) fn is_long(self, bytes: usize) -> bool {
        bytes >= self.bytes()
    }

    /// Of a string that goes into a reply behind so many bytes of others: whether it is better sent
    /// from where it stands.
    pub(crate) fn is_block(self, bytes: usize, before: usize) -> bool {
        self.is_long(before.saturating_add(bytes)) && bytes >= self.bytes() / PARTS_OF_LONG_MAX
    }

    /// Elements from which on a value is large.
    pub(crate) fn elements(self) -> usize {
        self.0
    }

    /// Bytes of a string from which on it is long.
    pub(crate) fn bytes(self) -> usize {
        self.0.saturating_mul(BYTES_LIKE_AN_ELEMENT)
    }

    /// Of a value of which so many elements go into the reply.
    pub(crate) fn is(self, value: &impl Collection, elements: usize) -> bool {
        // A small part of a large value is a short reply: freezing would cost more than making it.
        let bytes = || elements as u128 * value.bytes() as u128 / value.len().max(1) as u128;
        // One element is a slice anyway.
        elements >= self.0 || self.0 != usize::MAX && elements > 1 && bytes() >= LARGE_BYTES as u128
    }
}

impl From<usize> for Large {
    fn from(elements: usize) -> Large {
        Large(elements)
    }
}

/// How much may go into a slice.
pub struct Room {
    elements: usize,
    end: usize,
    block_bytes: usize,
    block: Option<Block>,
}

/// Bytes of a reply that stand elsewhere, in memory that nobody changes any more.
#[derive(Debug)]
pub struct Block {
    /// What they are a part of.
    pub whole: Arc<Vec<u8>>,
    /// Where they stand in it.
    pub range: Range<usize>,
}

/// What came of asking for a slice.
#[derive(Debug)]
pub struct Slice {
    /// What follows that which was written.
    pub block: Option<Block>,
    /// There may be more slices.
    pub more: bool,
}

impl Room {
    /// Takes room for one more element; whether there is any.
    pub fn take(&mut self, reply: &Reply<'_>) -> bool {
        if self.elements == 0 || reply.position() >= self.end {
            return false;
        }
        self.elements -= 1;
        true
    }

    /// Ends the slice with bytes that stand elsewhere: as many of `range` as go into a block, which
    /// are taken off it.
    pub fn refer(&mut self, whole: &Arc<Vec<u8>>, range: &mut Range<usize>) {
        debug_assert!(self.block.is_none(), "one ends a slice");
        let end = range.end.min(range.start + self.block_bytes);
        self.block = Some(Block { whole: Arc::clone(whole), range: range.start..end });
        range.start = end;
        self.elements = 0;
    }
}

/// The elements of a reply, from a frozen value.
pub trait Slices: Send {
    /// Writes more elements, as far as there is room; whether there may be more after that.
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool;
}

/// Writes something at once.
type Header = Box<dyn FnOnce(&mut Reply<'_>) + Send>;

/// What goes before the elements: the header, or all of a short reply.
pub(crate) struct Headed<S> {
    header: Option<Header>,
    rest: S,
}

impl<S: Slices> Headed<S> {
    pub(crate) fn new(header: impl FnOnce(&mut Reply<'_>) + Send + 'static, rest: S) -> Headed<S> {
        Headed { header: Some(Box::new(header)), rest }
    }
}

impl<S: Slices> Slices for Headed<S> {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        if let Some(header) = self.header.take() {
            header(reply);
        }
        self.rest.write(reply, room)
    }
}

/// No elements.
impl Slices for () {
    fn write(&mut self, _: &mut Reply<'_>, _: &mut Room) -> bool {
        false
    }
}

/// A reply that goes on after its command: its elements, or all of it.
pub struct LongReply {
    /// None as long as they are computed.
    slices: Option<Box<dyn Slices>>,
    /// An error that it is made of.
    error: Option<Vec<u8>>,
    proto: Proto,
    command: CommandId,
    /// For the slow log.
    args: Vec<Vec<u8>>,
    /// Time spent on it, as the statistics will have it.
    nanoseconds: u64,
    /// When its command ran, Unix milliseconds.
    pub began_ms: u64,
}

impl std::fmt::Debug for LongReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LongReply({:?})", self.command)
    }
}

impl LongReply {
    pub(crate) fn new(
        slices: Option<Box<dyn Slices>>,
        proto: Proto,
        command: CommandId,
        args: &[&[u8]],
        nanoseconds: u64,
        began_ms: u64,
    ) -> LongReply {
        let args = args.iter().map(|arg| arg.to_vec()).collect();
        LongReply { slices, error: None, proto, command, args, nanoseconds, began_ms }
    }

    /// Whether it can go on, as nothing is to be computed any more.
    pub fn is_computed(&self) -> bool {
        self.slices.is_some()
    }

    /// Takes what its job has made, at the time of `now_ms`. Given back if that is no reply.
    pub fn take_in(&mut self, computed: Computed, now_ms: u64) -> Result<(), Computed> {
        let (slices, nanoseconds) = computed.into_reply()?;
        self.slices = Some(slices);
        self.nanoseconds += nanoseconds;
        self.began_ms = now_ms;
        Ok(())
    }

    /// Appends the next slice to `out`, up to its block.
    pub fn write(&mut self, node: &Node, out: &mut Vec<u8>) -> Slice {
        let Some(slices) = &mut self.slices else { return Slice { block: None, more: true } };
        let start = out.len();
        let began_ns = node.clock.monotonic_ns();
        let elements = node.slicing.slice_elements.load(Relaxed);
        let mut room = Room {
            elements,
            end: out.len() + SLICE_BYTES,
            block_bytes: elements.saturating_mul(BLOCK_BYTES_LIKE_AN_ELEMENT).max(1),
            block: None,
        };
        let more = slices.write(&mut Reply::new(out, self.proto), &mut room);
        if out.get(start) == Some(&b'-') && !more {
            self.error = Some(out[start..].to_vec());
        }
        self.nanoseconds += node.clock.monotonic_ns().saturating_sub(began_ns);
        Slice { block: room.block, more }
    }

    /// The reply is made, or nobody wants it any more: counts the command.
    pub fn finish(&self, node: &Node, local: &mut Local, session: &Session) {
        let args: Vec<&[u8]> = self.args.iter().map(Vec::as_slice).collect();
        local.finish(node, session, self.command, &args, self.nanoseconds);
        if let Some(error) = &self.error {
            local.stats.command(self.command).failed.add(1);
            count_error(local, error);
        }
    }
}

impl Later<'_> {
    /// From where on values are large: never where the reply must be made at once.
    pub(crate) fn large(&self) -> Large {
        let later = self.local.replies_later
            && !self.must_answer
            && self.session.reply_mode == ReplyMode::On;
        Large(if later { self.node.slicing.large_elements.load(Relaxed) } else { usize::MAX })
    }
}

impl Ctx<'_> {
    /// From where on values are large here: never where the reply must be made at once.
    pub(crate) fn large(&self) -> Large {
        let must_answer = self.must_answer();
        Later { node: self.node, local: self.local, session: self.session, must_answer }.large()
    }

    /// The rest of the reply comes from these; only after `large` has said so of the value.
    pub(crate) fn reply_in_slices(&mut self, slices: impl Slices + 'static) {
        debug_assert_ne!(self.large().0, usize::MAX);
        self.local.slices = Some(Box::new(slices));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_engine::types::list::{End, ListLimits, ListValue};

    #[test]
    fn a_reply_is_as_large_as_what_goes_into_it() {
        let list = |elements: usize, bytes: usize| {
            let mut list = ListValue::new();
            for _ in 0..elements {
                list.push(End::Back, ListLimits::of_setting(-2), &vec![b'x'; bytes]);
            }
            list
        };
        let large = Large(2048);
        let (many, long) = (list(200_000, 10), list(40, 100_000));
        assert!(large.is(&many, 2048));
        assert!(!large.is(&many, 100), "a hundred of many");
        assert!(large.is(&long, 40), "few, but of 4 MB");
        assert!(!large.is(&long, 5), "half a megabyte of it");
        assert!(!large.is(&long, 1), "one is a slice");
        assert!(!Large(usize::MAX).is(&many, 200_000), "where the reply is made at once");
    }
}
