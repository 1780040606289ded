//! A request to stop the server, from a signal, from `SHUTDOWN` or from a test.

use ladon_kernel::durability::Shutdown;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once. The IO threads check it every turn, and the main thread sleeps on it.
#[derive(Default)]
pub struct StopSignal {
    requested: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

type Wake = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct State {
    how: Option<Shutdown>,
    wakers: Vec<Wake>,
}

impl StopSignal {
    /// Asks the server to stop; only the first request counts.
    pub fn request(&self, how: Shutdown) {
        let mut state = self.state.lock();
        state.how.get_or_insert(how);
        self.requested.store(true, Ordering::Release);
        for wake in &state.wakers {
            wake();
        }
        self.changed.notify_all();
    }

    /// Whether the server has to stop.
    #[inline]
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Registers `wake`, which is called when the server has to stop.
    pub(crate) fn add_waker(&self, wake: impl Fn() + Send + Sync + 'static) {
        let mut state = self.state.lock();
        if state.how.is_some() {
            wake();
        }
        state.wakers.push(Box::new(wake));
    }

    /// Sleeps until the server has to stop.
    pub(crate) fn wait(&self) -> Shutdown {
        let mut state = self.state.lock();
        loop {
            if let Some(how) = state.how {
                return how;
            }
            self.changed.wait(&mut state);
        }
    }
}
