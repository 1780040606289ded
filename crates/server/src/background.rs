//! Threads for work that clients ask for and that takes locks, such as `SYNC`'s dump.

use ladon_kernel::background::{Background, CannotBegin, Work};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// So much may be under way: a client that takes nothing of its dump leaves room for others.
const WORKS_MAX: usize = 8;

/// The threads.
#[derive(Default)]
pub(crate) struct Threads {
    running: Arc<AtomicUsize>,
}

/// Counts a work until its end.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Background for Threads {
    fn begin(&self, work: Work) -> Result<(), CannotBegin> {
        let place = Place(Arc::clone(&self.running));
        if self.running.fetch_add(1, Relaxed) >= WORKS_MAX {
            return Err(CannotBegin::TooMany(WORKS_MAX));
        }
        let thread = thread::Builder::new().name("ladon-work".to_owned());
        let spawned = thread.spawn(move || {
            work();
            drop(place);
        });
        spawned.map(drop).map_err(|error| CannotBegin::Thread(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_few_works_go_on_at_once() {
        let threads = Threads::default();
        let (sender, receiver) = channel::<()>();
        let receiver = Arc::new(parking_lot::Mutex::new(receiver));
        for _ in 0..WORKS_MAX {
            let receiver = Arc::clone(&receiver);
            let begun = threads.begin(Box::new(move || {
                // An error: the sender is gone, which ends it.
                let _ = receiver.lock().recv();
            }));
            assert_eq!(begun, Ok(()));
        }
        assert_eq!(threads.begin(Box::new(|| {})), Err(CannotBegin::TooMany(WORKS_MAX)));
        drop(sender);
        while threads.begin(Box::new(|| {})).is_err() {
            thread::yield_now();
        }
    }
}
