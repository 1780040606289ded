//! A string in the making, in a userdata of the Lua state.
//!
//! An error of Lua that is raised meanwhile frees nothing, and needs not: the collector does. What
//! is longer than the state may have raises "not enough memory" like any other value.
//!
//! The memory is kept from call to call in an upvalue of the function. [`Buffer::take`] takes it
//! out of there, so that a finaliser which the collector runs meanwhile, and which calls the same
//! function, gets memory of its own.

use std::ffi::c_int;
use std::{ptr, slice};

use super::stack::Stack;

/// Memory of a new buffer: most strings fit, so most buffers never grow.
const BYTES_MIN: usize = 1024;

/// A function keeps no more than this from one call to the next.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// Bytes that have been put together so far.
///
/// Invariant: `slot` has a userdata of `capacity` bytes that begins at `bytes`, of which the first
/// `length` are written.
#[derive(Clone, Copy)]
pub(crate) struct Buffer<'call> {
    stack: Stack<'call>,
    slot: c_int,
    bytes: *mut u8,
    length: usize,
    capacity: usize,
}

impl<'call> Buffer<'call> {
    /// Takes the buffer that the running function keeps in an upvalue, or makes one, and pushes it.
    pub(crate) fn take(stack: Stack<'call>, upvalue: c_int) -> Buffer<'call> {
        stack.push_copy(upvalue);
        let mut bytes = stack.userdata(-1);
        if bytes.is_null() {
            stack.pop(1);
            bytes = stack.new_userdata(BYTES_MIN);
        } else {
            stack.push_nil();
            stack.replace(upvalue);
        }
        let capacity = stack.length(-1);
        Buffer { stack, slot: stack.height(), bytes: bytes.cast(), length: 0, capacity }
    }

    /// Makes a buffer, and pushes it.
    pub(crate) fn new(stack: Stack<'call>) -> Buffer<'call> {
        let bytes = stack.new_userdata(BYTES_MIN);
        let slot = stack.height();
        Buffer { stack, slot, bytes: bytes.cast(), length: 0, capacity: BYTES_MIN }
    }

    /// Gives the memory back to the upvalue. The value stays where it is on the stack.
    pub(crate) fn keep(self, upvalue: c_int) {
        if self.capacity <= KEPT_BYTES_MAX {
            self.stack.push_copy(self.slot);
            self.stack.replace(upvalue);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the first `length` bytes are written, and the userdata is on the stack.
        unsafe { slice::from_raw_parts(self.bytes, self.length) }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        // SAFETY: there is room, and no one else writes to the userdata. `bytes` may be those of a
        // Lua string, never of this buffer, which is borrowed.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.bytes.add(self.length), bytes.len())
        };
        self.length += bytes.len();
    }

    /// Adds the first `count` bytes of the buffer once more.
    pub(crate) fn add_own(&mut self, count: usize) {
        debug_assert!(count <= self.length);
        self.reserve(count);
        // SAFETY: there is room, and the two parts do not overlap.
        unsafe { ptr::copy_nonoverlapping(self.bytes, self.bytes.add(self.length), count) };
        self.length += count;
    }

    /// Pushes the bytes as a string.
    pub(crate) fn push(&self) {
        self.stack.push_bytes(self.bytes());
    }

    pub(crate) fn add_byte(&mut self, byte: u8) {
        self.add(&[byte]);
    }

    pub(crate) fn add_repeated(&mut self, byte: u8, count: usize) {
        self.reserve(count);
        // SAFETY: there is room.
        unsafe { ptr::write_bytes(self.bytes.add(self.length), byte, count) };
        self.length += count;
    }

    /// Makes room for `more` bytes.
    pub(crate) fn reserve(&mut self, more: usize) {
        if more > self.capacity - self.length {
            self.grow(more);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        // No string of Lua is longer than 2^31 bytes, so the sum does not overflow.
        let capacity = (self.length + more).max(self.capacity * 2);
        let bytes: *mut u8 = self.stack.new_userdata(capacity).cast();
        // SAFETY: the new userdata is another one, and longer.
        unsafe { ptr::copy_nonoverlapping(self.bytes, bytes, self.length) };
        self.stack.replace(self.slot);
        (self.bytes, self.capacity) = (bytes, capacity);
    }
}
