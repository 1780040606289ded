//! A consistent copy of an open log's files, for a backup: which files it consists of, and their
//! bytes.
//!
//! ```text
//! checkpoint:  begin ............ newest
//! segments:      [ first ][ ... ][ last     ]
//!                                     ^ end: what is copied of the last one
//! ```
//!
//! **Invariants:** `newest <= end <= durable` when the copy begins, and no byte of a file before
//! `end` changes after that. The checkpoint is held open, because a newer one removes its name; the
//! segments are pinned, and opened one at a time: a copy holds two open files, however long the log.

use crate::checkpoint::format::{
    BlockHeader, CHECKPOINT_HEADER_BYTES, PartHeader, PartKind, checkpoint_path,
};
use crate::data_dir::{META_BYTES, META_NAME};
use crate::durable::PUBLISH_WAIT_MS_MAX;
use crate::log::Log;
use crate::log_end::{LogEnd, LogEndFile, Noted};
use crate::obsolete::PinGuard;
use crate::planted::Planted;
use crate::reader::read_full;
use crate::segment::{SEGMENT_HEADER_BYTES, segment_path};
use crate::state::LogError;
use crate::{CheckpointInfo, Meta};
use ladon_platform::{Disk, DiskFile};
use ladon_record::Lsn;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// How often to look again for the newest checkpoint, while others replace it.
const ATTEMPTS: usize = 16;

/// Why there is no copy.
#[derive(Debug, Error)]
pub enum CopyError {
    /// What was written cannot be made durable.
    #[error(transparent)]
    Log(#[from] LogError),
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
    /// Checkpoints are made faster than one can be opened.
    #[error("the newest checkpoint was replaced again and again; try again")]
    Replaced,
}

/// A file of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedFile {
    /// Its name in the directory.
    pub name: String,
    /// Bytes to copy of it, from its begin on; the file may be longer.
    pub bytes: u64,
}

/// A copy that was begun; from [`Log::begin_copy`]. While it is there, its files are.
pub struct LogCopy {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    files: Vec<CopiedFile>,
    end: Lsn,
    checkpoint: Option<Box<dyn DiskFile>>,
    /// What the checkpoint's data needs of the log.
    newest: Lsn,
    /// In the place of the checkpoint's bytes.
    empty: Option<Vec<u8>>,
    /// The file that was read last.
    open: Option<(usize, Box<dyn DiskFile>)>,
    _pin: PinGuard,
}

impl Log {
    /// Begins a copy of the newest checkpoint and the log behind it, up to the log's present end,
    /// which this makes durable: every change that anybody has seen is in it.
    ///
    /// # Errors
    /// See [`CopyError`].
    pub fn begin_copy(&self) -> Result<LogCopy, CopyError> {
        // After the checkpoint, which may show all that is in the log by now.
        self.begin_copy_until(|_| self.reserved())
    }

    /// As [`Log::begin_copy`], up to where `end` says: it gets what the copy's checkpoint needs, zero
    /// if there is none, and its answer is no less.
    ///
    /// # Errors
    /// See [`CopyError`].
    pub fn begin_copy_until(&self, end: impl FnOnce(Lsn) -> Lsn) -> Result<LogCopy, CopyError> {
        let (newest, checkpoint, pin) = self.hold_newest_checkpoint()?;
        let end = end(newest.as_ref().map_or(Lsn::ZERO, |info| info.newest));
        self.await_durable(end)?;
        let begin = newest.as_ref().map_or(Lsn::ZERO, |info| info.begin);
        let mut files = vec![CopiedFile { name: META_NAME.to_owned(), bytes: META_BYTES as u64 }];
        if let Some(info) = &newest {
            assert!(info.newest <= end, "a checkpoint as of {}, a log to {end}", info.newest);
            files.push(CopiedFile {
                name: name_of(&checkpoint_path(Path::new(""), info.begin)),
                bytes: info.bytes,
            });
        }
        files.extend(self.segments_between(begin, end));
        Ok(LogCopy {
            disk: Arc::clone(&self.place.disk),
            dir: self.place.dir.clone(),
            files,
            end,
            checkpoint,
            newest: newest.map_or(Lsn::ZERO, |info| info.newest),
            empty: None,
            open: None,
            _pin: pin,
        })
    }

