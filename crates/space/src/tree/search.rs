//! Binary search that has the processor fetch what the next comparisons may look at.
//!
//! Keys with a common beginning have equal hints, so a comparison looks at the tuple, which is seldom
//! in the cache. What the next two comparisons may need is fetched meanwhile.

/// An item of a tree.
pub(crate) trait Item: Clone {
    /// Begins to fetch what a comparison needs beside the item itself, if it needs that where it
    /// needed it of `other`.
    fn fetch_if_like(&self, other: &Self);
}

/// As [`slice::partition_point`].
#[inline]
pub(super) fn partition_point<T: Item>(items: &[T], before: impl Fn(&T) -> bool) -> usize {
    let (mut low, mut high) = (0, items.len());
    while low < high {
        let middle = middle(low, high);
        let item = &items[middle];
        for (low, high) in [(low, middle), (middle + 1, high)] {
            let next = self::middle(low, high);
            for at in [next, self::middle(low, next), self::middle(next + 1, high)] {
                if let Some(ahead) = items.get(at) {
                    ahead.fetch_if_like(item);
                }
            }
        }
        if before(item) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The item that a range's search begins with.
#[inline]
const fn middle(low: usize, high: usize) -> usize {
    low + high.saturating_sub(low) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Item for usize {
        fn fetch_if_like(&self, _: &usize) {}
    }

    #[test]
    fn it_is_the_partition_point() {
        for len in 0..70 {
            let items: Vec<usize> = (0..len).collect();
            for at in 0..=len {
                assert_eq!(partition_point(&items, |item| *item < at), at);
            }
        }
    }
}
