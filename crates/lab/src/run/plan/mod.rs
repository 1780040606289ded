//! How long a run will take, and how its time is distributed: rounds, and seconds of each
//! measurement.
//!
//! ```text
//!   a work = starts + fills                          once, or in each round where each starts afresh:
//!                                                    guessed at first, then as each system was seen to start
//!          + rounds x ( connecting, kills, ...       guessed at first, then as the last round was seen
//!                     + measurements x (warm-up + seconds) )    what a budget stretches and shrinks
//! ```
//!
//! A budget is redistributed before each work, by the time left and by the costs observed so far,
//! and within a work before each round: a work that falls behind shortens its measurements, then
//! leaves out rounds.
//!
//! **Invariant:** within a round of a work all measurements are equally long, so systems are
//! compared fairly. Between rounds the length may change, because ratios are formed within a round.

mod cost;
mod pace;

use std::collections::{BTreeMap, BTreeSet};

use super::bench::Bench;
use super::measurement_length::{SECONDS_MAX, SECONDS_MIN, seconds_of_stretch, stretch};
use super::subject::{Subject, pairs};
use crate::topology::Topology;
use crate::work::{Times, Work};
pub use cost::{Few, WorkCost};
use cost::{START_SECONDS, guessed_start, takes_part};
pub use pace::Pace;

/// What a run takes, work by work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In the order in which they are done.
    pub works: Vec<WorkCost>,
    /// How long each system takes to start, by label: guessed, then seen.
    pub start_seconds: BTreeMap<String, f64>,
}

/// Systems that take at least this long to start are reused by the next work; others are restarted,
/// so that memory and disk belong to one work.
pub const KEPT_FROM_SECONDS: f64 = 2.0;

/// Rounds that a budget may buy, the most first, and the seconds of a measurement from which they
/// are worth it. Paired rounds tell systems apart by their number more than by their length: of
/// two, an interval is 12.7 standard errors wide, of six 2.6, of ten 2.3.
const ROUNDS: [(u32, f64); 11] = [
    (20, 1.0),
    (15, 0.5),
    (10, 0.2),
    (8, 0.15),
    (7, SECONDS_MIN),
    (6, SECONDS_MIN),
    (5, SECONDS_MIN),
    (4, SECONDS_MIN),
    (3, SECONDS_MIN),
    (2, SECONDS_MIN),
    (1, SECONDS_MIN),
];

impl Plan {
    /// Guesses from the works' plans, leaving out what systems say that they cannot do.
    #[must_use]
    pub fn guess(works: &[&Work], subjects: &[Subject], bench: &Bench) -> Self {
        let mut kept = BTreeSet::new();
        let start_seconds =
            subjects.iter().map(|subject| (subject.label(), guessed_start(subject)));
        let start_seconds: BTreeMap<String, f64> = start_seconds.collect();
        let cost = |work: &&Work| {
            let plan = (work.plan)(&bench.scale);
            let mut cost = WorkCost {
                work: work.name,
                afresh: work.topology != Topology::Single,
                ..WorkCost::default()
            };
            for (subject, setting) in pairs(work, subjects, bench.promise) {
                cost.passes += 1;
                if !takes_part(work, subject) {
                    continue;
                }
                // A slow starter goes on to the next work.
                let (label, name) = (subject.label(), setting.name());
                let slow = start_seconds[&label] >= KEPT_FROM_SECONDS && !cost.afresh;
                if !slow || kept.insert((label.clone(), name)) {
                    cost.starts.push((label, work.topology.nodes()));
                }
                cost.add(&plan.steps, subject);
            }
            cost
        };
        Self { works: works.iter().map(cost).collect(), start_seconds }
    }

    /// Rounds and seconds of each work: those requested, those that fit into `left` seconds, or
    /// those that decide the work.
    #[must_use]
    pub fn times(
        &self,
        works: &[&Work],
        left: Option<f64>,
        rounds: Option<u32>,
        seconds: Option<f64>,
    ) -> Vec<Times> {
        let of = |work: &&Work| match left {
            Some(left) => self.fit(0, left, rounds, seconds),
            None => Times {
                rounds: rounds.unwrap_or(work.decides.rounds),
                seconds: seconds.unwrap_or(work.decides.seconds),
            },
        };
        works.iter().map(of).collect()
    }

