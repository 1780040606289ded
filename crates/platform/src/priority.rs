//! The share of the processor that a thread gets when others want it too.
//!
//! # Soundness
//! The one `unsafe` block calls `setpriority`, which takes three numbers and touches no memory.

/// Lowers the calling thread's priority below that of the threads that serve clients: it runs when
/// they do not, and gets a small share (a `nice` value of 10: a tenth) of a busy core. If the system
/// refuses, the priority stays.
///
/// Not for a thread that takes locks which those threads wait for: a lock inherits the priority of
/// its holder, and only a privileged process can raise that again.
pub fn give_way() {
    set_nice(10);
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
