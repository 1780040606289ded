//! Threads for long jobs, such as computing the union of large sets. Their priority is lower than
//! that of the IO threads.

use crate::errands::{Errands, Urgency};
use ladon_kernel::long::aside_job::{Job, Lent};
use ladon_kernel::message::Message;
use ladon_kernel::request::outcome::JobKind;
use ladon_kernel::shared::Shared;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// Two, so that one long job does not block all others. More threads would only compete with each
/// other.
const THREADS: usize = 2;

/// A job, and where to send its result.
pub(crate) struct Task {
    pub(crate) job: Job,
    /// The argument that the request has lent.
    pub(crate) lent: Option<Lent>,
    pub(crate) thread: usize,
    pub(crate) client: u64,
    pub(crate) slot: u32,
    /// Set once no connection waits for the result any more.
    pub(crate) dropped: Arc<AtomicBool>,
}

/// Sends tasks to the threads. The threads end when the last clone is dropped.
#[derive(Clone)]
pub struct Aside {
    tasks: Sender<Task>,
    errands: Arc<Errands>,
    for_replicas: Arc<Errands>,
}

impl Aside {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(node: &Arc<Shared>) -> io::Result<Aside> {
        let (sender, receiver) = channel::<Task>();
        let receiver = Arc::new(Mutex::new(receiver));
        for number in 0..THREADS {
            let (node, receiver) = (Arc::clone(node), Arc::clone(&receiver));
            let name = format!("ladon-aside-{number}");
            // It loads libraries of functions, too.
            let thread =
                thread::Builder::new().name(name).stack_size(ladon_kernel::scripts::STACK_BYTES);
            thread.spawn(move || {
                ladon_platform::priority::give_way();
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
        let errands = Errands::new(node, Urgency::GivesWay);
        let for_replicas = Errands::new(node, Urgency::AsRequests);
        Ok(Aside { tasks: sender, errands, for_replicas })
    }

    /// Queues a task.
    pub(crate) fn hand_over(&self, task: Task) {
        // Sending fails only after the threads have ended, which happens when the last `Aside` is
        // dropped.
        let _ = self.tasks.send(task);
    }

    /// Gives a task that waits for something to a thread on which nothing else waits.
    pub(crate) fn send_out(&self, task: Task, kind: JobKind) {
        let errands = match kind {
            JobKind::Replica => &self.for_replicas,
            JobKind::Computes | JobKind::Errand => &self.errands,
        };
        if let Err((task, error)) = errands.send_out(task) {
            tracing::warn!("cannot start a thread for an errand: {error}; long jobs wait for it");
            self.hand_over(task);
        }
    }
}
