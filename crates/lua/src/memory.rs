//! A Lua state's memory, counted and bounded.

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::ffi::c_void;
use std::ptr::{copy_nonoverlapping, null_mut};

/// Bytes that a state has, and may have; and small blocks that it gave back.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Memory {
    pub(crate) used: usize,
    pub(crate) max: usize,
    /// Bytes that were allocated since the host was last asked,
    pub(crate) since_look: usize,
    /// and what is called after many of them.
    on_much: unsafe extern "C" fn(*mut Memory),
    /// Large blocks that there are, by the power of two of what an instruction takes to go through
    /// one.
    large: [u32; usize::BITS as usize],
    /// As [`Memory::largest`].
    largest: usize,
    spare: [Spare; SPARE_CLASSES],
}

/// Blocks of one size class, each of which begins with the address of the next one.
#[derive(Clone, Copy, Debug)]
struct Spare {
    first: *mut c_void,
    count: u32,
}

/// Blocks of up to this many bytes are kept for the next of their size: each script makes and
/// leaves a few tables and strings.
const SPARE_BYTES_MAX: usize = 256;
const SPARE_CLASSES: usize = SPARE_BYTES_MAX / ALIGN;

/// Blocks kept of one class: together at most 140 KiB.
const SPARE_COUNT_MAX: u32 = 64;

impl Memory {
    pub(crate) fn new(max: usize, on_much: unsafe extern "C" fn(*mut Memory)) -> Memory {
        let none = Spare { first: null_mut(), count: 0 };
        let spare = [none; SPARE_CLASSES];
        let large = [0; usize::BITS as usize];
        Memory { used: 0, max, since_look: 0, on_much, large, largest: 0, spare }
    }

    /// The bytes of the longest string there is, to its power of two, or a part of those of the
    /// largest table; 0 if none is large.
    pub(crate) fn largest(&self) -> usize {
        self.largest
    }

    /// A block has another size than before; 0 for none.
    #[cold]
    fn note_large(&mut self, old: usize, new: usize) {
        if old > LARGE_BYTES {
            self.large[weight(old).ilog2() as usize] -= 1;
        }
        if new > LARGE_BYTES {
            self.large[weight(new).ilog2() as usize] += 1;
        }
        let power = self.large.iter().rposition(|&count| count != 0);
        self.largest = power.map_or(0, |power| 1 << power);
    }

