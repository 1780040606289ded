//! How much of the processor a thread gets when others want it too.
//!
//! # Soundness
//! The one `unsafe` block calls `setpriority`, which takes three numbers and touches no memory.

/// Makes the calling thread give way to those that serve clients: it runs when they do not, and
/// gets a small share (a `nice` value of 19: about 1.5 %) of a core that is busy all the time. Where
/// that cannot be asked for, it stays as it is.
///
/// Not for a thread that takes locks which those threads wait for: the lock has the priority of the
/// thread that holds it, and only a privileged process can raise that again.
pub fn give_way() {
    set_nice(19);
}

/// As `give_way`, for work that some client waits for: a tenth of a core that is busy all the time.
pub fn give_way_somewhat() {
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
