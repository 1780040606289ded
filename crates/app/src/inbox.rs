//! What other threads leave for the machine's.

use crate::poller::WAKER;
use ladon_kernel::program::{Kind, Program, Request};
use mio::{Poll, Waker};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Requests that run or wait, of all clients together: `net_msg_max`.
pub const REQUESTS_MAX: usize = 768;

/// The way to a machine from other threads.
pub struct Inbox {
    state: Mutex<State>,
    waker: Waker,
    /// Bits of what it wants to be told of.
    wanted: AtomicU8,
    /// What the machine sleeps with, until it takes it.
    poll: Mutex<Option<Poll>>,
}

#[derive(Default)]
struct State {
    requests: VecDeque<Request>,
    /// Requests that were taken, and are not answered.
    running: usize,
}

fn bit(kind: Kind) -> u8 {
    match kind {
        Kind::Connect => 1,
        Kind::Auth => 2,
        Kind::Disconnect => 4,
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
        Ok(Inbox { state: Mutex::default(), waker, wanted, poll: Mutex::new(Some(poll)) })
    }

    /// Whether it wants to be told of this from now on.
    pub(crate) fn want(&self, kind: Kind, wants: bool) {
        match wants {
            true => self.wanted.fetch_or(bit(kind), Relaxed),
            false => self.wanted.fetch_and(!bit(kind), Relaxed),
        };
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
