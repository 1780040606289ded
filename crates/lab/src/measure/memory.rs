//! Memory of a process as the kernel counts it.

/// Resident and peak resident bytes of process `pid`; `None` when it is gone.
#[must_use]
pub fn resident_bytes(pid: u32) -> Option<Resident> {
    parse_status(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

/// Makes process `pid`'s peak what is resident now. Where that is refused, the peak stays that of
/// its whole life.
pub fn forget_peak(pid: u32) {
    // What proc(5) says of "5"; an error means what is said above.
    let _ = std::fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

/// See [`resident_bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Resident {
    /// Bytes resident now.
    pub now: u64,
    /// The most bytes that were ever resident.
    pub peak: u64,
}

fn parse_status(status: &str) -> Option<Resident> {
    let kib = |name: &str| -> Option<u64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line[name.len()..].split_ascii_whitespace().next()?.parse().ok()
    };
    Some(Resident { now: kib("VmRSS:")? * 1024, peak: kib("VmHWM:")? * 1024 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_in_kib() {
        let status = "Name:\tx\nVmHWM:\t    2000 kB\nVmRSS:\t    1000 kB\n";
        assert_eq!(parse_status(status), Some(Resident { now: 1_024_000, peak: 2_048_000 }));
        assert!(resident_bytes(std::process::id()).unwrap().now > 100_000);
    }

    #[test]
    fn a_peak_is_forgotten() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        forget_peak(child.id());
        let resident = resident_bytes(child.id());
        let _ = child.kill();
        let _ = child.wait();
        let resident = resident.unwrap();
        // What a shared library's pages count may change a little in between.
        assert!(resident.peak >= resident.now && resident.peak < resident.now + (1 << 20));
    }
}
