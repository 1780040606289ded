//! A load generator in a program of its own: a system's own client, in its own language, which the
//! lab compiles and commands. The load runs over there; what it sends and what is right comes from
//! here as data, and counts and latencies come back.
//!
//! ```text
//!   lab                                                    helper (one for each started system)
//!   {"warm":{"ns":N}}                                 ->
//!                                                     <-   {"done":{}}
//!   {"prepare":ASKED,"users":N,"depth":N}             ->
//!                                                     <-   {"done":{}}
//!   {"measure":ASKED,"users":N,"depth":N,
//!    "warm_up_ns":N,"measured_ns":N,"interval_ns":N}  ->
//!   looks at the system's CPU, memory, disk           <-   {"measuring":{}}
//!   looks again                                       <-   {"measured":{}}
//!                                                     <-   {"seen":{"replies","elapsed_ns",...}}
//!                                   or at any time    <-   {"wrong"|"cannot"|"broken":"..."}
//! ```
//!
//! A pipe between the lab's driver and the client would be in every latency and in the throughput;
//! so nothing passes it while a load is on.
//!
//! **Invariant:** a helper is a child in the list of [`cleanup`], pinned to the load's cores, and
//! gone when this is dropped.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Deserialize;
use serde_json::json;
use tempfile::TempDir;

use super::bench::Bench;
use super::cell::CellError;
use crate::load::sample::Sample;
use crate::measure::cores;
use crate::measure::usage::Usage;
use crate::systems::cleanup;
use crate::systems::system::Process;
use crate::traffic::Asked;
use crate::work::Phase;

/// See the module.
pub struct Helper {
    child: Child,
    commands: ChildStdin,
    lines: Receiver<io::Result<String>>,
    directory: TempDir,
}

/// What a helper says.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    /// It is there; its client's version.
    Ready(String),
    Done {},
    Measuring {},
    Measured {},
    Seen(Seen),
    Wrong(String),
    Cannot(String),
    Broken(String),
}

/// What it saw of a measurement.
#[derive(Debug, PartialEq, Deserialize)]
struct Seen {
    replies: u64,
    elapsed_ns: u64,
    behind_ns: u64,
    /// Nanoseconds, and how often.
    latency: Vec<(u64, u64)>,
}

/// A measurement as the lab's own driver would return it, and what else the lab must know of it.
pub struct Measured {
    /// What was seen.
    pub sample: Sample,
    /// The system before and after.
    pub usage: Option<(Usage, Usage)>,
    /// CPU time of the helper meanwhile.
    pub own: Duration,
    /// See `Driver::behind`.
    pub behind: Duration,
}

/// A start of a virtual machine and its first connection.
const START: Duration = Duration::from_secs(60);
/// A store is filled, or replies come that were under way, with a helper's own patience of half a
/// minute.
const WORK: Duration = Duration::from_secs(600);
/// How soon the end of a run is seen.
const TICK: Duration = Duration::from_millis(50);
/// For how long both sides' virtual machines compile what will be measured, at the most.
const WARM_MAX: Duration = Duration::from_secs(4);

impl Helper {
    /// Starts it and waits until its client is connected and warm.
    ///
    /// # Errors
    /// [`CellError::Broken`], with what it wrote; [`CellError::Interrupted`].
    pub fn start(process: &Process, bench: &Bench) -> Result<Self, CellError> {
        let failed = |error: io::Error| {
            CellError::Broken(format!("{}: {error}", process.command_line.join(" ")))
        };
        let directory = tempfile::Builder::new()
            .prefix("ladon-lab-")
            .tempdir_in(&bench.data_root)
            .map_err(failed)?;
        let errors = File::create(directory.path().join("errors")).map_err(failed)?;
        let mut command = Command::new(&process.command_line[0]);
        command
            .args(&process.command_line[1..])
            .envs(process.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(directory.path())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors);
        let mut child = cleanup::start_listed(directory.path(), || {
            cores::pinned_to(&bench.cores.load, || command.spawn())?
        })
        .map_err(failed)?;
        let (Some(commands), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both were asked for as pipes")
        };
        let (send, lines) = channel();
        // Ends with the helper's output, which ends with the helper.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut helper = Self { child, commands, lines, directory };
        match helper.hear(START)? {
            Said::Ready(_) => {}
            other => return Err(helper.unexpected(&other)),
        }
        let warm = (bench.measured() * 4).clamp(Duration::from_millis(500), WARM_MAX);
        helper.tell(&json!({ "warm": { "ns": nanoseconds(warm) } }))?;
        helper.done()?;
        Ok(helper)
    }

