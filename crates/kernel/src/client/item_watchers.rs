//! Connections of memcached's protocol that watch what requests do with items (`watch`).
//!
//! ```text
//! a request -> a line -> each watcher's queue -> a slice of the watcher's reply, which never ends
//! ```
//!
//! A queue has [`QUEUE_BYTES_MAX`] at most. Of a watcher that does not read, lines are dropped and
//! counted, and the watcher is told how many: `skipped=N`.

use crate::message::ThreadHandle;
use ladon_record::Lsn;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU8, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Lines that a watcher has not taken have so many bytes at most.
pub const QUEUE_BYTES_MAX: usize = 256 << 10;

/// What is watched: some of these bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched(pub u8);

impl Watched {
    /// Requests that read an item.
    pub const FETCHERS: Watched = Watched(1);
    /// Requests that store a value.
    pub const MUTATIONS: Watched = Watched(1 << 1);
    /// Items that are removed because memory is short.
    pub const EVICTIONS: Watched = Watched(1 << 2);
    /// Connections of memcached's protocols that begin and end.
    pub const CONNECTIONS: Watched = Watched(1 << 3);

    fn has(self, other: Watched) -> bool {
        self.0 & other.0 != 0
    }
}

/// A watching connection.
pub struct Watcher {
    thread: usize,
    watched: Watched,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    lines: Vec<u8>,
    skipped: u64,
    depends: Lsn,
}

impl Watcher {
    /// Takes all lines, and what they depend on.
    pub fn take(&self) -> (Vec<u8>, Lsn) {
        let mut queue = self.queue.lock();
        let mut lines = std::mem::take(&mut queue.lines);
        match std::mem::take(&mut queue.skipped) {
            0 => {}
            skipped => lines.extend_from_slice(format!("skipped={skipped}\n").as_bytes()),
        }
        (lines, queue.depends)
    }

    /// Whether there are lines to take.
    pub fn has_lines(&self) -> bool {
        !self.queue.lock().lines.is_empty()
    }

    /// Bytes of the lines that wait.
    pub fn bytes(&self) -> usize {
        self.queue.lock().lines.capacity()
    }

    /// Appends a line, or counts it. Whether the watcher has to be woken.
    fn append(&self, line: &[u8], depends: Lsn) -> bool {
        let mut queue = self.queue.lock();
        if queue.lines.len() + line.len() > QUEUE_BYTES_MAX {
            queue.skipped += 1;
            return false;
        }
        let was_empty = queue.lines.is_empty();
        queue.lines.extend_from_slice(line);
        queue.depends = queue.depends.max(depends);
        was_empty
    }
}

/// All watchers.
#[derive(Default)]
pub struct ItemWatchers {
    watchers: Mutex<Vec<Arc<Watcher>>>,
    /// What any of them watches.
    watched: AtomicU8,
    /// Lines that were made so far.
    lines: AtomicU64,
}

impl ItemWatchers {
    /// Whether anybody watches that.
    #[inline]
    pub fn any(&self, watched: Watched) -> bool {
        Watched(self.watched.load(Acquire)).has(watched)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.watchers.lock().len()
    }

    /// Adds a connection of that IO thread.
    pub fn add(&self, thread: usize, watched: Watched) -> Arc<Watcher> {
        let watcher = Arc::new(Watcher { thread, watched, queue: Mutex::default() });
        self.change(|watchers| watchers.push(Arc::clone(&watcher)));
        watcher
    }

    /// Removes a watcher.
    pub fn remove(&self, watcher: &Arc<Watcher>) {
        self.change(|watchers| watchers.retain(|present| !Arc::ptr_eq(present, watcher)));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<Watcher>>)) {
        let mut watchers = self.watchers.lock();
        change(&mut watchers);
        let all = watchers.iter().fold(0, |all, watcher| all | watcher.watched.0);
        self.watched.store(all, Release);
    }

    /// Tells those who watch it of something that depends on `depends`, at that time in Unix
    /// microseconds. `what` is the line behind its time and number.
    #[cold]
    pub(crate) fn tell(
        &self,
        threads: &[ThreadHandle],
        unix_us: u64,
        watched: Watched,
        what: &str,
        depends: Lsn,
    ) {
        let number = self.lines.fetch_add(1, Relaxed) + 1;
        let (seconds, rest) = (unix_us / 1_000_000, unix_us % 1_000_000);
        let line = format!("ts={seconds}.{rest:06} gid={number} {what}\n");
        for watcher in self.watchers.lock().iter() {
            if watcher.watched.has(watched) && watcher.append(line.as_bytes(), depends) {
                threads[watcher.thread].wake();
            }
        }
    }
}

/// A key as watchers are shown it.
pub fn as_in_a_uri(key: &[u8]) -> String {
    let mut shown = String::with_capacity(key.len());
    for &byte in key {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => {
                shown.push(char::from(byte));
            }
            _ => shown.push_str(&format!("%{byte:02X}")),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watcher_that_does_not_read_is_told_how_many_lines_it_has_lost() {
        let all = ItemWatchers::default();
        let watcher = all.add(0, Watched::FETCHERS);
        assert!(all.any(Watched::FETCHERS) && !all.any(Watched::MUTATIONS));
        let line = [b'x'; 1024];
        assert!(watcher.append(&line, Lsn(7)), "the first wakes");
        assert!(!watcher.append(&line, Lsn(6)), "the second does not");
        for _ in 0..300 {
            watcher.append(&line, Lsn(8));
        }
        let (lines, depends) = watcher.take();
        assert_eq!((lines.len(), depends), (QUEUE_BYTES_MAX + 11, Lsn(8)));
        assert!(lines.ends_with(b"skipped=46\n"));
        assert!(!watcher.has_lines() && watcher.append(&line, Lsn(9)));
        assert_eq!(watcher.take().0.len(), 1024, "those that were lost are told once");
        all.remove(&watcher);
        assert!(!all.any(Watched::FETCHERS));
    }
}
