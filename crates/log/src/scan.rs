//! Goes through the log as recovery does, and says where it ends: for recovery and for `verify`.

use crate::checkpoint::CheckpointInfo;
use crate::damage::Damage;
use crate::frame::FrameKind;
use crate::reader::{Batch, SegmentEnd, SegmentOpenError, SegmentReader};
use crate::recover::{RecoverError, io_error};
use crate::segment::{HeaderFault, SEGMENT_FORMAT, SEGMENT_HEADER_BYTES, segment_path};
use crate::sink::{Phase, Progress, TornTail};
use crate::tail::{Behind, look_behind};
use ladon_model::Lsn;
use ladon_platform::Disk;
use std::path::{Path, PathBuf};

/// Takes each batch of whole frames, with its file.
pub(crate) type Feed<'a> = dyn FnMut(Batch, &Path) -> Result<(), RecoverError> + 'a;

/// Which directory.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) dir: &'a Path,
    pub(crate) dir_id: Option<u64>,
}

/// One segment file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentReport {
    /// The file.
    pub path: PathBuf,
    /// Where it begins.
    pub base: Lsn,
    /// Where its last whole frame ends.
    pub end: Lsn,
    /// Records, not counting marks.
    pub records: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// What was found; see [`Scan::finish`].
#[derive(Debug)]
pub(crate) struct Scanned {
    /// Where the log ends.
    pub(crate) end: Lsn,
    /// Everything below is proven to be on the disk.
    pub(crate) durable: Lsn,
    /// Segments that hold anything up to `end`, from the first that is needed on.
    pub(crate) kept: Vec<Lsn>,
    /// Segments behind the end.
    pub(crate) dropped: Vec<Lsn>,
    pub(crate) reports: Vec<SegmentReport>,
    pub(crate) records: u64,
    pub(crate) log_bytes: u64,
    pub(crate) torn: Option<TornTail>,
    pub(crate) clean: bool,
}

