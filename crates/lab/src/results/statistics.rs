//! Medians of few rounds, and how far to trust them: bootstrap intervals, of a figure and of a
//! ratio.
//!
//! The usual bootstrap (draw the rounds again, with replacement; take the median; look at the
//! middle 95 % of many such medians) promises too much of few rounds: with three it covers the true
//! median 75 times in 100. So each drawn value is spread by a normal kernel of width `s / sqrt(n)`,
//! and the distances from the median are stretched by Student's `t` over the normal quantile
//! (Hesterberg: "What Teachers Should Know About the Bootstrap", 2015, on both corrections). The
//! tests measure the coverage that this reaches. Work is done on logarithms where all values are
//! positive: the figures are times and rates.
//!
//! Ratios of paired rounds have a sharper tool from six rounds on: Wilcoxon's signed ranks, whose
//! interval is exact for any symmetric distribution and needs no margins.
//!
//! **Invariant:** the same samples and seed give the same interval; one sample gives none.

use crate::load::random::Random;

/// The middle value, or the mean of the two middle ones; `None` of nothing. NaNs are left out.
#[must_use]
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = samples.iter().copied().filter(|sample| !sample.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Medians drawn for an interval.
const DRAWS: usize = 1000;

/// How often an interval is to hold the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// 19 times in 20: what reports show.
    P95,
    /// 99 times in 100: for comparing many cells at once.
    P99,
}

impl Level {
    const fn share(self) -> f64 {
        match self {
            Self::P95 => 0.95,
            Self::P99 => 0.99,
        }
    }

    /// How many standard deviations hold that share of a normal distribution.
    const fn normal_quantile(self) -> f64 {
        match self {
            Self::P95 => 1.959_963_985,
            Self::P99 => 2.575_829_304,
        }
    }

    /// `95 %`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::P95 => "95 %",
            Self::P99 => "99 %",
        }
    }
}

/// A median with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median of the samples.
    pub median: f64,
    /// Low and high end; `None` of a single sample.
    pub interval: Option<(f64, f64)>,
    /// How many samples there were.
    pub samples: usize,
}

impl Estimate {
    /// Whether the interval says that the true value is above `value`; no interval says nothing.
    #[must_use]
    pub fn surely_above(&self, value: f64) -> bool {
        self.interval.is_some_and(|(low, _)| low > value)
    }

    /// Whether the interval says that the true value is below `value`; no interval says nothing.
    #[must_use]
    pub fn surely_below(&self, value: f64) -> bool {
        self.interval.is_some_and(|(_, high)| high < value)
    }
}

/// The median of `samples` with its interval; `None` of nothing.
#[must_use]
pub fn estimate(samples: &[f64], level: Level, seed: u64) -> Option<Estimate> {
    let finite: Vec<f64> = samples.iter().copied().filter(|sample| sample.is_finite()).collect();
    if finite.iter().all(|&sample| sample > 0.0) {
        let logs: Vec<f64> = finite.iter().map(|sample| sample.ln()).collect();
        let interval = interval(&[&logs], &[1.0], level, seed);
        // The median itself is taken before the logarithm: of an even number the two differ.
        Some(Estimate {
            median: median(&finite)?,
            interval: interval.map(|(low, high)| (low.exp(), high.exp())),
            samples: finite.len(),
        })
    } else {
        Some(Estimate {
            median: median(&finite)?,
            interval: interval(&[&finite], &[1.0], level, seed),
            samples: finite.len(),
        })
    }
}

/// How many times `base` the `samples` are, formed within each round: speed drifts on a shared
/// machine, and two neighbours in time drift alike. Rounds that one of them lacks are left out.
#[must_use]
pub fn paired_ratio(
    samples: &[Option<f64>],
    base: &[Option<f64>],
    level: Level,
    seed: u64,
) -> Option<Estimate> {
    let ratios: Vec<f64> = samples
        .iter()
        .zip(base)
        .filter_map(|(sample, base)| sample.zip(*base))
        .filter(|(sample, base)| *sample > 0.0 && *base > 0.0)
        .map(|(sample, base)| sample / base)
        .collect();
    let estimate = estimate(&ratios, level, seed)?;
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    match signed_rank_interval(&logs, level) {
        Some((low, high)) => {
            let (low, high) = (low.exp(), high.exp());
            let interval = Some((low.min(estimate.median), high.max(estimate.median)));
            Some(Estimate { interval, ..estimate })
        }
        None => Some(estimate),
    }
}

