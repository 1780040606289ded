//! The process's limit of descriptors, its memory and its CPU time.
//!
//! Soundness of the `unsafe` here: both calls get a valid pointer to a local structure.

#![allow(dead_code, reason = "each test binary uses a part")]

/// Sets the soft limit, at most to the hard one; returns what it became.
pub fn limit_descriptors(wanted: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: see above.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    limit.rlim_cur = wanted.min(limit.rlim_max);
    // SAFETY: see above.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    limit.rlim_cur
}

/// Descriptors that this process has open.
pub fn open_descriptors() -> u64 {
    // The listing itself has one open.
    std::fs::read_dir("/proc/self/fd").expect("proc").count() as u64 - 1
}

/// Resident bytes of this process.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").expect("proc");
    let pages: u64 = status.split(' ').nth(1).expect("a field").parse().expect("a number");
    pages * 4096
}

/// Nanoseconds that this thread was on a CPU.
pub fn on_cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("proc");
    text.split(' ').next().expect("a field").parse().expect("a number")
}
