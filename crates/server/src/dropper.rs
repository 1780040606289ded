//! A thread that drops large values, so that no client waits for a million frees. It also makes the
//! allocator return unused memory to the system.
//!
//! The allocator returns freed memory only when some thread allocates later. A server that has just
//! lost most of its data may not allocate at all. Therefore this thread purges the allocator while
//! requests run, and once more after they stop.

use ladon_engine::Garbage;
use ladon_kernel::shared::Shared;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between purges, longer than the time for which memory must be unused before a purge
/// frees it.
const PURGE_EVERY: Duration = Duration::from_millis(1200);

/// Sends tasks to the dropping thread, which ends when the last clone is dropped.
#[derive(Clone)]
pub struct Dropper {
    sender: Sender<Task>,
    node: Arc<Shared>,
    purges: Arc<Mutex<Purges>>,
}

enum Task {
    /// Values to free.
    Drop,
    /// Purge after the interval.
    Purge,
}

/// Which purges are scheduled.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Purges {
    #[default]
    None,
    Next,
    /// Activity was reported after the next purge was scheduled, so another one follows.
    NextAndAnother,
}

impl Dropper {
    /// Starts the thread, which maintains the node's counts.
    pub fn start(node: &Arc<Shared>) -> io::Result<Dropper> {
        let (sender, receiver) = channel();
        let purges = Arc::default();
        let dropper = Dropper { sender, node: Arc::clone(node), purges };
        let (node, purges) = (Arc::clone(node), Arc::clone(&dropper.purges));
        thread::Builder::new().name("ladon-dropper".into()).spawn(move || {
            // Definitions of spaces wait for it, and who has removed much wants the memory.
            ladon_platform::priority::give_way();
            run(&node, &receiver, &purges);
        })?;
        Ok(dropper)
    }

    /// Queues the values. If the thread has ended, they are dropped here.
    pub fn drop_later(&self, garbage: Vec<Garbage>) {
        self.node.lazy_free.add(garbage);
        if self.sender.send(Task::Drop).is_err() {
            while self.node.lazy_free.free_next(usize::MAX) {}
        }
    }

    /// Schedules a purge, because requests may have freed memory.
    pub fn purge_later(&self) {
        let mut purges = self.purges.lock();
        *purges = match *purges {
            // If the thread has ended, the server ends soon too.
            Purges::None if self.sender.send(Task::Purge).is_err() => Purges::None,
            Purges::None => Purges::Next,
            Purges::Next | Purges::NextAndAnother => Purges::NextAndAnother,
        };
    }
}

fn run(node: &Shared, receiver: &Receiver<Task>, purges: &Mutex<Purges>) {
    let mut purge_at: Option<Instant> = None;
    loop {
        let wait = purge_at.map(|at| at.saturating_duration_since(Instant::now()));
        if wait.is_some_and(|wait| wait.is_zero()) {
            node.process.purge_idle_memory();
            let mut purges = purges.lock();
            let another = *purges == Purges::NextAndAnother;
            *purges = if another { Purges::Next } else { Purges::None };
            purge_at = another.then(|| Instant::now() + PURGE_EVERY);
            continue;
        }
        let task = match wait {
            Some(wait) => receiver.recv_timeout(wait),
            None => receiver.recv().map_err(RecvTimeoutError::from),
        };
        match task {
            Ok(Task::Drop) => {
                while node.lazy_free.free_next(usize::MAX) {}
                let mut purges = purges.lock();
                if *purges == Purges::None {
                    purge_at = Some(Instant::now() + PURGE_EVERY);
                }
                *purges = Purges::NextAndAnother;
            }
            Ok(Task::Purge) => purge_at = purge_at.or(Some(Instant::now() + PURGE_EVERY)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