/// Where the middle of a symmetric distribution lies, by Wilcoxon's signed ranks (Hollander and
/// Wolfe: "Nonparametric Statistical Methods", on Hodges and Lehmann's estimate): between two of
/// the means of all pairs of samples, counted from both ends. The logarithm of a ratio of two
/// neighbours in time is symmetric if the two differ by a factor only, whatever its distribution.
/// Exact, where a bootstrap of a median needs margins; `None` where there are too few samples for
/// the level, below 6 for 95 % and below 8 for 99 %.
fn signed_rank_interval(samples: &[f64], level: Level) -> Option<(f64, f64)> {
    let count = samples.len();
    if count > SIGNED_RANKS_MAX {
        return None;
    }
    // How likely each sum of the positive ranks is, as counts of the 2^n signs.
    let mut ways = vec![0.0; count * (count + 1) / 2 + 1];
    ways[0] = 1.0;
    for rank in 1..=count {
        for sum in (rank..ways.len()).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let tail = (1.0 - level.share()) / 2.0 * 2f64.powi(i32::try_from(count).ok()?);
    let mut left_out = 0;
    let mut likely = 0.0;
    while likely + ways[left_out] <= tail {
        likely += ways[left_out];
        left_out += 1;
    }
    let mut means: Vec<f64> = (0..count)
        .flat_map(|one| (0..=one).map(move |other| (one, other)))
        .map(|(one, other)| f64::midpoint(samples[one], samples[other]))
        .collect();
    means.sort_by(f64::total_cmp);
    let place = left_out.checked_sub(1)?;
    Some((*means.get(place)?, *means.get(means.len().checked_sub(1 + place)?)?))
}

/// Beyond so many the bootstrap is as good, and two to that power is still exact.
const SIGNED_RANKS_MAX: usize = 50;

/// How many times `old` the `new` is, from two runs that share no rounds.
#[must_use]
pub fn unpaired_ratio(new: &[f64], old: &[f64], level: Level, seed: u64) -> Option<Estimate> {
    let logs = |samples: &[f64]| -> Vec<f64> {
        let positive = samples.iter().filter(|sample| sample.is_finite() && **sample > 0.0);
        positive.map(|sample| sample.ln()).collect()
    };
    let (new, old) = (logs(new), logs(old));
    Some(Estimate {
        median: (median(&new)? - median(&old)?).exp(),
        interval: interval(&[&new, &old], &[1.0, -1.0], level, seed)
            .map(|(low, high)| (low.exp(), high.exp())),
        samples: new.len().min(old.len()),
    })
}

/// The interval of the sum of the groups' medians, each times its sign; `None` where a group has
/// less than two samples.
fn interval(groups: &[&[f64]], signs: &[f64], level: Level, seed: u64) -> Option<(f64, f64)> {
    if groups.iter().any(|group| group.len() < 2) {
        return None;
    }
    // Variance of each group's mean: the kernel's width, and what the degrees of freedom weigh.
    let variances: Vec<f64> =
        groups.iter().map(|group| variance(group) / group.len() as f64).collect();
    let mut random = Random::new(seed);
    let mut drawn: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let medians =
                groups.iter().zip(&variances).zip(signs).map(|((group, variance), sign)| {
                    sign * drawn_median(group, variance.sqrt(), &mut random)
                });
            medians.sum()
        })
        .collect();
    drawn.sort_by(f64::total_cmp);
    let middle: f64 =
        groups.iter().zip(signs).filter_map(|(group, sign)| Some(sign * median(group)?)).sum();
    let freedom = degrees_of_freedom(groups, &variances);
    let stretch = student_quantile(level.share(), freedom) / level.normal_quantile();
    let tail = (1.0 - level.share()) / 2.0;
    let at = |share: f64| drawn[((DRAWS - 1) as f64 * share).round() as usize];
    let reach = |end: f64| middle + stretch * (end - middle);
    // An interval that does not hold its own median is of no use to anybody.
    Some((reach(at(tail)).min(middle), reach(at(1.0 - tail)).max(middle)))
}

