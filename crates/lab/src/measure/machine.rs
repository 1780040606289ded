//! The machine that a run ran on, as far as it bears on the figures.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Facts to print beside any figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// `model name` of the first core.
    pub cpu_model: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Total memory in bytes.
    pub memory_bytes: u64,
    /// Kernel name, release and version.
    pub kernel: String,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: String,
    /// Whether the processor says that it is a virtual one.
    pub virtual_machine: bool,
    /// File system below the servers' data directories.
    pub data_filesystem: String,
    /// One-minute load average when the run began: above 0.5, something else was running.
    pub load_average: f64,
}

impl Machine {
    /// Collects the facts about this machine; what cannot be read stays empty.
    #[must_use]
    pub fn inspect(data_root: &Path) -> Self {
        let cpuinfo = read("/proc/cpuinfo");
        let field = |text: &str, name: &str| {
            text.lines()
                .find(|line| line.starts_with(name))
                .and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim().to_owned())
                .unwrap_or_default()
        };
        let flags = field(&cpuinfo, "flags");
        let total = field(&read("/proc/meminfo"), "MemTotal");
        Self {
            cpu_model: field(&cpuinfo, "model name"),
            cores: super::cores::allowed().map_or(1, |cores| cores.len()),
            memory_bytes: total
                .split_ascii_whitespace()
                .next()
                .and_then(|kib| kib.parse::<u64>().ok())
                .unwrap_or(0)
                * 1024,
            kernel: read("/proc/version").split(" (").next().unwrap_or_default().to_owned(),
            huge_pages: chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled")),
            virtual_machine: flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"),
            data_filesystem: filesystem_of(data_root),
            load_average: read("/proc/loadavg")
                .split_ascii_whitespace()
                .next()
                .and_then(|first| first.parse().ok())
                .unwrap_or(0.0),
        }
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The word in brackets of a kernel choice such as `always [madvise] never`.
fn chosen(choices: &str) -> String {
    let inside = choices.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map(|(word, _)| word.to_owned()).unwrap_or_default()
}

/// Type and device of the longest mount point that `path` lies under.
fn filesystem_of(path: &Path) -> String {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mounts = read("/proc/self/mounts");
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ');
            let (device, point, kind) = (fields.next()?, fields.next()?, fields.next()?);
            path.starts_with(point).then(|| (point.len(), format!("{kind} on {device}")))
        })
        .max_by_key(|(length, _)| *length)
        .map(|(_, name)| name)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_kernel_and_memory() {
        let machine = Machine::inspect(&std::env::temp_dir());
        assert!(machine.kernel.starts_with("Linux version"), "{}", machine.kernel);
        assert!(machine.memory_bytes > 1 << 20);
        assert!(machine.cores >= 1);
        assert!(machine.data_filesystem.contains(" on "), "{}", machine.data_filesystem);
    }

    #[test]
    fn the_choice_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
    }
}
