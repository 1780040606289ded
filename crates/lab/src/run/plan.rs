//! How long a run will take, and how its time is dealt out: rounds, and seconds of each measurement.
//!
//! ```text
//!   a round = starts + fills + connecting ...        what the seconds do not change: guessed from
//!                                                    the plans at first, then seen in round one
//!           + measurements x (warm-up + seconds)     what a budget stretches and shrinks
//! ```
//!
//! **Invariant:** within a round all measurements are equally long, so systems are compared alike.
//! Between rounds the length may change, as ratios are formed within a round.

use std::time::Duration;

use super::bench::Bench;
use super::pairs;
use super::subject::{Subject, SubjectSetting};
use crate::systems::system::{Capability, DriverKind, Topology};
use crate::traffic::Asked;
use crate::works::{Phase, Step, Work};

/// What one work takes in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkCost {
    /// Its name.
    pub work: &'static str,
    /// In how many rounds it is done at most.
    pub rounds_max: u32,
    /// Systems at settings that go through it.
    pub passes: usize,
    /// Measurements of one round, each with a warm-up before it.
    pub measurements: usize,
    /// Seconds of everything else.
    pub beside_seconds: f64,
}

/// What a run takes, work by work.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In the order in which they are done.
    pub works: Vec<WorkCost>,
}

/// Rounds and the length of each measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Interleaved rounds.
    pub rounds: u32,
    /// Seconds of each measurement, without its warm-up.
    pub seconds: f64,
}

/// Below this a measurement says little; rather fewer rounds then.
pub const SECONDS_MIN: f64 = 0.15;
/// Once a run is under way, measurements may become this short before a planned round is left out.
const SECONDS_LEAST: f64 = 0.1;
/// Above this a measurement says no more; rather more rounds then.
const SECONDS_MAX: f64 = 2.0;
/// Rounds that a budget may buy, the most first, and the seconds from which they are worth it.
const ROUNDS: [(u32, f64); 4] = [(5, 0.5), (3, SECONDS_MIN), (2, SECONDS_MIN), (1, SECONDS_MIN)];
/// Share of a budget that is planned for; the rest is for what takes longer than planned.
const PLANNED: f64 = 0.96;

/// Starting and stopping a program, and one that runs in a Java machine.
const START_SECONDS: f64 = 0.3;
const START_JAVA_SECONDS: f64 = 4.0;
/// Settling and draining around each measurement, and opening and closing each of its connections.
const AROUND_SECONDS: f64 = 0.1;
const CONNECTION_SECONDS: f64 = 0.000_15;
/// Keys per second of a fill, where requests can be sent together and where they cannot.
const FILLED_PER_SECOND: f64 = 400_000.0;
const FILLED_PER_SECOND_SINGLY: f64 = 25_000.0;
/// Writing until a kill, the kill, a restart and reading everything.
const CRASH_SECONDS: f64 = 1.2;

impl Plan {
    /// Guesses from the works' plans, leaving out what systems say that they cannot do.
    #[must_use]
    pub fn guess(works: &[&Work], subjects: &[Subject], bench: &Bench) -> Self {
        let cost = |work: &&Work| {
            let plan = (work.plan)(&bench.scale);
            let mut cost = WorkCost {
                work: work.name,
                rounds_max: work.rounds_max,
                passes: 0,
                measurements: 0,
                beside_seconds: 0.0,
            };
            for (subject, setting) in pairs(work, subjects, bench) {
                cost.passes += 1;
                cost.add(work, &plan.steps, subject, &setting);
            }
            cost
        };
        Self { works: works.iter().map(cost).collect() }
    }

    /// Passes of a whole run.
    #[must_use]
    pub fn passes(&self, rounds: u32) -> u64 {
        self.works
            .iter()
            .map(|cost| cost.passes as u64 * u64::from(rounds.min(cost.rounds_max)))
            .sum()
    }

