//! What other threads leave for the machine's.

use crate::interrupt::interrupt;
use crate::poller::WAKER;
use ladon_fibers::Running;
use ladon_kernel::program::{Kind, Program, Request};
use mio::{Poll, Waker};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Requests that run or wait, of all clients together: `net_msg_max`.
pub const REQUESTS_MAX: usize = 768;

/// The way to a machine from other threads.
pub struct Inbox {
    state: Mutex<State>,
    waker: Waker,
    /// Bits of what it wants to be told of.
    wanted: AtomicU8,
    /// It has something to do before the process ends, and has been asked to end.
    ends_itself: AtomicBool,
    is_to_end: AtomicBool,
    /// The fiber that is to end and does not wait; 0 for none.
    doomed: AtomicU64,
    /// What the machine's scheduler shows, and its thread.
    machine: OnceLock<(Arc<Running>, libc::pthread_t)>,
    /// How often the fiber that runs had changed when the watchdog looked, and since when it has not.
    looked: Mutex<Option<(u64, Instant)>>,
    /// What is done while a fiber does not wait, each time that the watchdog looks.
    on_long: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// What the machine sleeps with, until it takes it.
    poll: Mutex<Option<Poll>>,
}

#[derive(Default)]
struct State {
    requests: VecDeque<Request>,
    /// Requests that were taken, and are not answered.
    running: usize,
    /// Fibers that are to end.
    kills: Vec<u64>,
}

fn bit(kind: Kind) -> u8 {
    match kind {
        Kind::Connect => 1,
        Kind::Auth => 2,
        Kind::Disconnect => 4,
        Kind::Denied => 8,
        Kind::Call | Kind::Call16 | Kind::Eval | Kind::Statement => 0,
    }
}

impl Program for Inbox {
    fn ask(&self, request: Request) -> Result<(), Request> {
        let mut state = self.lock();
        if state.requests.len() + state.running >= REQUESTS_MAX {
            return Err(request);
        }
        state.requests.push_back(request);
        // Who has found others has not looked yet.
        let is_first = state.requests.len() == 1;
        drop(state);
        if is_first {
            self.wake();
        }
        Ok(())
    }

    fn tell(&self, request: Request) {
        self.lock().requests.push_back(request);
        self.wake();
    }

    fn running(&self) -> Option<(u64, u64)> {
        let (fiber, switches) = self.machine.get()?.0.now();
        let looked = *self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let since = looked.filter(|(of, _)| *of == switches).map(|(_, since)| since.elapsed());
        (fiber != 0).then_some((fiber, since.map_or(0, |since| since.as_millis() as u64)))
    }

    fn kill(&self, fiber: u64) -> bool {
        let kills = &mut self.lock().kills;
        if !kills.contains(&fiber) {
            if kills.len() >= REQUESTS_MAX {
                return false;
            }
            kills.push(fiber);
        }
        self.wake();
        true
    }

    fn wants(&self, kind: Kind) -> bool {
        self.wanted.load(Relaxed) & bit(kind) != 0
    }

    fn wake(&self) {
        // The machine looks soon as well if this fails.
        let _ = self.waker.wake();
    }
}

impl Inbox {
    /// An empty one.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<Inbox> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let wanted = AtomicU8::new(0);
        Ok(Inbox {
            state: Mutex::default(),
            on_long: OnceLock::new(),
            waker,
            wanted,
            ends_itself: AtomicBool::new(false),
            is_to_end: AtomicBool::new(false),
            doomed: AtomicU64::new(0),
            machine: OnceLock::new(),
            looked: Mutex::new(None),
            poll: Mutex::new(Some(poll)),
        })
    }

    /// Asks the program to end. Returns `false` if it has nothing to do before that.
    pub fn ask_to_end(&self) -> bool {
        if !self.ends_itself.load(Relaxed) {
            return false;
        }
        self.is_to_end.store(true, Relaxed);
        self.wake();
        true
    }

    /// Whether the program was asked to end, once.
    pub(crate) fn take_end(&self) -> bool {
        self.is_to_end.swap(false, Relaxed)
    }

    /// Whether it has something to do before the process ends.
    pub(crate) fn want_end(&self, wants: bool) {
        self.ends_itself.store(wants, Relaxed);
    }

    /// Whether it wants to be told of this from now on.
    pub(crate) fn want(&self, kind: Kind, wants: bool) {
        match wants {
            true => self.wanted.fetch_or(bit(kind), Relaxed),
            false => self.wanted.fetch_and(!bit(kind), Relaxed),
        };
    }

    /// A machine runs, whose fibers these are; called on its thread.
    pub(crate) fn runs(&self, running: &Arc<Running>, thread: libc::pthread_t) {
        // There is one.
        let _ = self.machine.set((Arc::clone(running), thread));
    }

    /// Takes the fibers that are to end: none of them runs.
    pub(crate) fn take_kills(&self) -> Vec<u64> {
        self.doomed.store(0, Relaxed);
        std::mem::take(&mut self.lock().kills)
    }

    /// Whether the fiber that runs is to end.
    pub(crate) fn is_doomed(&self) -> bool {
        let running = self.machine.get().map_or(0, |(running, _)| running.now().0);
        running != 0 && self.doomed.load(Relaxed) == running
    }

    /// The fiber that was to end has.
    pub(crate) fn has_ended(&self) {
        let fiber = self.doomed.swap(0, Relaxed);
        self.lock().kills.retain(|other| *other != fiber);
    }

    /// The watchdog's look, some times a second: interrupts the fiber that runs, if it is to end and
    /// does not wait.
    pub fn look(&self) {
        let Some((running, thread)) = self.machine.get() else { return };
        let (fiber, switches) = running.now();
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.is_none_or(|(of, _)| of != switches) {
            *looked = Some((switches, Instant::now()));
        } else if fiber != 0 {
            if let Some(on_long) = self.on_long.get() {
                on_long();
            }
            if self.lock().kills.contains(&fiber) {
                self.doomed.store(fiber, Relaxed);
                interrupt(*thread);
            }
        }
    }

    /// Says what is to be done, again and again, while a fiber does not wait: what it has left for the
    /// end of its turn. Only the first one counts.
    pub fn set_on_long(&self, on_long: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_long.set(Box::new(on_long));
    }

    /// Takes all requests.
    pub(crate) fn take(&self) -> VecDeque<Request> {
        let mut state = self.lock();
        state.running += state.requests.len();
        std::mem::take(&mut state.requests)
    }

    /// So many requests were answered.
    pub(crate) fn answered(&self, count: usize) {
        let mut state = self.lock();
        state.running = state.running.saturating_sub(count);
    }

    /// What the machine sleeps with; there is one machine.
    pub(crate) fn take_poll(&self) -> Option<Poll> {
        self.poll.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
