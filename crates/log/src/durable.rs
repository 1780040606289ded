//! From the operating system to the disk.

use crate::buffer::{LogBuffer, MarkSlot};
use crate::frame::FrameKind;
use crate::log::Log;
use crate::log_end::{LogEnd, LogEndFile};
use crate::planted::Planted;
use crate::presence::Looked;
use crate::state::LogError;
use crate::sync_primitives::{Ordering, fence};
use ladon_record::Lsn;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long [`Log::make_durable`] waits for other threads' open batches, which last milliseconds.
pub(crate) const PUBLISH_WAIT_MS_MAX: u64 = 30_000;

/// The syncing side, under one lock: one sync at a time serves all waiters (group commit).
pub(crate) struct SyncSide {
    /// The mark through which sync marks are appended.
    slot: MarkSlot,
    /// Range of the last sync mark, or of the last few if nothing is between them. Marks alone are
    /// no reason to sync again.
    last_mark: (u64, u64),
    pub(crate) last_began_ns: u64,
    failed: Option<LogError>,
    /// When it was last looked whether the files are there.
    pub(crate) looked: Looked,
    /// Where each sync notes its position.
    pub(crate) log_end: Option<LogEndFile>,
}

impl SyncSide {
    pub(crate) fn new(buffer: &LogBuffer, end: Lsn, log_end: Option<LogEndFile>) -> SyncSide {
        let Some(slot) = buffer.take_mark() else { unreachable!("the first mark is free") };
        let (last_mark, looked) = ((end.0, end.0), Looked::default());
        SyncSide { slot, last_mark, last_began_ns: 0, failed: None, looked, log_end }
    }

    /// Whether `from..to` holds anything but the last sync mark.
    pub(crate) fn has_records(&self, from: u64, to: u64) -> bool {
        from < to && !(self.last_mark.0 <= from && to <= self.last_mark.1)
    }

    /// The log ends at `to` now, and is on the disk up to there.
    pub(crate) fn cut(&mut self, to: u64) {
        self.last_mark = (self.last_mark.0.min(to), self.last_mark.1.min(to));
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }
}

