//! The background writer: a step that the simulator calls itself, and the thread that loops over
//! it.

use crate::log::Log;
use crate::state::LogState;
use crate::sync_primitives::{AtomicBool, AtomicUsize, Mutex, Ordering, fence};
use std::io;
use std::sync::Arc;
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

/// After a write that no thread waits for, the thread sleeps this long, so that a busy server at
/// gate `none` writes seldom. At 1 GB/s that is 2 MB of backlog.
const NAP: Duration = Duration::from_millis(2);

/// The longest sleep, in case a wake-up is missed.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// The promise of the gate `everysec`.
const EVERY_SECOND_NS: u64 = 1_000_000_000;

/// The thread is in a step.
const BUSY: usize = 0;
/// The thread sleeps briefly and then looks for published records by itself.
const NAPPING: usize = 1;
/// The thread sleeps until it is woken.
const IDLE: usize = 2;

/// The result of one [`Log::step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Something was written or synced.
    pub worked: bool,
    /// Nanoseconds until the next step that the clock alone demands: a retry, or the second of
    /// `everysec`.
    pub due_in_ns: Option<u64>,
}

/// How other threads reach the background thread.
pub(crate) struct Worker {
    resting: AtomicUsize,
    /// Something was written since the last sync began (`everysec` only).
    dirty: AtomicBool,
    stop: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Worker {
    pub(crate) fn new() -> Worker {
        Worker {
            resting: AtomicUsize::new(BUSY),
            dirty: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            thread: Mutex::new(None),
        }
    }

    /// Callers publish or ask before a sequentially consistent fence; the thread announces its
    /// rest, fences, and checks once more. One of the two sees the other.
    #[inline]
    pub(crate) fn wake_if_idle(&self) {
        if self.resting.load(Ordering::Relaxed) == IDLE {
            self.wake();
        }
    }

    #[inline]
    pub(crate) fn wake_if_resting(&self) {
        if self.resting.load(Ordering::Relaxed) != BUSY {
            self.wake();
        }
    }

    /// One wake-up per sync, so that the thread starts the clock of `everysec`.
    #[inline]
    pub(crate) fn wake_for_dirt(&self) {
        if !self.dirty.load(Ordering::Relaxed) && !self.dirty.swap(true, Ordering::SeqCst) {
            self.wake_if_resting();
        }
    }

    pub(crate) fn dirt_is_taken(&self) {
        self.dirty.store(false, Ordering::SeqCst);
    }

    pub(crate) fn wake(&self) {
        self.resting.store(BUSY, Ordering::Relaxed);
        if let Some(thread) = &*self.thread.lock() {
            thread.unpark();
        }
    }
}

impl Log {
    /// One step of the background writer: writes what is published, retries a failed write that is
    /// due, and syncs if a thread asks for it, if the second of `everysec` is over, or if a segment
    /// is complete. Blocks only in the disk's own calls.
    pub fn step(&self) -> Step {
        let mut step = Step { worked: false, due_in_ns: None };
        self.step_write(&mut step);
        self.step_sync(&mut step);
        self.step_look();
        self.step_log_end(&mut step);
        step
    }

    fn step_write(&self, step: &mut Step) {
        let mut io = self.io.lock();
        let now_ns = self.place.clock.monotonic_ns();
        let failing = matches!(self.state(), LogState::WriteFailed { .. });
        if !failing || now_ns >= io.retry_at_ns {
            let before = io.written;
            // The error is in the state, and every waiter was woken.
            let outcome = self.write_all_published(&mut io);
            if failing && outcome.is_ok() {
                self.heal(&mut io);
            }
            step.worked |= io.written > before;
        }
        if matches!(self.state(), LogState::WriteFailed { .. }) {
            step.due_in_ns = Some(io.retry_at_ns.saturating_sub(now_ns));
        }
    }

    fn step_sync(&self, step: &mut Step) {
        match self.sync_due_in_ns() {
            None => {}
            // As above: an error is in the state.
            Some(0) => step.worked |= self.sync_written().unwrap_or(false),
            Some(due_in_ns) => {
                step.due_in_ns = Some(step.due_in_ns.map_or(due_in_ns, |d| d.min(due_in_ns)));
            }
        }
    }

    /// Nanoseconds until what is written has to be synced; `None` if nothing demands that.
    fn sync_due_in_ns(&self) -> Option<u64> {
        let (written, durable) = (self.written().0, self.durable().0);
        if written <= durable {
            return None;
        }
        let every_ns = self.sync_every_ns();
        let segment_complete = !self.io.lock().complete.is_empty();
        let sync = self.sync.lock();
        if sync.has_failed() {
            return None;
        }
        if segment_complete || self.wanted_durable.load(Ordering::Relaxed) > durable {
            return Some(0);
        }
        if every_ns == 0 || !sync.has_records(durable, written) {
            return None;
        }
        let now_ns = self.place.clock.monotonic_ns();
        Some((sync.last_began_ns + every_ns).saturating_sub(now_ns))
    }

