//! Drops large values on a thread of its own, so that nobody waits for a million frees.

use ladon_commands::node::LazyFree;
use ladon_engine::Garbage;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// The way to the dropping thread; it ends when the last of these is gone.
#[derive(Clone)]
pub struct Dropper {
    sender: Sender<Vec<Garbage>>,
    counts: Arc<LazyFree>,
}

impl Dropper {
    /// Starts the thread, which keeps the counts.
    pub fn start(counts: Arc<LazyFree>) -> io::Result<Dropper> {
        let (sender, receiver) = channel::<Vec<Garbage>>();
        let done = Arc::clone(&counts);
        thread::Builder::new().name("ladon-dropper".into()).spawn(move || {
            ladon_platform::priority::give_way();
            for garbage in receiver {
                let values = values_of(&garbage);
                drop(garbage);
                done.pending.fetch_sub(values, Relaxed);
                done.freed.fetch_add(values, Relaxed);
            }
        })?;
        Ok(Dropper { sender, counts })
    }

    /// Hands it over; if the thread is gone, it is dropped here.
    pub fn drop_later(&self, garbage: Vec<Garbage>) {
        let values = values_of(&garbage);
        self.counts.pending.fetch_add(values, Relaxed);
        if let Err(garbage) = self.sender.send(garbage) {
            drop(garbage);
            self.counts.pending.fetch_sub(values, Relaxed);
            self.counts.freed.fetch_add(values, Relaxed);
        }
    }
}

fn values_of(garbage: &[Garbage]) -> u64 {
    garbage.iter().map(Garbage::values).sum()
}
