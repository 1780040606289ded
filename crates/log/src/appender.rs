//! One thread's handle for appending records.

use crate::buffer::MarkSlot;
use crate::frame::FrameKind;
use crate::log::Log;
use crate::sync_primitives::Ordering;
use ladon_record::{Lsn, Record};
use std::sync::Arc;

/// Appends records to a [`Log`]; one per thread, from [`Log::appender`].
pub struct Appender {
    log: Arc<Log>,
    slot: MarkSlot,
}

impl Appender {
    pub(crate) fn new(log: Arc<Log>) -> Appender {
        let Some(slot) = log.buffer.take_mark() else {
            panic!("more than {} log appenders at a time", crate::buffer::APPENDERS_MAX);
        };
        Appender { log, slot }
    }

    /// Appends one record, the encoded `changes` of one transaction, and returns its LSN.
    ///
    /// The caller holds the locks of everything that the changes touch, so that the log's order is
    /// the order of the data. The cost is a short mutex, a copy and a checksum; the call never
    /// waits for a disk. Neither this record nor later records of other threads are written before
    /// [`Appender::publish`], so publish soon.
    #[inline]
    pub fn append(&mut self, changes: &[u8], unix_ms: u64) -> Lsn {
        self.log.buffer.append(&mut self.slot, FrameKind::Changes, unix_ms, changes)
    }

    /// As `append`, but takes over the memory of a large record instead of copying it.
    #[inline]
    pub fn append_record(&mut self, record: Record<'_>, unix_ms: u64) -> Lsn {
        match record {
            Record::Changes(changes) => self.append(changes, unix_ms),
            // Copying a short record is quick, and a chunk of its own would cost more.
            Record::Large(record) if record.len() < self.log.options.chunk_bytes / 16 => {
                self.append(&record.changes(), unix_ms)
            }
            Record::Large(record) => {
                let (log, slot) = (&self.log, &mut self.slot);
                log.buffer.append_large(slot, FrameKind::Changes, unix_ms, record)
            }
        }
    }

    /// Appends an entry of a group, to which everything in the log before it belongs, as far as no
    /// earlier entry has it. Returns its LSN; publish as after [`Appender::append`].
    ///
    /// # Panics
    /// Before [`Log::begin_entries`]: an older version would take the segment for damaged.
    pub fn append_entry(&mut self, payload: &[u8], unix_ms: u64) -> Lsn {
        assert!(self.log.has_entries.load(Ordering::Relaxed), "an entry in a log without entries");
        self.log.buffer.append(&mut self.slot, FrameKind::Entry, unix_ms, payload)
    }

    /// Ends the batch: everything appended here may now be written. Neither writes nor wakes a
    /// thread; follow with [`Log::write_published`], [`Log::write_soon`] or [`Log::want_durable`].
    /// Returns whether anything was appended since the last call.
    #[inline]
    pub fn publish(&mut self) -> bool {
        self.log.buffer.publish(&mut self.slot)
    }

    /// As `publish`, in the middle of more work. If a thread waits for the log, the published
    /// records are written at once, or the background writer is notified, so that no thread waits
    /// for the rest of this thread's work. Returns as `publish` does.
    #[inline]
    pub fn publish_in_between(&mut self) -> bool {
        let had = self.publish();
        if had {
            self.log.serve_waiters();
        }
        had
    }

    /// Whether records were appended since the last call of `publish`.
    pub fn has_unpublished(&self) -> bool {
        self.slot.is_in_flight()
    }

    pub(crate) fn slot(&mut self) -> &mut MarkSlot {
        &mut self.slot
    }

    /// The log.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }
}

impl Drop for Appender {
    fn drop(&mut self) {
        self.log.buffer.give_mark(&mut self.slot);
    }
}
