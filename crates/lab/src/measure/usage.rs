//! Resources used by processes and all their descendants: CPU time, memory, bytes written.
//!
//! A system under measurement may be several processes (a web program and its database, a cluster's
//! nodes, a child that writes a snapshot), so a figure of one process would be too low.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::cpu::CpuClock;
use super::memory::resident_bytes;

/// Sums over processes. A child that ended before is known by its CPU time only, and only
/// once its parent has waited for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Resident bytes now. Pages that a forked child shares with its parent count twice.
    pub resident_bytes: u64,
    /// The sum of the most that each was ever resident with.
    pub resident_peak_bytes: u64,
    /// Bytes that it caused to be written to storage, as the kernel accounts them.
    pub disk_written_bytes: u64,
}

impl Usage {
    /// Looks at the processes `roots` and their descendants.
    #[must_use]
    pub fn of_processes(roots: &[u32]) -> Self {
        let mut sum = Self::default();
        for pid in with_descendants(roots) {
            // One that ends meanwhile has used what it has used; it is left out.
            let Some(stat) = Stat::of(pid) else { continue };
            let total = CpuClock::of_process(pid)
                .and_then(|clock| clock.now())
                .unwrap_or_else(|_| ticks(stat.user + stat.system));
            let share = stat.user as f64 / (stat.user + stat.system).max(1) as f64;
            sum.user += total.mul_f64(share) + ticks(stat.children_user);
            sum.system += total.mul_f64(1.0 - share) + ticks(stat.children_system);
            if let Some(resident) = resident_bytes(pid) {
                sum.resident_bytes += resident.now;
                sum.resident_peak_bytes += resident.peak;
            }
            sum.disk_written_bytes += written_bytes(pid).unwrap_or(0);
        }
        sum
    }

    /// User and system together.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

/// The roots and everything that they started, as it is now.
fn with_descendants(roots: &[u32]) -> BTreeSet<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    if let Ok(processes) = std::fs::read_dir("/proc") {
        for entry in processes.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if let Some(stat) = Stat::of(pid) {
                children.entry(stat.parent).or_default().push(pid);
            }
        }
    }
    let mut all = BTreeSet::new();
    let mut left = roots.to_vec();
    while let Some(pid) = left.pop() {
        if all.insert(pid) {
            left.extend(children.get(&pid).into_iter().flatten());
        }
    }
    all
}

/// Linux tells user space ticks of 10 ms (`USER_HZ`), whatever the kernel's own clock does.
fn ticks(count: u64) -> Duration {
    Duration::from_millis(count * 10)
}

/// Fields of `/proc/PID/stat`; times in ticks.
struct Stat {
    parent: u32,
    user: u64,
    system: u64,
    children_user: u64,
    children_system: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The command's name (field 2) may hold blanks and brackets, so count from its end.
    fn parse(stat: &str) -> Option<Self> {
        let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            user: fields.get(11)?.parse().ok()?,
            system: fields.get(12)?.parse().ok()?,
            children_user: fields.get(13)?.parse().ok()?,
            children_system: fields.get(14)?.parse().ok()?,
        })
    }
}

/// `write_bytes` of `/proc/PID/io`.
fn written_bytes(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_past_a_name_with_brackets() {
        let stat = Stat::parse("7 (a ) b) S 4 2 3 4 5 6 7 8 9 10 1234 56 7 8 20").unwrap();
        assert_eq!((stat.parent, stat.user, stat.system), (4, 1234, 56));
        assert_eq!((stat.children_user, stat.children_system), (7, 8));
    }

    #[test]
    fn a_child_s_child_is_counted() {
        let mut shell =
            std::process::Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        let mut seen = 0;
        while seen < 2 && std::time::Instant::now() < deadline {
            seen = with_descendants(&[shell.id()]).len();
        }
        let all = with_descendants(&[shell.id()]);
        for pid in all.iter().filter(|pid| **pid != shell.id()) {
            let pid = nix::unistd::Pid::from_raw(i32::try_from(*pid).unwrap());
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::SIGKILL);
        }
        let usage = Usage::of_processes(&[std::process::id()]);
        let _ = shell.kill();
        let _ = shell.wait();
        assert_eq!(seen, 2, "{all:?}");
        assert!(usage.resident_bytes > 100_000);
    }
}
