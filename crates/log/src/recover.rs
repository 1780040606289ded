//! Recovery: from the files to the data and an open log.
//!
//! 1. The newest checkpoint is loaded, its blocks in parallel.
//! 2. The segments from its begin position on are read in order, and every record is given to every
//!    worker.
//! 3. What follows the last complete record is cut off. If the files prove that it was on the disk
//!    (see [`crate::tail`]), recovery stops instead.
//! 4. What was kept is made durable **before** the log takes a record. Everything after the last
//!    proof of durability is written again and synced, because after a failed sync the page cache
//!    may hold what the disk does not. Later files are removed, and a new segment begins at the
//!    end.

use crate::alternative::{misplaced, way_out_of_checkpoint};
use crate::checkpoint::format::{CHECKPOINT_FORMAT, checkpoint_begin};
use crate::checkpoint::reader::{CheckpointError, CheckpointReader};
use crate::damage::Damage;
use crate::data_dir::DataDir;
use crate::load::load_checkpoint;
use crate::log::{Log, Opened, Place};
use crate::log_end::{LOG_END_FORMAT, LogEnd, Noted, log_end_path, read_log_end};
use crate::replay::Replay;
use crate::reserve::Reserve;
use crate::scan::{Known, Scan, Source};
use crate::seal::seal;
use crate::segment::segment_base;
use crate::sink::{Progress, RecoveryReport, RecoverySink};
use ladon_record::Lsn;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Why recovery stopped. Nothing in the directory has been changed then, unless the system failed
/// in the middle of the last step, which may be repeated.
#[derive(Debug, Error)]
pub enum RecoverError {
    /// A system call failed.
    #[error("cannot {doing} {path}: {error}")]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// The path it was attempted on.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A file is damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// A file was written by a newer version.
    #[error(
        "{path} has format {found}, and this version reads up to format {supported}: \
         use the newer version of Ladon that wrote it"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format number.
        found: u32,
        /// The newest that this version reads.
        supported: u32,
    },
    /// The sink refused a block or a record.
    #[error("{path}, LSN {lsn}: {message}")]
    Sink {
        /// The file.
        path: PathBuf,
        /// The record or block.
        lsn: Lsn,
        /// The sink's message.
        message: String,
    },
}

pub(crate) fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecoverError {
    let path = path.to_owned();
    move |error| RecoverError::Io { doing, path, error }
}

