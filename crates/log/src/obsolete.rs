//! Decides which files are still needed, and removes the others.

use crate::checkpoint::format::checkpoint_begin;
use crate::log::Log;
use crate::segment::segment_path;
use crate::sync_primitives::Mutex;
use ladon_record::Lsn;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// Positions from which the log must be kept.
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
    /// Keeps every segment that holds anything after `lsn` until the guard is dropped.
    pub fn pin(&self, lsn: Lsn) -> PinGuard {
        *self.pins.0.lock().entry(lsn.0).or_insert(0) += 1;
        PinGuard { pins: self.pins.clone(), lsn: lsn.0 }
    }

    /// Removes all complete checkpoints except the newest, and segments that neither it nor a pin
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
                    // Another thread may remove it at the same moment.
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => deleted.checkpoints += 1,
                }
            }
        }
        // The removal of an older checkpoint must be durable before the log that it needs is
        // removed.
        if deleted.checkpoints > 0 {
            place.disk.sync_dir(&place.dir)?;
        }
        let pinned = self.pins.0.lock().first_key_value().map(|(&lsn, _)| lsn);
        let needed = pinned.map_or(newest.begin.0, |pinned| pinned.min(newest.begin.0));
        // A segment may be removed only if the next one is sure to stay. The next one, with its
        // name, is on the disk once something in it is durable.
        let durable = self.durable().0;
        while let Some(oldest) = self.oldest_obsolete(needed, durable) {
            match place.disk.remove(&segment_path(&place.dir, Lsn(oldest))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            self.segments.lock().remove(&oldest);
            deleted.segments += 1;
        }
        // Some file systems free the space only with this sync.
        if deleted.segments > 0 {
            place.disk.sync_dir(&place.dir)?;
            if self.is_out_of_space() {
                self.io.lock().retry_at_ns = 0;
                self.worker.wake();
            }
        }
        Ok(deleted)
    }

    /// Bytes of the log that the next start would read. The other segments are kept only for pins,
    /// and another checkpoint would not change that.
    pub fn needed_bytes(&self) -> u64 {
        let begin = self.newest_checkpoint.lock().as_ref().map_or(0, |newest| newest.begin.0);
        let segments = self.segments.lock();
        let first = segments.range(..=begin).next_back().or(segments.first());
        self.reserved().0.saturating_sub(first.copied().unwrap_or_default())
    }

    /// The oldest segment, if nothing needs it.
    fn oldest_obsolete(&self, needed: u64, durable: u64) -> Option<u64> {
        let segments = self.segments.lock();
        let mut bases = segments.iter().copied();
        let (oldest, next) = (bases.next()?, bases.next()?);
        (next <= needed && next < durable).then_some(oldest)
    }
}
