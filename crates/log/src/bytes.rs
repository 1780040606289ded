//! The log's bytes, for those who send them on.

use crate::log::Log;
use crate::reader::read_full;
use crate::segment::SEGMENT_HEADER_BYTES;
use crate::sync_primitives::Ordering;
use ladon_platform::DiskFile;
use ladon_record::Lsn;
use std::io;
use std::sync::Arc;

/// Reads bytes of an open log, from its files; holds one of them open.
pub struct LogBytes {
    log: Arc<Log>,
    open: Option<Open>,
}

struct Open {
    base: u64,
    /// The count of cuts when it was opened.
    cuts: u64,
    file: Box<dyn DiskFile>,
}

impl LogBytes {
    /// A reader of this log.
    pub fn new(log: Arc<Log>) -> LogBytes {
        LogBytes { log, open: None }
    }

    /// Fills `buffer` with the log's bytes from `from` on.
    ///
    /// # Errors
    /// `NotFound` if they are not in the log's files: not any more, or not yet. Otherwise what the
    /// system says.
    pub fn read(&mut self, from: Lsn, mut buffer: &mut [u8]) -> io::Result<()> {
        let end = from.0 + buffer.len() as u64;
        if self.log.written().0 < end {
            return Err(absent(from, end));
        }
        let mut at = from.0;
        while at < end {
            let (base, until) = self.segment_of(at).ok_or_else(|| absent(from, end))?;
            let length = (until.min(end) - at) as usize;
            let (part, rest) = std::mem::take(&mut buffer).split_at_mut(length);
            let offset = SEGMENT_HEADER_BYTES + (at - base);
            if read_full(self.file(base)?, part, offset)? < length {
                return Err(absent(from, end));
            }
            (at, buffer) = (at + length as u64, rest);
        }
        Ok(())
    }

    /// The segment that has the byte behind `at`, and where the next one begins.
    fn segment_of(&self, at: u64) -> Option<(u64, u64)> {
        let segments = self.log.segments.lock();
        let base = *segments.range(..=at).next_back()?;
        let next = segments.range(at + 1..).next().copied();
        Some((base, next.unwrap_or(u64::MAX)))
    }

    fn file(&mut self, base: u64) -> io::Result<&dyn DiskFile> {
        let cuts = self.log.cuts.load(Ordering::Acquire);
        if self.open.as_ref().is_none_or(|open| (open.base, open.cuts) != (base, cuts)) {
            let place = &self.log.place;
            let file = place.disk.open_read_only(&place.segment_path(Lsn(base)))?;
            self.open = Some(Open { base, cuts, file });
        }
        match &self.open {
            Some(open) => Ok(&*open.file),
            None => unreachable!("opened above"),
        }
    }
}

fn absent(from: Lsn, end: u64) -> io::Error {
    let text = format!("LSN {from} to {end} is not in the log's files");
    io::Error::new(io::ErrorKind::NotFound, text)
}
