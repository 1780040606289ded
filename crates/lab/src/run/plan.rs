//! How long a run will take, and how its time is dealt out: rounds, and seconds of each measurement.
//!
//! ```text
//!   a work = starts + fills                          once, or in each round where each starts afresh:
//!                                                    guessed at first, then as each system was seen to start
//!          + rounds x ( connecting, kills, ...       guessed at first, then as the last round was seen
//!                     + measurements x (warm-up + seconds) )    what a budget stretches and shrinks
//! ```
//!
//! A budget is dealt out again before each work, by what is left and by what was seen so far, and within a
//! work before each round: who falls behind shortens its measurements, then leaves rounds out.
//!
//! **Invariant:** within a round of a work all measurements are equally long, so systems are compared alike.
//! Between rounds the length may change, as ratios are formed within a round.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::bench::Bench;
use super::scene::{KEPT_FROM_SECONDS, pairs};
use super::subject::{Subject, SubjectSetting};
use crate::systems::system::{Capability, DriverKind, Topology};
use crate::traffic::Asked;
use crate::works::{Phase, Step, Work};

/// What one work takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkCost {
    /// Its name.
    pub work: &'static str,
    /// In how many rounds it is done at most.
    pub rounds_max: u32,
    /// Whether each round starts all systems afresh.
    pub afresh: bool,
    /// Systems at settings that go through it.
    pub passes: usize,
    /// How often each system is started before the rounds, by label.
    pub starts: Vec<(String, usize)>,
    /// Seconds of fills and loads before the rounds.
    pub prepare_seconds: f64,
    /// Measurements of one round, each with a warm-up before it.
    pub measurements: usize,
    /// Seconds of everything else in a round.
    pub beside_seconds: f64,
    /// What is done in a few rounds only.
    pub few: Few,
}

/// What a work does in a few rounds only: see [`Step::rounds_with_budget`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Few {
    /// In how many.
    pub rounds: u32,
    /// How often each system is started for it in such a round, by label.
    pub starts: Vec<(String, usize)>,
    /// Its measurements, and seconds of everything else.
    pub measurements: usize,
    /// Seconds of everything else in it.
    pub beside_seconds: f64,
}

/// What a run takes, work by work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In the order in which they are done.
    pub works: Vec<WorkCost>,
    /// How long each system takes to start, by label: guessed, then seen.
    pub start_seconds: BTreeMap<String, f64>,
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
pub const SECONDS_MIN: f64 = 0.1;
/// Above this a measurement says no more.
const SECONDS_MAX: f64 = 2.0;
/// Rounds that a budget may buy, the most first, and the seconds of a measurement from which they are worth
/// it. Paired rounds tell systems apart by their number more than by their length: of two, an interval is
/// 12.7 standard errors wide, of six 2.6, of ten 2.3.
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

/// Starting and stopping a program, and one that runs in a Java machine, its client included.
const START_SECONDS: f64 = 0.3;
const START_JAVA_SECONDS: f64 = 6.0;
/// Settling and draining around each measurement, and opening and closing each of its connections.
const AROUND_SECONDS: f64 = 0.03;
const CONNECTION_SECONDS: f64 = 0.000_15;
/// Keys per second of a fill, where requests can be sent together and where they cannot.
const FILLED_PER_SECOND: f64 = 400_000.0;
const FILLED_PER_SECOND_SINGLY: f64 = 25_000.0;
/// Writing until a kill, and reading everything; the start and the restart come on top.
const CRASH_SECONDS: f64 = 0.6;

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
                rounds_max: work.rounds_max,
                afresh: work.topology != Topology::Single,
                ..WorkCost::default()
            };
            for (subject, setting) in pairs(work, subjects, bench) {
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
                cost.add(&plan.steps, subject, &setting);
            }
            cost
        };
        Self { works: works.iter().map(cost).collect(), start_seconds }
    }

    /// Rounds of the works from `from` on, all together.
    #[must_use]
    pub fn rounds(&self, from: usize, rounds: u32) -> u64 {
        self.works[from..].iter().map(|cost| u64::from(self.rounds_of(cost, rounds))).sum()
    }

    /// A work that has nothing but what is done in a few rounds has as few.
    #[must_use]
    pub fn rounds_of(&self, cost: &WorkCost, rounds: u32) -> u32 {
        let nothing_else = cost.measurements == 0 && cost.beside_seconds == 0.0;
        let most = if nothing_else { cost.few.rounds.max(1) } else { u32::MAX };
        rounds.min(cost.rounds_max).min(most)
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

    /// Rounds and seconds with which the works from `from` on fit into `left` seconds; what was asked for
    /// stays.
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

    /// The longest measurements with which `rounds` rounds of the works from `from` on fit into `left`
    /// seconds; negative where nothing does.
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

    /// The plan as a table.
    #[must_use]
    pub fn describe(&self, times: Times, budget: Option<f64>) -> String {
        let mut text =
            format!("{:14} systems  before the rounds  measurements  the first round\n", "");
        for cost in &self.works {
            let (once, each) = self.once_and_each(cost);
            let all = cost.measurements + cost.few.measurements;
            let round = each + self.few_beside(cost) + all as f64 * stretch(times.seconds);
            let (name, passes, measurements) = (cost.work, cost.passes, all);
            text +=
                &format!("{name:14} {passes:7}  {once:15.0} s  {measurements:12}  {round:5.0} s\n");
        }
        let all = self.seconds(0, times);
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
            None => text += "\n",
        }
        text
    }
}

