//! A sorted array of integers, all in the narrowest width that holds each of them.

use crate::prefetch::prefetch;

/// Distinct integers in ascending order.
#[derive(Clone)]
pub(super) enum Ints {
    Two(Vec<i16>),
    Four(Vec<i32>),
    Eight(Vec<i64>),
}

/// Minimum number of integers for which to reserve capacity when the array is full,
const GROW_MIN: usize = 4;
/// or this fraction of the present ones: a set of integers should be small.
const GROW_DIVISOR: usize = 8;

macro_rules! each {
    ($self:expr, $ints:ident => $body:expr) => {
        match $self {
            Ints::Two($ints) => $body,
            Ints::Four($ints) => $body,
            Ints::Eight($ints) => $body,
        }
    };
}

impl Ints {
    pub(super) fn new() -> Ints {
        Ints::Two(Vec::new())
    }

    pub(super) fn len(&self) -> usize {
        each!(self, ints => ints.len())
    }

    /// Fetches where a search begins.
    pub(super) fn prefetch(&self) {
        each!(self, ints => ints.get(ints.len() / 2).into_iter().for_each(|int| prefetch(int)));
    }

    /// Bytes of memory that the array takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Ints::Two(ints) => ints.capacity() * 2,
            Ints::Four(ints) => ints.capacity() * 4,
            Ints::Eight(ints) => ints.capacity() * 8,
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<i64> {
        #[allow(clippy::useless_conversion, reason = "one of the three widths is i64 already")]
        {
            each!(self, ints => ints.get(index).map(|&int| i64::from(int)))
        }
    }

    pub(super) fn contains(&self, int: i64) -> bool {
        self.find(int).is_ok()
    }

    /// Whether it was new.
    pub(super) fn insert(&mut self, int: i64) -> bool {
        self.widen_for(int);
        let Err(at) = self.find(int) else { return false };
        each!(self, ints => {
            if ints.len() == ints.capacity() {
                ints.reserve_exact((ints.len() / GROW_DIVISOR).max(GROW_MIN));
            }
            ints.insert(at, int as _);
        });
        true
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, int: i64) -> bool {
        self.find(int).map(|at| self.remove_at(at)).is_ok()
    }

    pub(super) fn remove_at(&mut self, index: usize) {
        each!(self, ints => {
            ints.remove(index);
            if ints.len() < ints.capacity() / 2 {
                ints.shrink_to(ints.len() + GROW_MIN);
            }
        });
    }

    pub(super) fn shrink_to_fit(&mut self) {
        each!(self, ints => ints.shrink_to_fit());
    }

    #[inline]
    fn find(&self, int: i64) -> Result<usize, usize> {
        #[allow(clippy::useless_conversion, reason = "as in `get`")]
        {
            each!(self, ints => ints.binary_search_by(|&present| i64::from(present).cmp(&int)))
        }
    }

    /// Afterwards `int` fits the width.
    fn widen_for(&mut self, int: i64) {
        match self {
            Ints::Two(_) if i16::try_from(int).is_ok() => {}
            Ints::Two(ints) if i32::try_from(int).is_ok() => {
                *self = Ints::Four(widened(ints));
            }
            Ints::Two(ints) => *self = Ints::Eight(widened(ints)),
            Ints::Four(ints) if i32::try_from(int).is_err() => {
                *self = Ints::Eight(widened(ints));
            }
            Ints::Four(_) | Ints::Eight(_) => {}
        }
    }
}

fn widened<Narrow: Copy, Wide: From<Narrow>>(ints: &[Narrow]) -> Vec<Wide> {
    // Only an integer that is about to be added makes an array wider.
    let mut wide = Vec::with_capacity(ints.len() + 1);
    wide.extend(ints.iter().map(|&int| Wide::from(int)));
    wide
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_grow_with_what_comes() {
        let mut ints = Ints::new();
        for (int, bytes) in [(1, 2), (-32768, 2), (32767, 2), (32768, 4), (-1 << 31, 4)] {
            assert!(ints.insert(int) && !ints.insert(int));
            assert!(ints.contains(int));
            ints.shrink_to_fit();
            assert_eq!(ints.bytes(), ints.len() * bytes, "{int}");
        }
        for int in [1 << 31, i64::MAX, i64::MIN] {
            assert!(ints.insert(int) && ints.contains(int));
        }
        let all: Vec<i64> = (0..ints.len()).filter_map(|index| ints.get(index)).collect();
        let sorted = [i64::MIN, -1 << 31, -32768, 1, 32767, 32768, 1 << 31, i64::MAX];
        assert_eq!(all, sorted);
        assert!(ints.remove(1) && !ints.remove(1) && !ints.contains(1));
        assert_eq!(ints.len(), 7);
    }
}
