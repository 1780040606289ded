//! Verifies a data directory without a server and without changing anything: `ladon check`.
//!
//! Reads every byte of every checkpoint, and of every log file up to the end of the log, and
//! decodes every change in them. Bytes after that end are counted. What recovery would cut is
//! reported as a torn tail, and what would stop recovery as damage. A start needs the newest
//! checkpoint and the log from its begin position on. Damage elsewhere is reported separately,
//! because it loses nothing.
//!
//! While a server uses the directory, the log is read only up to its durable end at the start of
//! the check. Nothing before that position changes any more.

use crate::alternative::{misplaced, way_out_of_checkpoint};
use crate::checkpoint::CheckpointInfo;
use crate::checkpoint::format::{CHECKPOINT_FORMAT, PartKind, checkpoint_begin};
use crate::checkpoint::reader::{CheckpointError, CheckpointReader};
use crate::damage::Damage;
use crate::data_dir::{BACKUP_NAME, LOCK_NAME, META_NAME, Meta, OpenError, read_meta};
use crate::frame::FrameKind;
use crate::log_end::{LOG_END_FORMAT, LogEnd, Noted, log_end_path, read_log_end};
use crate::reader::{Batch, Frame, SegmentEnd, SegmentOpenError, SegmentReader};
use crate::recover::RecoverError;
use crate::scan::{Known, Scan, Source};
use crate::segment::{HeaderFault, SEGMENT_FORMAT, segment_base, segment_path};
use crate::sink::TornTail;
use crate::unfinished::unfinished;
use ladon_platform::Disk;
use ladon_record::{Changes, Lsn};
use std::io;
use std::path::{Path, PathBuf};

/// What [`verify_dir`] found.
#[derive(Debug, Default)]
pub struct Report {
    /// The directory's identity; `None` when it holds no data.
    pub meta: Option<Meta>,
    /// Every complete checkpoint, oldest first.
    pub checkpoints: Vec<CheckpointInfo>,
    /// Every segment that could be opened, oldest first.
    pub segments: Vec<SegmentReport>,
    /// Changes in all blocks of all checkpoints.
    pub saved_changes: u64,
    /// Changes in all records of all segments.
    pub logged_changes: u64,
    /// Log files after the end of the log; a start deletes them.
    pub behind_the_end: Vec<PathBuf>,
    /// Files that are not Ladon's; they were not read.
    pub strangers: Vec<PathBuf>,
    /// What recovery would cut off.
    pub torn: Option<TornTail>,
    /// What recovery would stop at, or might need.
    pub damages: Vec<Damage>,
    /// Damage in files that no start reads; nothing is lost by it.
    pub not_needed: Vec<Damage>,
    /// The log was closed cleanly.
    pub clean: bool,
    /// A server is using the directory.
    pub in_use: bool,
    /// End of the log, or the position up to which it was read while a server uses the directory.
    pub end: Lsn,
}

impl Report {
    /// Whether every file is as it was written, needed or not; a torn tail is not damage.
    pub fn is_sound(&self) -> bool {
        self.damages.is_empty() && self.not_needed.is_empty()
    }
}

pub use crate::scan::SegmentReport;

/// Why a directory cannot be read at all.
pub type VerifyError = OpenError;

/// How often to reread a directory that a server changes meanwhile.
const ATTEMPTS: usize = 5;

/// Reads and checks everything in `dir`.
///
/// # Errors
/// If the system refuses to list or read, or the meta file is not usable; damage in other files is
/// part of the report.
pub fn verify_dir(disk: &dyn Disk, dir: &Path) -> Result<Report, VerifyError> {
    let lock_path = dir.join(LOCK_NAME);
    let mut attempt = 1;
    loop {
        let in_use = disk.is_locked(&lock_path).map_err(io_error("look at", &lock_path))?;
        let outcome = verify_once(disk, dir, in_use);
        // A server deletes what it no longer needs, and may have started or stopped meanwhile.
        let is_calm = match &outcome {
            Ok(report) => report.is_sound(),
            Err(OpenError::Io { error, .. }) => error.kind() != io::ErrorKind::NotFound,
            Err(_) => true,
        };
        let still = disk.is_locked(&lock_path).map_err(io_error("look at", &lock_path))?;
        if attempt == ATTEMPTS || (in_use == still && (is_calm || !in_use)) {
            return outcome;
        }
        attempt += 1;
    }
}

