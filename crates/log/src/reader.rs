//! Reads a segment file, a batch of frames at a time.
//!
//! A segment ends cleanly at the end of the file, or where only zeros follow (space that was
//! prepared and not used). Anything else that is not a complete, valid frame in its place is
//! reported as [`SegmentEnd::Bad`]; the scan in `tail.rs` decides whether that is a torn tail or
//! damage.

use crate::crc::crc32c;
use crate::frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use crate::segment::{HeaderFault, SEGMENT_HEADER_BYTES, SegmentHeader};
use ladon_platform::{Disk, DiskFile};
use ladon_record::Lsn;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes read from the file at once; a longer frame makes its batch longer. They are still in a
/// processor's cache when the frames are checked and applied.
const BATCH_BYTES: usize = 1 << 18;

/// Complete frames that were read together.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    frames: Vec<FrameRange>,
}

#[derive(Debug)]
struct FrameRange {
    header: FrameHeader,
    kind: FrameKind,
    offset: u64,
    payload: Range<usize>,
}

/// One frame of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its header.
    pub header: FrameHeader,
    /// The kind of the frame.
    pub kind: FrameKind,
    /// Where it begins in the file.
    pub offset: u64,
    /// The payload.
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// How far the log was durable when this frame was written, if the frame is a mark.
    pub fn durable_mark(&self) -> Option<Lsn> {
        match self.kind {
            FrameKind::Changes | FrameKind::Entry => None,
            FrameKind::SyncMark | FrameKind::CleanEnd => {
                self.payload.first_chunk().map(|bytes| Lsn(u64::from_le_bytes(*bytes)))
            }
        }
    }
}

impl Batch {
    /// The frames, in order.
    pub fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        self.frames.iter().map(|range| Frame {
            header: range.header,
            kind: range.kind,
            offset: range.offset,
            payload: &self.bytes[range.payload.clone()],
        })
    }

    /// The changes of each record, with its LSN, in order.
    pub fn records(&self) -> impl Iterator<Item = (Lsn, &[u8])> {
        let changes = self.frames().filter(|frame| frame.kind == FrameKind::Changes);
        changes.map(|frame| (frame.header.lsn, frame.payload))
    }

    /// Whether there are no frames.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

/// How a segment ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentEnd {
    /// All frames were read; only zeros, if anything, follow.
    Clean,
    /// The bytes at this offset are not a valid frame.
    Bad {
        /// Where in the file.
        offset: u64,
        /// What was found.
        found: String,
    },
}

/// Why a segment cannot be opened.
#[derive(Debug)]
pub enum SegmentOpenError {
    /// The system refused a read.
    Io(io::Error),
    /// The header is not usable.
    Header(HeaderFault),
}

/// Reads one segment from front to back.
pub struct SegmentReader {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    header: SegmentHeader,
    length: u64,
    at: u64,
    end: Option<SegmentEnd>,
    /// Its memory is that of the next batch.
    spent: Batch,
}

