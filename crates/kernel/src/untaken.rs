//! Bytes that a program has made for clients and that their connections have not taken yet.
//!
//! ```text
//! program --- answers, pushed values --> [ untaken ] --> replies of the connection --> client
//!             none is begun above WINDOW_BYTES           counted by client-reply-backlog
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Above this, a connection gets no further answer until it has taken some.
pub const WINDOW_BYTES: usize = 256 << 10;

/// Above this, of all connections, an answer that exceeds its connection's window fails: functions
/// that wait before they return are begun while there is room.
pub const ALL_BYTES_MAX: usize = 256 << 20;

/// Untaken bytes of one connection.
#[derive(Debug, Default)]
pub struct Untaken {
    bytes: AtomicUsize,
    all: Arc<AtomicUsize>,
}

/// Bytes that are untaken until this is dropped.
#[derive(Debug)]
pub struct Counted {
    of: Arc<Untaken>,
    bytes: usize,
}

impl Untaken {
    /// None yet; `all` counts those of all connections.
    pub fn new(all: Arc<AtomicUsize>) -> Untaken {
        Untaken { bytes: AtomicUsize::new(0), all }
    }

    /// How many.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Whether there is room for more.
    pub fn has_room(&self) -> bool {
        self.bytes() <= WINDOW_BYTES
    }

    /// Counts bytes. `None` if there is no room for them.
    pub fn count(self: &Arc<Untaken>, bytes: usize) -> Option<Counted> {
        let is_large = self.bytes() + bytes > WINDOW_BYTES;
        let all = self.all.load(Relaxed);
        if is_large && all != 0 && all + bytes > ALL_BYTES_MAX {
            return None;
        }
        self.bytes.fetch_add(bytes, Relaxed);
        self.all.fetch_add(bytes, Relaxed);
        Some(Counted { of: Arc::clone(self), bytes })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Relaxed);
        self.of.all.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_until_they_are_taken() {
        let untaken = Arc::new(Untaken::default());
        let counted = untaken.count(WINDOW_BYTES + 1).expect("the first one has room");
        assert!(!untaken.has_room());
        drop(counted);
        assert_eq!((untaken.bytes(), untaken.has_room()), (0, true));
    }

    #[test]
    fn large_answers_have_a_common_bound() {
        let all = Arc::new(AtomicUsize::new(0));
        let [one, other] = [(); 2].map(|()| Arc::new(Untaken::new(Arc::clone(&all))));
        let first = one.count(ALL_BYTES_MAX + 1).expect("nothing else is there");
        assert!(other.count(WINDOW_BYTES + 1).is_none());
        assert!(other.count(WINDOW_BYTES).is_some(), "a small one always has room");
        drop(first);
        assert!(other.count(WINDOW_BYTES + 1).is_some());
    }
}