fn verify_once(disk: &dyn Disk, dir: &Path, in_use: bool) -> Result<Report, VerifyError> {
    let mut report = Report { meta: read_meta(disk, dir)?, in_use, ..Report::default() };
    // Before the files are listed, because a server keeps creating files.
    let end = check_log_end(disk, dir, &mut report)?;
    let mut files = disk.list(dir).map_err(io_error("list", dir))?;
    files.sort();
    let is_checkpoint = |path: &&PathBuf| checkpoint_begin(path).is_some();
    let checkpoints: Vec<PathBuf> = files.iter().filter(is_checkpoint).cloned().collect();
    let bases: Vec<Lsn> = files.iter().filter_map(|path| segment_base(path)).collect();
    let source = Source { disk, dir, dir_id: report.meta.map(|meta| meta.dir_id) };
    let mut newest_is_whole = true;
    for (index, path) in checkpoints.iter().enumerate() {
        let is_newest = index + 1 == checkpoints.len();
        let Some(mut damage) = check_checkpoint(disk, path, &mut report)? else { continue };
        if is_newest {
            newest_is_whole = false;
            damage.advice = way_out_of_checkpoint(source, &checkpoints, &bases, end);
            report.damages.push(damage);
        } else {
            damage.advice = "a start does not need this file, as there is a newer checkpoint: \
                             nothing is lost, and it may be removed"
                .to_owned();
            report.not_needed.push(damage);
        }
    }
    if newest_is_whole {
        check_log(source, &bases, end, &mut report)?;
    } else {
        // The part of the log that is needed depends on the checkpoint.
        check_segments_alone(source, &bases, "restore the directory from a backup", &mut report)?;
    }
    report.segments.sort_by_key(|segment| segment.base);
    if let Some(what) = unfinished(disk, dir).map_err(io_error("look at", dir))? {
        report.damages.push(Damage {
            path: dir.join("unfinished"),
            offset: 0,
            found: format!("a part of the data is here only: {what} began and was not finished"),
            advice: "do it again, or remove the directory".to_owned(),
        });
    }
    report.strangers = files.into_iter().filter(|path| is_stranger(path)).collect();
    Ok(report)
}

fn is_stranger(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let own = [
        LOCK_NAME,
        META_NAME,
        "meta.tmp",
        "log-end",
        "log-end.tmp",
        "reserve",
        "unfinished",
        // What a node of a cluster must not forget, and what a server's log is.
        "group",
        "group.tmp",
        "committed",
        "runs",
        "runs.tmp",
    ];
    let own = own.contains(&&*name) || name == BACKUP_NAME || name.ends_with(".checkpoint.tmp");
    !own && checkpoint_begin(path).is_none() && segment_base(path).is_none()
}

/// The content of `log-end`.
fn check_log_end(
    disk: &dyn Disk,
    dir: &Path,
    report: &mut Report,
) -> Result<Option<LogEnd>, VerifyError> {
    let path = log_end_path(dir);
    let dir_id = report.meta.map(|meta| meta.dir_id);
    match read_log_end(disk, dir, dir_id).map_err(io_error("read", &path))? {
        Noted::Newer(found) => Err(VerifyError::Newer { path, found, supported: LOG_END_FORMAT }),
        Noted::Unusable(damage) => {
            report.not_needed.push(damage);
            Ok(None)
        }
        Noted::Missing => Ok(None),
        Noted::End(end) => Ok(Some(end)),
    }
}

/// Adds a complete checkpoint to the report. Returns the damage of a damaged one, without advice.
fn check_checkpoint(
    disk: &dyn Disk,
    path: &Path,
    report: &mut Report,
) -> Result<Option<Damage>, VerifyError> {
    match read_checkpoint(disk, path, report.meta.as_ref()) {
        Ok((info, changes, fault)) => {
            report.checkpoints.push(info);
            report.saved_changes += changes;
            Ok(fault)
        }
        Err(CheckpointError::Damaged(damage)) => Ok(Some(damage)),
        Err(CheckpointError::Io(error)) => Err(io_error("read", path)(error)),
        Err(CheckpointError::Newer(found)) => {
            let (path, supported) = (path.to_owned(), CHECKPOINT_FORMAT);
            Err(VerifyError::Newer { path, found, supported })
        }
    }
}

