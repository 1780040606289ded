//! CPU time of a whole process.
//!
//! The figure comes from the process's CPU-time clock (`clock_getcpuclockid(3)`): nanoseconds,
//! user and system, of all threads, ended ones included, and exact at the moment of asking.
//! `/proc/PID/stat` counts in ticks of 10 ms, and `schedstat` lags by up to a tick and forgets
//! threads that ended. The split into user
//! and system still comes from the ticks (`super::usage`).

use std::time::Duration;

use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// The CPU-time clock of one process.
#[derive(Clone, Copy, Debug)]
pub struct CpuClock {
    clock: ClockId,
}

impl CpuClock {
    /// The clock of process `pid`.
    ///
    /// # Errors
    /// `ESRCH` when there is no such process.
    pub fn of_process(pid: u32) -> nix::Result<Self> {
        let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid).unwrap_or(i32::MAX)))?;
        Ok(Self { clock })
    }

    /// CPU time used since the process began, by all its threads, in user and system.
    ///
    /// # Errors
    /// `EINVAL` when the process is gone.
    pub fn now(&self) -> nix::Result<Duration> {
        clock_gettime(self.clock).map(Duration::from)
    }
}

/// How long the threads that process `pid` has now were ready to run but had no core, since they
/// began: what other programs on the machine took from a measurement. Zero where the kernel does
/// not keep `schedstat`.
#[must_use]
pub fn waited_for_core(pid: u32) -> Duration {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Duration::ZERO };
    let nanoseconds = tasks.flatten().filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// How long the hypervisor kept cores from this machine since it started, summed over all cores, as
/// reported to the kernel. Zero if there is no hypervisor, or if it does not report.
#[must_use]
pub fn stolen() -> Duration {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    // Ticks of 10 ms (`USER_HZ`).
    Duration::from_millis(parse_stolen(&text).unwrap_or(0) * 10)
}

/// The eighth number of the line of all cores.
fn parse_stolen(stat: &str) -> Option<u64> {
    stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace().nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_while_the_process_works() {
        let clock = CpuClock::of_process(std::process::id()).unwrap();
        let before = clock.now().unwrap();
        let mut sum = 0u64;
        while clock.now().unwrap() - before < Duration::from_millis(5) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
    }

    #[test]
    fn what_the_hypervisor_took_is_the_eighth_number() {
        let stat = "cpu  552068 113 97274 109845 9260 0 2996 2066 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(parse_stolen(stat), Some(2066));
        assert_eq!(parse_stolen("cpu0 1 2"), None);
    }
}