impl SegmentReader {
    /// Opens the file and reads its header.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<SegmentReader, SegmentOpenError> {
        let file = disk.open_read_only(path).map_err(SegmentOpenError::Io)?;
        let length = file.len().map_err(SegmentOpenError::Io)?;
        let mut bytes = [0; SEGMENT_HEADER_BYTES as usize];
        let read = read_full(&*file, &mut bytes, 0).map_err(SegmentOpenError::Io)?;
        let header = SegmentHeader::decode(&bytes[..read]).map_err(SegmentOpenError::Header)?;
        let path = path.to_owned();
        Ok(SegmentReader::at_begin(file, path, header, length))
    }

    /// Opens a file as the segment at `base`, even if its header is not usable.
    pub(crate) fn open_at(disk: &dyn Disk, path: &Path, base: Lsn) -> io::Result<SegmentReader> {
        match SegmentReader::open(disk, path) {
            Ok(reader) if reader.header.base == base => return Ok(reader),
            Err(SegmentOpenError::Io(error)) => return Err(error),
            _ => {}
        }
        let file = disk.open_read_only(path)?;
        let length = file.len()?;
        let (dir_id, created_ms, has_entries) = (0, 0, false);
        let durable = Lsn::ZERO;
        let header = SegmentHeader { node: 0, dir_id, base, durable, created_ms, has_entries };
        let path = path.to_owned();
        Ok(SegmentReader::at_begin(file, path, header, length))
    }

    fn at_begin(
        file: Box<dyn DiskFile>,
        path: PathBuf,
        header: SegmentHeader,
        length: u64,
    ) -> SegmentReader {
        let (at, spent) = (SEGMENT_HEADER_BYTES, Batch::default());
        SegmentReader { file, path, header, length, at, end: None, spent }
    }

    /// The file's header.
    pub fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's length when it was opened.
    pub fn file_bytes(&self) -> u64 {
        self.length
    }

    /// The end of the last frame read, in the log.
    pub fn position(&self) -> Lsn {
        Lsn(self.header.base.0 + (self.at - SEGMENT_HEADER_BYTES))
    }

    /// The end of the last frame read, in the file.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// Continues at `lsn`, which must be the end of a frame. Returns false if that is outside the
    /// file.
    pub fn seek(&mut self, lsn: Lsn) -> bool {
        let Some(in_file) = lsn.0.checked_sub(self.header.base.0) else { return false };
        self.at = SEGMENT_HEADER_BYTES.saturating_add(in_file);
        self.end = None;
        self.at <= self.length
    }

    /// How the segment ends; `None` while frames may follow.
    pub fn end(&self) -> Option<&SegmentEnd> {
        self.end.as_ref()
    }

    /// Returns the next frames. The batch is empty if there are no more; [`SegmentReader::end`]
    /// then says why.
    ///
    /// # Errors
    /// Only system errors; invalid bytes are an end, not an error.
    pub fn next_batch(&mut self) -> io::Result<Batch> {
        let mut batch = std::mem::take(&mut self.spent);
        batch.frames.clear();
        if self.end.is_some() {
            return Ok(batch);
        }
        self.fill(&mut batch.bytes, BATCH_BYTES)?;
        let mut from = 0;
        loop {
            match self.parse(&batch.bytes, from)? {
                Parsed::Frame(range) => {
                    from = range.payload.end;
                    self.at += range.header.frame_bytes();
                    batch.frames.push(range);
                }
                Parsed::NeedsBytes(needed) if batch.frames.is_empty() => {
                    // The length was checked against the file, so this is bounded by the file's
                    // size.
                    self.fill(&mut batch.bytes, needed)?;
                    if batch.bytes.len() < needed {
                        return self.finish_bad(batch, "the file became shorter while it was read");
                    }
                }
                Parsed::NeedsBytes(_) => return Ok(batch),
                Parsed::End(end) => {
                    self.end = Some(end);
                    return Ok(batch);
                }
            }
        }
    }

    fn finish_bad(&mut self, batch: Batch, found: &str) -> io::Result<Batch> {
        self.end = Some(SegmentEnd::Bad { offset: self.at, found: found.to_owned() });
        Ok(batch)
    }

    /// Takes a batch back that nobody needs any more. Its memory serves a later one.
    pub fn recycle(&mut self, batch: Batch) {
        // A long frame's memory is given back.
        if batch.bytes.capacity() <= 2 * BATCH_BYTES {
            self.spent = batch;
        }
    }

    /// Reads from the current position; fewer than `bytes` only at the end of the file.
    fn fill(&self, buffer: &mut Vec<u8>, bytes: usize) -> io::Result<()> {
        let left = usize::try_from(self.length.saturating_sub(self.at)).unwrap_or(usize::MAX);
        buffer.resize(bytes.min(left), 0);
        let read = read_full(&*self.file, buffer, self.at)?;
        buffer.truncate(read);
        Ok(())
    }

    fn parse(&self, bytes: &[u8], from: usize) -> io::Result<Parsed> {
        let rest = &bytes[from..];
        let left = self.length.saturating_sub(self.at);
        let bad = |found: String| Ok(Parsed::End(SegmentEnd::Bad { offset: self.at, found }));
        if left == 0 {
            return Ok(Parsed::End(SegmentEnd::Clean));
        }
        let Some(header) = rest.first_chunk::<FRAME_HEADER_BYTES>() else {
            if left >= FRAME_HEADER_BYTES as u64 {
                return Ok(Parsed::NeedsBytes(FRAME_HEADER_BYTES));
            }
            return match self.zeros_follow()? {
                true => Ok(Parsed::End(SegmentEnd::Clean)),
                false => bad(format!("the file ends {left} bytes into a frame's header")),
            };
        };
        if header.iter().all(|&byte| byte == 0) {
            return match self.zeros_follow()? {
                true => Ok(Parsed::End(SegmentEnd::Clean)),
                false => bad("zeros where a frame should begin, and more bytes behind".to_owned()),
            };
        }
        let header = FrameHeader::decode(header);
        let start = self.position().0;
        // Cannot overflow: the length has 40 bits, and a segment's base was checked to have 56.
        if header.lsn.0 != start + header.frame_bytes() {
            return bad(format!(
                "no frame that belongs here (it says it ends at LSN {} with {} bytes of payload; \
                 this place is LSN {start})",
                header.lsn, header.payload_bytes
            ));
        }
        let Some(kind) = FrameKind::from_u8(header.kind) else {
            return bad(format!("a frame of unknown kind {}", header.kind));
        };
        if header.frame_bytes() > left {
            return bad(format!(
                "a frame of {} bytes, but the file ends after {left}",
                header.frame_bytes()
            ));
        }
        let Ok(frame_bytes) = usize::try_from(header.frame_bytes()) else {
            return bad("a frame larger than this machine can address".to_owned());
        };
        if rest.len() < frame_bytes {
            return Ok(Parsed::NeedsBytes(frame_bytes));
        }
        let crc = crc32c(&rest[4..frame_bytes]);
        if crc != header.crc {
            return bad(format!(
                "a frame of {frame_bytes} bytes whose checksum is {crc:08x}, not {:08x} as it says",
                header.crc
            ));
        }
        let payload = from + FRAME_HEADER_BYTES..from + frame_bytes;
        Ok(Parsed::Frame(FrameRange { header, kind, offset: self.at, payload }))
    }

    fn zeros_follow(&self) -> io::Result<bool> {
        let mut buffer = vec![0; 64 << 10];
        let mut at = self.at;
        loop {
            let read = read_full(&*self.file, &mut buffer, at)?;
            if read == 0 {
                return Ok(true);
            }
            if buffer[..read].iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
            at += read as u64;
        }
    }

    /// Searches for complete frames in their place, at any offset from `from` on. They prove that
    /// writing continued there. Calls `found` with the mark of each one, if it is a mark.
    pub(crate) fn find_frames(
        &self,
        from: u64,
        mut found: impl FnMut(Option<Lsn>),
    ) -> io::Result<()> {
        let mut buffer = Vec::new();
        let mut window_at = from;
        while window_at + FRAME_HEADER_BYTES as u64 <= self.length {
            let left = usize::try_from(self.length - window_at).unwrap_or(usize::MAX);
            buffer.resize(left.min(BATCH_BYTES), 0);
            let read = read_full(&*self.file, &mut buffer, window_at)?;
            let bytes = &buffer[..read];
            let mut index = 0;
            while let Some(header) = bytes.get(index..).and_then(|rest| rest.first_chunk()) {
                let at = window_at + index as u64;
                match self.whole_frame_at(at, header)? {
                    Some((mark, frame_bytes)) => {
                        found(mark);
                        index = index.saturating_add(frame_bytes);
                    }
                    None => index += 1,
                }
            }
            if index == 0 {
                break;
            }
            window_at += index as u64;
        }
        Ok(())
    }

    /// The frame's mark and length, if a complete frame begins here.
    fn whole_frame_at(
        &self,
        at: u64,
        header: &[u8; FRAME_HEADER_BYTES],
    ) -> io::Result<Option<(Option<Lsn>, usize)>> {
        let header = FrameHeader::decode(header);
        let start = self.header.base.0 + (at - SEGMENT_HEADER_BYTES);
        let in_place = header.lsn.0 == start + header.frame_bytes();
        if !in_place || header.frame_bytes() > self.length - at {
            return Ok(None);
        }
        let mut bytes = vec![0; header.frame_bytes() as usize];
        let read = read_full(&*self.file, &mut bytes, at)?;
        let Some(kind) = FrameKind::from_u8(header.kind) else { return Ok(None) };
        if read < bytes.len() || crc32c(&bytes[4..]) != header.crc {
            return Ok(None);
        }
        let payload = &bytes[FRAME_HEADER_BYTES..];
        let frame = Frame { header, kind, offset: at, payload };
        Ok(Some((frame.durable_mark(), bytes.len())))
    }
}

enum Parsed {
    Frame(FrameRange),
    NeedsBytes(usize),
    End(SegmentEnd),
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes read.
///
/// # Errors
/// The system's.
pub fn read_full(file: &dyn DiskFile, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(&mut buffer[read..], at + read as u64) {
            Ok(0) => break,
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
