//! One huge page ahead: a thread of its own gives it memory before those who allocate need it.
//!
//! The first touch of a huge page clears 2 MiB: a quarter of a millisecond, and twenty times that
//! on a virtual machine whose host has not backed the memory yet, where it also stops the core for
//! that long. So the thread checks first that a core has nothing else to do. Nobody waits for it: whoever needs memory before the page is ready uses
//! small pages elsewhere (`fresh.rs`).
//!
//! ```text
//!          ask                the thread               take           settle
//! IDLE -> BUSY -> WANTED ------ touches ----> READY ----------> BUSY --------> IDLE
//! ```
//!
//! # Soundness
//! A part has one owner, whom the state names: in BUSY the caller that made it so, in WANTED the
//! touching thread, in READY whoever takes it. Only the owner changes the state, with `Release`,
//! and becomes the owner with `Acquire`.
//!
//! # Locks of the system
//! While the thread touches a part, it holds the lock of the part's mapping. Nobody changes that
//! mapping or a neighbour which it could merge with: a part is a mapping of its own, because huge
//! pages are allowed for it and forbidden around it.

use super::blocks::Blocks;
use super::fresh::{HUGE_BYTES, REGION_BYTES};
use ladon_platform::{pages, priority};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU8};
use std::thread::{self, Thread};
use std::time::Duration;

/// The thread that touches memory ahead, once there is one.
static TOUCHER: OnceLock<Thread> = OnceLock::new();

/// Wait before the next check whether a core is free.
const RETRY_AFTER: Duration = Duration::from_millis(20);

/// There is no part.
const IDLE: u8 = 0;
/// One caller prepares or takes the part.
const BUSY: u8 = 1;
/// The touching thread has the part, or will see it.
const WANTED: u8 = 2;
/// The part has its memory.
const READY: u8 = 3;

/// A part that is touched ahead.
pub(super) struct Ahead {
    state: AtomicU8,
    part: AtomicPtr<u8>,
    /// The next part of the region that parts come from; null if a region must be reserved.
    next: AtomicPtr<u8>,
    #[cfg(test)]
    planted: AtomicU8,
}

/// Touches memory ahead of those who take from these blocks, on the calling thread, for ever.
/// Returns at once if another thread of this process does so already.
pub(crate) fn touch_ahead(all: &[&Blocks]) {
    if TOUCHER.set(thread::current()).is_err() {
        return;
    }
    loop {
        while all.iter().any(|blocks| blocks.ahead().is_wanted()) {
            if priority::is_core_free() {
                for blocks in all {
                    blocks.ahead().touch();
                }
            } else {
                thread::sleep(RETRY_AFTER);
            }
        }
        thread::park();
    }
}

impl Ahead {
    pub(super) const fn new() -> Ahead {
        Ahead {
            state: AtomicU8::new(IDLE),
            part: AtomicPtr::new(ptr::null_mut()),
            next: AtomicPtr::new(ptr::null_mut()),
            #[cfg(test)]
            planted: AtomicU8::new(tests::NOTHING),
        }
    }

    /// Asks the thread for a part, unless there is one or somebody has asked already.
    #[inline]
    pub(super) fn ask(&self) {
        if self.state.load(Relaxed) == IDLE && self.claim(IDLE) {
            self.prepare();
        }
    }

    /// A part that has its memory. The caller settles it once it holds no lock.
    pub(super) fn take(&self) -> Option<NonNull<u8>> {
        #[cfg(test)]
        if let Some(part) = self.take_as_planted() {
            return Some(part);
        }
        let is_mine = self.state.load(Relaxed) == READY && self.claim(READY);
        is_mine.then(|| NonNull::new(self.part.load(Relaxed))).flatten()
    }

    /// Ends the use of a part's mapping of its own.
    pub(super) fn settle(&self, part: NonNull<u8>) {
        // Without this, the system would fill the holes of discarded blocks again.
        pages::forbid_huge(part, HUGE_BYTES);
        self.state.store(IDLE, Release);
    }

    /// Undoes `take`.
    pub(super) fn put_back(&self) {
        self.state.store(READY, Release);
    }

    /// Makes a taken part, whose memory was discarded, the next one that is touched.
    pub(super) fn recycle(&self, part: NonNull<u8>) {
        self.next.store(part.as_ptr(), Relaxed);
        self.settle(part);
    }

    /// Touches the part that is wanted. `false` if none is.
    pub(super) fn touch(&self) -> bool {
        // SAFETY: a part is whole pages of a region, and this one is the thread's.
        self.touch_by(|part| unsafe { pages::touch(part, HUGE_BYTES) })
    }

    fn is_wanted(&self) -> bool {
        self.state.load(Relaxed) == WANTED
    }

    fn touch_by(&self, touch: impl FnOnce(NonNull<u8>)) -> bool {
        if self.state.load(Acquire) != WANTED {
            return false;
        }
        if let Some(part) = NonNull::new(self.part.load(Relaxed)) {
            touch(part);
        }
        self.state.store(READY, Release);
        true
    }