/// Reads a checkpoint to its end. Returns its content, the number of changes, and any error in its
/// content although its bytes are as they were written.
fn read_checkpoint(
    disk: &dyn Disk,
    path: &Path,
    meta: Option<&Meta>,
) -> Result<(CheckpointInfo, u64, Option<Damage>), CheckpointError> {
    let reader = CheckpointReader::open(disk, path)?;
    let mut fault = meta.and_then(|meta| misplaced(reader.header(), meta.dir_id, path));
    let mut changes = 0;
    while let Some(part) = reader.next_part()? {
        if part.kind != PartKind::Block {
            continue;
        }
        for change in Changes::new(&part.payload) {
            match change {
                Ok(_) => changes += 1,
                Err(error) => {
                    let found = format!("a whole block, but in it {error}");
                    fault = Some(damage(path, part.offset, found, ""));
                }
            }
        }
    }
    Ok((reader.info(), changes, fault))
}

/// Checks the log as recovery reads it, and the other segments for damage.
fn check_log(
    source: Source<'_>,
    bases: &[Lsn],
    end: Option<LogEnd>,
    report: &mut Report,
) -> Result<(), VerifyError> {
    let checkpoint = report.checkpoints.last().cloned();
    let until = end.filter(|_| report.in_use).map(|end| end.durable);
    let known = Known { checkpoint: checkpoint.as_ref(), end, until, accept_loss_after: None };
    let mut scan = Scan::new(source, bases, known);
    let (mut faults, mut changes) = (Vec::new(), 0);
    let mut check = |batch: Batch, path: &Path| {
        const ADVICE: &str = "restore the directory from a backup, or start the version of Ladon \
                              that wrote this";
        changes += check_changes(batch.frames(), path, ADVICE, &mut faults);
        Ok(batch)
    };
    let outcome = scan.run(&mut check, &|_| {});
    let is_read_to_its_end = outcome.is_ok();
    match outcome {
        Ok(()) => {}
        Err(RecoverError::Damaged(damage)) => report.damages.push(damage),
        Err(RecoverError::Io { doing, path, error }) => {
            return Err(VerifyError::Io { doing, path, error });
        }
        Err(RecoverError::Newer { path, found, supported }) => {
            return Err(VerifyError::Newer { path, found, supported });
        }
        Err(RecoverError::Sink { .. }) => unreachable!("the checks above do not fail"),
    }
    report.damages.extend(faults);
    let scanned = scan.finish();
    report.torn = scanned.torn;
    report.clean = scanned.clean;
    report.end = scanned.end;
    report.segments = scanned.reports;
    report.logged_changes = changes;
    let Some(first) = scanned.first else { return Ok(()) };
    let older: Vec<Lsn> = bases.iter().copied().filter(|&base| base < first).collect();
    let mut later: Vec<Lsn> = bases.iter().copied().filter(|&base| base >= first).collect();
    later.retain(|&base| report.segments.iter().all(|segment| segment.base != base));
    if let Some(checkpoint) = &checkpoint {
        check_prefix(source.disk, checkpoint.begin, report)?;
        let advice = format!(
            "a start does not need this file, as the checkpoint at LSN {} holds all that it says: \
             nothing is lost, and it may be removed",
            checkpoint.begin
        );
        let damages = std::mem::take(&mut report.damages);
        check_segments_alone(source, &older, &advice, report)?;
        report.not_needed.extend(std::mem::replace(&mut report.damages, damages));
    }
    if !is_read_to_its_end {
        let advice = "it comes after the damage that a start stops at: see there";
        check_segments_alone(source, &later, advice, report)?;
    } else if !report.in_use {
        report.behind_the_end.extend(later.iter().map(|&base| segment_path(source.dir, base)));
    }
    Ok(())
}

