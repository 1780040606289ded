//! Does the jobs of requests that take long, on threads that give way to those that serve clients.

use ladon_commands::aside::{Job, Lent};
use ladon_commands::{Message, Node};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// So that one long job does not keep all others waiting; more would only take from each other.
const THREADS: usize = 2;

/// A job and where its outcome goes.
pub(crate) struct Task {
    pub(crate) job: Job,
    /// What its request has lent.
    pub(crate) lent: Option<Lent>,
    pub(crate) thread: usize,
    pub(crate) client: u64,
    pub(crate) slot: u32,
    /// Nobody waits for it any more.
    pub(crate) dropped: Arc<AtomicBool>,
}

/// The way to the threads, which end when the last of these is gone.
#[derive(Clone)]
pub struct Aside(Sender<Task>);

impl Aside {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(node: &Arc<Node>) -> io::Result<Aside> {
        let (sender, receiver) = channel::<Task>();
        let receiver = Arc::new(Mutex::new(receiver));
        for number in 0..THREADS {
            let (node, receiver) = (Arc::clone(node), Arc::clone(&receiver));
            let name = format!("ladon-aside-{number}");
            thread::Builder::new().name(name).spawn(move || {
                ladon_platform::priority::give_way_somewhat();
                loop {
                    let task = receiver.lock().recv();
                    let Ok(Task { job, lent, thread, client, slot, dropped }) = task else { break };
                    if !dropped.load(Relaxed) {
                        let computed = job(lent);
                        node.threads[thread].send(Message::Computed { client, slot, computed });
                    }
                }
            })?;
        }
        Ok(Aside(sender))
    }

    /// Hands a task over.
    pub(crate) fn hand_over(&self, task: Task) {
        // The threads end only when this is gone.
        let _ = self.0.send(task);
    }
}