    /// Waits for the background writer. The calling thread may have a low priority, and must not
    /// hold the log's locks.
    fn await_durable(&self, lsn: Lsn) -> Result<(), LogError> {
        self.want_durable(lsn);
        for waited_ms in 0..PUBLISH_WAIT_MS_MAX {
            if self.durable() >= lsn {
                return Ok(());
            }
            if let Some(error) = self.state().error() {
                return Err(error.clone());
            }
            if waited_ms > 0 {
                // A batch that was open then is published by now.
                self.want_durable(lsn);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(LogError::Unpublished { lsn, waited_ms: PUBLISH_WAIT_MS_MAX })
    }

    /// The newest checkpoint, open, and a pin on the log that it needs.
    fn hold_newest_checkpoint(&self) -> Result<Held, CopyError> {
        for _ in 0..ATTEMPTS {
            let newest = self.last_checkpoint();
            let pin = self.pin(newest.as_ref().map_or(Lsn::ZERO, |info| info.begin));
            let file = newest.as_ref().map(|info| self.place.disk.open_read_only(&info.path));
            // A thread that did not see the pin deletes for a newer checkpoint, which is here then.
            if self.last_checkpoint() != newest {
                continue;
            }
            let file = file.transpose().map_err(|error| CopyError::Io {
                doing: "open",
                path: newest.as_ref().map_or_else(PathBuf::new, |info| info.path.clone()),
                error,
            })?;
            return Ok((newest, file, pin));
        }
        Err(CopyError::Replaced)
    }

    /// The segments that hold anything between two positions, and the one in which the log begins.
    fn segments_between(&self, begin: Lsn, end: Lsn) -> Vec<CopiedFile> {
        let segments = self.segments.lock();
        let first = segments.range(..=begin.0).next_back().or(segments.first()).copied();
        let bases: Vec<u64> = segments.range(first.unwrap_or_default()..).copied().collect();
        let ends = bases.iter().skip(1).copied().chain([u64::MAX]);
        let pairs = bases.iter().copied().zip(ends);
        let wanted = pairs.filter(|&(base, _)| Some(base) == first || base < end.0);
        let file = |(base, next): (u64, u64)| CopiedFile {
            name: name_of(&segment_path(Path::new(""), Lsn(base))),
            bytes: SEGMENT_HEADER_BYTES + next.min(end.0).saturating_sub(base),
        };
        wanted.map(file).collect()
    }
}

type Held = (Option<CheckpointInfo>, Option<Box<dyn DiskFile>>, PinGuard);

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl LogCopy {
    /// The files, in the order in which they are read best.
    pub fn files(&self) -> &[CopiedFile] {
        &self.files
    }

    /// The end of the log in this copy.
    pub fn end(&self) -> Lsn {
        self.end
    }

    /// The same positions, with a checkpoint that holds nothing: for who keeps the log alone.
    ///
    /// # Errors
    /// The system's, of reading the checkpoint's header.
    pub fn without_content(mut self) -> io::Result<LogCopy> {
        let Some(file) = &self.checkpoint else { return Ok(self) };
        let mut bytes = vec![0; CHECKPOINT_HEADER_BYTES as usize];
        if read_full(&**file, &mut bytes, 0)? < bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let none = BlockHeader { db: 0, hash_first: 0, hash_last: 0, lsn: self.newest, keys: 0 };
        for kind in [PartKind::Meta, PartKind::End] {
            bytes.extend_from_slice(&PartHeader::encode(kind, &none, &[]));
        }
        self.files[1].bytes = bytes.len() as u64;
        self.empty = Some(bytes);
        Ok(self)
    }

    /// Reads bytes of a file; fewer than the buffer has only at the end of what is copied of it.
    ///
    /// # Errors
    /// The system's, and `UnexpectedEof` if the file is shorter than it has to be.
    pub fn read(&mut self, index: usize, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let Some(CopiedFile { name, bytes }) = self.files.get(index).cloned() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let left = usize::try_from(bytes.saturating_sub(at)).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        let is_checkpoint = index == 1 && self.checkpoint.is_some();
        if let (true, Some(empty)) = (is_checkpoint, &self.empty) {
            let from = (at as usize).min(empty.len());
            buffer[..wanted].copy_from_slice(&empty[from..from + wanted]);
            return Ok(wanted);
        }
        let file: &dyn DiskFile = match &self.checkpoint {
            Some(file) if is_checkpoint => &**file,
            _ => {
                if self.open.as_ref().is_none_or(|(opened, _)| *opened != index) {
                    self.open = Some((index, self.disk.open_read_only(&self.dir.join(name))?));
                }
                let Some((_, file)) = &self.open else { unreachable!("it was just opened") };
                &**file
            }
        };
        if read_full(file, &mut buffer[..wanted], at)? < wanted {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if is_checkpoint {
            // Nobody else reads it before the next start.
            file.drop_cache(at, wanted as u64);
        }
        Ok(wanted)
    }
}

/// Notes in a copy of a directory how far its log goes: bytes that get lost later are damage then.
///
/// # Errors
/// The system's.
pub fn note_copied_end(disk: &dyn Disk, dir: &Path, end: Lsn) -> io::Result<()> {
    let meta = crate::data_dir::read_meta(disk, dir).map_err(io::Error::other)?;
    let Some(Meta { dir_id, node, .. }) = meta else { return Err(io::ErrorKind::NotFound.into()) };
    let bases = disk.list(dir)?.into_iter().filter_map(|path| crate::segment::segment_base(&path));
    let noted = LogEnd { durable: end, segment: bases.max() };
    let planted = Planted::Nothing;
    LogEndFile::open(disk, dir, (dir_id, node), &Noted::Missing, noted, 0, planted).map(drop)
}