    /// Rounds of the works from `from` on, all together, each at its times.
    #[must_use]
    pub fn rounds(&self, from: usize, times: &[Times], budget: Option<f64>) -> u64 {
        let works = self.works.iter().zip(times).skip(from);
        works.map(|(cost, &times)| u64::from(self.all_rounds(cost, times, budget))).sum()
    }

    /// Where time is not limited, everything is done in every round.
    fn all_rounds(&self, cost: &WorkCost, times: Times, budget: Option<f64>) -> u32 {
        match budget {
            Some(_) => self.rounds_of(cost, times.rounds),
            None => times.rounds,
        }
    }

    /// A work that has nothing but what is done in a few rounds has as few.
    #[must_use]
    pub fn rounds_of(&self, cost: &WorkCost, rounds: u32) -> u32 {
        let nothing_else = cost.measurements == 0 && cost.beside_seconds == 0.0;
        let most = if nothing_else { cost.few.rounds.max(1) } else { u32::MAX };
        rounds.min(most)
    }

    /// Seconds of the works from `from` on.
    #[must_use]
    pub fn seconds(&self, from: usize, times: Times) -> f64 {
        self.works[from..].iter().map(|cost| self.of(cost, times)).sum()
    }

    /// Seconds of the work at this place.
    #[must_use]
    pub fn seconds_of(&self, work: usize, times: Times) -> f64 {
        self.of(&self.works[work], times)
    }

    fn of(&self, cost: &WorkCost, times: Times) -> f64 {
        let rounds = f64::from(self.rounds_of(cost, times.rounds));
        let (once, each) = self.once_and_each(cost);
        let few = f64::from(times.rounds.min(cost.few.rounds));
        once + rounds * (each + cost.measurements as f64 * stretch(times.seconds))
            + few * (self.few_beside(cost) + cost.few.measurements as f64 * stretch(times.seconds))
    }

    /// Seconds of a round with what is done in a few only, beside their measurements.
    fn few_beside(&self, cost: &WorkCost) -> f64 {
        self.started(&cost.few.starts) + cost.few.beside_seconds
    }

    fn started(&self, starts: &[(String, usize)]) -> f64 {
        let seconds =
            |label: &String| self.start_seconds.get(label).copied().unwrap_or(START_SECONDS);
        starts.iter().map(|(label, count)| seconds(label) * *count as f64).sum()
    }

    /// Seconds before the rounds, and of a round beside its measurements.
    fn once_and_each(&self, cost: &WorkCost) -> (f64, f64) {
        let once = self.started(&cost.starts) + cost.prepare_seconds;
        let each = cost.beside_seconds;
        if cost.afresh { (0.0, once + each) } else { (once, each) }
    }

    /// Rounds and seconds with which the works from `from` on fit into `left` seconds; what was
    /// asked for stays.
    #[must_use]
    pub fn fit(&self, from: usize, left: f64, rounds: Option<u32>, seconds: Option<f64>) -> Times {
        let choices = match rounds {
            Some(rounds) => vec![(rounds, SECONDS_MIN)],
            None => ROUNDS.to_vec(),
        };
        for &(rounds, worth) in &choices {
            let most = seconds.unwrap_or_else(|| self.longest(from, rounds, left).min(SECONDS_MAX));
            let times = Times { rounds, seconds: most };
            let long_enough = seconds.is_some() || most >= worth;
            // Equal but for the rounding of so many sums.
            if long_enough && self.seconds(from, times) <= left + 1e-6 {
                return times;
            }
        }
        // Over the budget, and the plan that is printed says so.
        let rounds = choices.last().map_or(1, |(rounds, _)| *rounds);
        Times { rounds, seconds: seconds.unwrap_or(SECONDS_MIN) }
    }

    /// The longest measurements with which `rounds` rounds of the works from `from` on fit into
    /// `left` seconds; negative where nothing does.
    fn longest(&self, from: usize, rounds: u32, left: f64) -> f64 {
        let (mut beside, mut measurements) = (0.0, 0.0);
        for cost in &self.works[from..] {
            let rounds = f64::from(self.rounds_of(cost, rounds));
            let (once, each) = self.once_and_each(cost);
            let few = f64::from(cost.few.rounds).min(rounds);
            beside += once + rounds * each + few * self.few_beside(cost);
            measurements += rounds * cost.measurements as f64;
            measurements += few * cost.few.measurements as f64;
        }
        seconds_of_stretch((left - beside) / measurements.max(1.0))
    }

