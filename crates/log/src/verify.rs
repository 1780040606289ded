//! Verifies a data directory without a server and without changing anything: `ladon check`.
//!
//! Every byte of every checkpoint and of every log file up to where the log ends is read, and
//! every change in them is taken apart; what lies behind that end is counted. What recovery would
//! cut is reported as a torn tail, what would stop it as damage. A directory that a server is writing to may show a torn tail that is none.

use crate::checkpoint::CheckpointInfo;
use crate::checkpoint::format::{CHECKPOINT_FORMAT, PartKind, checkpoint_begin};
use crate::checkpoint::reader::{CheckpointError, CheckpointReader};
use crate::damage::Damage;
use crate::data_dir::{Meta, OpenError, read_meta};
use crate::frame::FrameKind;
use crate::reader::{Batch, Frame, SegmentEnd, SegmentOpenError, SegmentReader};
use crate::recover::RecoverError;
use crate::scan::{Scan, Source};
use crate::segment::{
    HeaderFault, SEGMENT_FORMAT, SEGMENT_HEADER_BYTES, segment_base, segment_path,
};
use crate::sink::TornTail;
use ladon_model::{Changes, Lsn};
use ladon_platform::Disk;
use std::io;
use std::path::{Path, PathBuf};

/// What [`verify_dir`] found.
#[derive(Debug, Default)]
pub struct Report {
    /// The directory's identity; `None` when it holds no data.
    pub meta: Option<Meta>,
    /// Every whole checkpoint, oldest first.
    pub checkpoints: Vec<CheckpointInfo>,
    /// Every segment that could be opened, oldest first.
    pub segments: Vec<SegmentReport>,
    /// Changes in all blocks of all checkpoints.
    pub saved_changes: u64,
    /// Changes in all records of all segments.
    pub logged_changes: u64,
    /// Log files behind the end of the log; a start deletes them.
    pub behind_the_end: Vec<PathBuf>,
    /// Files that are none of Ladon's; nobody looked into them.
    pub strangers: Vec<PathBuf>,
    /// What recovery would cut off.
    pub torn: Option<TornTail>,
    /// What recovery would stop at, or might need.
    pub damages: Vec<Damage>,
    /// The log was closed in good order.
    pub clean: bool,
}

impl Report {
    /// Whether every file is as it was written, needed or not; a torn tail is no damage.
    pub fn is_sound(&self) -> bool {
        self.damages.is_empty()
    }
}

pub use crate::scan::SegmentReport;

/// Why a directory cannot even be looked at.
pub type VerifyError = OpenError;

/// Reads and checks everything in `dir`.
///
/// # Errors
/// When the system refuses to list or read, or the meta file is unusable; damage in other files is
/// part of the report.
pub fn verify_dir(disk: &dyn Disk, dir: &Path) -> Result<Report, VerifyError> {
    let mut report = Report { meta: read_meta(disk, dir)?, ..Report::default() };
    let mut files = disk.list(dir).map_err(io_error("list", dir))?;
    files.sort();
    for path in files.iter().filter(|path| checkpoint_begin(path).is_some()) {
        check_checkpoint(disk, path, &mut report)?;
    }
    let bases: Vec<Lsn> = files.iter().filter_map(|path| segment_base(path)).collect();
    let source = Source { disk, dir, dir_id: report.meta.map(|meta| meta.dir_id) };
    check_log(source, &bases, &mut report)?;
    report.strangers = files.into_iter().filter(|path| is_stranger(path)).collect();
    Ok(report)
}

fn is_stranger(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let own = ["LOCK", "meta", "meta.tmp"].contains(&&*name) || name.ends_with(".checkpoint.tmp");
    !own && checkpoint_begin(path).is_none() && segment_base(path).is_none()
}

fn check_checkpoint(disk: &dyn Disk, path: &Path, report: &mut Report) -> Result<(), VerifyError> {
    match read_checkpoint(disk, path, report.meta.as_ref()) {
        Ok((info, changes, fault)) => {
            report.checkpoints.push(info);
            report.saved_changes += changes;
            report.damages.extend(fault);
            Ok(())
        }
        Err(CheckpointError::Damaged(damage)) => {
            report.damages.push(damage);
            Ok(())
        }
        Err(CheckpointError::Io(error)) => Err(io_error("read", path)(error)),
        Err(CheckpointError::Newer(found)) => {
            let (path, supported) = (path.to_owned(), CHECKPOINT_FORMAT);
            Err(VerifyError::Newer { path, found, supported })
        }
    }
}

fn read_checkpoint(
    disk: &dyn Disk,
    path: &Path,
    meta: Option<&Meta>,
) -> Result<(CheckpointInfo, u64, Option<Damage>), CheckpointError> {
    let reader = CheckpointReader::open(disk, path)?;
    let stranger = meta.is_some_and(|meta| meta.dir_id != reader.header().dir_id);
    let mut fault = stranger
        .then(|| damage(path, 0, "this checkpoint belongs to another data directory".into()));
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
                    fault = Some(damage(path, part.offset, found));
                }
            }
        }
    }
    Ok((reader.info(), changes, fault))
}

