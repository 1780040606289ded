//! Replies about large values, made in slices between which other connections are served.
//!
//! ```text
//! HGETALL h     freezes the value under its lock -> header -> commits, releases the lock
//!               -> the worker asks for a slice whenever the client has taken the last ones
//!               -> the connection's next request runs once the last slice is made
//! ```
//!
//! A long string is not copied into its reply: a slice then refers to a part of its frozen memory,
//! a [`Block`], which is sent from there.
//!
//! The reply shows the value when the command ran, whatever happens to the value afterwards, and
//! depends on the LSN that the command found. Inside `EXEC`, and where the reply is not wanted,
//! replies are made at once.

use crate::kernel::aside::Computed;
use crate::kernel::command_id::CommandId;
use crate::kernel::ctx::{Ctx, Later, Local};
use crate::kernel::node::Node;
use crate::kernel::session::Session;
use ladon_engine::{Collection, Garbage};
use ladon_resp::{Proto, Reply};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Sizes from which values are large, and the size of slices; for the whole node.
#[derive(Debug)]
pub struct Slicing {
    /// Elements from which on a reply is made in slices.
    pub large_elements: AtomicUsize,
    /// Maximum number of elements in a slice.
    pub slice_elements: AtomicUsize,
    /// Elements from which on a result is computed aside (`aside.rs`).
    pub aside_elements: AtomicUsize,
}

/// A tenth to a fifth of a millisecond of work.
const SLICE_ELEMENTS: usize = 1024;
/// About a millisecond of unions and intersections.
const ASIDE_ELEMENTS: usize = 8192;
/// A slice ends with the element that exceeds this.
const SLICE_BYTES: usize = 32 << 10;
/// Elements with more bytes than this together are a large reply, however few they are.
const LARGE_BYTES: usize = 1 << 20;

/// Bytes of a string that are about as much work as an element of a collection.
const BYTES_LIKE_AN_ELEMENT: usize = 512;

/// Bytes of a block per element that a slice may have: a quarter of a megabyte, which the kernel
/// copies in some ten microseconds.
const BLOCK_BYTES_LIKE_AN_ELEMENT: usize = 256;

/// A string shorter than this fraction of a long one is copied, because sending it separately takes
/// longer.
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

/// The size from which a value is frozen and answered in slices.
#[derive(Clone, Copy)]
pub(crate) struct Large(usize);

impl Large {
    /// No value is large.
    pub(crate) const NEVER: Large = Large(usize::MAX);

    /// Whether values with this many elements and bytes together are large.
    pub(crate) fn is_total(self, elements: usize, bytes: usize) -> bool {
        elements >= self.0 || self.0 != usize::MAX && bytes >= LARGE_BYTES
    }

    /// Whether strings of this many bytes together are large.
    pub(crate) fn is_total_string(self, bytes: usize) -> bool {
        self.is_long(bytes) || self.is_total(0, bytes)
    }

    /// Whether a string is long of which this many bytes are read or sent.
    pub(crate) fn is_long(self, bytes: usize) -> bool {
        bytes >= self.bytes()
    }

    /// Whether to send a string from its own memory, in a reply that already has `before` bytes of
    /// others.
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

    /// Whether a value is large of which this many elements go into the reply.
    pub(crate) fn is(self, value: &impl Collection, elements: usize) -> bool {
        // A small part of a large value is a short reply: freezing the value would cost more.
        let bytes = || elements as u128 * value.bytes() as u128 / value.len().max(1) as u128;
        // One element is one slice in any case.
        elements >= self.0 || self.0 != usize::MAX && elements > 1 && bytes() >= LARGE_BYTES as u128
    }
}

impl From<usize> for Large {
    fn from(elements: usize) -> Large {
        Large(elements)
    }
}

/// How much more may go into a slice.
pub struct Room {
    elements: usize,
    end: usize,
    block_bytes: usize,
    block: Option<Block>,
}