    /// What the work at `work` may take when `left` seconds are left for it and those after it, at
    /// `times`, which the plan says they all take: its share of them.
    #[must_use]
    pub fn share(&self, work: usize, times: Times, left: f64) -> f64 {
        let all = self.seconds(work, times);
        if all > 0.0 { left * self.seconds_of(work, times) / all } else { left }
    }

    /// A system was seen to start in so many seconds. The latest counts: the machine may have
    /// become busier.
    pub fn saw_start(&mut self, label: &str, seconds: f64) {
        self.start_seconds.insert(label.to_owned(), seconds);
    }

    /// What is known of a round of a work before its first.
    #[must_use]
    pub fn pace(&self, work: usize) -> Pace {
        let cost = &self.works[work];
        let (_, each) = self.once_and_each(cost);
        let few_seconds =
            self.few_beside(cost) + cost.few.measurements as f64 * stretch(SECONDS_MIN);
        Pace {
            measurements: cost.measurements,
            beside_seconds: each,
            few_rounds: cost.few.rounds,
            few_seconds,
        }
    }

    /// The plan as a table, each work at its times.
    #[must_use]
    pub fn describe(&self, times: &[Times], budget: Option<f64>) -> String {
        let mut text = format!(
            "{:14} systems  before the rounds  measurements  the first round  rounds  seconds\n",
            ""
        );
        let mut all = 0.0;
        for (cost, &times) in self.works.iter().zip(times) {
            let (once, each) = self.once_and_each(cost);
            let measurements = cost.measurements + cost.few.measurements;
            let round = each + self.few_beside(cost) + measurements as f64 * stretch(times.seconds);
            let (name, passes) = (cost.work, cost.passes);
            let rounds = self.all_rounds(cost, times, budget);
            text += &format!(
                "{name:14} {passes:7}  {once:15.0} s  {measurements:12}  {round:13.0} s  {rounds:6}  {:7.2}\n",
                times.seconds
            );
            all += match budget {
                Some(_) => self.of(cost, times),
                None => once + f64::from(rounds) * round,
            };
        }
        text += &format!("about {}", minutes(all));
        match budget {
            Some(budget) if all > budget => {
                text += &format!(", MORE than the {} asked for\n", minutes(budget));
            }
            Some(budget) => text += &format!(" of {} asked for\n", minutes(budget)),
            None => text += "\n",
        }
        text
    }
}

