//! Memory that copies of a space keep: what a change leaves to them.
//!
//! A node that several owners share is copied before it changes, so the old one is left to the
//! others. Clones of nodes are counted here, by the thread, and a statement that ends takes the sum
//! over for its space.

use std::cell::Cell;

thread_local! {
    static CLONED_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Counts the clone of a node: somebody else keeps the node's bytes.
#[inline]
pub(crate) fn note_clone(bytes: usize) {
    CLONED_BYTES.set(CLONED_BYTES.get() + bytes);
}

/// Bytes of the nodes that this thread has cloned since the last call.
#[inline]
pub(crate) fn take_cloned() -> usize {
    CLONED_BYTES.take()
}
