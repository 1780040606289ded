//! Mapping and returning pages.
//!
//! # Soundness
//! `map` and `reserve` request private mappings at addresses of the system's choice, which nothing
//! else uses. Advice about huge pages and `populate` change no contents. The other functions are
//! unsafe: their callers own the pages.

use std::ffi::c_int;
use std::ptr::NonNull;

/// The unit in which memory comes and goes: the page of every platform that is tested.
pub const PAGE_BYTES: usize = 4096;

/// Maps zeroed memory in whole pages; `None` if the system refuses.
pub fn map(bytes: usize) -> Option<NonNull<u8>> {
    let begin = map_with(bytes, 0)?;
    advise_huge(begin, bytes);
    Some(begin)
}

/// Returns a whole mapping.
///
/// # Safety
/// It came from `map` or `remap` with this size, and is not used.
pub unsafe fn unmap(begin: NonNull<u8>, bytes: usize) {
    // SAFETY: by contract. It fails only for what is no mapping.
    unsafe { libc::munmap(begin.as_ptr().cast(), bytes) };
}

/// Makes a mapping longer or shorter without a copy, which may move it; `None` if the system
/// refuses, in which case it is unchanged.
///
/// # Safety
/// It came from `map` or `remap` with the size `old`, and is not used at its old address.
pub unsafe fn remap(begin: NonNull<u8>, old: usize, new: usize) -> Option<NonNull<u8>> {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: by contract.
        let moved = unsafe { libc::mremap(begin.as_ptr().cast(), old, new, libc::MREMAP_MAYMOVE) };
        if moved == libc::MAP_FAILED { None } else { NonNull::new(moved.cast()) }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let moved = map(new)?;
        // SAFETY: both are as long as what is copied, and by contract the old one is the caller's.
        unsafe {
            moved.copy_from_nonoverlapping(begin, old.min(new));
            unmap(begin, old);
        }
        Some(moved)
    }
}

/// Reserves address space, aligned to `align` (a power of two). Its pages take memory once they are
/// written to, as huge pages if the system has some. The reservation lasts for the life of the
/// process. `None` if the system refuses.
pub fn reserve(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    let begin = map_with(bytes.checked_add(align)?, libc::MAP_NORESERVE)?;
    // Memory before the first aligned address is never written to, so it takes no memory.
    let begin = NonNull::new(begin.as_ptr().wrapping_add(begin.as_ptr().align_offset(align)))?;
    advise_huge(begin, bytes);
    Some(begin)
}

/// Returns the memory of these pages, which read as zeros afterwards. `false` if the system
/// refuses; then they are unchanged.
///
/// # Safety
/// The range consists of whole pages of private memory whose content is not used.
pub unsafe fn discard(begin: NonNull<u8>, bytes: usize) -> bool {
    // The system rounds a length up to its pages, which may be larger than the caller's; and only
    // Linux promises zeros.
    // SAFETY: asks for a number.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0);
    let is_whole = |number: usize| number.checked_rem(page) == Some(0);
    if !cfg!(target_os = "linux") || !is_whole(begin.addr().get()) || !is_whole(bytes) {
        return false;
    }
    // SAFETY: by contract.
    unsafe { libc::madvise(begin.as_ptr().cast(), bytes, libc::MADV_DONTNEED) == 0 }
}

/// Gives these pages memory, as huge pages where they are wanted, so that their first use does not
/// wait for that. Contents stay. `false` if the system refuses, or cannot do this (Linux can, since
/// 5.14).
pub fn populate(begin: NonNull<u8>, bytes: usize) -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: see the head of the file.
    return unsafe { libc::madvise(begin.as_ptr().cast(), bytes, libc::MADV_POPULATE_WRITE) == 0 };
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (begin, bytes);
        false
    }
}

/// Uses only small pages from now on: otherwise the system would fill the discarded holes to
/// restore huge pages.
pub fn forbid_huge(begin: NonNull<u8>, bytes: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: see the head of the file. If it is refused, more memory is used.
    unsafe {
        libc::madvise(begin.as_ptr().cast(), bytes, libc::MADV_NOHUGEPAGE)
    };
    #[cfg(not(target_os = "linux"))]
    let _ = (begin, bytes);
}

fn advise_huge(begin: NonNull<u8>, bytes: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: see the head of the file. If it is refused, pages are small.
    unsafe {
        libc::madvise(begin.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE)
    };
    #[cfg(not(target_os = "linux"))]
    let _ = (begin, bytes);
}

fn map_with(bytes: usize, flags: c_int) -> Option<NonNull<u8>> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANON;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: see the head of the file.
    let begin = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if begin == libc::MAP_FAILED { None } else { NonNull::new(begin.cast()) }
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
            populate(begin, align);
            assert_eq!((begin.read(), second.read()), (1, 2), "contents stay");
            forbid_huge(begin, align);
            assert!(discard(begin, PAGE_BYTES));
            assert_eq!((begin.read(), second.read()), (0, 2));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn what_is_mapped_elsewhere_keeps_its_bytes() {
        let begin = map(3 * PAGE_BYTES).unwrap();
        // SAFETY: within the mapping of its time, which is unmapped once.
        unsafe {
            begin.add(3 * PAGE_BYTES - 1).write(7);
            let longer = remap(begin, 3 * PAGE_BYTES, 900 * PAGE_BYTES).unwrap();
            assert_eq!(longer.add(3 * PAGE_BYTES - 1).read(), 7);
            assert_eq!(longer.add(900 * PAGE_BYTES - 1).read(), 0);
            let shorter = remap(longer, 900 * PAGE_BYTES, PAGE_BYTES).unwrap();
            unmap(shorter, PAGE_BYTES);
        }
    }
}