fn minutes(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let fast = || vec![("fast".to_owned(), 5)];
        let one = WorkCost {
            work: "one",
            starts: fast(),
            prepare_seconds: 8.0,
            measurements: 50,
            beside_seconds: 5.0,
            ..WorkCost::default()
        };
        let afresh = WorkCost {
            work: "afresh",
            afresh: true,
            starts: fast(),
            measurements: 10,
            beside_seconds: 1.0,
            ..WorkCost::default()
        };
        let start_seconds = [("fast".to_owned(), 0.2), ("slow".to_owned(), 15.0)];
        Plan { works: vec![one, afresh], start_seconds: start_seconds.into() }
    }

    #[test]
    fn starts_count_once_or_in_each_round_as_the_work_has_it() {
        let plan = plan();
        let times = Times { rounds: 4, seconds: 1.0 };
        assert!((plan.seconds_of(0, times) - (1.0 + 8.0 + 4.0 * (5.0 + 50.0 * 1.2))).abs() < 1e-9);
        assert!((plan.seconds_of(1, times) - 4.0 * (1.0 + 1.0 + 10.0 * 1.2)).abs() < 1e-9);
        assert_eq!(plan.rounds(0, &[times, Times { rounds: 3, seconds: 1.0 }], None), 7);
    }

    #[test]
    fn a_budget_buys_rounds_and_seconds_that_fit_it() {
        for budget in [60.0, 90.0, 150.0, 300.0, 1000.0, 10_000.0] {
            let times = plan().fit(0, budget, None, None);
            let all = plan().seconds(0, times);
            assert!(all <= budget + 1e-6, "{budget}: {times:?} takes {all}");
            assert!(times.seconds >= SECONDS_MIN && times.seconds <= SECONDS_MAX, "{times:?}");
            // A little more time per measurement would be too much, unless it is long enough.
            let more = Times { seconds: times.seconds + 0.01, ..times };
            let more = plan().seconds(0, more);
            assert!(more > budget || times.seconds == SECONDS_MAX, "{budget}: {times:?}");
        }
        // Rounds first, then their length.
        assert_eq!(plan().fit(0, 110.0, None, None).rounds, 7);
        assert_eq!(plan().fit(0, 10_000.0, None, None), Times { rounds: 20, seconds: SECONDS_MAX });
    }

    /// The budget of `--quick`, eight systems that start at once and a server in a Java machine
    /// that takes a quarter of a minute: it fits, though its start is known only once it was seen.
    #[test]
    fn a_slow_starter_costs_rounds_and_not_the_budget() {
        let mut plan = plan();
        plan.works[0].starts.push(("slow".to_owned(), 1));
        plan.works[0].few.rounds = 2;
        plan.works[0].few.starts.push(("slow".to_owned(), 2));
        plan.start_seconds.insert("slow".to_owned(), 0.3);
        let hoped = plan.fit(0, 240.0, None, None);
        plan.saw_start("slow", 15.0);
        assert!(plan.seconds(0, hoped) > 240.0, "{hoped:?}");
        let times = plan.fit(0, 240.0, None, None);
        assert!(plan.seconds(0, times) <= 240.0 + 1e-6 && times.rounds < hoped.rounds, "{times:?}");
        assert!(times.rounds >= 3, "{times:?}");
    }

    #[test]
    fn what_was_asked_for_stays() {
        let asked = Times { rounds: 4, seconds: 0.7 };
        assert_eq!(plan().fit(0, 900.0, Some(4), Some(0.7)), asked);
        assert_eq!(plan().fit(0, 300.0, Some(1), None).rounds, 1);
        assert_eq!(plan().fit(0, 300.0, None, Some(0.5)).seconds, 0.5);
    }

    #[test]
    fn a_budget_that_is_too_small_gets_the_least_and_is_told() {
        let times = plan().fit(0, 1.0, None, None);
        assert_eq!(times, Times { rounds: 1, seconds: SECONDS_MIN });
        assert!(plan().describe(&[times; 2], Some(1.0)).contains("MORE than"));
        assert!(!plan().describe(&[times; 2], None).contains("MORE"));
    }

    #[test]
    fn what_is_done_in_a_few_rounds_does_not_cost_the_others() {
        let mut plan = plan();
        plan.works[0].few = Few {
            rounds: 2,
            starts: vec![("fast".to_owned(), 10)],
            measurements: 5,
            beside_seconds: 4.0,
        };
        let without = self::plan();
        let more = |rounds| {
            let times = Times { rounds, seconds: 1.0 };
            plan.seconds_of(0, times) - without.seconds_of(0, times)
        };
        assert!((more(1) - (2.0 + 4.0 + 5.0 * 1.2)).abs() < 1e-9);
        assert!((more(2) - more(7)).abs() < 1e-9);
        let mut pace = plan.pace(0);
        assert_eq!(pace.few_rounds, 2);
        // A round of 5 s beside 50 measurements of 0.1 s, and 10 s more in two of them.
        pace.saw(11.0, 10.0, 0.1);
        let seconds = pace.next(3, 3.0 * 11.0 + 10.0, None).unwrap();
        assert!((seconds - 0.1).abs() < 1e-9, "{seconds}");
    }

    #[test]
    fn works_share_what_is_left() {
        let plan = plan();
        let times = Times { rounds: 3, seconds: 0.5 };
        let all = plan.seconds(0, times);
        let first = plan.share(0, times, all / 2.0);
        assert!((first - plan.seconds_of(0, times) / 2.0).abs() < 1e-9);
        assert!((plan.share(1, times, 20.0) - 20.0).abs() < 1e-9, "the last one has it all");
    }
}