fn drawn_median(group: &[f64], width: f64, random: &mut Random) -> f64 {
    let count = u32::try_from(group.len()).unwrap_or(u32::MAX);
    let mut drawn: Vec<f64> = group
        .iter()
        .map(|_| group[random.below(count) as usize] + width * normal(random))
        .collect();
    let middle = drawn.len() / 2;
    let (below, upper, _) = drawn.select_nth_unstable_by(middle, f64::total_cmp);
    if group.len() % 2 == 1 {
        *upper
    } else {
        f64::midpoint(below.iter().copied().fold(f64::NEG_INFINITY, f64::max), *upper)
    }
}

fn variance(group: &[f64]) -> f64 {
    let mean = group.iter().sum::<f64>() / group.len() as f64;
    group.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (group.len() - 1) as f64
}

/// Welch and Satterthwaite's; of one group, its samples less one.
fn degrees_of_freedom(groups: &[&[f64]], variances: &[f64]) -> usize {
    let least = groups.iter().map(|group| group.len() - 1).min().unwrap_or(1);
    let total: f64 = variances.iter().sum();
    let parts: f64 = groups
        .iter()
        .zip(variances)
        .map(|(group, variance)| variance * variance / (group.len() - 1) as f64)
        .sum();
    if parts > 0.0 { ((total * total / parts) as usize).max(least) } else { least }
}

