//! Which files are still needed, and the removal of the others.

use crate::checkpoint::format::checkpoint_begin;
use crate::log::Log;
use crate::segment::segment_path;
use crate::sync_primitives::Mutex;
use ladon_model::Lsn;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// Positions that somebody still reads from.
pub(crate) struct Pins(Mutex<BTreeMap<u64, usize>>);

impl Default for Pins {
    fn default() -> Self {
        Pins(Mutex::new(BTreeMap::new()))
    }
}

/// Keeps the log from a position on; from [`Log::pin`].
pub struct PinGuard {
    pins: Arc<Pins>,
    lsn: u64,
}

impl Drop for PinGuard {
    fn drop(&mut self) {
        let mut pins = self.pins.0.lock();
        if let Some(count) = pins.get_mut(&self.lsn) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.lsn);
            }
        }
    }
}

/// What [`Log::delete_obsolete`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Segment files.
    pub segments: usize,
    /// Checkpoint files.
    pub checkpoints: usize,
}

impl Log {
    /// Keeps every segment that holds anything behind `lsn` until the guard is dropped.
    pub fn pin(&self, lsn: Lsn) -> PinGuard {
        *self.pins.0.lock().entry(lsn.0).or_insert(0) += 1;
        PinGuard { pins: self.pins.clone(), lsn: lsn.0 }
    }

    /// Removes older checkpoints than the newest whole one, and segments that neither it nor a pin
    /// needs. Without a checkpoint nothing is removed.
    ///
    /// # Errors
    /// The first thing that the system refused; the rest is tried at the next call.
    pub fn delete_obsolete(&self) -> io::Result<Deleted> {
        let mut deleted = Deleted::default();
        let Some(newest) = self.last_checkpoint() else { return Ok(deleted) };
        let place = &self.place;
        for path in place.disk.list(&place.dir)? {
            if checkpoint_begin(&path).is_some_and(|begin| begin < newest.begin) {
                match place.disk.remove(&path) {
                    // Somebody else may do the same at this moment.
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => deleted.checkpoints += 1,
                }
            }
        }
        // An older checkpoint must be gone for good before the log that it needs.
        if deleted.checkpoints > 0 {
            place.disk.sync_dir(&place.dir)?;
        }
        let pinned = self.pins.0.lock().first_key_value().map(|(&lsn, _)| lsn);
        let needed = pinned.map_or(newest.begin.0, |pinned| pinned.min(newest.begin.0));
        // A segment may go only when the next one surely stays: it is on the disk, name and all, once
        // something in it is durable.
        let durable = self.durable().0;
        while let Some(oldest) = self.oldest_obsolete(needed, durable) {
            match place.disk.remove(&segment_path(&place.dir, Lsn(oldest))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            self.segments.lock().remove(&oldest);
            deleted.segments += 1;
        }
        // A full disk may have the room only then.
        if deleted.segments > 0 {
            place.disk.sync_dir(&place.dir)?;
            if self.is_out_of_space() {
                self.io.lock().retry_at_ns = 0;
                self.worker.wake();
            }
        }
        Ok(deleted)
    }

    /// Bytes of the log that the next start would read: the others may go already, but for whoever
    /// keeps them, and another checkpoint would change nothing about them.
    pub fn needed_bytes(&self) -> u64 {
        let begin = self.newest_checkpoint.lock().as_ref().map_or(0, |newest| newest.begin.0);
        let segments = self.segments.lock();
        let first = segments.range(..=begin).next_back().or(segments.first());
        self.reserved().0.saturating_sub(first.copied().unwrap_or_default())
    }

    /// The oldest segment, if nobody needs it.
    fn oldest_obsolete(&self, needed: u64, durable: u64) -> Option<u64> {
        let segments = self.segments.lock();
        let mut bases = segments.iter().copied();
        let (oldest, next) = (bases.next()?, bases.next()?);
        (next <= needed && next < durable).then_some(oldest)
    }
}
