//! Address space from the system, and its pages back to the system.
//!
//! # Soundness
//! `reserve` asks for a private mapping at an address of the system's choice, which is nobody
//! else's. `discard` is unsafe: its caller owns the pages and needs nothing that is in them.

use std::ptr::NonNull;

/// The unit in which memory goes back: the page of every platform that is tested.
pub const PAGE_BYTES: usize = 4096;

/// So much address space, aligned to `align` (a power of two); its pages take memory once they are
/// written to. It stays mapped for the life of the process. `None` when the system refuses.
pub fn reserve(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    let mapped = bytes.checked_add(align)?;
    // SAFETY: see the head of the file.
    let begin = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            mapped,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if begin == libc::MAP_FAILED {
        return None;
    }
    let begin = begin.cast::<u8>();
    // What lies before the first aligned address is never written to, so it takes no memory.
    NonNull::new(begin.wrapping_add(begin.align_offset(align)))
}

/// Gives the memory of these pages back; they read as zeros afterwards. `false` if the system
/// refuses: then they are unchanged.
///
/// # Safety
/// The range is of whole pages from `reserve`, and nobody uses what is in it.
pub unsafe fn discard(begin: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: by contract.
    unsafe { libc::madvise(begin.as_ptr().cast(), bytes, libc::MADV_DONTNEED) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn what_is_discarded_reads_as_zeros() {
        let align = 16 * PAGE_BYTES;
        let begin = reserve(2 * align, align).unwrap();
        assert!(begin.as_ptr().addr().is_multiple_of(align));
        // SAFETY: both pages are within what was just reserved.
        unsafe {
            let second = begin.add(PAGE_BYTES);
            begin.write(1);
            second.write(2);
            assert!(discard(begin, PAGE_BYTES));
            assert_eq!((begin.read(), second.read()), (0, 2));
        }
    }
}
