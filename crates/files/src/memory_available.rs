//! How much memory this process may still take.

use std::fs;

/// Bytes, by the machine and by the process' control group; `None` where the system does not say.
pub(crate) fn memory_available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.as_deref().and_then(available_in);
    let read = |name: &str| fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    // Without a limit it says `max`.
    let limit = number("memory.max");
    let group = limit.map(|limit| limit.saturating_sub(number("memory.current").unwrap_or(0)));
    [machine, group].into_iter().flatten().min()
}

fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_system_is_read() {
        let text = "MemTotal:       24 kB\nMemAvailable:   20 kB\nBuffers:  1 kB\n";
        assert_eq!(available_in(text), Some(20 << 10));
        assert_eq!(available_in("MemTotal: 24 kB\n"), None);
    }
}
