//! Streams out of other programs' files, part by part.
//!
//! There, a group's pending entries come first, and what each consumer has of them afterwards. So
//! they are released entries until their consumer is known.

use super::group::Group;
use super::{Stream, StreamId};

/// A group that is being put together.
pub struct GroupRestore(Group);

impl GroupRestore {
    /// A group without consumers and pending entries.
    pub fn new(last_id: StreamId, entries_read: Option<u64>) -> GroupRestore {
        GroupRestore(Group::new(last_id, entries_read))
    }

    /// Adds a pending entry of a consumer that is not known yet; returns false if it is pending
    /// already.
    pub fn pending(&mut self, id: StreamId, delivered_ms: u64, count: u64) -> bool {
        self.0.pending_entry(id).is_none() && {
            self.0.await_consumer(id, delivered_ms, count);
            true
        }
    }

    /// Adds a consumer; returns its number, or `None` if there is one of this name.
    pub fn consumer(&mut self, name: &[u8], seen_ms: u64, active_ms: Option<u64>) -> Option<u32> {
        if self.0.consumer(name).is_some() {
            return None;
        }
        let number = self.0.see(name, seen_ms);
        self.0.set_active(number, active_ms);
        Some(number)
    }

    /// Says whose pending entry this is; returns false if no such entry waits for its consumer.
    pub fn claim(&mut self, id: StreamId, consumer: u32) -> bool {
        let waits = self.0.pending_entry(id).filter(|pending| pending.consumer().is_none());
        let Some(&pending) = waits else { return false };
        self.0.assign(id, consumer, pending.delivered_ms, pending.count).is_some()
    }
}

impl Stream {
    /// Adds a group that was put together. Returns false, and adds nothing, if there is one of this
    /// name, or if a pending entry of the group is no consumer's.
    pub fn restore_group(&mut self, name: &[u8], group: GroupRestore) -> bool {
        group.0.released() == 0 && self.add_group(name, group.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pending_entry_gets_one_consumer() {
        let id = |ms| StreamId::new(ms, 0);
        let mut group = GroupRestore::new(id(5), Some(3));
        assert!(group.pending(id(1), 10, 1) && group.pending(id(2), 20, 2));
        assert!(!group.pending(id(1), 30, 1), "pending twice");
        let one = group.consumer(b"one", 100, None).unwrap();
        let two = group.consumer(b"two", 200, Some(150)).unwrap();
        assert_eq!(group.consumer(b"one", 1, None), None, "there twice");
        assert!(group.claim(id(1), one));
        assert!(!group.claim(id(1), two), "two have it");
        assert!(!group.claim(id(3), two), "not pending");
        assert!(!group.claim(id(2), 7), "no such consumer");
        assert!(group.claim(id(2), two));
        group.0.check();
        let mut stream = Stream::new();
        assert!(stream.restore_group(b"g", group));
        assert!(!stream.restore_group(b"g", GroupRestore::new(id(1), None)), "there twice");
        let found = stream.group(b"g").unwrap();
        let pending = found.pending_entry(id(2)).unwrap();
        assert_eq!((pending.delivered_ms, pending.count), (20, 2));
        assert_eq!(found.consumer_of(pending).unwrap().name(), b"two");
        let mut nobodys = GroupRestore::new(id(1), None);
        assert!(nobodys.pending(id(1), 10, 1));
        assert!(!stream.restore_group(b"h", nobodys), "no consumer has it");
    }
}