    /// Makes the caller the owner, who makes the state BUSY.
    fn claim(&self, state: u8) -> bool {
        self.state.compare_exchange(state, BUSY, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn prepare(&self) {
        let region = || pages::reserve(REGION_BYTES, REGION_BYTES);
        let Some(part) = NonNull::new(self.next.load(Relaxed)).or_else(region) else {
            return self.state.store(IDLE, Release);
        };
        let next = part.as_ptr().wrapping_add(HUGE_BYTES);
        let is_last = next.addr().is_multiple_of(REGION_BYTES);
        self.next.store(if is_last { ptr::null_mut() } else { next }, Relaxed);
        pages::allow_huge(part, HUGE_BYTES);
        self.part.store(part.as_ptr(), Relaxed);
        self.state.store(WANTED, Release);
        // A request that comes while the thread works is not lost.
        if let Some(toucher) = TOUCHER.get() {
            toucher.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    pub(super) const NOTHING: u8 = 0;
    /// Who needs memory waits until the thread has touched it.
    const WAITS: u8 = 1;
    /// Who needs memory takes a part that the thread is still touching.
    const TAKES_UNREADY: u8 = 2;

    /// As 64 KiB blocks of the slabs.
    const BYTES: usize = 64 << 10;
    const LONG: Duration = Duration::from_secs(20);

    impl Ahead {
        pub(super) fn take_as_planted(&self) -> Option<NonNull<u8>> {
            match self.planted.load(Relaxed) {
                WAITS => {
                    while self.is_wanted() {
                        thread::yield_now();
                    }
                    self.planted.store(NOTHING, Relaxed);
                    None
                }
                TAKES_UNREADY => NonNull::new(self.part.load(Relaxed)),
                _ => None,
            }
        }
    }

    /// A thread stops in the middle of touching a part. Meanwhile, another one takes three parts;
    /// it has `patience` for that.
    fn check(planted: u8, patience: Duration) -> Result<(), &'static str> {
        let blocks = &Blocks::new(BYTES);
        let take = |bytes: usize| -> Vec<usize> {
            let block = |_| blocks.allocate().unwrap().addr().get();
            (0..bytes / BYTES).map(block).collect()
        };
        take(HUGE_BYTES);
        blocks.ahead().planted.store(planted, Relaxed);
        let (began, part) = channel();
        let (go_on, went_on) = channel();
        let (took, taken) = channel();
        thread::scope(|scope| {
            let toucher = scope.spawn(move || {
                blocks.ahead().touch_by(|part| {
                    began.send(part.addr().get()).unwrap();
                    went_on.recv_timeout(LONG).unwrap();
                })
            });
            let part = part.recv_timeout(LONG).unwrap();
            scope.spawn(move || took.send(take(3 * HUGE_BYTES)));
            let in_time = taken.recv_timeout(patience);
            go_on.send(()).unwrap();
            assert!(toucher.join().unwrap());
            let taken = in_time.map_err(|_| "waits for the thread")?;
            let is_inside = |block: &usize| (part..part + HUGE_BYTES).contains(block);
            if taken.iter().any(is_inside) {
                return Err("uses a part that is not ready");
            }
            let ready = take(HUGE_BYTES);
            ready.iter().all(is_inside).then_some(()).ok_or("does not use a part that is ready")
        })
    }

    #[test]
    #[cfg_attr(miri, ignore = "there are no parts")]
    fn nobody_waits_for_a_part_that_is_being_touched() {
        assert_eq!(check(NOTHING, LONG), Ok(()));
    }

    #[test]
    #[cfg_attr(miri, ignore = "there are no parts")]
    fn planted_bugs_are_caught() {
        let soon = Duration::from_millis(300);
        assert_eq!(check(WAITS, soon), Err("waits for the thread"));
        assert_eq!(check(TAKES_UNREADY, LONG), Err("uses a part that is not ready"));
    }

    /// Counts a thread that is over, also by a panic.
    struct Done<'a>(&'a AtomicU8);

    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Relaxed);
        }
    }

    /// Whoever takes blocks while the thread touches parts has them alone, and they are zeros.
    #[test]
    #[cfg_attr(miri, ignore = "there are no parts")]
    fn blocks_are_nobody_elses_while_parts_are_touched() {
        let blocks = &Blocks::new(BYTES);
        let left = &AtomicU8::new(2);
        let fill = move |mark: u8| {
            let mut taken = Vec::new();
            for _ in 0..1000 {
                let block = blocks.allocate_zeroed().unwrap();
                // SAFETY: just taken.
                unsafe {
                    assert_eq!((block.read(), block.add(BYTES / 2).read()), (0, 0));
                    block.write(mark);
                    block.add(BYTES / 2).write(mark);
                }
                taken.push(block);
            }
            for block in taken {
                // SAFETY: taken above, freed once.
                unsafe {
                    assert_eq!((block.read(), block.add(BYTES / 2).read()), (mark, mark));
                    blocks.free(block);
                }
            }
        };
        thread::scope(|scope| {
            for mark in [1, 2] {
                scope.spawn(move || {
                    let _done = Done(left);
                    fill(mark);
                });
            }
            while left.load(Relaxed) != 0 {
                blocks.ahead().touch();
                blocks.enlarge_pages();
            }
        });
    }
}