    /// Seconds of rounds `from` up to and without `to`, each measurement `seconds` long.
    #[must_use]
    pub fn seconds(&self, from: u32, to: u32, seconds: f64) -> f64 {
        let stretch = seconds + warm_up(seconds).as_secs_f64();
        self.sum(from, to, |cost| cost.beside_seconds + cost.measurements as f64 * stretch)
    }

    /// Rounds and seconds that fit into `budget` seconds; what was `asked` for stays.
    #[must_use]
    pub fn fit(&self, budget: f64, rounds: Option<u32>, seconds: Option<f64>) -> Times {
        let choices = match rounds {
            Some(rounds) => vec![(rounds, 0.0)],
            None => ROUNDS.to_vec(),
        };
        for &(rounds, worth) in &choices {
            let most = seconds.unwrap_or_else(|| self.longest(0, rounds, budget * PLANNED));
            let long_enough = seconds.is_some() || most >= worth.max(SECONDS_MIN);
            if long_enough && self.seconds(0, rounds, most) <= budget {
                return Times { rounds, seconds: seconds.unwrap_or(most.min(SECONDS_MAX)) };
            }
        }
        // Over the budget, and the plan that is printed says so.
        let rounds = choices.last().map_or(1, |(rounds, _)| *rounds);
        Times { rounds, seconds: seconds.unwrap_or(SECONDS_MIN) }
    }

    /// The longest measurements with which rounds `from` up to and without `to` fit into `budget`
    /// seconds; negative where nothing does.
    #[must_use]
    pub fn longest(&self, from: u32, to: u32, budget: f64) -> f64 {
        let measurements = self.sum(from, to, |cost| cost.measurements as f64).max(1.0);
        let left = budget - self.sum(from, to, |cost| cost.beside_seconds);
        let stretch = left / measurements;
        // The warm-up is a fifth, but no longer than half a second.
        (stretch / (1.0 + WARM_UP_SHARE)).max(stretch - WARM_UP_SECONDS_MAX)
    }

    /// What the rounds from `round` on are to be when `left` seconds are left: as many as planned and
    /// that fit, as long as fits. `None` when not even one does.
    #[must_use]
    pub fn go_on(&self, round: u32, rounds: u32, left: f64, asked: Option<f64>) -> Option<Times> {
        (round + 1..=rounds).rev().find_map(|rounds| {
            let longest = self.longest(round, rounds, left);
            match asked {
                Some(seconds) => (longest >= seconds).then_some(Times { rounds, seconds }),
                None => (longest >= SECONDS_LEAST)
                    .then_some(Times { rounds, seconds: longest.min(SECONDS_MAX) }),
            }
        })
    }

    /// Puts what round one took in the place of what was guessed: seconds of each work, in order,
    /// with measurements that were `seconds` long.
    pub fn learn(&mut self, took: &[f64], seconds: f64) {
        let stretch = seconds + warm_up(seconds).as_secs_f64();
        for (cost, &took) in self.works.iter_mut().zip(took) {
            // Where systems failed, fewer measurements were made than planned, and the rest is zero.
            let measured = (cost.measurements as f64 * stretch).min(took);
            cost.beside_seconds = took - measured;
        }
    }

    /// The plan as a table.
    #[must_use]
    pub fn describe(&self, times: Times, budget: Option<f64>) -> String {
        let mut text = format!("{:14} passes  measurements  about\n", "a round of");
        for cost in &self.works {
            let alone = Self { works: vec![cost.clone()] };
            let seconds = alone.seconds(0, 1, times.seconds);
            let (name, passes, measurements) = (cost.work, cost.passes, cost.measurements);
            text += &format!("{name:14} {passes:6}  {measurements:12}  {seconds:4.0} s\n");
        }
        let all = self.seconds(0, times.rounds, times.seconds);
        text += &format!(
            "{} round{}, measurements of {:.2} s: about {}",
            times.rounds,
            if times.rounds == 1 { "" } else { "s" },
            times.seconds,
            minutes(all)
        );
        match budget {
            Some(budget) if all > budget => {
                text += &format!(", MORE than the {} asked for\n", minutes(budget));
            }
            Some(budget) => text += &format!(" of {} asked for\n", minutes(budget)),
            None => text.push('\n'),
        }
        text
    }