/// How a work's rounds go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Measurements of a round.
    pub measurements: usize,
    /// Seconds of everything else in it.
    pub beside_seconds: f64,
    /// In how many rounds, from now on, what is done in a few only is still to be done.
    pub few_rounds: u32,
    /// Seconds of that.
    pub few_seconds: f64,
}

impl Pace {
    /// The last round took `took` seconds, with measurements of `seconds`, and `few` seconds more for what is
    /// done in a few only.
    pub fn saw(&mut self, took: f64, few: f64, seconds: f64) {
        if self.few_rounds > 0 {
            self.few_rounds -= 1;
            self.few_seconds = few;
        }
        // Where systems failed, fewer measurements were made than planned, and the rest is zero.
        let measured = (self.measurements as f64 * stretch(seconds)).min(took);
        self.beside_seconds = took - measured;
    }

    /// How long the measurements of the next round are to be when `left` seconds are left for it and all
    /// after it, of which `rounds` are wanted: as many as fit, as long as fits. `None` when not even one does.
    #[must_use]
    pub fn next(&self, rounds: u32, left: f64, asked: Option<f64>) -> Option<f64> {
        (1..=rounds).rev().find_map(|rounds| {
            let few = f64::from(rounds.min(self.few_rounds)) * self.few_seconds;
            let each = (left - few) / f64::from(rounds) - self.beside_seconds;
            let longest = seconds_of_stretch(each / self.measurements.max(1) as f64);
            match asked {
                Some(seconds) => (longest >= seconds).then_some(seconds),
                None => (longest >= SECONDS_MIN).then_some(longest.min(SECONDS_MAX)),
            }
        })
    }
}

