//! The process and its machine, as a trait: the figures for `INFO`, and the few actions that
//! commands need.

use std::time::Duration;

/// Facts about the process and its machine; `None` if the system does not provide them.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ProcessFacts {
    pub process_id: u32,
    /// System, release and architecture, as `uname -srm`.
    pub os: String,
    pub executable: String,
    pub resident_bytes: Option<u64>,
    pub machine_memory_bytes: Option<u64>,
    pub cpu_system: Duration,
    pub cpu_user: Duration,
    /// Files and connections that may be open at a time.
    pub open_files_max: Option<u64>,
}

/// The process and its machine.
pub trait Process: Send + Sync {
    /// The facts.
    fn facts(&self) -> ProcessFacts;
    /// Name of the allocator.
    fn allocator(&self) -> &str;
    /// Returns unused memory to the system; `false` if the allocator cannot.
    fn purge_memory(&self) -> bool;
    /// Returns memory that was unused for a second; quick, however much is in use.
    fn purge_idle_memory(&self);
    /// Stops this thread for a while.
    fn sleep(&self, duration: Duration);
}

/// Which unused memory an allocator has to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {
    /// All that it finds, which may take long.
    All,
    /// Memory that was unused for about a second.
    ForASecond,
}

/// The real process.
#[derive(Clone, Copy, Debug)]
pub struct SystemProcess {
    /// The allocator's name.
    pub allocator: &'static str,
    /// How to make it return unused memory, where it can.
    pub purge_memory: Option<fn(Unused)>,
}

impl Default for SystemProcess {
    fn default() -> SystemProcess {
        SystemProcess { allocator: "system", purge_memory: None }
    }
}

impl Process for SystemProcess {
    fn facts(&self) -> ProcessFacts {
        let executable = std::env::current_exe().map(|path| path.display().to_string());
        let mut facts = ProcessFacts {
            process_id: std::process::id(),
            executable: executable.unwrap_or_default(),
            ..ProcessFacts::default()
        };
        system::fill(&mut facts);
        facts
    }

    fn allocator(&self) -> &str {
        self.allocator
    }

    fn purge_memory(&self) -> bool {
        self.purge_memory.is_some_and(|purge| {
            purge(Unused::All);
            true
        })
    }

    fn purge_idle_memory(&self) {
        if let Some(purge) = self.purge_memory {
            purge(Unused::ForASecond);
        }
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

mod system {
    use super::ProcessFacts;
    use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
    use nix::sys::time::TimeVal;
    use std::time::Duration;

    pub(super) fn fill(facts: &mut ProcessFacts) {
        let line = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let release = line("/proc/sys/kernel/osrelease");
        facts.os = match release.trim() {
            "" => format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            release => {
                let kind = line("/proc/sys/kernel/ostype");
                format!("{} {release} {}", kind.trim(), std::env::consts::ARCH)
            }
        };
        facts.resident_bytes = kilobytes(&line("/proc/self/status"), "VmRSS:");
        facts.machine_memory_bytes = kilobytes(&line("/proc/meminfo"), "MemTotal:");
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            facts.cpu_system = duration(usage.system_time());
            facts.cpu_user = duration(usage.user_time());
        }
        facts.open_files_max = getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| soft);
    }

    /// A line such as `VmRSS:   1234 kB`, in bytes.
    fn kilobytes(text: &str, name: &str) -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let number: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(number * 1024)
    }

    fn duration(time: TimeVal) -> Duration {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
        Duration::from_secs(seconds)
            + Duration::from_micros(u64::try_from(time.tv_usec()).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "reads /proc")]
    fn facts_are_there() {
        let facts = SystemProcess::default().facts();
        assert_eq!(facts.process_id, std::process::id());
        assert!(facts.os.starts_with("Linux "), "{}", facts.os);
        assert!(facts.resident_bytes.unwrap() > 100_000);
        assert!(facts.machine_memory_bytes.unwrap() > facts.resident_bytes.unwrap());
        assert!(facts.cpu_user + facts.cpu_system > Duration::ZERO);
        assert!(facts.open_files_max.unwrap() > 3);
        assert!(!SystemProcess::default().purge_memory());
    }
}
