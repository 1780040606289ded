//! Asking the processor for memory before it is needed.
//!
//! # Soundness
//! A prefetch reads nothing that the program sees: any address will do.

/// Asks for the cache line at an address, which need not be valid.
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

/// Fetches the lines of some bytes: a few from the beginning, and the last.
pub(crate) fn prefetch_bytes(bytes: &[u8]) {
    const LINE_BYTES: usize = 64;
    const LINES_MAX: usize = 8;
    let Some(last) = bytes.last() else { return };
    prefetch(last);
    bytes.chunks(LINE_BYTES).take(LINES_MAX).for_each(|line| prefetch(line.as_ptr()));
}
