//! What a thread has looked at lately: that is in its caches, and need not be fetched ahead.
//!
//! A small table of hashes where the newer takes the older's place. It forgets early and remembers
//! wrongly once in a while, neither of which does any harm.

use ladon_engine::Inside;
use ladon_model::KeyHash;

/// As many values of some lines each as a core's second cache holds; 4 KiB of tags.
const SLOTS: usize = 2048;

/// Which parts of values were looked at lately.
pub(crate) struct Recent(Box<[u16; SLOTS]>);

impl Default for Recent {
    fn default() -> Self {
        Recent(Box::new([0; SLOTS]))
    }
}

impl Recent {
    /// Takes note of a look at a part of a key's value; whether the last one is long ago.
    #[inline]
    pub(crate) fn is_new(&mut self, key: KeyHash, inside: Inside) -> bool {
        /// Odd and without a pattern, so that every line of a string has a hash of its own.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        const LINE_BYTES: usize = 64;
        let part = match inside {
            Inside::Nothing => return false,
            Inside::Whole => 0,
            Inside::Element(element) => element.0,
            Inside::Byte(at) => (at / LINE_BYTES) as u64 + 1,
        };
        let hash = (key.0 ^ part).wrapping_mul(SPREAD);
        let tag = (hash >> 48) as u16;
        let slot = &mut self.0[(hash >> 24) as usize % SLOTS];
        std::mem::replace(slot, tag) != tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_looked_at_is_not_new_and_much_else_makes_it_new_again() {
        let mut recent = Recent::default();
        let of = |n: u64| KeyHash(n.wrapping_mul(0x2545_f491_4f6c_dd1d));
        assert!(!recent.is_new(of(1), Inside::Nothing));
        for inside in [Inside::Whole, Inside::Element(of(2)), Inside::Byte(700)] {
            assert!(recent.is_new(of(1), inside));
            assert!(!recent.is_new(of(1), inside));
        }
        // The same line of the string, and another.
        assert!(!recent.is_new(of(1), Inside::Byte(640)));
        assert!(recent.is_new(of(1), Inside::Byte(639)));
        let few = (100..300).filter(|&n| recent.is_new(of(n), Inside::Whole)).count();
        let again = (100..300).filter(|&n| recent.is_new(of(n), Inside::Whole)).count();
        assert!(few > 190 && again < 40, "{few} new at first, {again} after that");
        for n in 1000..100_000 {
            recent.is_new(of(n), Inside::Whole);
        }
        assert!(recent.is_new(of(1), Inside::Whole));
    }
}