    /// Does all of `asked`, which ends by itself.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn prepare(&mut self, asked: &Asked, users: usize, depth: usize) -> Result<(), CellError> {
        self.tell(&json!({ "prepare": asked, "users": users, "depth": depth }))?;
        self.done()
    }

    /// Puts a phase on the system, and calls `usage` when the measurement begins and ends.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn measure(
        &mut self,
        phase: &Phase,
        bench: &Bench,
        usage: impl Fn() -> Option<Usage>,
    ) -> Result<Measured, CellError> {
        let batches = bench.rate.map(|rate| rate / (phase.users * phase.depth) as f64);
        let interval = batches.map(|per_second| Duration::from_secs_f64(1.0 / per_second));
        // What ends by itself has nothing to spare.
        let warm_up = if phase.asked.ends() { Duration::ZERO } else { bench.warm_up() };
        self.tell(&json!({
            "measure": phase.asked,
            "users": phase.users,
            "depth": phase.depth,
            "warm_up_ns": nanoseconds(warm_up),
            "measured_ns": nanoseconds(bench.measured()),
            "interval_ns": interval.map_or(0, nanoseconds),
        }))?;
        self.expect(&Said::Measuring {})?;
        let (before, own_before) = (usage(), self.used());
        self.expect(&Said::Measured {})?;
        let (after, own) = (usage(), self.used().saturating_sub(own_before));
        let seen = match self.hear(WORK)? {
            Said::Seen(seen) => seen,
            other => return Err(self.unexpected(&other)),
        };
        let sample = sample(&seen)?;
        let behind = Duration::from_nanos(seen.behind_ns);
        Ok(Measured { sample, usage: before.zip(after), own, behind })
    }

    /// Stops it where it is, until [`Self::thaw`].
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // An error means that it is gone, which the next command finds out.
            let _ = killpg(Pid::from_raw(pid), signal);
        }
    }

    /// Its CPU time so far.
    fn used(&self) -> Duration {
        let usage = Usage::of_processes(&[self.child.id()]);
        usage.user + usage.system
    }

    fn tell(&mut self, command: &serde_json::Value) -> Result<(), CellError> {
        let told = writeln!(self.commands, "{command}").and_then(|()| self.commands.flush());
        told.map_err(|error| self.broken(&format!("takes no command: {error}")))
    }

    fn done(&mut self) -> Result<(), CellError> {
        self.expect(&Said::Done {})
    }

    fn expect(&mut self, wanted: &Said) -> Result<(), CellError> {
        let said = self.hear(WORK)?;
        if said == *wanted { Ok(()) } else { Err(self.unexpected(&said)) }
    }

    /// Its next line; a failure of the helper is an error here.
    fn hear(&mut self, patience: Duration) -> Result<Said, CellError> {
        let deadline = Instant::now() + patience;
        let line = loop {
            match self.lines.recv_timeout(TICK) {
                Ok(Ok(line)) => break line,
                Ok(Err(error)) => return Err(self.broken(&error.to_string())),
                Err(RecvTimeoutError::Disconnected) => return Err(self.broken("ended")),
                Err(RecvTimeoutError::Timeout) if cleanup::is_ending() => {
                    return Err(CellError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                    return Err(self.broken(&format!("said nothing for {patience:?}")));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        match serde_json::from_str(&line) {
            Ok(Said::Wrong(what)) => Err(CellError::Wrong(what)),
            Ok(Said::Cannot(what)) => Err(CellError::Cannot(what)),
            Ok(Said::Broken(what)) => Err(CellError::Broken(format!("broke off: {what}"))),
            Ok(said) => Ok(said),
            Err(error) => Err(self.broken(&format!("said `{line}`: {error}"))),
        }
    }

    fn unexpected(&self, said: &Said) -> CellError {
        self.broken(&format!("said {said:?} out of turn"))
    }

    fn broken(&self, what: &str) -> CellError {
        let errors = std::fs::read_to_string(self.directory.path().join("errors"));
        let errors = errors.unwrap_or_default();
        let lines: Vec<&str> = errors.lines().collect();
        let end = lines[lines.len().saturating_sub(5)..].join(" | ");
        CellError::Broken(format!("the client's helper {what}; it wrote: {end}"))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // Both fail only when it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
        cleanup::forget(self.child.id());
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn sample(seen: &Seen) -> io::Result<Sample> {
    let mut sample = Sample::empty()?;
    sample.replies = seen.replies;
    sample.elapsed = Duration::from_nanos(seen.elapsed_ns);
    for &(latency, count) in &seen.latency {
        sample.latency_ns[0].saturating_record_n(latency, count);
    }
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_helper_says_is_read() {
        let line = r#"{"seen":{"replies":3,"elapsed_ns":2000000000,"behind_ns":0,
                      "latency":[[100000,2],[5000000,1]]}}"#;
        let Ok(Said::Seen(seen)) = serde_json::from_str(line) else { panic!("{line}") };
        let sample = sample(&seen).unwrap();
        assert!((sample.per_second() - 1.5).abs() < 1e-9);
        assert!((sample.latency_us(0.5) - 100.0).abs() < 0.2);
        assert!((sample.latency_us(1.0) - 5000.0).abs() < 10.0);
        assert_eq!(serde_json::from_str::<Said>(r#"{"done":{}}"#).unwrap(), Said::Done {});
        assert!(serde_json::from_str::<Said>(r#"{"donne":{}}"#).is_err());
    }
}
