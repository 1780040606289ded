//! Reads the log as recovery does and finds its end, for recovery and for `verify`.

use crate::checkpoint::CheckpointInfo;
use crate::damage::Damage;
use crate::frame::FrameKind;
use crate::log_end::LogEnd;
use crate::reader::{Batch, SegmentEnd, SegmentOpenError, SegmentReader};
use crate::recover::{RecoverError, io_error};
use crate::segment::{HeaderFault, SEGMENT_FORMAT, SEGMENT_HEADER_BYTES, segment_path};
use crate::sink::{Phase, Progress, TornTail};
use crate::tail::{Behind, look_behind};
use ladon_platform::Disk;
use ladon_record::Lsn;
use std::path::{Path, PathBuf};

/// Receives each batch of complete frames, with its file; returns one that is not needed any more.
pub(crate) type Feed<'a> = dyn FnMut(Batch, &Path) -> Result<Batch, RecoverError> + 'a;

/// The directory to read.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) dir: &'a Path,
    pub(crate) dir_id: Option<u64>,
}

/// A segment file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentReport {
    /// The file.
    pub path: PathBuf,
    /// Where it begins.
    pub base: Lsn,
    /// End of its last complete frame.
    pub end: Lsn,
    /// Records, not counting marks.
    pub records: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// The result; see [`Scan::finish`].
#[derive(Debug)]
pub(crate) struct Scanned {
    /// End of the log.
    pub(crate) end: Lsn,
    /// Everything below this is proven to be on the disk.
    pub(crate) durable: Lsn,
    /// Segments that hold anything up to `end`, beginning with the first that is needed.
    pub(crate) kept: Vec<Lsn>,
    /// The first segment that is needed.
    pub(crate) first: Option<Lsn>,
    /// Segments after the end.
    pub(crate) dropped: Vec<Lsn>,
    pub(crate) reports: Vec<SegmentReport>,
    pub(crate) records: u64,
    pub(crate) log_bytes: u64,
    pub(crate) torn: Option<TornTail>,
    pub(crate) given_up: Option<Damage>,
    pub(crate) clean: bool,
    /// Whether any segment may hold entries.
    pub(crate) has_entries: bool,
}

/// What is known besides the log's own files, and what the caller asks for.
#[derive(Clone, Copy, Default)]
pub(crate) struct Known<'a> {
    pub(crate) checkpoint: Option<&'a CheckpointInfo>,
    /// The noted end of the log.
    pub(crate) end: Option<LogEnd>,
    /// Do not read beyond this position, where a server is writing.
    pub(crate) until: Option<Lsn>,
    /// What comes after this position may be discarded.
    pub(crate) accept_loss_after: Option<Lsn>,
}

