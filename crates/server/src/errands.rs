//! Threads for jobs that wait for other servers, or for replicas. Their number is that of the errands under way,
//! which those who make errands limit; a thread ends when it was idle for a while.

use crate::aside::Task;
use ladon_kernel::message::Message;
use ladon_kernel::shared::Shared;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

/// After so long without an errand a thread ends.
const IDLE_FOR: Duration = Duration::from_secs(10);

/// Whether the threads' priority is lower than that of the IO threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    GivesWay,
    AsRequests,
}

/// The threads, and what they have to do.
pub(crate) struct Errands {
    node: Arc<Shared>,
    urgency: Urgency,
    queue: Mutex<Queue>,
    arrived: Condvar,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    /// Threads that wait for a task.
    idle: usize,
    threads: usize,
}

impl Errands {
    /// No threads yet.
    pub(crate) fn new(node: &Arc<Shared>, urgency: Urgency) -> Arc<Errands> {
        let (node, queue, arrived) = (Arc::clone(node), Mutex::default(), Condvar::new());
        Arc::new(Errands { node, urgency, queue, arrived })
    }

    /// Gives the task to a thread. Returns it if there is none, and the system gives no other.
    pub(crate) fn send_out(self: &Arc<Self>, task: Task) -> Result<(), (Task, io::Error)> {
        let mut queue = self.queue.lock();
        queue.tasks.push_back(task);
        if queue.idle >= queue.tasks.len() {
            self.arrived.notify_one();
            return Ok(());
        }
        let errands = Arc::clone(self);
        let name = match self.urgency {
            Urgency::GivesWay => "ladon-errand",
            Urgency::AsRequests => "ladon-replicas",
        };
        let thread = thread::Builder::new().name(name.to_owned());
        match thread.spawn(move || errands.run()) {
            Ok(_) => queue.threads += 1,
            // Another one takes it later.
            Err(_) if queue.threads > 0 => {}
            Err(error) => {
                if let Some(task) = queue.tasks.pop_back() {
                    return Err((task, error));
                }
            }
        }
        Ok(())
    }

    fn run(&self) {
        if self.urgency == Urgency::GivesWay {
            ladon_platform::priority::give_way();
        }
        while let Some(Task { job, lent, thread, client, slot, dropped }) = self.next() {
            if !dropped.load(Relaxed) {
                let computed = job(lent);
                self.node.threads[thread].send(Message::Computed { client, slot, computed });
            }
        }
        if let Some(peers) = &self.node.peers {
            peers.tidy();
        }
    }

    /// The next task; `None` if there was none for long.
    fn next(&self) -> Option<Task> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(task) = queue.tasks.pop_front() {
                return Some(task);
            }
            queue.idle += 1;
            let timed_out = self.arrived.wait_for(&mut queue, IDLE_FOR).timed_out();
            queue.idle -= 1;
            if timed_out && queue.tasks.is_empty() {
                queue.threads -= 1;
                return None;
            }
        }
    }
}
