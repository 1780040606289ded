//! One measurement: warm up, then look at clock, CPU and replies at the same moments, with the load
//! on the calling thread or on several.
//!
//! ```text
//!   thread 1  warm-up |  measured          | drain
//!   thread 2  warm-up |  measured          | drain      all begin and end the measured stretch together
//!   caller            ^ usage              ^ usage
//! ```

use std::sync::Barrier;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::bench::Bench;
use super::cell::CellError;
use super::round::round_of;
use crate::load::driver::{Driver, Waiting};
use crate::load::sample::Sample;
use crate::load::workload::Workload;
use crate::measure::cores::pin_this_thread;
use crate::measure::cpu::waited_for_core;
use crate::measure::usage::Usage;
use crate::results::schema::Round;
use crate::systems::cleanup;

/// How long a server that answers nothing at all is waited for.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// What one load thread saw of the measured stretch.
struct Seen {
    sample: Sample,
    /// Share of the stretch in which it had something to do.
    busy: f64,
    /// How late the latest request was, where they are sent at fixed times.
    behind: Duration,
}

/// What the system had used at one moment.
struct Moment {
    usage: Option<Usage>,
    /// How long its threads were ready without a core.
    waited: Duration,
}

impl Moment {
    fn of(pids: &[u32]) -> Self {
        Self {
            usage: (!pids.is_empty()).then(|| Usage::of_processes(pids)),
            waited: pids.iter().map(|&pid| waited_for_core(pid)).sum(),
        }
    }
}

/// Measures `driver`'s load, on this thread, and what the processes `pids` and their children use
/// meanwhile; `counts_as` operations to each reply.
///
/// # Errors
/// See [`CellError`].
pub fn watch<W: Workload>(
    bench: &Bench,
    warm_up: Duration,
    pids: &[u32],
    counts_as: u32,
    driver: Driver<W>,
) -> Result<Round, CellError> {
    let mut before = None;
    let mut after = None;
    let begin = || before = Some(Moment::of(pids));
    let end = || after = Some(Moment::of(pids));
    let seen = stretch(bench, warm_up, driver, begin, end)?;
    let moments = (before.unwrap_or_else(|| Moment::of(pids)), after);
    let after = moments.1.unwrap_or_else(|| Moment::of(pids));
    Ok(round(bench, counts_as, vec![seen], (moments.0, after)))
}

/// A load thread to be: makes its driver and puts it on the system by [`Share::run`].
pub type LoadThread<'a> =
    Box<dyn FnOnce(&Share<'_>) -> Result<SeenByThread, CellError> + Send + 'a>;

/// What a load thread brings back.
pub struct SeenByThread(Seen);

/// What all load threads of a measurement share.
pub struct Share<'a> {
    bench: &'a Bench,
    warm_up: Duration,
    /// Passed before the stretch, once the usage is known, and at its end.
    gates: &'a Gates,
}

struct Gates {
    warm: Barrier,
    begins: Barrier,
    ends: Barrier,
}

impl Share<'_> {
    /// Measures `driver`'s load together with the others'. Must be called by every load thread: the
    /// others wait for it.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn run<W: Workload>(
        &self,
        driver: Result<Driver<W>, CellError>,
    ) -> Result<SeenByThread, CellError> {
        let begin = || {
            self.gates.warm.wait();
            self.gates.begins.wait();
        };
        let end = || {
            self.gates.ends.wait();
        };
        match driver {
            Ok(driver) => stretch(self.bench, self.warm_up, driver, begin, end).map(SeenByThread),
            Err(error) => {
                begin();
                end();
                Err(error)
            }
        }
    }
}

