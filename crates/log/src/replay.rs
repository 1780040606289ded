//! Gives every record to every worker, in order.
//!
//! The calling thread reads and checks the log once. All workers share each batch through short
//! queues. With one worker there are no threads and no queues.

use crate::reader::Batch;
use crate::recover::RecoverError;
use crate::sink::RecoverySink;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

/// Batches that may wait for a worker: enough to even out the load, little memory.
const QUEUED_BATCHES: usize = 16;

type Item = Arc<(Batch, PathBuf)>;

type ApplyHere<'a> = Box<dyn Fn(&Batch, &Path) -> Result<(), RecoverError> + 'a>;

pub(crate) struct Replay<'a> {
    here: Option<ApplyHere<'a>>,
    workers: Vec<Worker<'a>>,
    /// Batches that were given to the workers, the oldest first.
    given: VecDeque<Item>,
}

struct Worker<'a> {
    queue: SyncSender<Item>,
    thread: ScopedJoinHandle<'a, Result<(), RecoverError>>,
}

impl<'a> Replay<'a> {
    pub(crate) fn start<'env, S: RecoverySink + ?Sized>(
        threads: &'a Scope<'a, 'env>,
        sink: &'env S,
        workers: usize,
    ) -> Replay<'a> {
        if workers == 1 {
            let here = move |batch: &Batch, path: &Path| apply(sink, 0, batch, path);
            let given = VecDeque::new();
            return Replay { here: Some(Box::new(here)), workers: Vec::new(), given };
        }
        let workers = (0..workers)
            .map(|worker| {
                let (queue, receiver) = sync_channel::<Item>(QUEUED_BATCHES);
                let thread = threads.spawn(move || apply_queue(sink, worker, &receiver));
                Worker { queue, thread }
            })
            .collect();
        Replay { here: None, workers, given: VecDeque::new() }
    }

    /// Gives a batch to every worker; returns one that nobody needs any more, if there is one. A
    /// failed worker takes no more; its error is returned here or at the end.
    pub(crate) fn feed(&mut self, batch: Batch, path: &Path) -> Result<Batch, RecoverError> {
        if let Some(here) = &self.here {
            return here(&batch, path).map(|()| batch);
        }
        if batch.is_empty() {
            return Ok(batch);
        }
        let item = Arc::new((batch, path.to_owned()));
        self.given.push_back(item.clone());
        let failed =
            self.workers.iter().position(|worker| worker.queue.send(item.clone()).is_err());
        match failed {
            Some(index) => join(self.workers.swap_remove(index)).map(|()| Batch::default()),
            None => {
                let spent = self.given.pop_front_if(|item| Arc::strong_count(item) == 1);
                Ok(spent.and_then(Arc::into_inner).map(|(batch, _)| batch).unwrap_or_default())
            }
        }
    }

    /// Waits for all workers.
    pub(crate) fn finish(self) -> Result<(), RecoverError> {
        self.workers.into_iter().map(join).fold(Ok(()), Result::and)
    }
}

fn join(worker: Worker<'_>) -> Result<(), RecoverError> {
    drop(worker.queue);
    worker.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn apply_queue<S: RecoverySink + ?Sized>(
    sink: &S,
    worker: usize,
    queue: &Receiver<Item>,
) -> Result<(), RecoverError> {
    while let Ok(item) = queue.recv() {
        apply(sink, worker, &item.0, &item.1)?;
    }
    Ok(())
}

fn apply<S: RecoverySink + ?Sized>(
    sink: &S,
    worker: usize,
    batch: &Batch,
    path: &Path,
) -> Result<(), RecoverError> {
    sink.records(worker, batch).map_err(|(lsn, message)| {
        let path = path.to_owned();
        RecoverError::Sink { path, lsn, message }
    })
}
