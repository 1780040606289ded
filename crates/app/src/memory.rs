//! The machine's memory, counted and bounded.

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;

/// Bytes that a state has, and may have.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) used: usize,
    pub(crate) max: usize,
    /// Some bytes were not given.
    pub(crate) was_refused: Cell<bool>,
}

/// `lua_Alloc` (Lua 5.1 manual): resizes `block` from `old` to `new` bytes; null beyond the limit.
///
/// # Safety
/// `memory` is the state's [`Memory`], and `block` is null or came from here with size `old`.
pub(crate) unsafe extern "C" fn allocate(
    memory: *mut c_void,
    block: *mut c_void,
    old: usize,
    new: usize,
) -> *mut c_void {
    // SAFETY: As promised by the caller; nobody else uses it during the call.
    let memory = unsafe { &mut *memory.cast::<Memory>() };
    let old = if block.is_null() { 0 } else { old };
    // Shrinking must never fail.
    if new > old && memory.used - old + new > memory.max {
        memory.was_refused.set(true);
        return null_mut();
    }
    // SAFETY: The block came from here with its size; none of size zero is allocated.
    let moved: *mut c_void = unsafe {
        match (layout(old), layout(new)) {
            (None, None) => return null_mut(),
            (Some(was), None) => {
                dealloc(block.cast(), was);
                null_mut()
            }
            (None, Some(wanted)) => alloc(wanted).cast(),
            (Some(was), Some(wanted)) => realloc(block.cast(), was, wanted.size()).cast(),
        }
    };
    if new == 0 || !moved.is_null() {
        memory.used = memory.used - old + new;
    }
    moved
}

/// As strict as any value of Lua needs. `None` for no bytes, and for more than there can be.
fn layout(bytes: usize) -> Option<Layout> {
    const ALIGN: usize = 8;
    (bytes != 0).then(|| Layout::from_size_align(bytes, ALIGN).ok()).flatten()
}
