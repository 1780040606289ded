//! Values that a thread accessed recently. They are in the core's caches and need no prefetch.
//!
//! A small table of hash tags in which a new entry replaces the old one. The table forgets early
//! and is sometimes wrong; neither does harm.

use ladon_engine::Inside;
use ladon_model::KeyHash;

/// About as many values of a few cache lines each as a second-level cache holds. The tags take 4
/// KiB for the values, and 4 KiB for the parts.
const SLOTS: usize = 2048;

/// The values, and the parts of values, that were accessed recently.
#[derive(Default)]
pub(crate) struct RecentAccesses {
    values: Seen,
    parts: Seen,
}

/// What is probably not in the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotCached {
    /// The value's header.
    pub(crate) value: bool,
    /// The part inside the value.
    pub(crate) part: bool,
}

impl RecentAccesses {
    /// Records an access to a part of a key's value. Returns what was not accessed recently.
    #[inline]
    pub(crate) fn look(&mut self, key: KeyHash, inside: Inside) -> NotCached {
        const LINE_BYTES: usize = 64;
        let part = match inside {
            Inside::Nothing => return NotCached { value: false, part: false },
            Inside::Whole => {
                let is_new = self.values.is_new(key.0);
                return NotCached { value: is_new, part: is_new };
            }
            Inside::Element(element) => element.0,
            Inside::Byte(at) => (at / LINE_BYTES) as u64 + 1,
        };
        NotCached { value: self.values.is_new(key.0), part: self.parts.is_new(key.0 ^ part) }
    }
}

/// Tags by hash. Allocated on first use.
#[derive(Default)]
struct Seen(Vec<u16>);

impl Seen {
    #[inline]
    fn is_new(&mut self, hash: u64) -> bool {
        /// Odd and without a pattern, so that every line of a string gets its own hash.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let hash = hash.wrapping_mul(SPREAD);
        let tag = (hash >> 48) as u16;
        if self.0.is_empty() {
            self.0 = vec![0; SLOTS];
        }
        let slot = &mut self.0[(hash >> 24) as usize % SLOTS];
        std::mem::replace(slot, tag) != tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_looked_at_is_not_new_and_much_else_makes_it_new_again() {
        let mut recent = RecentAccesses::default();
        let (new, old) =
            (NotCached { value: true, part: true }, NotCached { value: false, part: false });
        let of = |n: u64| KeyHash(n.wrapping_mul(0x2545_f491_4f6c_dd1d));
        assert_eq!(recent.look(of(1), Inside::Nothing), old);
        for (number, inside) in
            [Inside::Whole, Inside::Element(of(2)), Inside::Byte(700)].into_iter().enumerate()
        {
            let first = recent.look(of(1), inside);
            assert_eq!(first, NotCached { value: number == 0, part: true });
            assert_eq!(recent.look(of(1), inside), old);
        }
        // The same line of the string, then another.
        assert_eq!(recent.look(of(1), Inside::Byte(640)), old);
        assert_eq!(recent.look(of(1), Inside::Byte(639)), NotCached { value: false, part: true });
        let mut is_new = |n: u64| recent.look(of(n), Inside::Whole) == new;
        let few = (100..300).filter(|&n| is_new(n)).count();
        let again = (100..300).filter(|&n| is_new(n)).count();
        assert!(few > 190 && again < 40, "{few} new at first, {again} after that");
        for n in 1000..100_000 {
            is_new(n);
        }
        assert!(is_new(1));
    }
}
