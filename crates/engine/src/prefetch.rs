//! Asks the processor to fetch memory before it is needed.

pub(crate) use ladon_space::prefetch::line as prefetch;

/// Prefetches the first few lines and the last line of some bytes.
pub(crate) fn prefetch_bytes(bytes: &[u8]) {
    const LINE_BYTES: usize = 64;
    const LINES_MAX: usize = 8;
    let Some(last) = bytes.last() else { return };
    prefetch(last);
    bytes.chunks(LINE_BYTES).take(LINES_MAX).for_each(|line| prefetch(line.as_ptr()));
}