impl WorkCost {
    fn add(&mut self, steps: &[Step], subject: &Subject, _: &SubjectSetting) {
        let label = subject.label();
        for step in steps {
            match step {
                Step::Prepare(asked) if can(subject, asked) => {
                    self.prepare_seconds +=
                        AROUND_SECONDS + f64::from(asked.requests()) / filled_per_second(subject);
                }
                // What cannot be prepared leaves everything after it empty.
                Step::Prepare(_) => return,
                Step::Measure(phase) if can(subject, &phase.asked) && can_send(subject, phase) => {
                    let connections = phase.connections.unwrap_or(phase.users) as f64;
                    self.measurements += 1;
                    self.beside_seconds += AROUND_SECONDS + connections * CONNECTION_SECONDS;
                }
                Step::Measure(_) => {}
                Step::Crash { keys, .. } if can_restart(subject) => {
                    self.few.rounds = step.rounds_with_budget();
                    self.few.starts.push((label.clone(), 2));
                    self.few.beside_seconds +=
                        CRASH_SECONDS + f64::from(*keys) / filled_per_second(subject);
                }
                Step::Crash { .. } => {}
                Step::Load(custom) if custom.only.is_none_or(|only| subject.speaks(only)) => {
                    self.prepare_seconds += custom.beside_seconds;
                }
                Step::Load(_) => return,
                Step::Custom(custom) if custom.only.is_none_or(|only| subject.speaks(only)) => {
                    // A helper's system does nothing that a work does by itself.
                    if subject.dialect().is_err() {
                        continue;
                    }
                    if custom.starts > 0 {
                        self.few.rounds = step.rounds_with_budget();
                        self.few.starts.push((label.clone(), custom.starts));
                        self.few.measurements += custom.measurements;
                        self.few.beside_seconds += custom.beside_seconds;
                    } else {
                        self.measurements += custom.measurements;
                        self.beside_seconds += custom.beside_seconds;
                    }
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

/// A measurement with its warm-up.
fn stretch(seconds: f64) -> f64 {
    seconds + warm_up(seconds).as_secs_f64()
}

/// The measurement that takes so long with its warm-up, which is a fifth, but no longer than half a second.
fn seconds_of_stretch(stretch: f64) -> f64 {
    (stretch / (1.0 + WARM_UP_SHARE)).max(stretch - WARM_UP_SECONDS_MAX)
}

fn minutes(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

/// Before it was seen.
fn guessed_start(subject: &Subject) -> f64 {
    match subject {
        Subject::Attached(_) => 0.1,
        // Those that bring a client of their own run in a Java machine, as does the client.
        Subject::Found(found) if found.system.driver() == DriverKind::Helper => START_JAVA_SECONDS,
        Subject::Found(_) => START_SECONDS,
    }
}

fn filled_per_second(subject: &Subject) -> f64 {
    if can_pipeline(subject) { FILLED_PER_SECOND } else { FILLED_PER_SECOND_SINGLY }
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

fn can_restart(subject: &Subject) -> bool {
    matches!(subject, Subject::Found(found) if found.system.can(Capability::Restart).is_ok())
}

fn can_send(subject: &Subject, phase: &Phase) -> bool {
    let connections = phase.connections.unwrap_or(phase.users).min(phase.users);
    (phase.depth <= 1 && phase.users <= connections) || can_pipeline(subject)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AS_MANY_AS_WANTED: u32 = u32::MAX;

    fn plan() -> Plan {
        let fast = || vec![("fast".to_owned(), 5)];
        let one = WorkCost {
            work: "one",
            rounds_max: AS_MANY_AS_WANTED,
            starts: fast(),
            prepare_seconds: 8.0,
            measurements: 50,
            beside_seconds: 5.0,
            ..WorkCost::default()
        };
        let afresh = WorkCost {
            work: "afresh",
            rounds_max: 3,
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
        // Three rounds at most.
        assert!((plan.seconds_of(1, times) - 3.0 * (1.0 + 1.0 + 10.0 * 1.2)).abs() < 1e-9);
        assert_eq!(plan.rounds(0, 4), 7);
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
        assert_eq!(plan().fit(0, 100.0, None, None).rounds, 7);
        assert_eq!(plan().fit(0, 10_000.0, None, None), Times { rounds: 20, seconds: SECONDS_MAX });
    }

    /// The budget of `--quick`, eight systems that start at once and a server in a Java machine that takes
    /// a quarter of a minute: it fits, though its start is known only once it was seen.
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
        assert!(plan().describe(times, Some(1.0)).contains("MORE than"));
        assert!(!plan().describe(times, None).contains("MORE"));
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

    #[test]
    fn a_work_that_falls_behind_shortens_its_measurements_and_then_leaves_rounds_out() {
        let mut pace =
            Pace { measurements: 10, beside_seconds: 1.0, few_rounds: 0, few_seconds: 0.0 };
        // Five rounds of 1 + 10 * 1.2 * 0.5 seconds.
        assert!((pace.next(5, 35.0, None).unwrap() - 0.5).abs() < 1e-9);
        // The first took twice as long as planned.
        pace.saw(14.0, 0.0, 0.5);
        assert!((pace.beside_seconds - 8.0).abs() < 1e-9);
        let shorter = pace.next(4, 38.0, None).unwrap();
        assert!((shorter - 0.125).abs() < 1e-9, "{shorter}");
        let mut left = 21.0;
        let mut rounds = 0;
        while let Some(seconds) = pace.next(4 - rounds, left, None) {
            left -= pace.beside_seconds + 10.0 * 1.2 * seconds;
            rounds += 1;
        }
        assert_eq!(rounds, 2, "four do not fit, nor do three");
        assert!(left > -1e-9, "{left}");
        assert_eq!(pace.next(3, 5.0, None), None);
        assert_eq!(pace.next(3, 100.0, Some(1.0)), Some(1.0));
        assert_eq!(pace.next(3, 10.0, Some(1.0)), None);
    }
}
