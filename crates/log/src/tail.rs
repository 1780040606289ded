//! Torn tail or damage? What recovery does at a position without a valid frame.
//!
//! A crash of the machine may lose writes that were not synced, in any order. Then the log ends at
//! the first bad position, though complete frames may follow it, and cutting there loses nothing
//! that was promised. But if the bad position had been on the disk, this is damage, and a cut would
//! lose promised data. The files tell which: a sync mark after the position, the header of a later
//! segment, the checkpoint, or the note in `log-end` may prove that the log was durable beyond it.

use crate::reader::SegmentReader;
use crate::segment::{SEGMENT_HEADER_BYTES, segment_path};
use ladon_platform::Disk;
use ladon_record::Lsn;
use std::io;
use std::path::Path;

/// What follows a bad position.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Behind {
    /// The log was on the disk at least up to here.
    pub(crate) durable: Lsn,
    /// Complete frames found.
    pub(crate) frames: u64,
    /// Bytes from the bad position on, in all files.
    pub(crate) bytes: u64,
}

/// Searches the rest of this segment and every later one, whatever their headers contain.
pub(crate) fn look_behind(
    disk: &dyn Disk,
    dir: &Path,
    bad: Option<(&SegmentReader, u64)>,
    later: &[Lsn],
) -> io::Result<Behind> {
    let mut behind = Behind::default();
    if let Some((reader, offset)) = bad {
        behind.bytes += reader.file_bytes() - offset;
        // No frame begins at the bad position itself.
        scan(reader, offset + 1, &mut behind)?;
    }
    for &base in later {
        let reader = SegmentReader::open_at(disk, &segment_path(dir, base), base)?;
        behind.bytes += reader.file_bytes();
        behind.durable = behind.durable.max(reader.header().durable);
        scan(&reader, SEGMENT_HEADER_BYTES, &mut behind)?;
    }
    Ok(behind)
}

fn scan(reader: &SegmentReader, from: u64, behind: &mut Behind) -> io::Result<()> {
    reader.find_frames(from, |mark| {
        behind.frames += 1;
        behind.durable = behind.durable.max(mark.unwrap_or_default());
    })
}