impl Log {
    /// Asks the background writer to make everything up to `lsn` durable; cheap if that was already
    /// asked. One sync serves every request made before it began.
    #[inline]
    pub fn want_durable(&self, lsn: Lsn) {
        if self.durable() >= lsn {
            return;
        }
        if self.wanted_durable.load(Ordering::Relaxed) < lsn.0 {
            self.wanted_durable.fetch_max(lsn.0, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        self.worker.wake_if_resting();
    }

    /// Promises that everything up to `lsn` is synced within about a second, whatever
    /// [`Log::set_sync_every`] is set to now or later: for a reply that leaves at the gate
    /// `everysec`. Cheap if that is already promised.
    #[inline]
    pub fn sync_soon(&self, lsn: Lsn) {
        if self.wanted_soon.load(Ordering::Relaxed) < lsn.0 && self.durable() < lsn {
            self.start_second(lsn);
        }
    }

    fn start_second(&self, lsn: Lsn) {
        let before = self.wanted_soon.fetch_max(lsn.0, Ordering::SeqCst);
        // Pairs with the fence after each sync. If an earlier promise is already fulfilled, this
        // thread sees that; if not, the background writer sees this promise when it fulfils the
        // earlier one.
        fence(Ordering::SeqCst);
        if before <= self.durable().0 {
            self.worker.wake_if_resting();
        }
    }

    /// Whether a sync within a second is promised.
    pub(crate) fn is_second_running(&self) -> bool {
        self.wanted_soon.load(Ordering::Relaxed) > self.durable().0
    }

    /// Makes everything up to `lsn` durable on the calling thread.
    ///
    /// # Errors
    /// [`LogError::WriteFailed`] and [`LogError::SyncFailed`] if the disk fails;
    /// [`LogError::Unpublished`] if another thread's batch stays open for half a minute.
    pub fn make_durable(&self, lsn: Lsn) -> Result<(), LogError> {
        let mut waited_ms = 0;
        while self.durable() < lsn {
            self.write_all_published(&mut self.io.lock())?;
            self.sync_written()?;
            if self.durable() >= lsn {
                break;
            }
            if waited_ms == PUBLISH_WAIT_MS_MAX {
                return Err(LogError::Unpublished { lsn, waited_ms });
            }
            std::thread::sleep(Duration::from_millis(1));
            waited_ms += 1;
        }
        Ok(())
    }

    /// Begins a new segment, durably, so that a checkpoint that begins now makes everything before
    /// it obsolete. On a full disk, all reserved space is released for this.
    ///
    /// # Errors
    /// As [`Log::make_durable`].
    pub fn turn_segment(&self) -> Result<(), LogError> {
        if let Some(error) = self.state().error()
            && !self.is_out_of_space()
        {
            return Err(error.clone());
        }
        if self.is_out_of_space() {
            self.reserve.let_go(&*self.place.disk);
        }
        // A disk that stays full would otherwise fill with empty segments.
        const WORTH_A_FILE_BYTES: u64 = 4096;
        self.buffer.turn_segment(WORTH_A_FILE_BYTES);
        // A segment begins with its first record.
        self.append_mark(&mut self.sync.lock(), FrameKind::SyncMark);
        self.make_durable(self.reserved())
    }

    /// Closes the log cleanly: writes and syncs everything, then marks the end as clean, so that
    /// the next start knows that nothing is missing. Call it when no thread appends any more.
    ///
    /// # Errors
    /// As [`Log::make_durable`]; what was durable stays durable.
    pub fn close(&self) -> Result<(), LogError> {
        self.make_durable(self.reserved())?;
        self.append_mark(&mut self.sync.lock(), FrameKind::CleanEnd);
        self.make_durable(self.reserved())?;
        if let Some(log_end) = &mut self.sync.lock().log_end {
            // The note is only evidence: the log itself is complete.
            let _ = log_end.sync(self.place.clock.monotonic_ns());
        }
        Ok(())
    }

    /// Syncs what is written. Returns whether there was anything to sync.
    pub(crate) fn sync_written(&self) -> Result<bool, LogError> {
        let mut sync = self.sync.lock();
        if let Some(error) = &sync.failed {
            return Err(error.clone());
        }
        // Before `written` is read: later writes ask for the next sync.
        self.worker.dirt_is_taken();
        let (written, noted, segments, dir_changed) = {
            let mut io = self.io.lock();
            if self.wanted_durable.load(Ordering::Relaxed) > self.durable().0 {
                io.zero_ahead(self.durable().0, self.options.zero_ahead_bytes);
            }
            let mut segments = std::mem::take(&mut io.complete);
            segments.push(io.segment.clone());
            let within = self.options.planted == Planted::NoteWithinAFrame;
            let noted = if within { io.written } else { io.whole };
            (io.whole, noted, segments, std::mem::take(&mut io.dir_changed))
        };
        let durable = self.durable().0;
        if written <= durable && !dir_changed {
            return Ok(false);
        }
        let planted = self.options.planted;
        let note = |sync: &mut SyncSide| {
            if let (Some(log_end), Some(newest)) = (&mut sync.log_end, segments.last()) {
                // If it fails, the next sync notes more.
                let _ = log_end.note(LogEnd { durable: Lsn(noted), segment: Some(newest.base) });
            }
        };
        if planted == Planted::EarlyNote {
            note(&mut sync);
        }
        sync.last_began_ns = self.place.clock.monotonic_ns();
        // Oldest first, so that a crash between two of them leaves a prefix.
        let mut outcome = Ok(());
        for segment in &segments {
            outcome = outcome.and_then(|()| {
                segment.file.sync_data().map_err(|error| sync_failed(&segment.path, error))
            });
        }
        if dir_changed {
            let dir = &self.place.dir;
            outcome = outcome
                .and_then(|()| self.place.disk.sync_dir(dir).map_err(|e| sync_failed(dir, e)));
        }
        // Before anybody is told that it is safe.
        let began_ns = sync.last_began_ns;
        if sync.looked.is_due(began_ns, written) || dir_changed {
            outcome = outcome.and_then(|()| self.look_for(&segments));
        }
        if let Err(error) = outcome {
            self.give_up(&mut sync, &error);
            return Err(error);
        }
        self.positions.advance_durable(written);
        if sync.has_records(durable, written) {
            self.append_mark(&mut sync, FrameKind::SyncMark);
        }
        self.waiters.durable_advanced(written);
        // After the waiters were woken: the note is only evidence, and no reply waits for it.
        note(&mut sync);
        Ok(true)
    }

    /// The log takes no more records until a restart.
    pub(crate) fn give_up(&self, sync: &mut SyncSide, error: &LogError) {
        sync.failed = Some(error.clone());
        self.state.sync_failed(error.clone());
        self.waiters.state_changed();
    }

    /// Notes in the log itself how far it is durable. The mark needs no sync of its own, because it
    /// is evidence for what is below it.
    fn append_mark(&self, sync: &mut SyncSide, kind: FrameKind) {
        if self.buffer.is_follower() {
            // Its marks come with its leader's frames, as places for its own.
            return;
        }
        let durable = self.durable().0.to_le_bytes();
        let unix_ms = self.place.clock.unix_ms();
        let end = self.buffer.append(&mut sync.slot, kind, unix_ms, &durable).0;
        self.buffer.publish(&mut sync.slot);
        let bytes = (crate::frame::FRAME_HEADER_BYTES + durable.len()) as u64;
        let start = end - bytes;
        // Consecutive marks count as one.
        let begin = if start == sync.last_mark.1 { sync.last_mark.0 } else { start };
        sync.last_mark = (begin, end);
    }
}

fn sync_failed(path: &Path, error: io::Error) -> LogError {
    LogError::SyncFailed { path: path.to_owned(), error: Arc::new(error) }
}
