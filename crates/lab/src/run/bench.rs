//! A run's surroundings: cores, times, how many connections are possible.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::options::RunArguments;
use super::subject::Subject;
use super::tool::Tool;
use super::{RunError, pairs};
use crate::load::driver::Waiting;
use crate::measure::cores::{Cores, pin_this_thread};
use crate::measure::machine::Machine;
use crate::systems::system::Promise;
use crate::works::{Scale, Step, Work};

/// See the module.
#[derive(Debug)]
pub struct Bench {
    /// Sizes.
    pub scale: Scale,
    /// How long each measurement is.
    pub measured: Duration,
    /// What goes before it, unmeasured.
    pub warm_up: Duration,
    /// Interleaved rounds.
    pub rounds: u32,
    /// Requests per second of all users, where they do not wait for answers.
    pub rate: Option<f64>,
    /// What an acknowledged write must be worth.
    pub promise: Promise,
    /// Where all chance comes from.
    pub seed: u64,
    /// Who runs where.
    pub cores: Cores,
    /// How the load generator waits.
    pub waiting: Waiting,
    /// The machine.
    pub machine: Machine,
    /// Where the servers' directories are made.
    pub data_root: PathBuf,
    /// Where results go.
    pub out: PathBuf,
    /// When the run began.
    pub began: Instant,
    /// What measures instead of the lab's own driver.
    pub tool: Option<Tool>,
}

/// What `--quick` may take, with some of its five minutes in reserve.
const QUICK_SECONDS: f64 = 265.0;
/// When no further round is begun with `--quick`, if the estimates below were too low here.
const QUICK_LAST_ROUND_ENDS: f64 = 285.0;
/// Starting and stopping a system.
const START_SECONDS: f64 = 0.4;
/// Connecting, settling and draining around each measurement, beside the warm-up.
const AROUND_SECONDS: f64 = 0.12;
/// Filling a store, or a crash with its restart and count.
const HEAVY_STEP_SECONDS: f64 = 0.7;
/// Below this a measurement says little; rather fewer rounds then.
const QUICK_MEASUREMENT_SECONDS_MIN: f64 = 0.15;

/// File descriptors beside the connections.
const DESCRIPTORS_BESIDE: u64 = 200;

impl Bench {
    /// Looks at the machine, decides on times, and pins the calling thread, which will be the load
    /// generator.
    ///
    /// # Errors
    /// When pinning is refused or the results' directory cannot be made.
    pub fn prepare(
        arguments: &RunArguments,
        works: &[&Work],
        subjects: &[Subject],
    ) -> Result<Self, RunError> {
        let server_cores = arguments.server_cores.len().max(1);
        let mut cores = Cores::with_server_cores(server_cores)?;
        if !arguments.server_cores.is_empty() {
            cores.server.clone_from(&arguments.server_cores);
        }
        if !arguments.load_cores.is_empty() {
            cores.load.clone_from(&arguments.load_cores);
        }
        std::fs::create_dir_all(&arguments.out)?;
        let machine = Machine::inspect(&arguments.data_root);
        let scale = arguments.scale(connections_max()?);
        let waiting = if cores.shared() { Waiting::Sleep } else { Waiting::Spin };
        let mut bench = Self {
            scale,
            measured: Duration::ZERO,
            warm_up: Duration::ZERO,
            rounds: 0,
            rate: arguments.rate,
            promise: arguments.promise.unwrap_or(Promise::None),
            seed: arguments.seed,
            cores,
            waiting,
            machine,
            data_root: arguments.data_root.clone(),
            out: arguments.out.clone(),
            began: Instant::now(),
            tool: arguments.tool,
        };
        let (seconds, rounds) = bench.times(arguments, works, subjects);
        bench.measured = Duration::from_secs_f64(seconds);
        bench.warm_up = Duration::from_secs_f64((seconds * 0.2).min(0.5));
        bench.rounds = rounds;
        pin_this_thread(&bench.cores.load)?;
        Ok(bench)
    }

    /// Whether a further round, as long as the last one, still fits into what the user wants to wait.
    #[must_use]
    pub fn has_time_for(&self, round: Duration) -> bool {
        !self.scale.quick || (self.began.elapsed() + round).as_secs_f64() < QUICK_LAST_ROUND_ENDS
    }

    /// Seconds of each measurement, and rounds.
    fn times(&self, arguments: &RunArguments, works: &[&Work], subjects: &[Subject]) -> (f64, u32) {
        if !arguments.quick {
            return (arguments.seconds.unwrap_or(2.0), arguments.rounds.unwrap_or(5));
        }
        let (mut measurements, mut other) = (0.0, 0.0);
        for work in works {
            let pairs = pairs(work, subjects, self).len() as f64;
            let plan = (work.plan)(&self.scale);
            for step in &plan.steps {
                match step {
                    Step::Measure(_) | Step::Custom(_) => measurements += pairs,
                    Step::Prepare(_) | Step::Crash { .. } => other += pairs * HEAVY_STEP_SECONDS,
                }
            }
            other += pairs * START_SECONDS;
        }
        for rounds in [3, 2] {
            let rounds = arguments.rounds.unwrap_or(rounds);
            let left = QUICK_SECONDS / f64::from(rounds) - other - measurements * AROUND_SECONDS;
            // The warm-up takes a fifth on top.
            let seconds = left / measurements.max(1.0) / 1.2;
            let enough = seconds >= QUICK_MEASUREMENT_SECONDS_MIN;
            if enough || rounds <= 2 || arguments.rounds.is_some() {
                let seconds = seconds.clamp(QUICK_MEASUREMENT_SECONDS_MIN, 1.0);
                return (arguments.seconds.unwrap_or(seconds), rounds);
            }
        }
        unreachable!("two rounds are always taken")
    }
}

/// Raises the limit of open files as far as it goes; how many connections that makes, for us and for
/// a server, which inherits it.
fn connections_max() -> Result<usize, RunError> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok(usize::try_from(hard.saturating_sub(DESCRIPTORS_BESIDE)).unwrap_or(usize::MAX))
}
