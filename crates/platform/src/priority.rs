//! The share of the processor that a thread gets when others want it too.
//!
//! # Soundness
//! The `unsafe` blocks call `setpriority`, which takes three numbers and touches no memory, and
//! `sched_setscheduler`, which reads one structure of this function.

use std::time::{Duration, Instant};

/// Lowers the calling thread's priority below that of the threads that serve clients: it runs when
/// they do not, and gets a small share (a `nice` value of 19: about 1.5 %) of a busy core. If the
/// system refuses, the priority stays.
///
/// Not for a thread that takes locks which those threads wait for: a lock inherits the priority of
/// its holder, and only a privileged process can raise that again.
pub fn give_way() {
    set_nice(19);
}

/// As `give_way`, for work that a client waits for: a tenth of a busy core.
pub fn give_way_somewhat() {
    set_nice(10);
}

/// The calling thread runs only while a core has nothing else to do (`SCHED_IDLE`; it still gets
/// about 0.3 % of a busy core), and a thread that wakes up takes the core from it at once.
///
/// For a thread that touches fresh memory, and takes no lock. Before Linux 6.4, a first touch holds
/// the address space's lock, which other threads need to map memory: there, the priority stays.
pub fn run_when_idle() {
    #[cfg(target_os = "linux")]
    if has_locks_of_mappings() {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: see the head of the file. 0 is the calling thread.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
    }
}

/// Whether a core seems to have nothing else to do than to run the calling thread, which runs when
/// cores are idle: it wakes up in time four times. Takes a millisecond.
pub fn is_core_free() -> bool {
    const PAUSE: Duration = Duration::from_micros(250);
    (0..4).all(|_| {
        let began = Instant::now();
        std::thread::sleep(PAUSE);
        began.elapsed() < 3 * PAUSE
    })
}

fn set_nice(nice: i32) {
    #[cfg(target_os = "linux")]
    // SAFETY: see the head of the file. On Linux, 0 is the calling thread, not its process.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, nice);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = nice;
}

/// Whether a first touch locks its mapping instead of the whole address space: Linux 6.4 or newer.
#[cfg(target_os = "linux")]
fn has_locks_of_mappings() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(4))
}
