//! Which cores the server and the load generator get, and pinning to them.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// Cores by number, as Linux counts them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cores {
    /// Where every thread of the measured server runs.
    pub server: Vec<usize>,
    /// Where the load generator runs.
    pub load: Vec<usize>,
}

impl Cores {
    /// The usual lay-out: the first core this process may use for the server, the second for the
    /// load. With one core both share it.
    ///
    /// # Errors
    /// What the kernel says of `sched_getaffinity`.
    pub fn one_each() -> nix::Result<Self> {
        Self::with_server_cores(1)
    }

    /// The first `count` cores for the server, the next one for the load; where there is no next
    /// one, the load shares the last of them.
    ///
    /// # Errors
    /// What the kernel says of `sched_getaffinity`.
    pub fn with_server_cores(count: usize) -> nix::Result<Self> {
        let allowed = allowed()?;
        let server: Vec<usize> = allowed.iter().copied().take(count.max(1)).collect();
        Ok(Self { load: beside(&server, &allowed), server })
    }

    /// These for the server, and for the load the first one after them that is free, else the first
    /// before them; where there is none, the load shares the last.
    ///
    /// # Errors
    /// What the kernel says of `sched_getaffinity`.
    pub fn with_server_on(server: &[usize]) -> nix::Result<Self> {
        Ok(Self { load: beside(server, &allowed()?), server: server.to_vec() })
    }

    /// Whether the two disturb each other by sharing a core.
    #[must_use]
    pub fn shared(&self) -> bool {
        self.server.iter().any(|core| self.load.contains(core))
    }
}

fn beside(server: &[usize], allowed: &[usize]) -> Vec<usize> {
    let last = server.iter().max();
    let free = || allowed.iter().filter(|core| !server.contains(core));
    let after = free().find(|core| last.is_none_or(|last| *core > last));
    after.or_else(|| free().next()).or(allowed.last()).copied().into_iter().collect()
}

/// The cores that this process may use, ascending.
///
/// # Errors
/// What the kernel says of `sched_getaffinity`.
pub fn allowed() -> nix::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap_or(false)).collect())
}

/// Pins the calling thread, and what it starts from now on, to `cores`.
///
/// # Errors
/// `EINVAL` when none of the cores exists or is allowed.
pub fn pin_this_thread(cores: &[usize]) -> nix::Result<()> {
    let mut set = CpuSet::new();
    for &core in cores {
        set.set(core)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
}

/// Runs `start` with the calling thread pinned to `cores`, so that a process started inside is
/// born there, and puts the thread back where it was.
///
/// # Errors
/// As [`pin_this_thread`].
pub fn pinned_to<T>(cores: &[usize], start: impl FnOnce() -> T) -> nix::Result<T> {
    let before = sched_getaffinity(Pid::from_raw(0))?;
    pin_this_thread(cores)?;
    let result = start();
    sched_setaffinity(Pid::from_raw(0), &before)?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_has_a_core_of_its_own_where_there_is_one() {
        assert_eq!(beside(&[0], &[0, 1]), [1]);
        assert_eq!(beside(&[1], &[0, 1]), [0], "not the server's own");
        assert_eq!(beside(&[2, 1], &[0, 1, 2, 3]), [3]);
        assert_eq!(beside(&[0, 1], &[0, 1]), [1], "shared");
    }

    #[test]
    fn a_child_is_born_on_the_core_and_the_thread_goes_back() {
        let before = allowed().unwrap();
        let first = before[0];
        let output = pinned_to(&[first], || {
            std::process::Command::new("grep")
                .args(["Cpus_allowed_list", "/proc/self/status"])
                .output()
        })
        .unwrap()
        .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.split_whitespace().last(), Some(first.to_string().as_str()));
        assert_eq!(allowed().unwrap(), before);
    }
}