impl DataDir {
    /// Loads the data into `sink` on `threads` threads (with one, everything runs on the calling
    /// thread), and opens the log after it.
    ///
    /// # Errors
    /// See [`RecoverError`].
    pub fn recover<S: RecoverySink + ?Sized>(
        self,
        sink: &S,
        workers: usize,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<(Arc<Log>, RecoveryReport), RecoverError> {
        let began_ns = self.clock.monotonic_ns();
        let workers = workers.max(1);
        let files = Files::list(&self)?;
        let noted = note_of(&self)?;
        let source = Source { disk: &*self.disk, dir: &self.dir, dir_id: Some(self.meta.dir_id) };
        let checkpoint = files.checkpoints.last();
        let checkpoint =
            checkpoint.map(|path| load_checkpoint(&self, path, sink, workers, progress));
        let checkpoint = checkpoint
            .transpose()
            .map_err(|error| with_way_out(error, source, &files, noted.end()))?;
        let known = Known {
            checkpoint: checkpoint.as_ref(),
            end: noted.end(),
            until: None,
            accept_loss_after: self.options.accept_loss_after,
        };
        let mut scan = Scan::new(source, &files.segments, known);
        std::thread::scope(|threads| {
            let mut replay = Replay::start(threads, sink, workers);
            let read = scan.run(&mut |batch, path| replay.feed(batch, path), progress);
            let replayed = replay.finish();
            read.and(replayed)
        })?;
        let scanned = scan.finish();
        let (path, lsn) = (&self.dir, scanned.end);
        sink.end().map_err(|message| RecoverError::Sink { path: path.clone(), lsn, message })?;
        let (segment, log_end) = seal(&self, &files.leftovers, &scanned, &noted)?;
        let end = scanned.end;
        let mut segments: BTreeSet<u64> = files.segments.iter().map(|base| base.0).collect();
        segments.retain(|&base| !scanned.dropped.contains(&Lsn(base)));
        segments.insert(end.0);
        let duration_ns = self.clock.monotonic_ns().saturating_sub(began_ns);
        let report = RecoveryReport {
            checkpoint: checkpoint.clone(),
            records: scanned.records,
            log_bytes: scanned.log_bytes,
            torn: scanned.torn,
            given_up: scanned.given_up,
            log_end_fault: match noted {
                Noted::Unusable(damage) => Some(damage),
                _ => None,
            },
            clean: scanned.clean,
            end,
            duration: Duration::from_nanos(duration_ns),
        };
        let log_bytes = end.0.saturating_sub(segments.first().copied().unwrap_or_default());
        let reserve = Reserve::open(&*self.disk, &self.dir, self.options.reserve_bytes, log_bytes);
        let place = Place {
            disk: self.disk,
            clock: self.clock,
            dir: self.dir,
            dir_id: self.meta.dir_id,
            node: self.meta.node,
        };
        let (lock, options) = (self.lock, self.options);
        let log = Log::new(Opened {
            place,
            options,
            lock,
            segment,
            segments,
            checkpoint,
            log_end,
            reserve,
            has_entries: scanned.has_entries,
        });
        log.look_at_room();
        Ok((log, report))
    }
}

/// Why the newest checkpoint cannot be loaded, with what can be done about it.
fn with_way_out(
    error: RecoverError,
    source: Source<'_>,
    files: &Files,
    end: Option<LogEnd>,
) -> RecoverError {
    match error {
        RecoverError::Damaged(mut damage) => {
            let Files { checkpoints, segments, .. } = files;
            damage.advice = way_out_of_checkpoint(source, checkpoints, segments, end);
            RecoverError::Damaged(damage)
        }
        other => other,
    }
}

/// The directory's files by role, each in order.
struct Files {
    checkpoints: Vec<PathBuf>,
    segments: Vec<Lsn>,
    leftovers: Vec<PathBuf>,
}

impl Files {
    fn list(dir: &DataDir) -> Result<Files, RecoverError> {
        let mut paths = dir.disk.list(&dir.dir).map_err(io_error("list", &dir.dir))?;
        paths.sort();
        let mut files =
            Files { checkpoints: Vec::new(), segments: Vec::new(), leftovers: Vec::new() };
        for path in paths {
            if let Some(base) = segment_base(&path) {
                files.segments.push(base);
            } else if checkpoint_begin(&path).is_some() {
                files.checkpoints.push(path);
            } else if path.to_string_lossy().ends_with(".checkpoint.tmp") {
                files.leftovers.push(path);
            }
        }
        Ok(files)
    }
}

/// The content of `log-end`.
fn note_of(dir: &DataDir) -> Result<Noted, RecoverError> {
    let path = log_end_path(&dir.dir);
    match read_log_end(&*dir.disk, &dir.dir, Some(dir.meta.dir_id)) {
        Ok(Noted::Newer(found)) => {
            Err(RecoverError::Newer { path, found, supported: LOG_END_FORMAT })
        }
        Ok(noted) => Ok(noted),
        Err(error) => Err(io_error("read", &path)(error)),
    }
}

pub(crate) fn checkpoint_error(path: &Path, error: CheckpointError) -> RecoverError {
    match error {
        CheckpointError::Io(error) => io_error("read", path)(error),
        CheckpointError::Damaged(damage) => RecoverError::Damaged(damage),
        CheckpointError::Newer(found) => {
            RecoverError::Newer { path: path.to_owned(), found, supported: CHECKPOINT_FORMAT }
        }
    }
}

/// Opens the checkpoint and verifies that it belongs to this directory.
pub(crate) fn open_checkpoint(
    dir: &DataDir,
    path: &Path,
) -> Result<CheckpointReader, RecoverError> {
    let reader =
        CheckpointReader::open(&*dir.disk, path).map_err(|error| checkpoint_error(path, error))?;
    match misplaced(reader.header(), dir.meta.dir_id, path) {
        Some(damage) => Err(RecoverError::Damaged(damage)),
        None => Ok(reader),
    }
}