    fn sum(&self, from: u32, to: u32, of: impl Fn(&WorkCost) -> f64) -> f64 {
        let rounds = |cost: &WorkCost| to.min(cost.rounds_max).saturating_sub(from);
        self.works.iter().map(|cost| of(cost) * f64::from(rounds(cost))).sum()
    }
}

impl WorkCost {
    fn add(&mut self, work: &Work, steps: &[Step], subject: &Subject, setting: &SubjectSetting) {
        if !takes_part(work, subject) {
            return;
        }
        let java = match subject {
            Subject::Found(found) => {
                found.program.command.first().is_some_and(|word| word.ends_with("java"))
            }
            Subject::Attached(_) => false,
        };
        let start = match (subject, setting) {
            (Subject::Attached(_), _) | (_, SubjectSetting::AsAttached) => 0.0,
            _ if java => START_JAVA_SECONDS,
            _ => START_SECONDS,
        };
        self.beside_seconds += start * work.topology.nodes() as f64;
        for step in steps {
            match step {
                Step::Prepare(asked) if can(subject, asked) => {
                    let each = if can_pipeline(subject) {
                        FILLED_PER_SECOND
                    } else {
                        FILLED_PER_SECOND_SINGLY
                    };
                    self.beside_seconds += AROUND_SECONDS + asked.requests() as f64 / each;
                }
                // What cannot be prepared leaves everything after it empty.
                Step::Prepare(_) => return,
                Step::Measure(phase) if can(subject, &phase.asked) && can_send(subject, phase) => {
                    let connections = phase.connections.unwrap_or(phase.users) as f64;
                    self.measurements += 1;
                    self.beside_seconds += AROUND_SECONDS + connections * CONNECTION_SECONDS;
                }
                Step::Measure(_) => {}
                Step::Crash { .. } => self.beside_seconds += CRASH_SECONDS,
                Step::Custom(custom) if custom.only.is_none_or(|driver| subject.speaks(driver)) => {
                    self.measurements += custom.measurements;
                    self.beside_seconds += custom.beside_seconds;
                }
                Step::Custom(_) => {}
            }
        }
    }
}

/// The warm-up before a measurement of `seconds`.
#[must_use]
pub fn warm_up(seconds: f64) -> Duration {
    Duration::from_secs_f64((seconds * WARM_UP_SHARE).min(WARM_UP_SECONDS_MAX))
}

const WARM_UP_SHARE: f64 = 0.2;
const WARM_UP_SECONDS_MAX: f64 = 0.5;