    /// At the gates `none` and `write`, nothing may be synced for long.
    fn step_look(&self) {
        let (now_ns, written) = (self.place.clock.monotonic_ns(), self.written().0);
        let is_due = {
            let mut sync = self.sync.lock();
            !sync.has_failed() && sync.looked.is_due(now_ns, written)
        };
        if is_due {
            // The error is in the state.
            let _ = self.look_for_files();
        }
    }

    /// Syncs the note in `log-end`, about once a second while there are new notes.
    fn step_log_end(&self, step: &mut Step) {
        let mut sync = self.sync.lock();
        let now_ns = self.place.clock.monotonic_ns();
        let Some(log_end) = &mut sync.log_end else { return };
        match log_end.sync_due_in_ns(now_ns) {
            None => {}
            // If it fails, the previous note is still there, and the next attempt follows in a
            // second.
            Some(0) => step.worked |= log_end.sync(now_ns).is_ok(),
            Some(due_in_ns) => {
                step.due_in_ns = Some(step.due_in_ns.map_or(due_in_ns, |d| d.min(due_in_ns)));
            }
        }
    }

    /// Present interval between syncs; 0 for syncs only on demand.
    fn sync_every_ns(&self) -> u64 {
        match self.sync_every_ns.load(Ordering::Relaxed) {
            0 if self.is_second_running() => EVERY_SECOND_NS,
            every_ns => every_ns,
        }
    }

    /// Starts the background thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn spawn_writer(self: &Arc<Self>) -> io::Result<WriterThread> {
        let log = self.clone();
        let handle = std::thread::Builder::new()
            .name("ladon-log".to_owned())
            .spawn(move || log.run_writer())?;
        Ok(WriterThread { log: self.clone(), handle: Some(handle) })
    }

    /// What the background thread does between two sleeps: a step, after which it announces its
    /// rest. Returns how long to rest unless woken ([`Log::is_resting`]); zero if there is more to
    /// do at once.
    pub fn work_then_rest(&self) -> Duration {
        self.worker.resting.store(BUSY, Ordering::Relaxed);
        let step = self.step();
        if self.sync_is_possible() {
            return Duration::ZERO;
        }
        let rest = step.due_in_ns.map_or(SLEEP_MAX, Duration::from_nanos).min(SLEEP_MAX);
        let (how, rest) = if step.worked { (NAPPING, rest.min(NAP)) } else { (IDLE, rest) };
        if self.sync_due_in_ns().is_none() {
            // The next write that has to be synced within a second has to wake this thread, so it
            // must not find `dirty` set by an earlier one.
            self.worker.dirt_is_taken();
        }
        self.worker.resting.store(how, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // A thread that wrote or promised something before it could see the announced rest is seen
        // here.
        let due_in = self.sync_due_in_ns().map_or(rest, Duration::from_nanos);
        let has_work = self.sync_is_possible()
            || (how == IDLE && self.write_is_possible())
            || due_in.is_zero();
        if has_work || self.worker.stop.load(Ordering::SeqCst) {
            self.worker.resting.store(BUSY, Ordering::Relaxed);
            return Duration::ZERO;
        }
        rest.min(due_in)
    }

    /// Whether no thread has woken the background writer since it announced its rest.
    pub fn is_resting(&self) -> bool {
        self.worker.resting.load(Ordering::Relaxed) != BUSY
    }

    /// The background thread's loop; returns after [`WriterThread::stop`].
    fn run_writer(&self) {
        *self.worker.thread.lock() = Some(std::thread::current());
        while !self.worker.stop.load(Ordering::SeqCst) {
            let rest = self.work_then_rest();
            if !rest.is_zero() {
                std::thread::park_timeout(rest);
            }
        }
        *self.worker.thread.lock() = None;
    }

    /// Whether a thread asks for more durability than there is, and a step can provide some.
    fn sync_is_possible(&self) -> bool {
        let durable = self.durable().0;
        // What was written before a write failed can still be synced.
        let may_sync = || !matches!(self.state(), LogState::SyncFailed { .. });
        self.wanted_durable.load(Ordering::Relaxed) > durable
            && (self.written().0 > durable && may_sync() || self.write_is_possible())
    }

    fn write_is_possible(&self) -> bool {
        self.accepts_writes() && self.buffer.published() > self.written().0
    }
}

/// The running background writer; dropping it stops the thread.
pub struct WriterThread {
    log: Arc<Log>,
    handle: Option<JoinHandle<()>>,
}

impl WriterThread {
    /// Stops the thread and waits for its current step. Does not write what is left: see
    /// [`Log::close`].
    pub fn stop(mut self) {
        self.stop_and_join();
    }

    fn stop_and_join(&mut self) {
        self.log.worker.stop.store(true, Ordering::SeqCst);
        self.log.worker.wake();
        if let Some(handle) = self.handle.take() {
            // A panic of the thread has already been printed by the hook.
            let _ = handle.join();
            self.log.worker.stop.store(false, Ordering::SeqCst);
        }
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.stop_and_join();
    }
}
