//! The machine's memory, counted and bounded.

use std::ffi::c_void;
use std::ptr::null_mut;

/// Bytes that a state has, and may have.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) used: usize,
    pub(crate) max: usize,
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
        return null_mut();
    }
    // SAFETY: The block came from here.
    let moved = unsafe {
        if new == 0 {
            libc::free(block);
            null_mut()
        } else {
            libc::realloc(block, new)
        }
    };
    if new == 0 || !moved.is_null() {
        memory.used = memory.used - old + new;
    }
    moved
}