/// Bytes of a reply in separate memory, which does not change any more.
#[derive(Debug)]
pub struct Block {
    /// The memory that they are a part of.
    pub whole: Arc<Vec<u8>>,
    /// Their range in it.
    pub range: Range<usize>,
}

/// The result of asking for a slice.
#[derive(Debug)]
pub struct Slice {
    /// Sent after what was written.
    pub block: Option<Block>,
    /// There may be more slices.
    pub more: bool,
}

impl Room {
    /// Counts one more element; returns whether there is room for it.
    pub fn take(&mut self, reply: &Reply<'_>) -> bool {
        if self.elements == 0 || reply.position() >= self.end {
            return false;
        }
        self.elements -= 1;
        true
    }

    /// Writes as much of `bytes` as there is room for; returns how much.
    pub fn copy(&mut self, reply: &mut Reply<'_>, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.end.saturating_sub(reply.position()));
        reply.raw(&bytes[..count]);
        count
    }

    /// Room for one slice after the present content of `reply`, in separate memory.
    pub(crate) fn aside(elements: usize) -> Room {
        Room::new(elements, 0)
    }

    fn new(elements: usize, position: usize) -> Room {
        Room {
            elements,
            end: position + SLICE_BYTES,
            block_bytes: elements.saturating_mul(BLOCK_BYTES_LIKE_AN_ELEMENT).max(1),
            block: None,
        }
    }

    /// Whether nothing more may be written.
    pub(crate) fn is_ended(&self) -> bool {
        self.elements == 0
    }

    /// Takes the block that ends the slice.
    pub(crate) fn take_block(&mut self) -> Option<Block> {
        self.block.take()
    }

    /// Ends the slice with a block in separate memory: as much of `range` as a block may have,
    /// which is removed from `range`.
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
    /// Writes more elements, as far as there is room. Returns whether there may be more after that.
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool;

    /// Called when the client is slow, because a frozen value makes other commands copy what they
    /// change. Copies up to `elements` more of what the rest needs, as replies of this protocol
    /// version.
    fn keep(&mut self, proto: Proto, elements: usize) -> Keeping {
        let _ = (proto, elements);
        Keeping::Output
    }

    /// Bytes that only this reply holds.
    fn memory(&self) -> usize {
        0
    }
}

/// How the rest of a reply waits for a slow client.
pub enum Keeping {
    /// As its output: make the rest, whether the client takes it or not.
    Output,
    /// `keep` has to be called again; holds what is no longer needed.
    More(Option<Garbage>),
    /// In its own memory; holds what is no longer needed.
    Own(Option<Garbage>),
}

/// Writes something at once.
type Header = Box<dyn FnOnce(&mut Reply<'_>) + Send>;

/// What precedes the elements: the header, or all of a short reply.
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

    fn keep(&mut self, proto: Proto, elements: usize) -> Keeping {
        self.rest.keep(proto, elements)
    }

    fn memory(&self) -> usize {
        self.rest.memory()
    }
}

/// No elements.
impl Slices for () {
    fn write(&mut self, _: &mut Reply<'_>, _: &mut Room) -> bool {
        false
    }
}

/// A reply that continues after its command: its elements, or all of it.
pub struct LongReply {
    /// None while they are being computed.
    slices: Option<Box<dyn Slices>>,
    /// The error that it consists of, if any.
    error: Option<Vec<u8>>,
    proto: Proto,
    command: CommandId,
    /// For the slow log.
    args: Vec<Vec<u8>>,
    /// Time spent on it, as the statistics will have it.
    nanoseconds: u64,
    /// When its command ran, Unix milliseconds.
    began_ms: u64,
    /// It has copied what it needs, and may take as long as its client does.
    is_kept: bool,
}

