//! What a work takes, guessed from its steps and from what each system says that it can do; starts
//! are then seen.

use crate::run::subject::Subject;
use crate::systems::system::{Capability, DriverKind};
use crate::topology::Topology;
use crate::traffic::Asked;
use crate::work::{Phase, Step, Work};

/// Starting and stopping a program, and one that runs in a Java machine, its client included.
pub(super) const START_SECONDS: f64 = 0.3;
const START_JAVA_SECONDS: f64 = 6.0;
/// Settling and draining around each measurement, and opening and closing each of its connections.
const AROUND_SECONDS: f64 = 0.03;
const CONNECTION_SECONDS: f64 = 0.000_15;
/// Keys per second of a fill, where requests can be sent together and where they cannot.
const FILLED_PER_SECOND: f64 = 400_000.0;
const FILLED_PER_SECOND_SINGLY: f64 = 25_000.0;
/// Writing until a kill, and reading everything; the start and the restart come on top.
const CRASH_SECONDS: f64 = 0.6;

/// What one work takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkCost {
    /// Its name.
    pub work: &'static str,
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

impl WorkCost {
    /// Adds what one system at one setting takes for `steps`.
    pub(super) fn add(&mut self, steps: &[Step], subject: &Subject) {
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
                Step::Load(custom) if custom.sql && subject.sql().is_ok() => {
                    self.prepare_seconds += custom.beside_seconds;
                }
                Step::Custom(custom) if custom.sql && subject.sql().is_ok() => {
                    self.measurements += custom.measurements;
                    self.beside_seconds += custom.beside_seconds;
                }
                Step::Load(custom)
                    if !custom.sql && !custom.redis_commands
                        || subject.speaks(DriverKind::Resp) =>
                {
                    self.prepare_seconds += custom.beside_seconds;
                }
                Step::Load(_) => return,
                Step::Custom(custom)
                    if !custom.sql && !custom.redis_commands
                        || subject.speaks(DriverKind::Resp) =>
                {
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

/// Before it was seen.
pub(super) fn guessed_start(subject: &Subject) -> f64 {
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

pub(super) fn takes_part(work: &Work, subject: &Subject) -> bool {
    match subject {
        Subject::Found(found) => {
            let system = found.system;
            let speaks = work.name != "web" || subject.speaks_http();
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
