//! A Lua state's memory, counted and bounded.

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::ffi::c_void;
use std::ptr::null_mut;

/// Bytes that a state has, and may have.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) used: usize,
    pub(crate) max: usize,
}

/// A script's end collects what is no longer used if more than this is. `kept` is what the last
/// collection left: the next one is due when there is something to collect again. What libraries
/// hold for good must not make each script pay for a collection that frees nothing.
pub(crate) fn collect_at(max: usize, kept: usize) -> usize {
    (kept + max / 16).clamp(max / 4 * 3, max - max / 64)
}

/// As strict as any value of Lua needs.
const ALIGN: usize = 16;

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
    let layout = |size| Layout::from_size_align(size, ALIGN);
    // SAFETY: The block was allocated here with this layout; sizes of zero are never allocated.
    let result = unsafe {
        match (old, new) {
            (0, 0) => return null_mut(),
            (old, 0) => match layout(old) {
                Ok(layout) => {
                    dealloc(block.cast(), layout);
                    null_mut()
                }
                Err(_) => return null_mut(),
            },
            (0, new) => match layout(new) {
                Ok(layout) => alloc(layout),
                Err(_) => null_mut(),
            },
            (old, new) => match (layout(old), layout(new)) {
                (Ok(layout), Ok(_)) => realloc(block.cast(), layout, new),
                _ => null_mut(),
            },
        }
    };
    if new == 0 || !result.is_null() {
        memory.used = memory.used - old + new;
    }
    result.cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_for_good_does_not_make_each_script_collect() {
        for (kept, next) in [(0, 384), (300, 384), (400, 432), (500, 504), (600, 504)] {
            assert_eq!(collect_at(512 << 20, kept << 20), next << 20);
        }
    }
}
