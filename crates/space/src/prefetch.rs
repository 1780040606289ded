//! Begins to bring memory into the processor's cache.
//!
//! # Soundness
//! A prefetch reads and writes nothing that the program can see, whatever the address: of memory
//! that is not there, it does nothing.

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Begins to fetch the line of an address.
#[inline(always)]
pub fn line<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: it has no effect but on the cache, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Begins to fetch the lines of a slice, as if it had this many items.
#[inline(always)]
pub(crate) fn items<T, const COUNT: usize>(first: *const T) {
    let mut at = 0;
    while at < COUNT * size_of::<T>() {
        line(first.cast::<u8>().wrapping_add(at));
        at += LINE_BYTES;
    }
}
