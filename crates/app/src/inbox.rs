//! What other threads leave for the machine's.

use ladon_kernel::program::{Program, Request};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Requests that run or wait, of all clients together: `net_msg_max`.
pub const REQUESTS_MAX: usize = 768;

/// The way to a machine from other threads.
#[derive(Default)]
pub struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    requests: VecDeque<Request>,
    /// Requests that were taken, and are not answered.
    running: usize,
    is_woken: bool,
}

impl Program for Inbox {
    fn ask(&self, request: Request) -> Result<(), Request> {
        let mut state = self.lock();
        if state.requests.len() + state.running >= REQUESTS_MAX {
            return Err(request);
        }
        state.requests.push_back(request);
        state.is_woken = true;
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    fn wake(&self) {
        self.lock().is_woken = true;
        self.changed.notify_one();
    }
}

impl Inbox {
    /// Takes all requests.
    pub(crate) fn take(&self) -> VecDeque<Request> {
        let mut state = self.lock();
        state.is_woken = false;
        state.running += state.requests.len();
        std::mem::take(&mut state.requests)
    }

    /// So many requests were answered.
    pub(crate) fn answered(&self, count: usize) {
        let mut state = self.lock();
        state.running = state.running.saturating_sub(count);
    }

    /// Sleeps until somebody wakes the machine, or the time is over.
    pub(crate) fn sleep(&self, most: Option<Duration>) {
        let state = self.lock();
        if state.is_woken {
            return;
        }
        let woken = |state: &mut State| !state.is_woken;
        match most {
            Some(most) => {
                drop(self.changed.wait_timeout_while(state, most, woken));
            }
            None => drop(self.changed.wait_while(state, woken)),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
