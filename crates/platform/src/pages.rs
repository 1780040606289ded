//! Pages from the system, and back to it.
//!
//! # Soundness
//! `map` and `reserve` ask for private mappings at addresses of the system's choice, which are
//! nobody else's. What is told of huge pages changes no contents. The other functions are unsafe:
//! their callers own the pages.

use std::ffi::c_int;
use std::ptr::NonNull;

/// The unit in which memory comes and goes: the page of every platform that is tested.
pub const PAGE_BYTES: usize = 4096;

/// So many bytes of zeros, in whole pages; `None` when the system refuses.
pub fn map(bytes: usize) -> Option<NonNull<u8>> {
    let begin = map_with(bytes, 0)?;
    advise_huge(begin, bytes);
    Some(begin)
}

/// Gives all of a mapping back.
///
/// # Safety
/// It came from `map` or `remap` with this size, and nobody uses it.
pub unsafe fn unmap(begin: NonNull<u8>, bytes: usize) {
    // SAFETY: by contract. It fails only for what is no mapping.
    unsafe { libc::munmap(begin.as_ptr().cast(), bytes) };
}

/// Makes a mapping longer or shorter without a copy, which may move it; `None` when the system
/// refuses: then it is unchanged.
///
/// # Safety
/// It came from `map` or `remap` with the size `old`, and nobody uses it where it was.
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

/// So much address space, aligned to `align` (a power of two); its pages take memory once they are
/// written to, as huge ones where the system has some. It stays mapped for the life of the process.
/// `None` when the system refuses.
pub fn reserve(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    let begin = map_with(bytes.checked_add(align)?, libc::MAP_NORESERVE)?;
    // What lies before the first aligned address is never written to, so it takes no memory.
    let begin = NonNull::new(begin.as_ptr().wrapping_add(begin.as_ptr().align_offset(align)))?;
    advise_huge(begin, bytes);
    Some(begin)
}

/// Gives the memory of these pages back; they read as zeros afterwards. `false` if the system
/// refuses: then they are unchanged.
///
/// # Safety
/// The range is of whole pages of private memory, and nobody uses what is in it.
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

/// Takes memory in small pages only from now on: otherwise the system would fill what was discarded
/// to make huge pages again.
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
