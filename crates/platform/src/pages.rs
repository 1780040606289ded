//! Mapping and returning pages.
//!
//! Most of the time that fresh memory takes is the system's, which clears it at its first use. What
//! somebody waits for can be given memory that another thread has [prepared](Prepared).
//!
//! # Soundness
//! A prepared mapping is nobody's until `map` gives it to its caller, whole: what is beyond the
//! caller's size has been unmapped then. `map` and `reserve` request private mappings at addresses of
//! the system's choice, which nothing else uses. Advice about huge pages and `populate` change no
//! contents. The other functions are unsafe: their callers own the pages.

use std::cell::Cell;
use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// The unit in which memory comes and goes: the page of every platform that is tested.
pub const PAGE_BYTES: usize = 4096;

/// Maps zeroed memory in whole pages; `None` if the system refuses.
pub fn map(bytes: usize) -> Option<NonNull<u8>> {
    if let Some(begin) = take_prepared(bytes) {
        return Some(begin);
    }
    let begin = map_with(bytes, 0)?;
    advise_huge(begin, bytes);
    Some(begin)
}

/// Prepared mappings that a thread can have at once.
pub const PREPARED_MAX: usize = 8;

/// A mapping whose pages have memory, for somebody who shall not wait for that.
#[derive(Debug)]
pub struct Prepared {
    begin: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its mapping.
unsafe impl Send for Prepared {}

impl Prepared {
    /// Maps memory for an allocation of about this many bytes, which takes as long as clearing it.
    /// `None` if the system refuses.
    pub fn new(bytes: usize) -> Option<Prepared> {
        // Allocators round up, by a fourth at most; only what is surely needed gets memory.
        const SLACK_BYTES: usize = 1 << 20;
        let own = bytes.next_multiple_of(PAGE_BYTES);
        let whole = (own + own / 4).checked_add(SLACK_BYTES)?.next_multiple_of(PAGE_BYTES);
        let begin = map_with(whole, 0)?;
        let prepared = Prepared { begin, bytes: whole };
        advise_huge(begin, whole);
        populate(begin, own + PAGE_BYTES).then_some(prepared)
    }

    /// Its address and length; the caller owns the mapping now.
    fn into_parts(self) -> (NonNull<u8>, usize) {
        let this = ManuallyDrop::new(self);
        (this.begin, this.bytes)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: mapped with this size, and nobody else's.
        unsafe { unmap(self.begin, self.bytes) }
    }
}

/// Address and length of a mapping that is lent.
type Lent = Option<(NonNull<u8>, usize)>;

thread_local! {
    /// Without a destructor: the allocator reads it, also while a thread ends.
    static PREPARED: Cell<[Lent; PREPARED_MAX]> =
        const { Cell::new([None; PREPARED_MAX]) };
}

/// This thread's next long mappings are these, where they fit, until [`take_back`].
pub fn lend(prepared: Vec<Prepared>) {
    debug_assert!(PREPARED.get().iter().all(Option::is_none), "the last ones were not taken back");
    let mut lent = [None; PREPARED_MAX];
    for (slot, prepared) in lent.iter_mut().zip(prepared) {
        *slot = Some(prepared.into_parts());
    }
    PREPARED.set(lent);
}

/// What was lent to this thread and not used.
pub fn take_back() -> Vec<Prepared> {
    let lent = PREPARED.replace([None; PREPARED_MAX]).into_iter().flatten();
    lent.map(|(begin, bytes)| Prepared { begin, bytes }).collect()
}

/// A prepared mapping of this thread's in this size, if there is one that is not much longer.
fn take_prepared(bytes: usize) -> Option<NonNull<u8>> {
    let mut lent = PREPARED.get();
    let fits =
        |slot: &&mut Lent| slot.is_some_and(|(_, whole)| bytes <= whole && bytes >= whole / 2);
    let slots = lent.iter_mut().filter(fits);
    let shortest = slots.min_by_key(|slot| slot.map(|(_, whole)| whole))?;
    let (begin, whole) = shortest.take()?;
    PREPARED.set(lent);
    if whole > bytes {
        // SAFETY: whole pages at the end of a mapping that was lent, and so is nobody's.
        unsafe { unmap(begin.add(bytes), whole - bytes) };
    }
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
    fn the_next_mappings_are_what_is_lent() {
        // Long enough that what allocators round up by is more than the fixed slack.
        let bytes = 4096 * PAGE_BYTES;
        let prepared: Vec<Prepared> = (0..2).filter_map(|_| Prepared::new(bytes)).collect();
        let [first, second] = [0, 1].map(|at: usize| prepared[at].begin);
        lend(prepared);
        let short = map(PAGE_BYTES).unwrap();
        assert!(short != first && short != second, "it would waste most of a prepared one");
        let longer = map(bytes + bytes / 4).unwrap();
        assert_eq!(longer, first);
        let unused = take_back();
        assert_eq!(unused.iter().map(|unused| unused.begin).collect::<Vec<_>>(), [second]);
        let other = map(bytes).unwrap();
        assert_ne!(other, second, "it was taken back");
        // SAFETY: each within its mapping, and unmapped once.
        unsafe {
            assert_eq!((longer.read(), longer.add(bytes + bytes / 4 - 1).read()), (0, 0));
            unmap(short, PAGE_BYTES);
            unmap(longer, bytes + bytes / 4);
            unmap(other, bytes);
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
