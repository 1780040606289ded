//! The last step of recovery: makes the kept log durable, removes the rest, begins a new segment.
//!
//! The order ensures that the next recovery reaches the same end after a crash anywhere. First
//! rewrite and cut the kept files, and sync them and the directory. Then note in `log-end` where
//! the log ends, and that no later segment is needed. Then remove the other files and sync the
//! directory. Only then create the new segment, whose header says that the log before it is on the
//! disk.

use crate::data_dir::DataDir;
use crate::log_end::{LogEnd, LogEndFile, Noted, log_end_path};
use crate::planted::Planted;
use crate::reader::read_full;
use crate::recover::{RecoverError, io_error};
use crate::reserve::let_reserve_go;
use crate::scan::Scanned;
use crate::segment::{SEGMENT_HEADER_BYTES, SegmentHeader, segment_path};
use crate::state::is_out_of_space;
use crate::write::OpenSegment;
use ladon_platform::DiskFile;
use ladon_record::Lsn;
use std::io;
use std::path::PathBuf;

const COPY_BYTES: usize = 1 << 20;

pub(crate) fn seal(
    dir: &DataDir,
    leftovers: &[PathBuf],
    tail: &Scanned,
    noted: &Noted,
) -> Result<(OpenSegment, Option<LogEndFile>), RecoverError> {
    for (index, &base) in tail.kept.iter().enumerate() {
        let next = tail.kept.get(index + 1).copied().unwrap_or(tail.end);
        if next > tail.durable || next == tail.end {
            let path = segment_path(&dir.dir, base);
            let file = dir.disk.open(&path).map_err(io_error("open", &path))?;
            rewrite(&*file, base, tail.durable, next).map_err(io_error("make durable", &path))?;
        }
    }
    // A kept file's name may not be on the disk yet, but must be before it is noted.
    if dir.options.planted != Planted::NoteOfAnUnsyncedName {
        dir.disk.sync_dir(&dir.dir).map_err(io_error("make durable", &dir.dir))?;
    }
    let end = LogEnd { durable: tail.end, segment: tail.kept.last().copied() };
    let mut log_end = note_end(dir, noted, end)?;
    let dropped = tail.dropped.iter().map(|&base| segment_path(&dir.dir, base));
    for path in dropped.chain(leftovers.iter().cloned()) {
        dir.disk.remove(&path).map_err(io_error("remove", &path))?;
    }
    dir.disk.sync_dir(&dir.dir).map_err(io_error("make durable", &dir.dir))?;
    let segment = begin_segment(dir, tail.end, tail.has_entries).or_else(|error| match error {
        // Space is reserved for this: the old log may be deleted after the next checkpoint.
        RecoverError::Io { error: cause, .. }
            if is_out_of_space(&cause) && let_reserve_go(&*dir.disk, &dir.dir).is_ok() =>
        {
            begin_segment(dir, tail.end, tail.has_entries)
        }
        _ => Err(error),
    })?;
    if let Some(log_end) = &mut log_end {
        // Only evidence: the first sync notes the same.
        let _ = log_end.note(LogEnd { durable: tail.end, segment: Some(tail.end) });
    }
    Ok((segment, log_end))
}

/// `None` if the directory has no such file yet and the disk has no space for one.
fn note_end(dir: &DataDir, noted: &Noted, end: LogEnd) -> Result<Option<LogEndFile>, RecoverError> {
    let identity = (dir.meta.dir_id, dir.meta.node);
    let (now_ns, planted) = (dir.clock.monotonic_ns(), dir.options.planted);
    match LogEndFile::open(&*dir.disk, &dir.dir, identity, noted, end, now_ns, planted) {
        Ok(file) => Ok(Some(file)),
        Err(error) if is_out_of_space(&error) && noted.end().is_none() => Ok(None),
        Err(error) => Err(io_error("write", &log_end_path(&dir.dir))(error)),
    }
}

/// Rewrites `durable..end` of a segment in place, cuts what follows, and syncs.
fn rewrite(file: &dyn DiskFile, base: Lsn, durable: Lsn, end: Lsn) -> io::Result<()> {
    let offset = |lsn: Lsn| SEGMENT_HEADER_BYTES + (lsn.0 - base.0);
    let (mut at, end) = (if durable <= base { 0 } else { offset(durable.min(end)) }, offset(end));
    let mut buffer = vec![0; COPY_BYTES.min((end - at) as usize)];
    while at < end {
        let wanted = buffer.len().min((end - at) as usize);
        let read = read_full(file, &mut buffer[..wanted], at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        file.write_all_at(&buffer[..read], at)?;
        at += read as u64;
    }
    if file.len()? != end {
        file.set_len(end)?;
    }
    file.sync_data()
}

fn begin_segment(dir: &DataDir, base: Lsn, has_entries: bool) -> Result<OpenSegment, RecoverError> {
    let path = segment_path(&dir.dir, base);
    let header = SegmentHeader {
        node: dir.meta.node,
        dir_id: dir.meta.dir_id,
        base,
        durable: base,
        created_ms: dir.clock.unix_ms(),
        has_entries,
    };
    let segment = OpenSegment::create(&*dir.disk, &path, &header)
        .map_err(io_error("create the log file", &path))?;
    segment.file.sync_data().map_err(io_error("make durable", &path))?;
    dir.disk.sync_dir(&dir.dir).map_err(io_error("make durable", &dir.dir))?;
    Ok(segment)
}
