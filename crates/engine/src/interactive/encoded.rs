//! The changes of a transaction, encoded for the log as they are made: a commit then has little
//! left to do, however many there are.

use super::View;
use crate::space::log_change;
use ladon_record::{ChangeBuffer, LargeRecord, Record};
use ladon_space::{Space, Written};

/// The log copies shorter records, and takes over the memory of longer ones part by part.
const PART_BYTES: usize = 256 << 10;

/// Encoded changes of one space.
#[derive(Default)]
pub(super) struct Encoded {
    /// Parts whose checksums are computed.
    parts: LargeRecord,
    parts_bytes: usize,
    /// What has come since.
    last: ChangeBuffer,
}

impl Encoded {
    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.parts_bytes + self.last.as_bytes().len()
    }

    /// Adds what a statement did to a space.
    pub(super) fn push(&mut self, space: &Space, written: &Written) {
        log_change(space, written, &mut self.last);
        if self.last.as_bytes().len() >= PART_BYTES {
            self.end_part();
        }
    }

    fn end_part(&mut self) {
        self.parts_bytes += self.last.as_bytes().len();
        self.parts.append(self.last.take_record());
    }

    /// The record of what was done to all these copies, if it was anything. A short one is encoded
    /// in `short`.
    pub(super) fn record<'a>(
        views: &mut [&mut View],
        short: &'a mut Vec<u8>,
    ) -> Option<Record<'a>> {
        let all = views.iter().flat_map(|view| &view.changes);
        let bytes: usize = all.clone().map(Encoded::bytes).sum();
        if bytes == 0 {
            return None;
        }
        if bytes < PART_BYTES {
            all.for_each(|changes| short.extend_from_slice(changes.last.as_bytes()));
            return Some(Record::Changes(short));
        }
        let mut record = LargeRecord::default();
        for Encoded { parts, last, .. } in views.iter_mut().flat_map(|view| &mut view.changes) {
            record.append(std::mem::take(parts));
            if !last.is_empty() {
                record.append(last.take_record());
            }
        }
        Some(Record::Large(record))
    }
}
