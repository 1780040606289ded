//! Binary search: first by the items' hints, and among equal ones by what is beside the items.
//!
//! Hints are compared without branches, which would be predicted wrongly half of the time. Between
//! items with equal hints, a comparison looks at the tuple, which is seldom in the cache. What the
//! next two comparisons may need is fetched meanwhile.

/// An item of a tree.
pub(crate) trait Item: Clone {
    /// Of two items, the smaller one has no larger hint.
    fn hint(&self) -> u64;

    /// Begins to fetch what a comparison needs beside the item itself.
    fn fetch(&self);

    /// Begins to fetch all that is usually wanted of an item that was sought.
    fn fetch_all(&self);
}

/// The hints that something sought may have: what has a smaller one comes before it, what has a
/// larger one after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hints {
    low: u64,
    high: u64,
}

impl Hints {
    /// Those of everything.
    pub(crate) const ALL: Hints = Hints { low: 0, high: u64::MAX };

    /// These two, and those between them.
    #[inline]
    pub(crate) fn between(low: u64, high: u64) -> Hints {
        Hints { low, high }
    }
}

impl From<u64> for Hints {
    fn from(hint: u64) -> Hints {
        Hints { low: hint, high: hint }
    }
}

/// As [`slice::partition_point`]; `before` need only be right of items with the sought one's hints.
#[inline]
pub(crate) fn partition_point<T: Item>(
    items: &[T],
    hints: Hints,
    before: impl Fn(&T) -> bool,
) -> usize {
    let low = items.partition_point(|item| item.hint() < hints.low);
    let has_hint = |item: &T| item.hint() <= hints.high;
    // Most hints are of one item, if of any.
    match items[low..] {
        [ref item, ..] if has_hint(item) => {}
        _ => return low,
    }
    let alike = items[low..].iter().take(FEW).take_while(|item| has_hint(item)).count();
    let high = match alike {
        FEW => low + items[low..].partition_point(has_hint),
        _ => low + alike,
    };
    among_like(items, (low, high), before)
}

/// So many items with one hint are counted one by one.
const FEW: usize = 4;

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
        /// Seven neighbours are alike.
        fn hint(&self) -> u64 {
            *self as u64 / 7
        }

        fn fetch(&self) {}

        fn fetch_all(&self) {}
    }

    #[test]
    fn it_is_the_partition_point() {
        for len in 0..70 {
            let items: Vec<usize> = (0..len).collect();
            for at in 0..=len {
                let hints = Hints::from(at.hint());
                assert_eq!(partition_point(&items, hints, |item| *item < at), at);
            }
        }
    }
}
