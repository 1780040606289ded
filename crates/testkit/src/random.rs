//! Random numbers from a seed: SplitMix64 (Steele, Lea, Flood 2014).
//!
//! **Invariant:** a seed gives the same numbers on every machine and in every release: the seeds of
//! the simulator and of the crash rounds name runs.

/// The constant that each step adds.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A seeded source of numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers that depend on `seed` only.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Numbers that depend on `seed` and `stream`; streams of one seed have nothing in common.
    pub fn stream(seed: u64, stream: u64) -> Random {
        let mut random = Random(seed ^ stream.wrapping_mul(GAMMA));
        random.next_u64();
        random
    }

    /// Any 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; zero for a bound of zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }

    /// True `numerator` times in `denominator`.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// One of `choices`.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference implementation's first numbers (<https://prng.di.unimi.it/splitmix64.c>).
    #[test]
    fn a_seed_gives_the_published_numbers() {
        let mut random = Random::new(1_234_567);
        let numbers = [(); 3].map(|()| random.next_u64());
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn streams_of_a_seed_differ() {
        assert_ne!(Random::stream(1, 0).next_u64(), Random::stream(1, 1).next_u64());
    }
}