/// What recovery would find, and behind a damage or before the checkpoint whatever else is wrong.
fn check_log(source: Source<'_>, bases: &[Lsn], report: &mut Report) -> Result<(), VerifyError> {
    let checkpoint = report.checkpoints.last().cloned();
    let (mut faults, mut changes) = (Vec::new(), 0);
    let mut scan = Scan::new(source, bases, checkpoint.as_ref());
    let mut check = |batch: Batch, path: &Path| {
        changes += check_changes(batch.frames(), path, &mut faults);
        Ok(())
    };
    let outcome = scan.run(&mut check, &|_| {});
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
    let scanned = scan.finish();
    report.torn = scanned.torn;
    report.clean = scanned.clean;
    report.segments = scanned.reports;
    report.logged_changes = changes;
    if let (Some(checkpoint), Some(first)) = (&checkpoint, report.segments.first_mut()) {
        let (disk, until) = (source.disk, checkpoint.begin);
        report.logged_changes += check_prefix(disk, first, until, &mut faults)?;
    }
    for &base in bases {
        let path = segment_path(source.dir, base);
        let is_read = report.segments.iter().any(|segment| segment.base == base);
        if !is_read && report.torn.is_none() {
            check_segment_alone(source.disk, base, &path, report, &mut faults)?;
        } else if !is_read {
            report.behind_the_end.push(path);
        }
    }
    report.segments.sort_by_key(|segment| segment.base);
    report.damages.extend(faults);
    Ok(())
}

/// The part of the first segment that the checkpoint has made superfluous, where the scan did not
/// look; how many changes are in it.
fn check_prefix(
    disk: &dyn Disk,
    segment: &mut SegmentReport,
    until: Lsn,
    faults: &mut Vec<Damage>,
) -> Result<u64, VerifyError> {
    let mut reader = match SegmentReader::open(disk, &segment.path) {
        Ok(reader) => reader,
        Err(SegmentOpenError::Io(error)) => return Err(io_error("open", &segment.path)(error)),
        // The scan has opened it, and said what there is to say.
        Err(SegmentOpenError::Header(_)) => return Ok(0),
    };
    let mut changes = 0;
    while reader.end().is_none() && reader.position() < until {
        let batch = reader.next_batch().map_err(io_error("read", &segment.path))?;
        let before = |frame: &Frame<'_>| frame.header.lsn <= until;
        let records = batch.frames().filter(before).filter(|it| it.kind == FrameKind::Changes);
        segment.records += records.count() as u64;
        changes += check_changes(batch.frames().filter(before), &segment.path, faults);
    }
    if let Some(SegmentEnd::Bad { offset, found }) = reader.end()
        && reader.position() < until
    {
        faults.push(damage(&segment.path, *offset, found.clone()));
    }
    Ok(changes)
}

fn check_segment_alone(
    disk: &dyn Disk,
    base: Lsn,
    path: &Path,
    report: &mut Report,
    faults: &mut Vec<Damage>,
) -> Result<(), VerifyError> {
    let mut reader = match SegmentReader::open(disk, path) {
        Ok(reader) => reader,
        Err(SegmentOpenError::Io(error)) => return Err(io_error("open", path)(error)),
        Err(SegmentOpenError::Header(HeaderFault::Newer(found))) => {
            let (path, supported) = (path.to_owned(), SEGMENT_FORMAT);
            return Err(VerifyError::Newer { path, found, supported });
        }
        Err(SegmentOpenError::Header(HeaderFault::Bad(found))) => {
            faults.push(damage(path, 0, found.to_owned()));
            return Ok(());
        }
    };
    let mut records = 0;
    while reader.end().is_none() {
        let batch = reader.next_batch().map_err(io_error("read", path))?;
        records += batch.frames().filter(|frame| frame.kind == FrameKind::Changes).count() as u64;
        report.logged_changes += check_changes(batch.frames(), path, faults);
    }
    if let Some(SegmentEnd::Bad { offset, found }) = reader.end() {
        faults.push(damage(path, *offset, found.clone()));
    }
    let (path, bytes) = (path.to_owned(), reader.file_bytes());
    report.segments.push(SegmentReport { path, base, end: reader.position(), records, bytes });
    Ok(())
}

/// Takes every record apart; how many changes are in them.
fn check_changes<'a>(
    frames: impl Iterator<Item = Frame<'a>>,
    path: &Path,
    faults: &mut Vec<Damage>,
) -> u64 {
    let mut changes = 0;
    for frame in frames.filter(|frame| frame.kind == FrameKind::Changes) {
        for change in Changes::new(frame.payload) {
            match change {
                Ok(_) => changes += 1,
                Err(error) => {
                    let found = format!("a whole record, but in it {error}");
                    faults.push(damage(path, frame.offset, found));
                }
            }
        }
    }
    changes
}

fn damage(path: &Path, offset: u64, found: String) -> Damage {
    let advice = if offset < SEGMENT_HEADER_BYTES {
        "restore the file, or the whole directory, from a backup".to_owned()
    } else {
        format!(
            "restore the directory from a backup; or, if this is a log file and what follows may be \
             given up, cut it to {offset} bytes and remove the log files after it"
        )
    };
    Damage { path: path.to_owned(), offset, found, advice }
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> VerifyError {
    let path = path.to_owned();
    move |error| OpenError::Io { doing, path, error }
}
