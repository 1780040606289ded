//! The sizes of pieces: steps of sixteen bytes up to 2 KiB, then sixteen for each doubling, so that
//! a piece is at most a sixteenth larger than requested.

/// Up to this size, the global allocator's sizes are close enough to each other.
pub(super) const GLOBAL_MAX: usize = 128;
pub(super) const STEP_BYTES: usize = 16;
const FINE_MAX: usize = 2048;
/// Above this size, the global allocator uses whole pages.
pub(super) const PIECE_MAX: usize = 32 << 10;

const FINE_CLASSES: usize = (FINE_MAX - GLOBAL_MAX) / STEP_BYTES;
/// Sizes for each doubling.
const STEPS: usize = 16;
/// How many sizes there are.
pub(super) const CLASSES: usize = FINE_CLASSES + STEPS * (PIECE_MAX / FINE_MAX).ilog2() as usize;

/// The smallest class for a size above `GLOBAL_MAX` and at most `PIECE_MAX`.
#[inline]
pub(super) fn of_bytes(bytes: usize) -> usize {
    debug_assert!(bytes > GLOBAL_MAX && bytes <= PIECE_MAX);
    if bytes <= FINE_MAX {
        return (bytes - GLOBAL_MAX - 1) / STEP_BYTES;
    }
    let doubling = (bytes - 1).ilog2();
    let step = (bytes - 1 - (1 << doubling)) >> (doubling - STEPS.ilog2());
    FINE_CLASSES + (doubling - FINE_MAX.ilog2()) as usize * STEPS + step
}

/// The size of a class's pieces.
#[inline]
pub(super) const fn bytes(class: usize) -> usize {
    if class < FINE_CLASSES {
        return GLOBAL_MAX + (class + 1) * STEP_BYTES;
    }
    let (doubling, step) = ((class - FINE_CLASSES) / STEPS, (class - FINE_CLASSES) % STEPS);
    (FINE_MAX << doubling) + (step + 1) * ((FINE_MAX << doubling) / STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_class_that_holds_it() {
        for size in GLOBAL_MAX + 1..=PIECE_MAX {
            let class = of_bytes(size);
            assert!(class < CLASSES && bytes(class) >= size, "{size}");
            assert!(class == 0 || bytes(class - 1) < size, "{size}");
            assert!(bytes(class).is_multiple_of(STEP_BYTES));
            assert!(bytes(class) - size < STEP_BYTES.max(size / STEPS + 1), "{size}");
        }
        assert_eq!(bytes(CLASSES - 1), PIECE_MAX);
    }
}
