//! Torn tail or damage? What recovery does with a place where no valid frame stands.
//!
//! A crash of the machine may take back, in any order, what was written and not yet synced: then the
//! log ends at the first bad place, though whole frames may stand behind it, and cutting it there
//! loses nothing that was promised. If the bad place had been on the disk, however, this is damage,
//! and to cut would lose what was promised. The files say which: a sync mark behind the place, the
//! header of a later segment, the checkpoint or the note in `log-end` may prove that the log had been durable beyond it.

use crate::reader::SegmentReader;
use crate::segment::{SEGMENT_HEADER_BYTES, segment_path};
use ladon_model::Lsn;
use ladon_platform::Disk;
use std::io;
use std::path::Path;

/// What stands behind a bad place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Behind {
    /// The log was on the disk at least up to here.
    pub(crate) durable: Lsn,
    /// Whole frames found.
    pub(crate) frames: u64,
    /// Bytes from the bad place on, all files together.
    pub(crate) bytes: u64,
}

/// Looks at the rest of the segment at hand and at every later one, whatever its header is like.
pub(crate) fn look_behind(
    disk: &dyn Disk,
    dir: &Path,
    bad: Option<(&SegmentReader, u64)>,
    later: &[Lsn],
) -> io::Result<Behind> {
    let mut behind = Behind::default();
    if let Some((reader, offset)) = bad {
        behind.bytes += reader.file_bytes() - offset;
        // The bad place itself is no frame.
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
