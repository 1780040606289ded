//! A reply's elements in slices: what gives them, and how much a slice may have.

use ladon_engine::Garbage;
use ladon_record::Lsn;
use ladon_resp::{Proto, Reply};
use std::ops::Range;
use std::sync::Arc;

/// A slice ends with the element that exceeds this.
const SLICE_BYTES: usize = 32 << 10;

/// Bytes of a block per element that a slice may have: a quarter of a megabyte, which the kernel
/// copies in some ten microseconds.
const BLOCK_BYTES_LIKE_AN_ELEMENT: usize = 256;

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

    /// Room for one slice in a reply that has `position` bytes.
    pub fn new(elements: usize, position: usize) -> Room {
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

    /// Whether there is something to write. Those who make it wake the thread once there is.
    fn is_ready(&self) -> bool {
        true
    }

    /// Whether it goes on for as long as its client is there.
    fn is_endless(&self) -> bool {
        false
    }

    /// The LSN that what was written depends on, beside that of the command.
    fn depends(&self) -> Lsn {
        Lsn::ZERO
    }

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
pub struct Headed<S> {
    header: Option<Header>,
    rest: S,
}

impl<S: Slices> Headed<S> {
    /// A reply of `header`, then `rest`.
    pub fn new(header: impl FnOnce(&mut Reply<'_>) + Send + 'static, rest: S) -> Headed<S> {
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