pub(crate) struct Scan<'a> {
    source: Source<'a>,
    known: Known<'a>,
    /// All segments in order; the scan reads from `first` on.
    segments: &'a [Lsn],
    first: usize,
    position: Lsn,
    durable: Lsn,
    kept: usize,
    reports: Vec<SegmentReport>,
    records: u64,
    log_bytes: u64,
    torn: Option<TornTail>,
    given_up: Option<Damage>,
    clean: bool,
    has_entries: bool,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(source: Source<'a>, segments: &'a [Lsn], known: Known<'a>) -> Scan<'a> {
        let position = known.checkpoint.map_or(Lsn::ZERO, |checkpoint| checkpoint.begin);
        let newest = known.checkpoint.map_or(Lsn::ZERO, |checkpoint| checkpoint.newest);
        let first = segments.iter().rposition(|&base| base <= position).unwrap_or(0);
        Scan {
            source,
            known,
            segments,
            first,
            position,
            durable: known.end.map_or(newest, |end| end.durable.max(newest)),
            kept: first,
            reports: Vec::new(),
            records: 0,
            log_bytes: 0,
            torn: None,
            given_up: None,
            clean: false,
            has_entries: false,
        }
    }

    /// Reads to the end. An error is what recovery stops at.
    pub(crate) fn run(
        &mut self,
        feed: &mut Feed<'_>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<(), RecoverError> {
        if self.check_begin()? {
            for index in self.first..self.segments.len() {
                if self.is_read() || !self.read_segment(index, feed, progress)? {
                    break;
                }
            }
        }
        self.check_end()
    }

    pub(crate) fn finish(self) -> Scanned {
        Scanned {
            end: self.position,
            durable: self.durable,
            first: self.segments.get(self.first).copied(),
            kept: self.segments[self.first..self.kept].to_vec(),
            dropped: self.segments[self.kept..].to_vec(),
            reports: self.reports,
            records: self.records,
            log_bytes: self.log_bytes,
            torn: self.torn,
            given_up: self.given_up,
            clean: self.clean,
            has_entries: self.has_entries,
        }
    }

    /// The first segment must contain the position where replay begins. Returns false if there is
    /// nothing to read.
    fn check_begin(&mut self) -> Result<bool, Damage> {
        let found = match self.segments.get(self.first) {
            Some(&base) if base <= self.position => return Ok(true),
            None if self.known.checkpoint.is_none() => return Ok(false),
            Some(base) => {
                format!("the log is needed from LSN {} on, but begins at {base}", self.position)
            }
            None => format!("the log is needed from LSN {} on, but there is none", self.position),
        };
        let path = segment_path(self.source.dir, self.position);
        self.stop_at(Loss::Missing, path, 0, found)?;
        Ok(false)
    }

    /// Whether everything up to the limit has been read.
    fn is_read(&self) -> bool {
        self.known.until.is_some_and(|until| until <= self.position)
    }

    /// Checks that the log reaches its noted end.
    fn check_end(&mut self) -> Result<(), RecoverError> {
        let newest = self.known.checkpoint.map_or(Lsn::ZERO, |checkpoint| checkpoint.newest);
        if self.given_up.is_some() || self.is_read() {
            return Ok(());
        }
        let last = self.segments.last().copied();
        let known_segment = self.known.end.and_then(|end| end.segment);
        // An older segment may be gone because a checkpoint has replaced it.
        let missing = known_segment.filter(|&segment| last.is_none_or(|last| last < segment));
        let needed = self.durable.max(newest);
        if let Some(segment) = missing {
            let found = format!(
                "this file is missing: the log ends at LSN {}, but it had gone on here",
                self.position
            );
            self.stop_at(Loss::Missing, segment_path(self.source.dir, segment), 0, found)?;
        } else if self.position < needed {
            let base = self.segments[..self.kept].last().copied().unwrap_or_default();
            let offset = self.position.0.saturating_sub(base.0) + SEGMENT_HEADER_BYTES;
            let found = format!("the log ends at LSN {} here, too early", self.position);
            self.stop_at(Loss::Missing, segment_path(self.source.dir, base), offset, found)?;
        }
        Ok(())
    }

    /// Returns whether the log continues in the next file.
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
            return self.end_here(Loss::Missing, path, offset, found, behind);
        }
        if !reader.seek(self.position) || (index > self.first && base < self.position) {
            let found = format!("LSN {} should be in this file and is not", self.position);
            return Ok(self.stop_at(Loss::Damaged, path, reader.file_bytes(), found)?);
        }
        self.kept = index + 1;
        self.durable = self.durable.max(reader.header().durable);
        self.has_entries |= reader.header().has_entries;
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
            reader.recycle(feed(batch, &path)?);
            if self.is_read() {
                break;
            }
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
        if self.is_read() {
            return Ok(false);
        }
        let Some(SegmentEnd::Bad { offset, found }) = reader.end().cloned() else {
            return Ok(true);
        };
        let behind = self.look_behind(Some((&reader, offset)), index + 1)?;
        self.end_here(Loss::Damaged, path, offset, found, behind)
    }

    /// An estimate for the progress line: this file to its end, and the distance to the last one.
    fn bytes_total(&self, index: usize, file_bytes: u64) -> u64 {
        let last = self.segments.last().copied().unwrap_or_default();
        let ahead = last.0 - self.segments[index].0;
        self.log_bytes + ahead.max(file_bytes)
    }

    /// Opens a segment; `None` if the machine failed while the file was being created.
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
                    self.stop_at(Loss::Damaged, path.to_owned(), 0, found.to_owned())?;
                    return Ok(None);
                }
                let behind = self.look_behind(None, index)?;
                self.end_here(Loss::Damaged, path.to_owned(), 0, found.to_owned(), behind)?;
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
        self.stop_at(Loss::Damaged, path.to_owned(), 0, found)?;
        Ok(None)
    }

    /// Ends the log at `position`, unless the files prove that more was on the disk.
    fn end_here(
        &mut self,
        loss: Loss,
        path: PathBuf,
        offset: u64,
        found: String,
        behind: Behind,
    ) -> Result<bool, RecoverError> {
        self.durable = self.durable.max(behind.durable);
        if self.durable > self.position {
            return Ok(self.stop_at(loss, path, offset, found)?);
        }
        let (bytes, frames) = (behind.bytes, behind.frames);
        self.torn = Some(TornTail { path, offset, bytes, found, frames });
        self.clean = false;
        Ok(false)
    }

    /// Searches after a bad place and in the segments from `later` on.
    fn look_behind(
        &self,
        bad: Option<(&SegmentReader, u64)>,
        later: usize,
    ) -> Result<Behind, RecoverError> {
        look_behind(self.source.disk, self.source.dir, bad, &self.segments[later..])
            .map_err(io_error("read", self.source.dir))
    }

    /// Data that was on the disk is missing or damaged here. Recovery stops, unless the options
    /// allow it to discard what comes after this very position. `Ok(false)`: the log ends here.
    fn stop_at(
        &mut self,
        loss: Loss,
        path: PathBuf,
        offset: u64,
        found: String,
    ) -> Result<bool, Damage> {
        let newest = self.known.checkpoint.map_or(Lsn::ZERO, |checkpoint| checkpoint.newest);
        let position = self.position;
        let restore = match loss {
            Loss::Missing => {
                "put the missing log files back, or restore the directory from a backup"
            }
            Loss::Damaged => "restore the directory from a backup",
        };
        let advice = if position < newest {
            format!("the checkpoint needs the log up to LSN {newest}: {restore}")
        } else {
            format!(
                "{restore}; or start the server with --accept-log-loss-after {position}, which \
                 gives up all changes after LSN {position} for good"
            )
        };
        let come_to = self.durable.max(newest);
        let found = match come_to > position {
            true => format!("{found}; the log had been on the disk up to LSN {come_to}"),
            false => found,
        };
        let damage = Damage { path, offset, found, advice };
        if position < newest || self.known.accept_loss_after != Some(position) {
            return Err(damage);
        }
        self.given_up = Some(damage);
        self.torn = None;
        self.clean = false;
        Ok(false)
    }
}

/// How data that was on the disk was lost.
#[derive(Clone, Copy)]
enum Loss {
    Missing,
    Damaged,
}