/// Checks the part of the first segment before the checkpoint, which the scan does not read.
fn check_prefix(disk: &dyn Disk, until: Lsn, report: &mut Report) -> Result<(), VerifyError> {
    let Some(segment) = report.segments.first_mut() else { return Ok(()) };
    let mut reader = match SegmentReader::open(disk, &segment.path) {
        Ok(reader) => reader,
        Err(SegmentOpenError::Io(error)) => return Err(io_error("open", &segment.path)(error)),
        // The scan has opened it and reported the fault.
        Err(SegmentOpenError::Header(_)) => return Ok(()),
    };
    let advice = format!(
        "a start does not read this place, as the checkpoint at LSN {until} holds all that it says: \
         nothing is lost. Leave the file as it is, for what comes after LSN {until} is needed"
    );
    while reader.end().is_none() && reader.position() < until {
        let batch = reader.next_batch().map_err(io_error("read", &segment.path))?;
        let before = |frame: &Frame<'_>| frame.header.lsn <= until;
        let records = batch.frames().filter(before).filter(|it| it.kind == FrameKind::Changes);
        segment.records += records.count() as u64;
        let (frames, path) = (batch.frames().filter(before), &segment.path);
        report.logged_changes += check_changes(frames, path, &advice, &mut report.not_needed);
        reader.recycle(batch);
    }
    if let Some(SegmentEnd::Bad { offset, found }) = reader.end()
        && reader.position() < until
    {
        report.not_needed.push(damage(&segment.path, *offset, found.clone(), &advice));
    }
    Ok(())
}

/// Checks each of these segments on its own.
fn check_segments_alone(
    source: Source<'_>,
    bases: &[Lsn],
    advice: &str,
    report: &mut Report,
) -> Result<(), VerifyError> {
    for &base in bases {
        check_segment_alone(source.disk, base, &segment_path(source.dir, base), advice, report)?;
    }
    Ok(())
}

fn check_segment_alone(
    disk: &dyn Disk,
    base: Lsn,
    path: &Path,
    advice: &str,
    report: &mut Report,
) -> Result<(), VerifyError> {
    let mut reader = match SegmentReader::open(disk, path) {
        Ok(reader) => reader,
        Err(SegmentOpenError::Io(error)) => return Err(io_error("open", path)(error)),
        Err(SegmentOpenError::Header(HeaderFault::Newer(found))) => {
            let (path, supported) = (path.to_owned(), SEGMENT_FORMAT);
            return Err(VerifyError::Newer { path, found, supported });
        }
        Err(SegmentOpenError::Header(HeaderFault::Bad(found))) => {
            report.damages.push(damage(path, 0, found.to_owned(), advice));
            return Ok(());
        }
    };
    let mut records = 0;
    while reader.end().is_none() {
        let batch = reader.next_batch().map_err(io_error("read", path))?;
        records += batch.frames().filter(|frame| frame.kind == FrameKind::Changes).count() as u64;
        report.logged_changes += check_changes(batch.frames(), path, advice, &mut report.damages);
        reader.recycle(batch);
    }
    if let Some(SegmentEnd::Bad { offset, found }) = reader.end() {
        report.damages.push(damage(path, *offset, found.clone(), advice));
    }
    let (path, bytes) = (path.to_owned(), reader.file_bytes());
    report.segments.push(SegmentReport { path, base, end: reader.position(), records, bytes });
    Ok(())
}

/// Decodes every record. Returns the number of changes.
fn check_changes<'a>(
    frames: impl Iterator<Item = Frame<'a>>,
    path: &Path,
    advice: &str,
    faults: &mut Vec<Damage>,
) -> u64 {
    let mut changes = 0;
    for frame in frames.filter(|frame| frame.kind == FrameKind::Changes) {
        for change in Changes::new(frame.payload) {
            match change {
                Ok(_) => changes += 1,
                Err(error) => {
                    let found = format!("a whole record, but in it {error}");
                    faults.push(damage(path, frame.offset, found, advice));
                }
            }
        }
    }
    changes
}

fn damage(path: &Path, offset: u64, found: String, advice: &str) -> Damage {
    Damage { path: path.to_owned(), offset, found, advice: advice.to_owned() }
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> VerifyError {
    let path = path.to_owned();
    move |error| OpenError::Io { doing, path, error }
}
