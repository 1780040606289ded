//! A node's data, and how it is exchanged for other data while connections go on.
//!
//! Whoever has other data announces it ([`crate::node::Node::exchange`]). Each thread takes it when it begins a
//! turn, in a `Node` of its own, and runs no request until all threads have taken it. So once a
//! request has seen the new data, none sees the data before.

use crate::durability::Durability;
use crate::loading::Loading;
use ladon_engine::Keyspace;
use ladon_log::Log;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};
use std::time::Duration;

/// A node's data, and the log of its changes.
#[derive(Clone)]
pub struct Dataset {
    /// The data.
    pub keyspace: Arc<Keyspace>,
    /// The log of its changes.
    pub log: Arc<Log>,
    /// Log and checkpoints, as commands see them.
    pub durability: Arc<dyn Durability>,
    /// Present while the data is being loaded, and this is in its place.
    pub loading: Option<Arc<Loading>>,
}

/// The newest data of a node, and which threads have taken it.
pub(crate) struct Exchange {
    /// How often the data was exchanged.
    generation: AtomicU64,
    /// The newest generation that all threads have taken.
    taken_by_all: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    newest: Option<Dataset>,
    /// The generation that each thread has taken; the maximum if it runs nothing.
    taken: Box<[u64]>,
}

impl Exchange {
    pub(crate) fn of(threads: usize) -> Exchange {
        let taken = vec![u64::MAX; threads].into();
        Exchange {
            generation: AtomicU64::new(0),
            taken_by_all: AtomicU64::new(0),
            state: Mutex::new(State { newest: None, taken }),
            changed: Condvar::new(),
        }
    }

    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    pub(crate) fn announce(&self, data: Dataset) {
        let mut state = self.state.lock();
        state.newest = Some(data);
        self.generation.fetch_add(1, Release);
    }

    /// The newest data, if it was ever exchanged, and its generation.
    pub(crate) fn newest(&self) -> Option<(Dataset, u64)> {
        let state = self.state.lock();
        let generation = self.generation();
        state.newest.clone().map(|data| (data, generation))
    }

    /// A thread has taken a generation, or runs nothing any more.
    pub(crate) fn has_taken(&self, thread: usize, generation: u64) {
        let mut state = self.state.lock();
        state.taken[thread] = generation;
        let least = state.taken.iter().copied().min().unwrap_or(u64::MAX);
        self.taken_by_all.store(least, Release);
        self.changed.notify_all();
    }

    #[inline]
    pub(crate) fn is_taken_by_all(&self, generation: u64) -> bool {
        self.taken_by_all.load(Acquire) >= generation
    }

    /// Waits until all threads have taken a generation, for at most so long. Returns whether they
    /// have.
    pub(crate) fn wait(&self, generation: u64, most: Duration) -> bool {
        let mut state = self.state.lock();
        if !self.is_taken_by_all(generation) {
            self.changed.wait_for(&mut state, most);
        }
        self.is_taken_by_all(generation)
    }
}
