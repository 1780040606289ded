//! Takes back the end of a follower's log, which its group has not committed.
//!
//! The order ensures that a crash anywhere leaves a log that recovery accepts: a whole prefix that
//! ends between the cut and the old end, so that the cut can be repeated. First the note in
//! `log-end` is lowered, because it would prove that the end is missing. Then the later segments go,
//! the last one first, each durably, because a hole would be damage. Then the file is cut.

use crate::durable::PUBLISH_WAIT_MS_MAX;
use crate::log::Log;
use crate::log_end::LogEnd;
use crate::planted::Planted;
use crate::segment::{SEGMENT_HEADER_BYTES, segment_path};
use crate::state::LogError;
use crate::sync_primitives::Ordering;
use crate::write::OpenSegment;
use ladon_record::Lsn;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Why the log was not cut. It may be cut in part; try again, or restart.
#[derive(Debug, Error)]
pub enum CutError {
    /// Something on the disk depends on what would be cut.
    #[error("LSN {to} cannot be the log's end: the checkpoint needs the log up to {newest}")]
    Checkpoint {
        /// Where it was to be cut.
        to: Lsn,
        /// What the checkpoint needs.
        newest: Lsn,
    },
    /// The log has failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A system call failed.
    #[error("cannot {doing} {path} to cut the log: {error}")]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// The path it was attempted on.
        path: std::path::PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CutError {
    let path = path.to_owned();
    move |error| CutError::Io { doing, path, error }
}

impl Log {
    /// Ends the log at `to`, the end of a frame; what is behind it is gone, in memory and on the
    /// disk. The only call that lets positions go back: nobody may wait for a position behind `to`.
    ///
    /// # Errors
    /// See [`CutError`].
    ///
    /// # Panics
    /// Unless the log is a follower's.
    pub fn cut_after(&self, to: Lsn) -> Result<(), CutError> {
        assert!(self.is_follower(), "only a follower's log is cut");
        if self.reserved() <= to {
            return Ok(());
        }
        self.await_batches(to)?;
        let newest = self.last_checkpoint().map_or(Lsn::ZERO, |checkpoint| checkpoint.newest);
        if to < newest {
            return Err(CutError::Checkpoint { to, newest });
        }
        let mut sync = self.sync.lock();
        if let Some(error) = self.state().error() {
            return Err(error.clone().into());
        }
        let mut io = self.io.lock();
        self.write_all_published(&mut io)?;
        let base = self.segment_with(to);
        let durable = self.durable().min(to);
        if let Some(log_end) = &mut sync.log_end
            && self.options.planted != Planted::NoteNotLowered
        {
            // One that stays, and whose name is on the disk because something in it is.
            let before = durable.min(Lsn(base.0 + 1)).0;
            let segment = self.segments.lock().range(..before).next_back().copied().map(Lsn);
            let end = LogEnd { durable, segment };
            let lowered = log_end.lower(end, self.place.clock.monotonic_ns());
            lowered.map_err(io_error("lower the note in", Path::new("log-end")))?;
        }
        let (segment, is_plain) = self.cut_files(base, to)?;
        io.cut(segment, to.0);
        self.buffer.cut(to.0, base.0, is_plain);
        self.positions.cut(to.0);
        self.wanted_durable.fetch_min(to.0, Ordering::SeqCst);
        self.wanted_soon.fetch_min(to.0, Ordering::SeqCst);
        self.cut_agreement(to);
        sync.cut(to.0);
        self.waiters.state_changed();
        Ok(())
    }

    /// Waits for batches that were open when the log became a follower's: they end within
    /// milliseconds, and no other begins.
    fn await_batches(&self, to: Lsn) -> Result<(), LogError> {
        let mut waited_ms = 0;
        while self.buffer.has_open_batch() {
            if waited_ms == PUBLISH_WAIT_MS_MAX {
                return Err(LogError::Unpublished { lsn: to, waited_ms });
            }
            std::thread::sleep(Duration::from_millis(1));
            waited_ms += 1;
        }
        Ok(())
    }

    /// The segment that ends with, or contains, the frame that ends at `to`.
    fn segment_with(&self, to: Lsn) -> Lsn {
        let segments = self.segments.lock();
        let before = segments.range(..to.0).next_back().or(segments.first());
        Lsn(before.copied().unwrap_or_default())
    }

    /// Returns the last segment, and whether the next entry needs another one, of another format.
    fn cut_files(&self, base: Lsn, to: Lsn) -> Result<(Arc<OpenSegment>, bool), CutError> {
        let (disk, dir) = (&*self.place.disk, &self.place.dir);
        self.cuts.fetch_add(1, Ordering::SeqCst);
        loop {
            let last = self.segments.lock().last().copied();
            let Some(last) = last.filter(|&last| last > base.0) else { break };
            let path = segment_path(dir, Lsn(last));
            match disk.remove(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(io_error("remove", &path)(error));
                }
                _ => {}
            }
            disk.sync_dir(dir).map_err(io_error("sync", dir))?;
            self.segments.lock().remove(&last);
        }
        let path = segment_path(dir, base);
        let file = disk.open(&path).map_err(io_error("open", &path))?;
        let end = SEGMENT_HEADER_BYTES + (to.0 - base.0);
        file.set_len(end).map_err(io_error("cut", &path))?;
        let segment = OpenSegment { file, path, base };
        let mut is_plain = false;
        if self.has_entries.load(Ordering::SeqCst) {
            is_plain = segment.is_plain().map_err(io_error("read", &segment.path))?;
            if is_plain && to == base {
                // Nothing is in it, and two segments cannot begin at one position.
                segment.allow_entries().map_err(io_error("write", &segment.path))?;
                is_plain = false;
            }
        }
        segment.file.sync_data().map_err(io_error("sync", &segment.path))?;
        disk.sync_dir(dir).map_err(io_error("sync", dir))?;
        Ok((Arc::new(segment), is_plain))
    }
}
