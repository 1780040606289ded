//! The threads that do what may hold one up, for fibers that wait meanwhile.
//!
//! ```text
//!   a fiber ── Job ──> queue ──> ladon-blocking-N     runs the work
//!      waits                        │
//!      <── Context::finish ── done ─┘                 the machine's turn says so to the fiber
//! ```
//!
//! # Why it is sound
//! A job borrows from the stack of the fiber that waits for it. That fiber goes on only after
//! [`Blocking::finish`] has set its flag, which the machine's thread does after the worker has left
//! the work: whatever else wakes the fiber, it waits again.

use crate::context::Context;
use crate::inbox::Inbox;
use crate::natives::before_switch;
use crate::stack::State;
use ladon_fibers::{FiberId, Scheduler};
use ladon_kernel::program::Program as _;
use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Threads at most; the first job starts the first one.
const THREADS_MAX: usize = 4;

type Work = *mut (dyn FnMut() + Send);

struct Job {
    work: Work,
    fiber: FiberId,
    is_done: *const Cell<bool>,
}

// SAFETY: The work may run on another thread, and the flag is touched by the machine's alone.
unsafe impl Send for Job {}

#[derive(Default)]
struct Jobs {
    queue: VecDeque<Job>,
    done: Vec<Job>,
    threads: usize,
    idle: usize,
}

struct Shared {
    state: Mutex<Jobs>,
    has_job: Condvar,
    inbox: Arc<Inbox>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            while let Some(job) = state.queue.pop_front() {
                drop(state);
                // SAFETY: The fiber that owns the work waits until `finish`.
                unsafe { (*job.work)() };
                state = self.lock();
                state.done.push(job);
                if state.done.len() == 1 {
                    self.inbox.wake();
                }
            }
            state.idle += 1;
            state = self.has_job.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

/// The threads, and what they have.
pub(crate) struct Blocking {
    shared: Arc<Shared>,
}

impl Blocking {
    pub(crate) fn new(inbox: Arc<Inbox>) -> Blocking {
        let shared = Shared { state: Mutex::default(), has_job: Condvar::new(), inbox };
        Blocking { shared: Arc::new(shared) }
    }

    /// Queues a job. Returns false, and has not, if there is no thread that could do it.
    fn submit(&self, job: Job) -> bool {
        let mut state = self.shared.lock();
        if state.idle <= state.queue.len() && state.threads < THREADS_MAX {
            let shared = Arc::clone(&self.shared);
            let name = format!("ladon-blocking-{}", state.threads);
            let started = std::thread::Builder::new().name(name).spawn(move || shared.work());
            state.threads += usize::from(started.is_ok());
        }
        if state.threads == 0 {
            return false;
        }
        state.queue.push_back(job);
        drop(state);
        self.shared.has_job.notify_one();
        true
    }

    /// Wakes the fibers whose work is done.
    pub(crate) fn finish(&self, scheduler: &Scheduler) {
        let done = std::mem::take(&mut self.shared.lock().done);
        for job in done {
            // SAFETY: The fiber waits until the flag is set, on this thread.
            unsafe { (*job.is_done).set(true) };
            scheduler.wake(job.fiber);
        }
    }
}

/// The [`ladon_modules::BlockingRunner`] of machines; `of` is the [`Context`].
///
/// # Safety
/// As for [`crate::stack`]; called from Lua, in a fiber.
pub(crate) unsafe fn run(state: State, of: *const c_void, work: &mut (dyn FnMut() + Send)) {
    // SAFETY: The context outlives the state. The work outlives this function, which leaves only
    // after it is done.
    unsafe {
        let context = &*of.cast::<Context>();
        before_switch(state);
        let is_done = Cell::new(false);
        let of_fiber = std::mem::transmute::<&mut (dyn FnMut() + Send), Work>(work);
        let fiber = context.scheduler.current();
        let job = Job { work: of_fiber, fiber, is_done: &raw const is_done };
        if !context.blocking.submit(job) {
            (*of_fiber)();
            return;
        }
        while !is_done.get() {
            context.scheduler.wait(None);
        }
    }
}