    /// A block for so many bytes; null if there is none.
    ///
    /// # Safety
    /// `bytes` is not 0.
    #[inline]
    unsafe fn take(&mut self, bytes: usize) -> *mut c_void {
        let Some(spare) = self.spare.get_mut((bytes - 1) / ALIGN) else {
            return match Layout::from_size_align(bytes, ALIGN) {
                // SAFETY: The size is not 0.
                Ok(layout) => unsafe { alloc(layout).cast() },
                Err(_) => null_mut(),
            };
        };
        let block = spare.first;
        if block.is_null() {
            // SAFETY: The size is not 0.
            return unsafe { alloc(class_layout(bytes)).cast() };
        }
        spare.count -= 1;
        // SAFETY: `give` has written the address there, and nobody has the block.
        spare.first = unsafe { block.cast::<*mut c_void>().read() };
        block
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// It came from `take` with this size, and nobody has it any more.
    #[inline]
    unsafe fn give(&mut self, block: *mut c_void, bytes: usize) {
        // SAFETY: As promised; each block has room for an address, and was allocated with the
        // layout of its class.
        unsafe {
            match self.spare.get_mut((bytes - 1) / ALIGN) {
                Some(spare) if spare.count < SPARE_COUNT_MAX => {
                    block.cast::<*mut c_void>().write(spare.first);
                    spare.first = block;
                    spare.count += 1;
                }
                Some(_) => dealloc(block.cast(), class_layout(bytes)),
                None => {
                    if let Ok(layout) = Layout::from_size_align(bytes, ALIGN) {
                        dealloc(block.cast(), layout);
                    }
                }
            }
        }
    }
}

/// What an instruction takes to go through a large block, as bytes of a string. The parts of tables
/// have sizes that strings seldom have.
fn weight(bytes: usize) -> usize {
    /// A table's bytes are gone through this many times as fast as a string's.
    const TABLE_SHARE: usize = 16;
    /// Bytes of a place in a table of keys, of which there is a power of two, and of an element of
    /// an array, of which there is one more.
    const PLACE: usize = 24;
    const ELEMENT: usize = 8;
    let is_table = bytes.is_multiple_of(PLACE) && (bytes / PLACE).is_power_of_two()
        || bytes.is_power_of_two()
        || (bytes - ELEMENT).is_power_of_two();
    if is_table { bytes / TABLE_SHARE } else { bytes }
}

/// The layout of all blocks of a small size's class.
fn class_layout(bytes: usize) -> Layout {
    let size = bytes.next_multiple_of(ALIGN);
    Layout::from_size_align(size, ALIGN).unwrap_or(Layout::new::<u128>())
}

impl Drop for Memory {
    fn drop(&mut self) {
        for (class, spare) in self.spare.iter_mut().enumerate() {
            let layout = class_layout((class + 1) * ALIGN);
            while !spare.first.is_null() {
                let block = spare.first;
                // SAFETY: As in `take`; all blocks of a class have its layout.
                unsafe {
                    spare.first = block.cast::<*mut c_void>().read();
                    dealloc(block.cast(), layout);
                }
            }
        }
    }
}

/// A script's end collects what is no longer used if more than this is. `kept` is what the last
/// collection left: the next one is due when there is something to collect again. What libraries
/// hold for good must not make each script pay for a collection that frees nothing.
pub(crate) fn collect_at(max: usize, kept: usize) -> usize {
    (kept + max / 16).clamp(max / 4 * 3, max - max / 64)
}

/// After so many bytes, and after a block of so many, the host is asked soon.
const MUCH_BYTES: usize = 1 << 20;
const LARGE_BYTES: usize = 16 << 10;

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
    // As promised by the caller; nobody else uses it during the call.
    let place = memory.cast::<Memory>();
    // SAFETY: See above.
    let memory = unsafe { &mut *place };
    let old = if block.is_null() { 0 } else { old };
    // Shrinking must never fail.
    if new > old && memory.used - old + new > memory.max {
        return null_mut();
    }
    // SAFETY: The block came from here with its size; sizes of zero are never allocated.
    let result = unsafe {
        match (old, new) {
            (0, 0) => return null_mut(),
            (old, 0) => {
                memory.give(block, old);
                null_mut()
            }
            (0, new) => memory.take(new),
            (old, new) if old > SPARE_BYTES_MAX && new > SPARE_BYTES_MAX => {
                match Layout::from_size_align(old, ALIGN) {
                    Ok(layout) if new <= isize::MAX as usize - ALIGN => {
                        realloc(block.cast(), layout, new).cast()
                    }
                    _ => null_mut(),
                }
            }
            (old, new) if (old - 1) / ALIGN == (new - 1) / ALIGN => block,
            (old, new) => {
                let moved = memory.take(new);
                if !moved.is_null() {
                    copy_nonoverlapping(block.cast::<u8>(), moved.cast::<u8>(), old.min(new));
                    memory.give(block, old);
                }
                moved
            }
        }
    };
    if new == 0 || !result.is_null() {
        memory.used = memory.used - old + new;
    }
    if (old > LARGE_BYTES || new > LARGE_BYTES) && (new == 0 || !result.is_null()) {
        memory.note_large(old, new);
    }
    if new > old {
        memory.since_look += new - old;
        if memory.since_look > MUCH_BYTES || new > LARGE_BYTES {
            memory.since_look = 0;
            let on_much = memory.on_much;
            // SAFETY: As promised by the caller.
            unsafe { on_much(place) }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn ignore(_: *mut Memory) {}

    #[test]
    fn the_largest_block_is_known_until_it_is_freed() {
        let mut memory = Memory::new(usize::MAX, ignore);
        let place = (&raw mut memory).cast::<c_void>();
        // SAFETY: Each block is given back with its size.
        unsafe {
            let resize = |block, old, new| allocate(place, block, old, new);
            let small = resize(null_mut(), 0, 1000);
            assert_eq!((*place.cast::<Memory>()).largest(), 0);
            let string = resize(null_mut(), 0, 5_000_000);
            let array = resize(null_mut(), 0, (8 << 20) + 8);
            assert_eq!((*place.cast::<Memory>()).largest(), 4 << 20);
            let string = resize(string, 5_000_000, 100_000);
            assert_eq!((*place.cast::<Memory>()).largest(), 512 << 10);
            resize(array, (8 << 20) + 8, 0);
            assert_eq!((*place.cast::<Memory>()).largest(), 64 << 10);
            resize(string, 100_000, 0);
            assert_eq!((*place.cast::<Memory>()).largest(), 0);
            resize(small, 1000, 0);
        }
    }

    #[test]
    fn what_is_held_for_good_does_not_make_each_script_collect() {
        for (kept, next) in [(0, 384), (300, 384), (400, 432), (500, 504), (600, 504)] {
            assert_eq!(collect_at(512 << 20, kept << 20), next << 20);
        }
    }
}