/// How long a client may take before its reply is completed regardless.
const PATIENCE_MS: u64 = 1000;

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
        let is_kept = false;
        LongReply { slices, error: None, proto, command, args, nanoseconds, began_ms, is_kept }
    }

    /// Whether it can continue because nothing remains to be computed.
    pub fn is_computed(&self) -> bool {
        self.slices.is_some()
    }

    /// Takes its job's result, at time `now_ms`. Returns it unchanged if it is not a reply.
    pub fn take_in(&mut self, computed: Computed, now_ms: u64) -> Result<(), Computed> {
        let (slices, nanoseconds) = computed.into_reply()?;
        self.slices = Some(slices);
        self.nanoseconds += nanoseconds;
        self.began_ms = now_ms;
        Ok(())
    }

    /// Whether its client has used up the time it may take.
    pub fn is_overdue(&self, now_ms: u64) -> bool {
        !self.is_kept && now_ms.saturating_sub(self.began_ms) >= PATIENCE_MS
    }

    /// Takes a step towards releasing frozen values, for an overdue reply. Returns whether to write
    /// the rest instead, and what is no longer needed.
    pub fn keep(&mut self, node: &Node) -> (bool, Option<Garbage>) {
        let Some(slices) = &mut self.slices else { return (false, None) };
        let began_ns = node.clock.monotonic_ns();
        let keeping = slices.keep(self.proto, node.slicing.slice_elements.load(Relaxed));
        self.nanoseconds += node.clock.monotonic_ns().saturating_sub(began_ns);
        match keeping {
            Keeping::Output => (true, None),
            Keeping::More(unused) => (false, unused),
            Keeping::Own(unused) => {
                self.is_kept = true;
                (false, unused)
            }
        }
    }

    /// Bytes that only this reply holds.
    pub fn memory(&self) -> usize {
        self.slices.as_ref().map_or(0, |slices| slices.memory())
    }

    /// Appends the next slice to `out`, up to its block.
    pub fn write(&mut self, node: &Node, out: &mut Vec<u8>) -> Slice {
        let Some(slices) = &mut self.slices else { return Slice { block: None, more: true } };
        let start = out.len();
        let began_ns = node.clock.monotonic_ns();
        let elements = node.slicing.slice_elements.load(Relaxed);
        let mut room = Room::new(elements, out.len());
        let more = slices.write(&mut Reply::new(out, self.proto), &mut room);
        if out.get(start) == Some(&b'-') && !more {
            self.error = Some(out[start..].to_vec());
        }
        self.nanoseconds += node.clock.monotonic_ns().saturating_sub(began_ns);
        Slice { block: room.block, more }
    }

    /// Counts the command once the reply is complete or no longer wanted.
    pub fn finish(&self, node: &Node, local: &mut Local, session: &Session) {
        let args: Vec<&[u8]> = self.args.iter().map(Vec::as_slice).collect();
        local.finish(node, session, self.command, &args, self.nanoseconds);
        if let Some(error) = &self.error {
            local.stats.command(self.command).failed.add(1);
            let line = error.split(|&byte| byte == b'\r').next().unwrap_or_default();
            local.stats.count_error(&line[1..]);
        }
    }
}

impl Later<'_> {
    /// The size from which values are large; never if the reply must be made at once.
    pub(crate) fn large(&self) -> Large {
        let later = self.local.replies_later && !self.must_answer;
        Large(if later { self.node.slicing.large_elements.load(Relaxed) } else { usize::MAX })
    }
}

impl Ctx<'_> {
    /// The size from which values are large here; never if the reply must be made at once.
    pub(crate) fn large(&self) -> Large {
        let must_answer = self.in_attempt;
        Later { node: self.node, local: self.local, must_answer }.large()
    }

    /// Continues the reply with `slices`; only after `large` has allowed it for the value.
    pub(crate) fn reply_in_slices(&mut self, slices: impl Slices + 'static) {
        debug_assert_ne!(self.large().0, usize::MAX);
        self.deferred().slices = Some(Box::new(slices));
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
