//! A run's surroundings: cores, times, how many connections are possible.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::error::RunError;
use super::load_tool::Tool;
use super::measurement_length::warm_up;
use super::options::RunArguments;
use crate::load::driver::Waiting;
use crate::measure::cores::{self, Cores, pin_this_thread};
use crate::measure::machine::Machine;
use crate::systems::system::Promise;
use crate::work::Scale;

/// See the module.
#[derive(Debug)]
pub struct Bench {
    /// Sizes.
    pub scale: Scale,
    /// How long each measurement is, in nanoseconds; see [`Self::measured`].
    measured_ns: AtomicU64,
    /// Seconds that all may take.
    pub budget: Option<f64>,
    /// Requests per second of all users, where they do not wait for answers.
    pub rate: Option<f64>,
    /// What an acknowledged write must be worth.
    pub promise: Promise,
    /// Where all chance comes from.
    pub seed: u64,
    /// Who runs where.
    pub cores: Cores,
    /// Threads of the load generator.
    pub load_threads: usize,
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

/// What drawing the report takes, and ending servers.
const END_SECONDS: f64 = 2.0;
/// File descriptors beside the connections.
const DESCRIPTORS_BESIDE: u64 = 200;

impl Bench {
    /// Inspects the machine and pins the calling thread, which becomes the load generator, or the
    /// first of its threads.
    ///
    /// # Errors
    /// When pinning is refused or the results' directory cannot be made.
    pub fn prepare(arguments: &RunArguments) -> Result<Self, RunError> {
        let mut cores = if arguments.server_cores.is_empty() {
            Cores::one_each()?
        } else {
            Cores::with_server_on(&arguments.server_cores)?
        };
        if !arguments.load_cores.is_empty() {
            cores.load.clone_from(&arguments.load_cores);
        }
        // Made if it is not there; a data root that is not may be a typing error, on another file
        // system.
        let failed = |error: std::io::Error| {
            RunError::Argument(format!("--out {}: {error}", arguments.out.display()))
        };
        std::fs::create_dir_all(&arguments.out).map_err(failed)?;
        writable("--out", &arguments.out)?;
        writable("--data-root", &arguments.data_root)?;
        for (option, wanted) in [("--server-cores", &cores.server), ("--load-cores", &cores.load)] {
            allowed_cores(option, wanted)?;
        }
        let machine = Machine::inspect(&arguments.data_root);
        let threads = arguments.load_threads.unwrap_or(cores.load.len().max(1));
        let scale = arguments.scale(connections_max()?, threads, cores.server.len());
        let waiting = if cores.shared() || threads > cores.load.len() {
            Waiting::Sleep
        } else {
            Waiting::Spin
        };
        let bench = Self {
            scale,
            measured_ns: AtomicU64::new(0),
            budget: arguments.budget_seconds(),
            rate: arguments.rate,
            promise: arguments.promise.unwrap_or(Promise::None),
            seed: arguments.seed,
            load_threads: threads,
            cores,
            waiting,
            machine,
            data_root: arguments.data_root.clone(),
            out: arguments.out.clone(),
            began: Instant::now(),
            tool: arguments.tool,
        };
        pin_this_thread(&bench.cores.load)?;
        Ok(bench)
    }

    /// How long each measurement is now.
    #[must_use]
    pub fn measured(&self) -> Duration {
        Duration::from_nanos(self.measured_ns.load(Ordering::Relaxed))
    }

    /// What goes before it, unmeasured.
    #[must_use]
    pub fn warm_up(&self) -> Duration {
        warm_up(self.measured().as_secs_f64())
    }

    /// How long each measurement is from now on. Between measurements, when there is one thread.
    pub fn set_seconds(&self, seconds: f64) {
        let nanoseconds = Duration::from_secs_f64(seconds).as_nanos();
        self.measured_ns.store(u64::try_from(nanoseconds).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// What is left of the time that the run's works may take, in seconds, if there is a limit.
    #[must_use]
    pub fn left(&self) -> Option<f64> {
        self.budget.map(|budget| budget - END_SECONDS - self.began.elapsed().as_secs_f64())
    }
}

/// Whether files can be made in a directory.
fn writable(option: &str, folder: &Path) -> Result<(), RunError> {
    tempfile::tempfile_in(folder)
        .map(|_| ())
        .map_err(|error| RunError::Argument(format!("{option} {}: {error}", folder.display())))
}

fn allowed_cores(option: &str, wanted: &[usize]) -> Result<(), RunError> {
    let allowed = cores::allowed()?;
    match wanted.iter().find(|core| !allowed.contains(core)) {
        Some(core) => {
            let text = format!("{option}: core {core} is not among {allowed:?}");
            Err(RunError::Argument(text))
        }
        None => Ok(()),
    }
}

/// Raises the limit of open files as far as possible. Returns how many connections that allows, for
/// the lab and for a server, which inherits the limit.
fn connections_max() -> Result<usize, RunError> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok(usize::try_from(hard.saturating_sub(DESCRIPTORS_BESIDE)).unwrap_or(usize::MAX))
}
