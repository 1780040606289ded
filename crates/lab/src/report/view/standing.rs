//! The winner of a part, its lead, and how certain that is.
//!
//! Only settings with the same promise for an acknowledged write compete. Along an axis, a line's
//! standing is the geometric mean over the places that all measured lines of the group reached;
//! ratios are formed within each round.
//!
//! **Invariants:** a lead is reported only if the interval of its ratio excludes 1, and never if
//! the load generator, not the slower system, may have caused the difference. A tie is reported
//! only if the interval excludes any difference that matters; otherwise nothing is known yet.

use super::line::{Line, depends_on_load, load_limited, places, samples};
use crate::results::statistics::median;
use crate::results::statistics::{Estimate, Level, paired_ratio};
use crate::results::{Better, Figure, PartResult};

/// The lines of one promise, best first.
#[derive(Clone, Debug)]
pub struct Standing {
    /// What an acknowledged write is worth; empty where it was not said.
    pub promise: String,
    /// Measured lines, best first.
    pub ranks: Vec<Rank>,
    /// What may be said of the first.
    pub verdict: Verdict,
    /// The places of the axis at which they were compared.
    pub compared: Vec<Option<f64>>,
    /// Measured lines, as indices into the part's, that share no place with those: nothing is said
    /// of them.
    pub apart: Vec<usize>,
}

/// A line's place.
#[derive(Clone, Debug)]
pub struct Rank {
    /// Index into the part's lines.
    pub line: usize,
    /// How many times as good the leader is; 1 of the leader itself.
    pub behind: Estimate,
    /// Whether the load generator was the limit in any of the cells that were compared, and that
    /// matters for the figure.
    pub limited: bool,
}

/// What may be said of the leader.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Only one system was measured.
    Alone,
    /// Better than the next by this, and the interval excludes 1.
    Wins {
        /// How many times as good as the next system's best line.
        ratio: Estimate,
        /// The load generator held the leader back, so it is at least that much.
        at_least: bool,
        /// Ranks of other systems that it was measured ahead of, but that the load generator held
        /// back, or that have a single round: of them nothing is proven.
        unjudged: Vec<usize>,
    },
    /// Level with the lines of these indices into `ranks`: whatever the difference is, it is less
    /// than [`LEVEL`].
    Ties {
        /// Ranks of the other systems that it is level with.
        with: Vec<usize>,
        /// Ratio to the next one.
        ratio: Estimate,
    },
    /// Not told apart from the lines of these indices into `ranks`, nor known to be level with
    /// them: the intervals are too wide for either.
    Open {
        /// Ranks of the other systems that it is not told apart from.
        with: Vec<usize>,
        /// Ratio to the next one.
        ratio: Estimate,
    },
    /// The load generator was the limit of a slower one too: nothing is proven.
    LoadLimited,
    /// A figure that can be zero, such as writes that are missing, has no ratios: the medians
    /// alone.
    Counted {
        /// Ranks whose median is as good as the leader's.
        level: usize,
        /// The leader's median.
        best: f64,
        /// The last one's median.
        worst: f64,
    },
    /// Ahead, but a single round has no interval.
    Unproven {
        /// How many times as good as the next system's best line.
        ratio: f64,
    },
}

/// Systems that differ by less are level: a tenth, about what a compiler's version or a neighbour
/// on the host makes of a figure.
pub const LEVEL: f64 = 1.10;