fn minutes(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

fn takes_part(work: &Work, subject: &Subject) -> bool {
    match subject {
        Subject::Found(found) => {
            let system = found.system;
            let speaks = work.name != "web" || subject.speaks(DriverKind::Http);
            speaks && system.can(Capability::Nodes(work.topology)).is_ok()
        }
        Subject::Attached(_) => work.topology == Topology::Single,
    }
}

fn can(subject: &Subject, asked: &Asked) -> bool {
    asked.kinds().into_iter().all(|kind| subject.can_do(kind).is_ok())
}

fn can_pipeline(subject: &Subject) -> bool {
    subject.can_pipeline().is_ok()
}

fn can_send(subject: &Subject, phase: &Phase) -> bool {
    let connections = phase.connections.unwrap_or(phase.users).min(phase.users);
    (phase.depth <= 1 && phase.users <= connections) || can_pipeline(subject)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let cost = |work, rounds_max, measurements, beside_seconds| WorkCost {
            work,
            rounds_max,
            passes: 5,
            measurements,
            beside_seconds,
        };
        Plan { works: vec![cost("a", u32::MAX, 100, 20.0), cost("b", 1, 10, 30.0)] }
    }

    #[test]
    fn a_budget_buys_rounds_and_seconds_that_fit_it() {
        for budget in [90.0, 150.0, 300.0, 1000.0, 10_000.0] {
            let times = plan().fit(budget, None, None);
            let all = plan().seconds(0, times.rounds, times.seconds);
            assert!(all <= budget, "{budget}: {times:?} takes {all}");
            assert!(times.seconds >= SECONDS_MIN && times.seconds <= SECONDS_MAX, "{times:?}");
            // A little more time per measurement would be too much, unless it is long enough.
            let more = plan().seconds(0, times.rounds, times.seconds + 0.1);
            assert!(more > budget * PLANNED || times.seconds == SECONDS_MAX, "{budget}: {times:?}");
        }
        assert_eq!(plan().fit(300.0, None, None).rounds, 3);
        assert_eq!(plan().fit(10_000.0, None, None), Times { rounds: 5, seconds: SECONDS_MAX });
    }

    #[test]
    fn what_was_asked_for_stays() {
        assert_eq!(plan().fit(900.0, Some(4), Some(0.7)), Times { rounds: 4, seconds: 0.7 });
        assert_eq!(plan().fit(300.0, Some(1), None).rounds, 1);
        assert_eq!(plan().fit(300.0, None, Some(0.5)).seconds, 0.5);
    }

    #[test]
    fn a_budget_that_is_too_small_gets_the_least_and_is_told() {
        let times = plan().fit(1.0, None, None);
        assert_eq!(times, Times { rounds: 1, seconds: SECONDS_MIN });
        assert!(plan().describe(times, Some(1.0)).contains("MORE than"));
        assert!(!plan().describe(times, None).contains("MORE"));
    }

    #[test]
    fn a_work_of_one_round_counts_once() {
        assert_eq!(plan().passes(3), 5 * 3 + 5);
        let one = plan().seconds(0, 1, 1.0);
        let three = plan().seconds(0, 3, 1.0);
        assert!((one - (20.0 + 30.0 + 110.0 * 1.2)).abs() < 1e-9, "{one}");
        assert!((three - (60.0 + 30.0 + 310.0 * 1.2)).abs() < 1e-9, "{three}");
        assert!((plan().seconds(1, 3, 1.0) - (three - one)).abs() < 1e-9);
    }

    #[test]
    fn later_rounds_are_as_many_and_as_long_as_the_time_that_is_left() {
        let plan = plan();
        // Rounds after the first: 20 seconds and 100 measurements each.
        let times = plan.go_on(1, 3, 160.0, None).unwrap();
        assert_eq!(times.rounds, 3);
        assert!((plan.seconds(1, 3, times.seconds) - 160.0).abs() < 1e-6, "{times:?}");
        assert_eq!(plan.go_on(1, 3, 60.0, None).unwrap().rounds, 2, "one fits, two do not");
        assert_eq!(plan.go_on(1, 3, 30.0, None), None);
        assert_eq!(plan.go_on(1, 3, 300.0, Some(1.0)).unwrap(), Times { rounds: 3, seconds: 1.0 });
        assert_eq!(plan.go_on(1, 3, 200.0, Some(1.0)).unwrap().rounds, 2);
        assert_eq!(plan.go_on(1, 3, 100.0, Some(1.0)), None);
    }

    #[test]
    fn what_round_one_took_is_what_the_next_one_takes() {
        let mut plan = plan();
        plan.learn(&[200.0, 50.0], 1.0);
        assert!((plan.seconds(1, 2, 1.0) - 200.0).abs() < 1e-9);
        let longest = plan.longest(1, 2, 140.0);
        assert!((plan.seconds(1, 2, longest) - 140.0).abs() < 1e-6, "{longest}");
    }
}
