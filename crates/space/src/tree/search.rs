//! Binary search that has the processor fetch what the next comparisons may look at.
//!
//! Between items with equal hints, a comparison looks at the tuple, which is seldom in the cache. What
//! the next two comparisons may need is fetched meanwhile.

/// An item of a tree.
pub(crate) trait Item: Clone {
    /// Whether only what is beside the items tells them apart.
    fn is_like(&self, other: &Self) -> bool;

    /// Begins to fetch what a comparison needs beside the item itself.
    fn fetch(&self);
}

/// As [`slice::partition_point`].
#[inline]
pub(super) fn partition_point<T: Item>(items: &[T], before: impl Fn(&T) -> bool) -> usize {
    let (mut low, mut high) = (0, items.len());
    while low < high {
        if high - low > 2 && items[low].is_like(&items[high - 1]) {
            return among_like(items, (low, high), before);
        }
        let middle = middle(low, high);
        if before(&items[middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// As [`partition_point`], within a range of items that are alike.
fn among_like<T: Item>(
    items: &[T],
    (mut low, mut high): (usize, usize),
    before: impl Fn(&T) -> bool,
) -> usize {
    items[middle(low, high)].fetch();
    while low < high {
        let middle = middle(low, high);
        for (low, high) in [(low, middle), (middle + 1, high)] {
            let next = self::middle(low, high);
            for at in [next, self::middle(low, next), self::middle(next + 1, high)] {
                if at < high {
                    items[at].fetch();
                }
            }
        }
        if before(&items[middle]) {
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
        /// Four neighbours are alike.
        fn is_like(&self, other: &usize) -> bool {
            self / 4 == other / 4
        }

        fn fetch(&self) {}
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
