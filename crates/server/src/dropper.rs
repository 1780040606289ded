//! Drops large values on a thread of its own, so that nobody waits for a million frees, and has the
//! allocator give back what nobody uses any more.
//!
//! An allocator returns memory some time after it was freed, when a thread comes by that wants some;
//! a server that has just lost most of its data wants none. So while anything happens, and once more
//! when all is quiet again, this thread comes by.

use ladon_commands::Node;
use ladon_engine::Garbage;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// From one purge to the next: longer than what memory must have been unused for.
const PURGE_EVERY: Duration = Duration::from_millis(1200);

/// The way to the dropping thread; it ends when the last of these is gone.
#[derive(Clone)]
pub struct Dropper {
    sender: Sender<Task>,
    node: Arc<Node>,
    purges: Arc<Mutex<Purges>>,
}

enum Task {
    /// Values wait to be freed.
    Drop,
    /// Something happens: purge in a while.
    Purge,
}

/// Whether memory will be purged.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Purges {
    #[default]
    None,
    Next,
    /// Something has happened since the next one was asked for, so there will be one more.
    NextAndAnother,
}

impl Dropper {
    /// Starts the thread, which keeps the node's counts.
    pub fn start(node: &Arc<Node>) -> io::Result<Dropper> {
        // From here on this thread takes the memory of empty slabs back to the system.
        node.keyspace.allow_compaction();
        let (sender, receiver) = channel();
        let purges = Arc::default();
        let dropper = Dropper { sender, node: Arc::clone(node), purges };
        let (node, purges) = (Arc::clone(node), Arc::clone(&dropper.purges));
        thread::Builder::new().name("ladon-dropper".into()).spawn(move || {
            ladon_platform::priority::give_way();
            run(&node, &receiver, &purges);
        })?;
        Ok(dropper)
    }

    /// Hands it over; if the thread is gone, it is dropped here.
    pub fn drop_later(&self, garbage: Vec<Garbage>) {
        self.node.lazy_free.add(garbage);
        if self.sender.send(Task::Drop).is_err() {
            while self.node.lazy_free.free_next(usize::MAX) {}
        }
    }

    /// Something happens, so that memory may become free.
    pub fn purge_later(&self) {
        let mut purges = self.purges.lock();
        *purges = match *purges {
            // If the thread is gone, so is the server in a moment.
            Purges::None if self.sender.send(Task::Purge).is_err() => Purges::None,
            Purges::None => Purges::Next,
            Purges::Next | Purges::NextAndAnother => Purges::NextAndAnother,
        };
    }
}

fn run(node: &Node, receiver: &Receiver<Task>, purges: &Mutex<Purges>) {
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