pub(crate) struct Scan<'a> {
    source: Source<'a>,
    checkpoint: Option<&'a CheckpointInfo>,
    /// All of them, in order; of interest is the part from `first` on.
    segments: &'a [Lsn],
    first: usize,
    position: Lsn,
    durable: Lsn,
    kept: usize,
    reports: Vec<SegmentReport>,
    records: u64,
    log_bytes: u64,
    torn: Option<TornTail>,
    clean: bool,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        source: Source<'a>,
        segments: &'a [Lsn],
        checkpoint: Option<&'a CheckpointInfo>,
    ) -> Scan<'a> {
        let position = checkpoint.map_or(Lsn::ZERO, |checkpoint| checkpoint.begin);
        let first = segments.iter().rposition(|&base| base <= position).unwrap_or(0);
        Scan {
            source,
            checkpoint,
            segments,
            first,
            position,
            durable: checkpoint.map_or(Lsn::ZERO, |checkpoint| checkpoint.newest),
            kept: first,
            reports: Vec::new(),
            records: 0,
            log_bytes: 0,
            torn: None,
            clean: false,
        }
    }

    /// Reads to the end. An error is what recovery stops at.
    pub(crate) fn run(
        &mut self,
        feed: &mut Feed<'_>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<(), RecoverError> {
        self.check_begin()?;
        for index in self.first..self.segments.len() {
            if !self.read_segment(index, feed, progress)? {
                break;
            }
        }
        let newest = self.newest_of_checkpoint();
        if self.position < newest { Err(self.too_short(newest).into()) } else { Ok(()) }
    }

    pub(crate) fn finish(self) -> Scanned {
        Scanned {
            end: self.position,
            durable: self.durable,
            kept: self.segments[self.first..self.kept].to_vec(),
            dropped: self.segments[self.kept..].to_vec(),
            reports: self.reports,
            records: self.records,
            log_bytes: self.log_bytes,
            torn: self.torn,
            clean: self.clean,
        }
    }

    /// The first segment must hold the place where replay begins.
    fn check_begin(&self) -> Result<(), Damage> {
        let found = match self.segments.get(self.first) {
            Some(&base) if base <= self.position => return Ok(()),
            None if self.checkpoint.is_none() => return Ok(()),
            Some(base) => {
                format!("the log is needed from LSN {} on, but begins at {base}", self.position)
            }
            None => format!("the log is needed from LSN {} on, but there is none", self.position),
        };
        Err(Damage {
            path: segment_path(self.source.dir, self.position),
            offset: 0,
            found,
            advice: "put the missing log files back, or restore the directory from a backup".into(),
        })
    }

    /// Returns whether the log goes on in the next file.
    fn read_segment(
        &mut self,
        index: usize,
        feed: &mut Feed<'_>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<bool, RecoverError> {
        let base = self.segments[index];
        let path = segment_path(self.source.dir, base);
        let Some(mut reader) = self.open(index, &path)? else { return Ok(false) };
        if base > self.position {
            let place = self.segments[index - 1];
            let path = segment_path(self.source.dir, place);
            let offset = self.position.0 - place.0 + SEGMENT_HEADER_BYTES;
            let found = format!(
                "the log ends at LSN {} here, but the next file begins at {base}",
                self.position
            );
            let behind = self.look_behind(None, index)?;
            return self.end_here(path, offset, found, behind);
        }
        if !reader.seek(self.position) || (index > self.first && base < self.position) {
            let found = format!("LSN {} should be in this file and is not", self.position);
            return Err(self.damage(path, reader.file_bytes(), found).into());
        }
        self.kept = index + 1;
        self.durable = self.durable.max(reader.header().durable);
        let records_before = self.records;
        let bytes_total = self.bytes_total(index, reader.file_bytes());
        while reader.end().is_none() {
            let batch = reader.next_batch().map_err(io_error("read", &path))?;
            for frame in batch.frames() {
                self.clean = frame.kind == FrameKind::CleanEnd;
                self.durable = self.durable.max(frame.durable_mark().unwrap_or_default());
                self.records += u64::from(frame.kind == FrameKind::Changes);
            }
            self.log_bytes += reader.position().0 - self.position.0;
            self.position = reader.position();
            feed(batch, &path)?;
            progress(Progress {
                phase: Phase::Replay,
                bytes_done: self.log_bytes,
                bytes_total: bytes_total.max(self.log_bytes),
                items: self.records,
            });
        }
        self.reports.push(SegmentReport {
            path: path.clone(),
            base,
            end: self.position,
            records: self.records - records_before,
            bytes: reader.file_bytes(),
        });
        let Some(SegmentEnd::Bad { offset, found }) = reader.end().cloned() else {
            return Ok(true);
        };
        let behind = self.look_behind(Some((&reader, offset)), index + 1)?;
        self.end_here(path, offset, found, behind)
    }

    /// An estimate for the progress line: this file to its end, and the distance to the last one.
    fn bytes_total(&self, index: usize, file_bytes: u64) -> u64 {
        let last = self.segments.last().copied().unwrap_or_default();
        let ahead = last.0 - self.segments[index].0;
        self.log_bytes + ahead.max(file_bytes)
    }

    /// Opens a segment; `None` if it is a file that was just being made when the machine failed.
    fn open(&mut self, index: usize, path: &Path) -> Result<Option<SegmentReader>, RecoverError> {
        let base = self.segments[index];
        let reader = match SegmentReader::open(self.source.disk, path) {
            Ok(reader) => reader,
            Err(SegmentOpenError::Io(error)) => return Err(io_error("open", path)(error)),
            Err(SegmentOpenError::Header(HeaderFault::Newer(found))) => {
                let (path, supported) = (path.to_owned(), SEGMENT_FORMAT);
                return Err(RecoverError::Newer { path, found, supported });
            }
            Err(SegmentOpenError::Header(HeaderFault::Bad(found))) => {
                if base < self.position {
                    return Err(self.damage(path.to_owned(), 0, found.to_owned()).into());
                }
                let behind = self.look_behind(None, index)?;
                self.end_here(path.to_owned(), 0, found.to_owned(), behind)?;
                return Ok(None);
            }
        };
        let header = reader.header();
        let found = if self.source.dir_id.is_some_and(|dir_id| dir_id != header.dir_id) {
            "this log file belongs to another data directory".to_owned()
        } else if header.base != base {
            format!("its header says that it begins at LSN {}", header.base)
        } else {
            return Ok(Some(reader));
        };
        Err(self.damage(path.to_owned(), 0, found).into())
    }

    /// The log ends at `position`, unless the files prove that more had been on the disk.
    fn end_here(
        &mut self,
        path: PathBuf,
        offset: u64,
        found: String,
        behind: Behind,
    ) -> Result<bool, RecoverError> {
        if behind.durable.max(self.durable) > self.position {
            return Err(self.damage(path, offset, found).into());
        }
        let (bytes, frames) = (behind.bytes, behind.frames);
        self.torn = Some(TornTail { path, offset, bytes, found, frames });
        self.clean = false;
        Ok(false)
    }

    /// What stands behind a bad place and in the segments from `later` on.
    fn look_behind(
        &self,
        bad: Option<(&SegmentReader, u64)>,
        later: usize,
    ) -> Result<Behind, RecoverError> {
        look_behind(self.source.disk, self.source.dir, bad, &self.segments[later..])
            .map_err(io_error("read", self.source.dir))
    }

    fn damage(&self, path: PathBuf, offset: u64, found: String) -> Damage {
        let newest = self.newest_of_checkpoint();
        let advice = if self.position < newest {
            format!(
                "the checkpoint needs the log up to LSN {newest}, so restore the directory from a \
                 backup"
            )
        } else {
            let cut = match offset {
                0 => "remove this file".to_owned(),
                _ => format!("cut this file to {offset} bytes"),
            };
            format!(
                "these bytes had been on the disk, so this is not an ordinary torn end: restore the \
                 directory from a backup; or, to give up everything after LSN {}, {cut} and remove \
                 the log files after it",
                self.position
            )
        };
        Damage { path, offset, found, advice }
    }

    fn newest_of_checkpoint(&self) -> Lsn {
        self.checkpoint.map_or(Lsn::ZERO, |checkpoint| checkpoint.newest)
    }

    fn too_short(&self, newest: Lsn) -> Damage {
        let base = self.segments[..self.kept].last().copied().unwrap_or_default();
        Damage {
            path: segment_path(self.source.dir, base),
            offset: self.position.0.saturating_sub(base.0) + SEGMENT_HEADER_BYTES,
            found: format!(
                "the log ends at LSN {}, but the checkpoint was taken with the log up to {newest}",
                self.position
            ),
            advice: "put the missing log files back, or restore the directory from a backup".into(),
        }
    }
}