/// A standard normal number, by Box and Muller.
fn normal(random: &mut Random) -> f64 {
    let unit = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let (radius, angle) = (unit(random.bits()), unit(random.bits()));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// How far from 0 holds `share` of Student's distribution, by bisection of its probability.
fn student_quantile(share: f64, freedom: usize) -> f64 {
    // One degree of freedom at 99 % is 63.7.
    let (mut low, mut high) = (0.0, 100.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if student_share(middle, freedom.min(200)) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Share of Student's distribution within `t` of 0, for whole degrees of freedom (Abramowitz and
/// Stegun, 26.7.3 and 26.7.4).
fn student_share(t: f64, freedom: usize) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    let (mut term, mut k) = if odd { (cosine, 3) } else { (1.0, 2) };
    let mut sum = 0.0;
    while k <= freedom {
        sum += term;
        term *= cosine * cosine * (k - 1) as f64 / k as f64;
        k += 2;
    }
    if odd { std::f64::consts::FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distributions whose medians are known.
    #[derive(Clone, Copy, Debug)]
    enum Known {
        /// Median 10.
        Normal,
        /// Median 1, skewed.
        LogNormal,
        /// Median ln 2, very skewed.
        Exponential,
        /// Median 10, one in ten is an outlier as a disturbed machine makes them.
        Disturbed,
    }

    impl Known {
        const ALL: [Self; 4] = [Self::Normal, Self::LogNormal, Self::Exponential, Self::Disturbed];

        fn median(self) -> f64 {
            match self {
                Self::Normal | Self::Disturbed => 10.0,
                Self::LogNormal => 1.0,
                Self::Exponential => std::f64::consts::LN_2,
            }
        }

        fn sample(self, random: &mut Random) -> f64 {
            let value = normal(random);
            match self {
                Self::Normal => 10.0 + value,
                Self::LogNormal => (0.3 * value).exp(),
                Self::Exponential => {
                    -(((random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64).ln()
                }
                Self::Disturbed => 10.0 + if random.below(10) == 0 { 4.0 * value } else { value },
            }
        }
    }

    const TRIALS: u32 = 500;

    fn samples(known: Known, count: usize, random: &mut Random) -> Vec<f64> {
        (0..count).map(|_| known.sample(random)).collect()
    }

    /// The promise: a 95 % interval holds the truth in about 95 of 100 runs, also of three rounds.
    #[test]
    fn intervals_cover_the_true_median_as_often_as_they_say() {
        for known in Known::ALL {
            for count in [3, 5, 10] {
                let mut random = Random::new(7);
                let covered = (0..TRIALS)
                    .filter(|&trial| {
                        let samples = samples(known, count, &mut random);
                        let estimate = estimate(&samples, Level::P95, trial.into()).unwrap();
                        let (low, high) = estimate.interval.unwrap();
                        low <= known.median() && known.median() <= high
                    })
                    .count();
                let share = covered as f64 / f64::from(TRIALS);
                // Three standard errors of 500 trials below 95 %; skew costs the exponential a
                // little.
                assert!((0.915..=0.995).contains(&share), "{known:?}, {count} rounds: {share}");
            }
        }
    }

    /// The plain bootstrap of three rounds, to know that the test above can tell.
    #[test]
    fn the_plain_bootstrap_covers_too_little() {
        let mut random = Random::new(7);
        let covered = (0..TRIALS)
            .filter(|_| {
                let group = samples(Known::Normal, 3, &mut random);
                let mut drawn: Vec<f64> =
                    (0..200).map(|_| drawn_median(&group, 0.0, &mut random)).collect();
                drawn.sort_by(f64::total_cmp);
                drawn[5] <= 10.0 && 10.0 <= drawn[194]
            })
            .count();
        assert!(covered < 420, "{covered} of {TRIALS}");
    }

    #[test]
    fn medians_are_not_biased() {
        for known in [Known::Normal, Known::Disturbed, Known::LogNormal] {
            let mut random = Random::new(3);
            let medians: Vec<f64> =
                (0..4000).filter_map(|_| median(&samples(known, 5, &mut random))).collect();
            let mean = medians.iter().sum::<f64>() / medians.len() as f64;
            assert!((mean / known.median() - 1.0).abs() < 0.02, "{known:?}: {mean}");
        }
    }

    /// Drift that both of a round share vanishes from the ratio, and the interval covers the truth.
    #[test]
    fn paired_ratios_cover_and_ignore_drift() {
        let mut random = Random::new(11);
        let mut covered = 0;
        for trial in 0..TRIALS {
            let (mut mine, mut base) = (Vec::new(), Vec::new());
            for round in 0..5 {
                let drift = f64::from(1 + round * 3);
                mine.push(Some(drift * 0.5 * (0.05 * normal(&mut random)).exp()));
                base.push(Some(drift * (0.05 * normal(&mut random)).exp()));
            }
            let ratio = paired_ratio(&mine, &base, Level::P95, trial.into()).unwrap();
            assert!((0.4..0.6).contains(&ratio.median), "{ratio:?}");
            let (low, high) = ratio.interval.unwrap();
            covered += u32::from(low <= 0.5 && 0.5 <= high);
        }
        let share = f64::from(covered) / f64::from(TRIALS);
        assert!((0.92..=0.995).contains(&share), "{share}");
    }

    /// Signed ranks cover as often as they say, also where one round in ten is an outlier, and tell
    /// 7 % apart in seven rounds more often than the bootstrap does.
    #[test]
    fn signed_ranks_cover_and_are_sharper() {
        let mut random = Random::new(17);
        for count in [6, 7, 10] {
            let (mut covered, mut sharp, mut blunt) = (0, 0, 0);
            for trial in 0..TRIALS {
                let logs: Vec<f64> = (0..count)
                    .map(|_| {
                        let outlier = random.below(10) == 0;
                        (if outlier { 0.3 } else { 0.05 }) * normal(&mut random)
                    })
                    .collect();
                let (low, high) = signed_rank_interval(&logs, Level::P95).unwrap();
                covered += u32::from(low <= 0.0 && 0.0 <= high);
                sharp += u32::from(low + 0.07 > 0.0);
                let (low, _) = interval(&[&logs], &[1.0], Level::P95, trial.into()).unwrap();
                blunt += u32::from(low + 0.07 > 0.0);
            }
            let share = f64::from(covered) / f64::from(TRIALS);
            assert!(share >= 0.92, "{count} rounds: {share}");
            assert!(count == 10 || sharp > blunt, "{count} rounds: {sharp} {blunt}");
        }
    }

    /// Tables of Wilcoxon's test: two-sided at 5 %, sums up to 0, 3 and 8 are rejected of 6, 8 and
    /// 10.
    #[test]
    fn signed_ranks_as_in_tables() {
        for (count, rejected) in [(6, 0), (8, 3), (10, 8)] {
            let samples: Vec<f64> = (0..count).map(|number| 2f64.powi(number)).collect();
            let mut means = Vec::new();
            for one in 0..samples.len() {
                for other in 0..=one {
                    means.push(f64::midpoint(samples[one], samples[other]));
                }
            }
            means.sort_by(f64::total_cmp);
            let expected = (means[rejected], means[means.len() - 1 - rejected]);
            assert_eq!(signed_rank_interval(&samples, Level::P95), Some(expected), "{count}");
        }
        assert_eq!(signed_rank_interval(&[1.0; 5], Level::P95), None);
        assert_eq!(signed_rank_interval(&[1.0; 7], Level::P99), None);
        assert!(signed_rank_interval(&[1.0; 8], Level::P99).is_some());
        assert_eq!(signed_rank_interval(&[], Level::P95), None);
    }

    /// Equal systems are called different no more often than the level allows.
    #[test]
    fn unpaired_ratios_of_equals_rarely_differ() {
        let mut random = Random::new(13);
        let differ = (0..TRIALS)
            .filter(|&trial| {
                let new = samples(Known::LogNormal, 5, &mut random);
                let old = samples(Known::LogNormal, 3, &mut random);
                let ratio = unpaired_ratio(&new, &old, Level::P95, trial.into()).unwrap();
                ratio.surely_above(1.0) || ratio.surely_below(1.0)
            })
            .count();
        assert!(differ <= 42, "{differ} of {TRIALS}");
        let double = unpaired_ratio(&[2.0, 2.02, 1.98], &[1.0, 1.01, 0.99], Level::P95, 1).unwrap();
        assert!(double.surely_above(1.8) && double.surely_below(2.2), "{double:?}");
    }

    #[test]
    fn edges() {
        assert_eq!(estimate(&[], Level::P95, 1), None);
        assert_eq!(estimate(&[f64::NAN], Level::P95, 1), None);
        let one = estimate(&[4.0], Level::P95, 1).unwrap();
        assert_eq!((one.median, one.interval, one.samples), (4.0, None, 1));
        let same = estimate(&[4.0, 4.0, 4.0], Level::P95, 1).unwrap();
        let (low, high) = same.interval.unwrap();
        assert!((low - 4.0).abs() < 1e-9 && (high - 4.0).abs() < 1e-9);
        let zeros = estimate(&[0.0, 1.0, 0.0], Level::P95, 1).unwrap();
        assert_eq!(zeros.median, 0.0);
        assert_eq!(paired_ratio(&[Some(1.0), None], &[None, Some(1.0)], Level::P95, 1), None);
        assert_eq!(unpaired_ratio(&[1.0], &[2.0], Level::P95, 1).unwrap().interval, None);
    }

    #[test]
    fn a_seed_gives_one_interval() {
        let samples = [3.0, 4.0, 5.5, 3.2];
        assert_eq!(estimate(&samples, Level::P95, 5), estimate(&samples, Level::P95, 5));
        assert_ne!(estimate(&samples, Level::P95, 5), estimate(&samples, Level::P95, 6));
    }

    #[test]
    fn a_higher_level_is_a_wider_interval() {
        let samples = [3.0, 4.0, 5.5, 3.2, 4.4];
        let wide = estimate(&samples, Level::P99, 5).unwrap().interval.unwrap();
        let narrow = estimate(&samples, Level::P95, 5).unwrap().interval.unwrap();
        assert!(wide.0 < narrow.0 && narrow.1 < wide.1, "{wide:?} {narrow:?}");
    }

    /// Tables of Student's distribution.
    #[test]
    fn student() {
        for (share, freedom, expected) in [
            (0.95, 1, 12.706),
            (0.95, 2, 4.303),
            (0.95, 4, 2.776),
            (0.99, 1, 63.657),
            (0.99, 9, 3.250),
        ] {
            let quantile = student_quantile(share, freedom);
            assert!((quantile - expected).abs() < 0.001, "{share} {freedom}: {quantile}");
        }
    }
}
