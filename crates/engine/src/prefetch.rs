//! Asks the processor to fetch memory before it is needed.
//!
//! # Soundness
//! A prefetch has no visible effect, so any address is allowed.

/// Prefetches the cache line at an address, which need not be valid.
#[inline]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch has no effect but on the cache, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Prefetches the first few lines and the last line of some bytes.
pub(crate) fn prefetch_bytes(bytes: &[u8]) {
    const LINE_BYTES: usize = 64;
    const LINES_MAX: usize = 8;
    let Some(last) = bytes.last() else { return };
    prefetch(last);
    bytes.chunks(LINE_BYTES).take(LINES_MAX).for_each(|line| prefetch(line.as_ptr()));
}