/// Measures the load of several threads together.
///
/// # Errors
/// That of the first thread that fails.
pub fn watch_threads(
    bench: &Bench,
    warm_up: Duration,
    pids: &[u32],
    counts_as: u32,
    threads: Vec<LoadThread<'_>>,
) -> Result<Round, CellError> {
    let all = threads.len() + 1;
    let gates =
        Gates { warm: Barrier::new(all), begins: Barrier::new(all), ends: Barrier::new(all) };
    let share = Share { bench, warm_up, gates: &gates };
    let (results, moments) = std::thread::scope(|scope| {
        let handles: Vec<_> = threads
            .into_iter()
            .enumerate()
            .map(|(number, thread)| {
                let share = &share;
                scope.spawn(move || {
                    let cores = &share.bench.cores.load;
                    // A thread that cannot be pinned measures nonetheless, only less evenly.
                    let _ = pin_this_thread(&[cores[number % cores.len()]]);
                    thread(share)
                })
            })
            .collect();
        gates.warm.wait();
        let before = Moment::of(pids);
        gates.begins.wait();
        gates.ends.wait();
        let after = Moment::of(pids);
        let results: Vec<_> = handles
            .into_iter()
            .map(|handle| {
                let ended = || CellError::Broken("a load thread panicked".to_owned());
                handle.join().map_err(|_| ended())?
            })
            .collect();
        (results, (before, after))
    });
    let seen =
        results.into_iter().map(|seen| seen.map(|seen| seen.0)).collect::<Result<Vec<_>, _>>()?;
    Ok(round(bench, counts_as, seen, moments))
}

/// Warm-up, `begin`, the measured stretch, `end`, drain. Both are called in any case, once.
fn stretch<W: Workload>(
    bench: &Bench,
    warm_up: Duration,
    mut driver: Driver<W>,
    begin: impl FnOnce(),
    end: impl FnOnce(),
) -> Result<Seen, CellError> {
    let go_on = cleanup::go_on();
    let warm = driver.run_while(warm_up, go_on).map_err(CellError::from);
    begin();
    let own_before = own_cpu();
    let sample = warm.and_then(|_| {
        let mut sample = driver.run_while(bench.measured(), go_on)?;
        // On a machine that others keep busy a short stretch may see no reply at all.
        while sample.replies == 0 && sample.elapsed < SILENCE_MAX && driver.is_under_way() {
            sample.add(&driver.run_while(bench.measured(), go_on)?);
            if cleanup::is_ending() {
                break;
            }
        }
        Ok(sample)
    });
    let own = own_cpu().saturating_sub(own_before);
    end();
    let sample = sample?;
    let behind = driver.behind();
    if sample.replies == 0 && !driver.is_under_way() && !cleanup::is_ending() {
        return Err(CellError::Cannot("there was nothing left to ask for".to_owned()));
    }
    if cleanup::is_ending() {
        return Err(CellError::Interrupted);
    }
    driver.drain()?;
    if sample.replies == 0 {
        let text = format!("answered nothing in {:?}", sample.elapsed);
        return Err(CellError::Broken(text));
    }
    let busy = match bench.waiting {
        Waiting::Spin => sample.busy,
        Waiting::Sleep => own,
    };
    let busy = busy.as_secs_f64() / sample.elapsed.as_secs_f64();
    Ok(Seen { sample, busy, behind })
}

fn round(bench: &Bench, counts_as: u32, seen: Vec<Seen>, moments: (Moment, Moment)) -> Round {
    let (before, after) = moments;
    let threads = seen.len();
    // A thread without time of its own is the limit of its users, however idle the others are.
    let load_busy = seen.iter().map(|seen| seen.busy).fold(0.0, f64::max);
    let behind = seen.iter().map(|seen| seen.behind).max().unwrap_or_default();
    let mut all = seen.into_iter().map(|seen| seen.sample);
    let Some(mut sample) = all.next() else { return Round::default() };
    for other in all {
        sample.add_beside(&other);
    }
    let mut round = round_of(&sample, before.usage.zip(after.usage), counts_as, load_busy);
    let waited = after.waited.saturating_sub(before.waited).as_secs_f64() / round.seconds;
    let cores = bench.cores.server.len().max(1) as f64;
    round.load_limited = load_busy > 0.9 && round.server_busy + waited < 0.9 * cores;
    if bench.rate.is_some() {
        round.extra.insert("behind_ms".to_owned(), behind.as_secs_f64() * 1e3);
    }
    if threads > 1 {
        round.extra.insert("load_threads".to_owned(), threads as f64);
    }
    round
}

/// CPU time of the calling thread, which is a load generator.
fn own_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