/// The standings of a part by its first figure, a promise each.
#[must_use]
pub fn standings(part: &PartResult, lines: &[Line<'_>], seed: u64) -> Vec<Standing> {
    let Some(figure) = part.figures.first() else {
        return Vec::new();
    };
    let mut promises: Vec<&str> = Vec::new();
    for line in lines.iter().filter(|line| line.measured()) {
        if !promises.contains(&line.promise) {
            promises.push(line.promise);
        }
    }
    promises
        .into_iter()
        .filter_map(|promise| standing(part, lines, figure, promise, seed))
        .collect()
}

fn standing(
    part: &PartResult,
    lines: &[Line<'_>],
    figure: &Figure,
    promise: &str,
    seed: u64,
) -> Option<Standing> {
    let has = |line: &Line<'_>, place: Option<f64>| {
        line.at(place).is_some_and(|cell| samples(cell, &figure.key).iter().any(Option::is_some))
    };
    let places = places(part);
    let reached = |index: usize| places.iter().filter(|&&place| has(&lines[index], place)).count();
    let mut members: Vec<usize> = (0..lines.len())
        .filter(|&index| lines[index].promise == promise && reached(index) > 0)
        .collect();
    let common = |members: &[usize]| -> Vec<Option<f64>> {
        let all = |place: &Option<f64>| members.iter().all(|&index| has(&lines[index], *place));
        places.iter().copied().filter(all).collect()
    };
    // Ratios between lines that were measured at different places would compare places.
    let mut apart = Vec::new();
    while common(&members).is_empty() {
        let fewest = (0..members.len()).min_by_key(|&member| reached(members[member]))?;
        apart.push(members.remove(fewest));
    }
    let compared = common(&members);
    if members.iter().any(|&index| has_zeros(&lines[index], figure)) {
        return counted(part, lines, figure, promise, &members, apart);
    }
    let leader = leader(lines, &members, figure, &compared)?;
    let mut ranks: Vec<Rank> = members
        .iter()
        .filter_map(|&line| {
            let behind = if line == leader {
                Estimate { median: 1.0, interval: Some((1.0, 1.0)), samples: 0 }
            } else {
                advantage(&lines[leader], &lines[line], figure, &compared, seed)?
            };
            let limited = depends_on_load(figure)
                && compared.iter().filter_map(|&place| lines[line].at(place)).any(load_limited);
            Some(Rank { line, behind, limited })
        })
        .collect();
    ranks.sort_by(|a, b| {
        (a.line != leader, a.behind.median)
            .partial_cmp(&(b.line != leader, b.behind.median))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let verdict = verdict(lines, &ranks);
    Some(Standing { promise: promise.to_owned(), ranks, verdict, compared, apart })
}

/// Who is ahead of most others, pair by pair; among several such, of most of those. Medians of
/// ratios to one and the same line need not agree with those to each other; and where three are
/// ahead of each other in a circle, the widest lead counts.
fn leader(
    lines: &[Line<'_>],
    members: &[usize],
    figure: &Figure,
    places: &[Option<f64>],
) -> Option<usize> {
    let lead = |one: usize, other: usize| {
        median(&advantages(&lines[one], &lines[other], figure, places)).map_or(0.0, f64::ln)
    };
    let mut first = members.to_vec();
    loop {
        let ahead_of = |one: &usize| first.iter().filter(|other| lead(*one, **other) > 0.0).count();
        let most = first.iter().map(ahead_of).max()?;
        let left: Vec<usize> = first.iter().copied().filter(|one| ahead_of(one) == most).collect();
        if left.len() == first.len() {
            break;
        }
        first = left;
    }
    let leads = |one: usize| first.iter().map(|&other| lead(one, other)).sum::<f64>();
    first.iter().copied().max_by(|&a, &b| leads(a).total_cmp(&leads(b)))
}

fn has_zeros(line: &Line<'_>, figure: &Figure) -> bool {
    let mut all = line.cells.iter().flat_map(|cell| samples(cell, &figure.key));
    all.any(|sample| sample.is_some_and(|sample| sample <= 0.0))
}

/// The standing of a figure without ratios: of each line, the worst median of its places.
fn counted(
    part: &PartResult,
    lines: &[Line<'_>],
    figure: &Figure,
    promise: &str,
    members: &[usize],
    apart: Vec<usize>,
) -> Option<Standing> {
    let sign = if figure.better == Better::Lower { 1.0 } else { -1.0 };
    let compared = places(part);
    let badness = |index: usize| {
        let medians =
            compared.iter().filter_map(|&place| lines[index].estimate(&figure.key, place));
        medians.map(|estimate| sign * estimate.median).reduce(f64::max)
    };
    let mut all: Vec<(usize, f64)> =
        members.iter().filter_map(|&index| Some((index, badness(index)?))).collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (best, worst) = (all.first()?.1, all.last()?.1);
    let level = all.iter().filter(|(_, badness)| *badness <= best).count();
    let none = Estimate { median: f64::NAN, interval: None, samples: 0 };
    let ranks = all.iter().map(|&(line, _)| Rank { line, behind: none, limited: false }).collect();
    let verdict = Verdict::Counted { level, best: sign * best, worst: sign * worst };
    Some(Standing { promise: promise.to_owned(), ranks, verdict, compared, apart })
}

fn verdict(lines: &[Line<'_>], ranks: &[Rank]) -> Verdict {
    let leader = lines[ranks[0].line].system;
    let others: Vec<usize> =
        (1..ranks.len()).filter(|&rank| lines[ranks[rank].line].system != leader).collect();
    let Some(&next) = others.first() else {
        return Verdict::Alone;
    };
    let ratio = ranks[next].behind;
    if ranks[next].limited {
        return Verdict::LoadLimited;
    }
    if ratio.interval.is_none() {
        return Verdict::Unproven { ratio: ratio.median };
    }
    // The best line of each other system.
    let mut systems: Vec<&str> = Vec::new();
    let (mut with, mut unjudged) = (Vec::new(), Vec::new());
    for &rank in &others {
        let Rank { line, behind, limited } = &ranks[rank];
        if systems.contains(&lines[*line].system) {
            continue;
        }
        systems.push(lines[*line].system);
        if *limited || behind.interval.is_none() {
            unjudged.push(rank);
        } else if !behind.surely_above(1.0) {
            with.push(rank);
        }
    }
    let level = |rank: &usize| {
        let behind = ranks[*rank].behind;
        behind.interval.is_some_and(|(low, high)| low >= 1.0 / LEVEL && high <= LEVEL)
    };
    if with.is_empty() {
        Verdict::Wins { ratio, at_least: ranks[0].limited, unjudged }
    } else if with.iter().all(level) {
        Verdict::Ties { with, ratio }
    } else {
        Verdict::Open { with, ratio }
    }
}

/// How many times as good `line` is as `base`: above 1 is better whichever direction the figure
/// has.
fn advantage(
    line: &Line<'_>,
    base: &Line<'_>,
    figure: &Figure,
    places: &[Option<f64>],
    seed: u64,
) -> Option<Estimate> {
    let ratios: Vec<Option<f64>> =
        advantages(line, base, figure, places).into_iter().map(Some).collect();
    let ones = vec![Some(1.0); ratios.len()];
    paired_ratio(&ratios, &ones, Level::P95, seed)
}

/// The same of each round that both have: the geometric mean over the places.
fn advantages(
    line: &Line<'_>,
    base: &Line<'_>,
    figure: &Figure,
    places: &[Option<f64>],
) -> Vec<f64> {
    let rounds = |line: &Line<'_>| -> Vec<Vec<Option<f64>>> {
        let place = |&place: &Option<f64>| line.at(place).map(|cell| samples(cell, &figure.key));
        places.iter().map(|at| place(at).unwrap_or_default()).collect()
    };
    let (mine, theirs) = (rounds(line), rounds(base));
    let count = mine.iter().chain(&theirs).map(Vec::len).max().unwrap_or(0);
    let of_round = |round: usize| {
        let logs: Vec<f64> = mine
            .iter()
            .zip(&theirs)
            .filter_map(|(mine, theirs)| (*mine.get(round)?).zip(*theirs.get(round)?))
            .filter(|(mine, theirs)| *mine > 0.0 && *theirs > 0.0)
            .map(|(mine, theirs)| match figure.better {
                Better::Higher => (mine / theirs).ln(),
                Better::Lower => (theirs / mine).ln(),
            })
            .collect();
        (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    };
    (0..count).filter_map(of_round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Axis, Cell, Outcome, Results, Round, SettingRecord, SystemRecord};

    struct Made {
        results: Results,
        part: PartResult,
    }

    fn made(better: Better) -> Made {
        let figure = Figure {
            key: "per_second".to_owned(),
            title: "throughput".to_owned(),
            unit: "1/s".to_owned(),
            better,
        };
        Made {
            results: Results::default(),
            part: PartResult { figures: vec![figure], ..PartResult::default() },
        }
    }

    impl Made {
        fn cell(mut self, system: &str, promise: &str, x: Option<f64>, rounds: &[f64]) -> Self {
            let setting = SettingRecord {
                name: promise.to_owned(),
                promise: promise.to_owned(),
                ..SettingRecord::default()
            };
            match self.results.systems.iter_mut().find(|known| known.name == system) {
                Some(known) => known.settings.push(setting),
                None => self.results.systems.push(SystemRecord {
                    name: system.to_owned(),
                    settings: vec![setting],
                    ..SystemRecord::default()
                }),
            }
            let round = |&per_second: &f64| Round { seconds: 1.0, per_second, ..Round::default() };
            self.part.cells.push(Cell {
                system: system.to_owned(),
                setting: promise.to_owned(),
                x,
                outcome: Outcome::Measured { rounds: rounds.iter().map(round).collect() },
            });
            self
        }

        fn limited(mut self) -> Self {
            if let Some(Outcome::Measured { rounds }) =
                self.part.cells.last_mut().map(|cell| &mut cell.outcome)
            {
                rounds.iter_mut().for_each(|round| round.load_limited = true);
            }
            self
        }

        fn standings(&self) -> Vec<(Vec<String>, Verdict)> {
            let lines = Line::all(&self.results, &self.part);
            standings(&self.part, &lines, 1)
                .into_iter()
                .map(|standing| {
                    let names =
                        standing.ranks.iter().map(|rank| lines[rank.line].system.to_owned());
                    (names.collect(), standing.verdict)
                })
                .collect()
        }
    }

    const SLOW: [f64; 4] = [100.0, 201.0, 99.0, 100.5];
    const FAST: [f64; 4] = [150.0, 301.0, 149.0, 150.5];

    #[test]
    fn a_clear_lead_wins_whatever_the_machine_did_between_rounds() {
        let made =
            made(Better::Higher).cell("b", "none", None, &SLOW).cell("a", "none", None, &FAST);
        let standings = made.standings();
        assert_eq!(standings[0].0, ["a", "b"]);
        let Verdict::Wins { ratio, at_least: false, .. } = &standings[0].1 else {
            panic!("{standings:?}")
        };
        assert!((ratio.median - 1.5).abs() < 0.01 && ratio.surely_above(1.4), "{ratio:?}");
    }

    #[test]
    fn less_can_be_better() {
        let made =
            made(Better::Lower).cell("b", "none", None, &SLOW).cell("a", "none", None, &FAST);
        assert_eq!(made.standings()[0].0, ["b", "a"]);
    }

    #[test]
    fn noise_is_no_lead_and_no_tie_and_one_round_proves_nothing() {
        let noisy = made(Better::Higher).cell("a", "none", None, &[100.0, 120.0, 95.0]).cell(
            "b",
            "none",
            None,
            &[104.0, 108.0, 101.0],
        );
        assert!(matches!(noisy.standings()[0].1, Verdict::Open { .. }), "{:?}", noisy.standings());
        let close = made(Better::Higher)
            .cell("a", "none", None, &[100.0, 101.0, 99.0, 100.0, 100.5, 99.5])
            .cell("b", "none", None, &[100.5, 100.0, 99.5, 99.5, 101.0, 99.0]);
        assert!(matches!(close.standings()[0].1, Verdict::Ties { .. }), "{:?}", close.standings());
        let once =
            made(Better::Higher).cell("a", "none", None, &[2.0]).cell("b", "none", None, &[1.0]);
        assert_eq!(once.standings()[0].1, Verdict::Unproven { ratio: 2.0 });
        let alone = made(Better::Higher).cell("a", "none", None, &SLOW);
        assert_eq!(alone.standings()[0].1, Verdict::Alone);
    }

    #[test]
    fn nothing_missing_is_better_than_any_number_and_has_no_ratio() {
        let made = made(Better::Lower)
            .cell("a", "none", None, &[0.0, 900.0, 700.0])
            .cell("b", "none", None, &[0.0, 0.0, 0.0])
            .cell("c", "none", None, &[0.0, 0.0, 5.0]);
        let standings = made.standings();
        assert_eq!(standings[0].0, ["b", "c", "a"]);
        assert_eq!(standings[0].1, Verdict::Counted { level: 2, best: 0.0, worst: 700.0 });
    }

    /// With a third system, b looks better than a; pairwise a is better: the first is never behind
    /// the second.
    #[test]
    fn the_first_is_ahead_of_the_others_one_by_one() {
        let made = made(Better::Higher)
            .cell("c", "none", None, &[100.0, 10.0, 100.0])
            .cell("a", "none", None, &[110.0, 220.0, 99.0])
            .cell("b", "none", None, &[105.0, 12.0, 120.0]);
        let standings = made.standings();
        assert_eq!(standings[0].0[0], "a", "{standings:?}");
        let Verdict::Open { ratio, .. } = &standings[0].1 else { panic!("{standings:?}") };
        assert!(ratio.median > 1.0, "{ratio:?}");
    }

    #[test]
    fn promises_compete_apart() {
        let made = made(Better::Higher)
            .cell("a", "none", None, &FAST)
            .cell("a", "fsync", None, &SLOW)
            .cell("b", "fsync", None, &FAST);
        let standings = made.standings();
        assert_eq!(standings[0], (vec!["a".to_owned()], Verdict::Alone));
        assert_eq!(standings[1].0, ["b", "a"]);
    }

    #[test]
    fn the_load_generator_wins_nothing_for_anybody() {
        let held = made(Better::Higher)
            .cell("a", "none", None, &FAST)
            .limited()
            .cell("b", "none", None, &SLOW);
        assert!(matches!(held.standings()[0].1, Verdict::Wins { at_least: true, .. }));
        let both = made(Better::Higher)
            .cell("a", "none", None, &FAST)
            .cell("b", "none", None, &SLOW)
            .limited();
        assert_eq!(both.standings()[0].1, Verdict::LoadLimited);
    }

    /// The third may be faster than the first: its load, not itself, was measured.
    #[test]
    fn who_was_held_back_is_not_said_to_be_beaten() {
        let made = made(Better::Higher)
            .cell("a", "none", None, &FAST)
            .cell("b", "none", None, &SLOW)
            .cell("c", "none", None, &SLOW.map(|value| value * 0.5))
            .limited()
            .cell("d", "none", None, &[30.0]);
        let standings = made.standings();
        assert_eq!(standings[0].0, ["a", "b", "c", "d"]);
        let Verdict::Wins { unjudged, at_least: false, .. } = &standings[0].1 else {
            panic!("{standings:?}")
        };
        assert_eq!(unjudged, &[2, 3]);
    }

    #[test]
    fn lines_without_a_common_place_are_not_compared() {
        let mut made = made(Better::Higher)
            .cell("a", "none", Some(1.0), &SLOW)
            .cell("b", "none", Some(10.0), &FAST)
            .cell("a", "none", Some(2.0), &SLOW)
            .cell("c", "none", Some(1.0), &FAST);
        made.part.axis = Some(Axis::default());
        let lines = Line::all(&made.results, &made.part);
        let all = standings(&made.part, &lines, 1);
        let names = |indices: Vec<usize>| -> Vec<&str> {
            indices.into_iter().map(|index| lines[index].system).collect()
        };
        assert_eq!(names(all[0].ranks.iter().map(|rank| rank.line).collect()), ["c", "a"]);
        assert_eq!(names(all[0].apart.clone()), ["b"]);
        assert_eq!(all[0].compared, [Some(1.0)]);
    }

    /// Among equals somebody is always ahead; that is called a lead no more often than the
    /// intervals say, however many systems and rounds there are.
    #[test]
    fn equals_rarely_win() {
        use crate::load::random::Random;
        const RUNS: u32 = 300;
        let mut random = Random::new(5);
        // A sum of twelve even ones is nearly normal; one in ten is a disturbance.
        let mut noise = || {
            let even = |random: &mut Random| f64::from(random.below(1 << 20)) / f64::from(1 << 20);
            let sum: f64 = (0..12).map(|_| even(&mut random)).sum::<f64>() - 6.0;
            let wide = if random.below(10) == 0 { 0.3 } else { 0.05 };
            (wide * sum).exp()
        };
        for (systems, rounds) in [(2, 3), (2, 7), (5, 3), (5, 7)] {
            let wins = (0..RUNS)
                .filter(|_| {
                    let mut made = made(Better::Higher);
                    for system in &["a", "b", "c", "d", "e"][..systems] {
                        let samples: Vec<f64> = (0..rounds).map(|_| 100.0 * noise()).collect();
                        made = made.cell(system, "none", None, &samples);
                    }
                    matches!(made.standings()[0].1, Verdict::Wins { .. })
                })
                .count();
            // Three standard errors above 5 %.
            assert!(wins <= 27, "{systems} systems, {rounds} rounds: {wins} of {RUNS}");
        }
    }

    #[test]
    fn along_an_axis_the_common_places_count() {
        let mut made = made(Better::Higher)
            .cell("a", "none", Some(1.0), &SLOW)
            .cell("a", "none", Some(10.0), &SLOW)
            .cell("b", "none", Some(1.0), &FAST);
        made.part.axis = Some(Axis::default());
        made.part.cells.push(Cell {
            system: "b".to_owned(),
            setting: "none".to_owned(),
            x: Some(10.0),
            outcome: Outcome::Empty { reason: "broke off".to_owned() },
        });
        let standings = made.standings();
        assert_eq!(standings[0].0, ["b", "a"]);
        let lines = Line::all(&made.results, &made.part);
        assert_eq!(lines[1].breaks_off(), Some((10.0, "broke off")));
    }
}
