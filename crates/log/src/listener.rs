//! Who wants to know when the log's positions move.
//!
//! An IO thread that parks replies stores the lowest LSN that it waits for in its own listener, and
//! is woken once when that is reached. Whoever advances a position looks at every listener, which is
//! one load each; nobody is woken for a position that he does not wait for.
//!
//! **Invariant:** the waiter stores what it awaits, then (sequentially consistent fence) reads the
//! position; the writer stores the position, then (fence) reads what is awaited. At least one of
//! them sees the other, so no wake-up is lost.

use crate::sync::{AtomicU64, CachePadded, Mutex, Ordering, fence};
use ladon_model::Lsn;
use std::sync::Arc;

/// Waits for nothing.
const NOTHING: u64 = u64::MAX;

/// How far the log has got; each only moves forward.
pub(crate) struct Positions {
    pub(crate) written: CachePadded<AtomicU64>,
    pub(crate) durable: CachePadded<AtomicU64>,
}

impl Positions {
    pub(crate) fn new(at: Lsn) -> Positions {
        Positions {
            written: CachePadded(AtomicU64::new(at.0)),
            durable: CachePadded(AtomicU64::new(at.0)),
        }
    }
}

/// One waiter's slot, from [`crate::Log::add_listener`]; for one thread at a time.
pub struct Listener {
    awaits_written: AtomicU64,
    awaits_durable: AtomicU64,
    positions: Arc<Positions>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Listener {
    /// Asks for one wake-up when everything up to `lsn` is handed to the operating system, in place
    /// of an earlier request. Returns true when it already is, and then asks for nothing.
    pub fn await_written(&self, lsn: Lsn) -> bool {
        register(&self.awaits_written, lsn, &self.positions.written.0)
    }

    /// Asks for one wake-up when everything up to `lsn` is on the disk, in place of an earlier
    /// request. Returns true when it already is. Somebody must also ask for the sync itself: see
    /// [`crate::Log::want_durable`].
    pub fn await_durable(&self, lsn: Lsn) -> bool {
        register(&self.awaits_durable, lsn, &self.positions.durable.0)
    }
}

fn register(awaited: &AtomicU64, lsn: Lsn, position: &AtomicU64) -> bool {
    if position.load(Ordering::Acquire) < lsn.0 {
        awaited.store(lsn.0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if position.load(Ordering::Acquire) < lsn.0 {
            return false;
        }
    }
    awaited.store(NOTHING, Ordering::Relaxed);
    true
}

/// True for exactly one of the threads that find the awaited position reached.
fn take_if_reached(awaited: &AtomicU64, position: u64) -> bool {
    let lsn = awaited.load(Ordering::Relaxed);
    lsn <= position
        && awaited.compare_exchange(lsn, NOTHING, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

/// All listeners of a log.
pub(crate) struct Listeners {
    all: Mutex<Vec<Arc<Listener>>>,
}

impl Listeners {
    pub(crate) fn new() -> Listeners {
        Listeners { all: Mutex::new(Vec::new()) }
    }

    pub(crate) fn add(
        &self,
        positions: &Arc<Positions>,
        wake: Arc<dyn Fn() + Send + Sync>,
    ) -> Arc<Listener> {
        let listener = Arc::new(Listener {
            awaits_written: AtomicU64::new(NOTHING),
            awaits_durable: AtomicU64::new(NOTHING),
            positions: positions.clone(),
            wake,
        });
        self.all.lock().push(listener.clone());
        listener
    }

    pub(crate) fn remove(&self, listener: &Arc<Listener>) {
        self.all.lock().retain(|other| !Arc::ptr_eq(other, listener));
    }

    pub(crate) fn written_advanced(&self, position: u64) {
        fence(Ordering::SeqCst);
        self.wake_where(|listener| take_if_reached(&listener.awaits_written, position));
    }

    pub(crate) fn durable_advanced(&self, position: u64) {
        fence(Ordering::SeqCst);
        self.wake_where(|listener| take_if_reached(&listener.awaits_durable, position));
    }

    /// The state changed: everyone has to look at it.
    pub(crate) fn state_changed(&self) {
        self.wake_where(|_| true);
    }

    fn wake_where(&self, condition: impl Fn(&Listener) -> bool) {
        for listener in self.all.lock().iter() {
            if condition(listener) {
                (listener.wake)();
            }
        }
    }
}
