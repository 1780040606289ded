//! How much memory an allocator gives for a request.

/// What to ask for when so many bytes are needed: general-purpose allocators have a few sizes for
/// each doubling, so that asking for less than the next of them wastes the rest.
///
/// Sizes as mimalloc has them: every eighth byte up to 64, then four for each doubling.
pub(crate) fn allocation_bytes(needed: usize) -> usize {
    const FINE_MAX: usize = 64;
    if needed <= FINE_MAX {
        return needed.next_multiple_of(8);
    }
    let step = (needed - 1).ilog2().saturating_sub(2);
    needed.next_multiple_of(1 << step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_allocators() {
        let sizes = [(0, 0), (1, 8), (64, 64), (65, 80), (80, 80), (128, 128), (129, 160)];
        let larger = [(320, 320), (321, 384), (512, 512), (513, 640), (1000, 1024), (1025, 1280)];
        for (needed, given) in sizes.into_iter().chain(larger) {
            assert_eq!(allocation_bytes(needed), given, "{needed}");
        }
    }
}
