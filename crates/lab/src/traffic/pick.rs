//! Which key comes next: evenly, or by Zipf's law as YCSB draws it (Gray et al.: "Quickly
//! generating billion-record synthetic databases", SIGMOD 1994; constant 0.99), popular keys
//! scattered over the space.

use serde::{Deserialize, Serialize};

use crate::load::random::{Random, mix};

/// How keys are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// All alike.
    #[default]
    Uniform,
    /// Zipf's law, constant 0.99.
    Zipf,
    /// The same, the newest the most popular (YCSB D).
    Latest,
}

/// A stream of numbers.
#[derive(Clone, Debug)]
pub struct Pick {
    random: Random,
    kind: Distribution,
    zipf: Option<Zipf>,
}

impl Pick {
    /// Numbers below `count` at first; the count may grow.
    #[must_use]
    pub fn new(kind: Distribution, count: u32, seed: u64) -> Self {
        let zipf = (kind != Distribution::Uniform).then(|| Zipf::new(count.max(1)));
        Self { random: Random::new(mix(seed)), kind, zipf }
    }

    /// The next number below `count`, which is above 0.
    #[inline]
    pub fn below(&mut self, count: u32) -> u32 {
        match (&mut self.zipf, self.kind) {
            (Some(zipf), Distribution::Latest) => {
                let rank = zipf.next(&mut self.random);
                count - 1 - rank % count
            }
            // Scattered, so that popular keys are no neighbours; as YCSB's "scrambled" does.
            (Some(zipf), _) => {
                let rank = zipf.next(&mut self.random);
                (mix(u64::from(rank) + 1) % u64::from(count)) as u32
            }
            (None, _) => self.random.below(count),
        }
    }

    /// A number below `bound`, evenly.
    #[inline]
    pub const fn evenly(&mut self, bound: u32) -> u32 {
        self.random.below(bound)
    }
}

/// Ranks from 0, the most popular, to a count.
#[derive(Clone, Debug)]
struct Zipf {
    count: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
    half: f64,
}

const THETA: f64 = 0.99;

impl Zipf {
    fn new(count: u32) -> Self {
        let zeta_of = |count: u32| (1..=count).map(|rank| f64::from(rank).powf(-THETA)).sum();
        let zeta: f64 = zeta_of(count);
        let zeta_two: f64 = zeta_of(2);
        let number = f64::from(count);
        Self {
            count: number,
            zeta,
            alpha: 1.0 / (1.0 - THETA),
            eta: (1.0 - (2.0 / number).powf(1.0 - THETA)) / (1.0 - zeta_two / zeta),
            half: 1.0 + 0.5f64.powf(THETA),
        }
    }

    #[inline]
    fn next(&self, random: &mut Random) -> u32 {
        let even = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
        let scaled = even * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < self.half {
            return 1.min(self.count as u32 - 1);
        }
        let rank = self.count * (self.eta * even - self.eta + 1.0).powf(self.alpha);
        (rank as u32).min(self.count as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_s_ranks_are_as_popular_as_the_law_says() {
        let zipf = Zipf::new(1000);
        let mut random = Random::new(3);
        let mut seen = vec![0u32; 1000];
        for _ in 0..1_000_000 {
            seen[zipf.next(&mut random) as usize] += 1;
        }
        // Rank r's share is 1 / r^0.99 of the first one's; the method is exact for the first two.
        let share = |rank: usize| f64::from(seen[rank]) / 1_000_000.0 * zipf.zeta;
        assert!((share(0) - 1.0).abs() < 0.02, "{}", share(0));
        assert!((share(1) - 2f64.powf(-THETA)).abs() < 0.02, "{}", share(1));
        let hundred: f64 = (0..100).map(share).sum();
        let law: f64 = (1..=100).map(|rank| f64::from(rank).powf(-THETA)).sum();
        assert!((hundred / law - 1.0).abs() < 0.03, "{hundred} {law}");
    }

    #[test]
    fn every_distribution_stays_below_its_count_and_latest_likes_the_end() {
        for kind in [Distribution::Uniform, Distribution::Zipf, Distribution::Latest] {
            for count in [1, 2, 3, 1000] {
                let mut pick = Pick::new(kind, count, 1);
                assert!((0..1000).all(|_| pick.below(count) < count), "{kind:?} {count}");
            }
        }
        let mut latest = Pick::new(Distribution::Latest, 1000, 1);
        let late = (0..1000).filter(|_| latest.below(2000) >= 1900).count();
        assert!(late > 600, "{late}");
    }
}
