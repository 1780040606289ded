//! The share of the processor that a thread gets when others want it too.
//!
//! # Soundness
//! The `unsafe` blocks call `setpriority`, which takes three numbers, and `sched_setattr`, which reads
//! a structure that outlives the call and tells its own size. Neither touches other memory.

/// Lowers the calling thread's priority below that of the threads that serve clients: it runs when
/// they do not, and gets a small share (a `nice` value of 10: a tenth) of a busy core. If the system
/// refuses, the priority stays.
///
/// Not for a thread that takes locks which those threads wait for: a lock inherits the priority of
/// its holder, and only a privileged process can raise that again.
pub fn give_way() {
    set_nice(10);
    #[cfg(target_os = "linux")]
    do_not_delay_others();
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

/// Lets a thread of ordinary priority run as soon as it wakes up.
///
/// A `nice` value alone says how much a thread gets, not how soon: Linux' scheduler (EEVDF, since
/// 6.6) lets whoever runs go on to the end of its time slice, up to two ticks (8 ms) here. Who asks
/// for a long slice loses the processor at once to whoever asks for a shorter one (since 6.12), and
/// who is a batch does not take it from anybody when it wakes up. The share stays the same.
#[cfg(target_os = "linux")]
fn do_not_delay_others() {
    /// The longest that Linux allows; others have three milliseconds.
    const SLICE_NS: u64 = 100_000_000;
    // SAFETY: plain numbers, for which zero is a value.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    attributes.size = size_of::<libc::sched_attr>() as u32;
    attributes.sched_policy = libc::SCHED_BATCH as u32;
    attributes.sched_nice = 10;
    attributes.sched_runtime = SLICE_NS;
    // SAFETY: see the head of the file; 0 is the calling thread. A kernel that refuses changes
    // nothing.
    unsafe {
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn who_gives_way_is_a_batch_of_low_priority_and_others_are_not() {
        // SAFETY: both only read what the calling thread has.
        let here =
            || unsafe { (libc::sched_getscheduler(0), libc::getpriority(libc::PRIO_PROCESS, 0)) };
        let before = here();
        let gave_way = std::thread::spawn(move || {
            super::give_way();
            here()
        });
        assert_eq!(gave_way.join().unwrap(), (libc::SCHED_BATCH, 10));
        assert_eq!(here(), before);
    }
}
