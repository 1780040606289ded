//! Cheap, seeded random numbers: SplitMix64, by its published constants
//! (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).

/// A stream of random numbers that its seed determines.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number below `bound`, which is above 0; its bias of `bound` in 2^32 does not matter here.
    #[inline]
    pub const fn below(&mut self, bound: u32) -> u32 {
        (((self.bits() >> 32) * bound as u64) >> 32) as u32
    }
}

/// Spreads any change of `value` over all 64 bits.
#[inline]
#[must_use]
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_covers_its_range_evenly() {
        let mut random = Random::new(1);
        let mut seen = [0u32; 10];
        for _ in 0..100_000 {
            seen[random.below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (9_500..10_500).contains(&count)), "{seen:?}");
    }
}
