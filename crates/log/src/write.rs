//! From memory to the operating system, and from one segment file to the next.

use crate::buffer::Piece;
use crate::crc::crc32c;
use crate::frame::FrameHeader;
use crate::log::Log;
use crate::reader::read_full;
use crate::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::state::{LogError, LogState};
use crate::sync_primitives::{Ordering, fence};
use ladon_platform::{Disk, DiskFile};
use ladon_record::Lsn;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Interval between retries of a failed write: soon enough to recover without an operator, seldom
/// enough not to burden a failing disk.
const RETRY_AFTER_NS: u64 = 1_000_000_000;

/// How often a thread continues with what others published meanwhile, before it leaves that to the
/// background writer and returns to its own clients.
const LEADER_ROUNDS: usize = 4;

/// More bytes than this are left to the background writer: copying them into the page cache takes
/// some tenths of a millisecond.
const WRITTEN_HERE_BYTES_MAX: u64 = 1 << 20;

/// A segment file open for writing.
pub(crate) struct OpenSegment {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) path: PathBuf,
    pub(crate) base: Lsn,
}

impl OpenSegment {
    /// Creates the file, or reuses what an earlier failed attempt left, and writes its header.
    /// Neither the bytes nor the name are durable yet.
    pub(crate) fn create(disk: &dyn Disk, path: &Path, header: &SegmentHeader) -> io::Result<Self> {
        let file = disk.create_empty(path)?;
        file.write_all_at(&header.encode(), 0)?;
        Ok(OpenSegment { file, path: path.to_owned(), base: header.base })
    }

    /// Whether its header says that no entries are in it.
    pub(crate) fn is_plain(&self) -> io::Result<bool> {
        self.header().map(|header| !header.has_entries)
    }

    /// Lets entries follow in a segment in which nothing is yet. Durable, because a header that is
    /// torn while something is behind it would lose that.
    pub(crate) fn allow_entries(&self) -> io::Result<()> {
        let header = SegmentHeader { has_entries: true, ..self.header()? };
        self.file.write_all_at(&header.encode(), 0)?;
        self.file.sync_data()
    }

    fn header(&self) -> io::Result<SegmentHeader> {
        let mut bytes = [0; SEGMENT_HEADER_BYTES as usize];
        let read = read_full(&*self.file, &mut bytes, 0)?;
        let unusable = |fault| {
            let found = format!("the file's header cannot be read any more: {fault:?}");
            io::Error::new(io::ErrorKind::InvalidData, found)
        };
        SegmentHeader::decode(&bytes[..read]).map_err(unusable)
    }

    pub(crate) fn offset(&self, lsn: u64) -> u64 {
        assert!(lsn >= self.base.0, "{lsn} is not in the segment that begins at {}", self.base.0);
        SEGMENT_HEADER_BYTES + (lsn - self.base.0)
    }
}

/// The writing side, under one lock.
pub(crate) struct Io {
    pub(crate) segment: Arc<OpenSegment>,
    /// Complete segments that are not yet durable, oldest first.
    pub(crate) complete: Vec<Arc<OpenSegment>>,
    /// A segment's name is not yet durable.
    pub(crate) dir_changed: bool,
    pub(crate) written: u64,
    /// End of the last complete frame that is written; a failed write may stop within a frame. This
    /// is the position that waiters and the log's own notes see.
    pub(crate) whole: u64,
    pub(crate) retry_at_ns: u64,
    /// The file has bytes, records or zeros, up to this offset.
    zeroed_to: u64,
    pieces: Vec<Piece>,
}

/// The page cache is trimmed in steps of this many bytes.
const CACHE_STEP_BYTES: u64 = 2 << 20;

/// Pages are dropped this many steps after their writeback began. By then it is done, unless the
/// disk is slower than the log; then the pages stay.
const CACHE_STEPS_KEPT: u64 = 8;

impl Io {
    /// Keeps the segment's share of the page cache small: starts writeback of what was just
    /// written, and drops pages whose writeback began some steps ago.
    fn let_pages_go(&self, offset: u64, length: u64) {
        let (before, after) = (offset / CACHE_STEP_BYTES, (offset + length) / CACHE_STEP_BYTES);
        if before == after {
            return;
        }
        let file = &self.segment.file;
        file.start_writing(before * CACHE_STEP_BYTES, (after - before) * CACHE_STEP_BYTES);
        if let Some(first) = before.checked_sub(CACHE_STEPS_KEPT) {
            file.drop_cache(first * CACHE_STEP_BYTES, (after - before) * CACHE_STEP_BYTES);
        }
    }

    /// The log ends at `to` now, in this segment. Everything in the files before it may still have
    /// to be synced.
    pub(crate) fn cut(&mut self, segment: Arc<OpenSegment>, to: u64) {
        self.complete.retain(|complete| complete.base < segment.base);
        self.segment = segment;
        (self.written, self.whole) = (to, to);
        (self.zeroed_to, self.retry_at_ns) = (0, 0);
    }

    pub(crate) fn new(segment: OpenSegment) -> Io {
        Io {
            written: segment.base.0,
            whole: segment.base.0,
            segment: Arc::new(segment),
            complete: Vec::new(),
            dir_changed: false,
            retry_at_ns: 0,
            zeroed_to: 0,
            pieces: Vec::new(),
        }
    }
}

impl Log {
    /// Writes what is published on the calling thread, usually with one system call: for the gates
    /// `write` and `everysec`, after a batch. If another thread is writing, it writes this thread's
    /// records too, and this call returns at once; compare the result with what you need and use a
    /// [`crate::PositionWaiter`] for the rest. A large amount is left to the background writer.
    ///
    /// # Errors
    /// [`LogError::WriteFailed`]; until the retry succeeds, no further attempt is made here.
    pub fn write_published(&self) -> Result<Lsn, LogError> {
        for _ in 0..LEADER_ROUNDS {
            // Pairs with the fence of every other caller. Of two threads that published and read
            // each other's marks, one sees both. A thread that found the lock taken has published
            // before the lock's holder checks again.
            fence(Ordering::SeqCst);
            let (published, written) = (self.buffer.published(), self.written());
            if published <= written.0 {
                return Ok(written);
            }
            if !self.accepts_writes()
                && let LogState::WriteFailed { error, .. } = self.state()
            {
                return Err(error);
            }
            // Compare both as read above: another thread may have written more since.
            if published - written.0 > WRITTEN_HERE_BYTES_MAX {
                break;
            }
            let Some(mut io) = self.io.try_lock() else { return Ok(self.written()) };
            self.write_up_to(&mut io, published)?;
        }
        self.worker.wake();
        Ok(self.written())
    }

    /// Called after publishing. If a thread waits for the log, writes it, and has the background
    /// writer sync it if asked for.
    #[inline]
    pub(crate) fn serve_waiters(&self) {
        // Pairs with the fence of `PositionWaiter::await_written`: one of the two sees the other.
        fence(Ordering::SeqCst);
        if self.waiters.is_anything_awaited() {
            // A failure is in the state.
            let _ = self.write_published();
            self.worker.wake_if_idle();
        }
    }

    /// Wakes the background writer, if it sleeps, to write what is published.
    #[inline]
    pub fn write_soon(&self) {
        fence(Ordering::SeqCst);
        self.worker.wake_if_idle();
    }

    pub(crate) fn write_all_published(&self, io: &mut Io) -> Result<(), LogError> {
        fence(Ordering::SeqCst);
        self.write_up_to(io, self.buffer.published())
    }

    fn write_up_to(&self, io: &mut Io, to: u64) -> Result<(), LogError> {
        if to <= io.written {
            return Ok(());
        }
        let before = io.whole;
        let outcome = self.write_pieces(io, to).or_else(|error| self.use_reserve(io, to, error));
        assert!(
            before <= io.whole && io.whole <= io.written && io.written <= to,
            "whole frames up to {} (before: {before}), written up to {}, published up to {to}",
            io.whole,
            io.written
        );
        if io.whole > before {
            self.positions.advance_written(io.whole);
            self.waiters.written_advanced(io.whole);
        }
        match &outcome {
            Ok(()) => self.heal(io),
            Err(error) => {
                let now_ns = self.place.clock.monotonic_ns();
                io.retry_at_ns = now_ns + RETRY_AFTER_NS;
                self.state.write_failed(error.clone(), now_ns);
                self.waiters.state_changed();
                self.worker.wake();
            }
        }
        if self.sync_every_ns.load(Ordering::Relaxed) != 0 || self.is_second_running() {
            self.worker.wake_for_dirt();
        }
        // A request to sync this, made before it could be written, has found nothing to sync.
        fence(Ordering::SeqCst);
        if self.wanted_durable.load(Ordering::Relaxed) > self.durable().0 {
            self.worker.wake_if_idle();
        }
        outcome
    }

    /// On a full disk, releases reserved space and writes what is appended. From now on the log
    /// takes no records.
    fn use_reserve(&self, io: &mut Io, to: u64, error: LogError) -> Result<(), LogError> {
        if !error.is_out_of_space() || !self.reserve.let_half_go(&*self.place.disk) {
            return Err(error);
        }
        self.state.write_failed(error, self.place.clock.monotonic_ns());
        self.waiters.state_changed();
        self.worker.wake();
        self.write_pieces(io, to)
    }

    /// Called when everything could be written. The log takes records again, unless its reserved
    /// space is still in use.
    pub(crate) fn heal(&self, io: &mut Io) {
        if self.accepts_writes() {
            return;
        }
        if self.reserve.make(&*self.place.disk) {
            if self.state.write_succeeded() {
                self.waiters.state_changed();
            }
        } else {
            io.retry_at_ns = self.place.clock.monotonic_ns() + RETRY_AFTER_NS;
        }
    }

    fn write_pieces(&self, io: &mut Io, to: u64) -> Result<(), LogError> {
        while io.written < to {
            let boundary = self.buffer.pieces(io.written, to, &mut io.pieces);
            if boundary == Some(io.written) {
                self.turn_to_next_segment(io)?;
                continue;
            }
            for piece in &io.pieces {
                let offset = io.segment.offset(io.written);
                // SAFETY: `to` is published, and only the holder of `io` releases.
                let outcome = unsafe {
                    piece.place.read(piece.length, |bytes| {
                        if io.whole == io.written {
                            assert_frames(bytes, io.written, piece.ends_frame);
                        }
                        io.segment.file.write_all_at(bytes, offset)
                    })
                };
                outcome.map_err(|error| write_failed(&io.segment.path, offset, error))?;
                io.written += piece.length as u64;
                if piece.ends_frame {
                    io.whole = io.written;
                }
                io.let_pages_go(offset, piece.length as u64);
            }
            self.buffer.release(io.written);
        }
        Ok(())
    }

    /// The next file is begun without waiting for the previous one's sync: its header says how far
    /// the log was durable then, and the next sync handles files and directory in order.
    fn turn_to_next_segment(&self, io: &mut Io) -> Result<(), LogError> {
        assert_eq!(io.whole, io.written, "a segment ends with a whole frame");
        let base = Lsn(io.written);
        let path = self.place.segment_path(base);
        let header = SegmentHeader {
            node: self.place.node,
            dir_id: self.place.dir_id,
            base,
            durable: self.durable(),
            created_ms: self.place.clock.unix_ms(),
            has_entries: self.has_entries.load(Ordering::SeqCst),
        };
        let next = OpenSegment::create(&*self.place.disk, &path, &header)
            .map_err(|error| write_failed(&path, 0, error))?;
        let last = std::mem::replace(&mut io.segment, Arc::new(next));
        io.zeroed_to = 0;
        io.complete.push(last);
        io.dir_changed = true;
        self.segments.lock().insert(base.0);
        self.buffer.take_boundary(base.0);
        Ok(())
    }
}

impl Io {
    /// Writes zeros after the records if the last ones grew the file, so that the next syncs need
    /// not grow it. Skipped if records arrive so fast that the zeros would double the work.
    pub(crate) fn zero_ahead(&mut self, durable: u64, window_bytes: u64) {
        let offset = self.segment.offset(self.written);
        let since_sync = self.written.saturating_sub(durable);
        if offset <= self.zeroed_to || since_sync > window_bytes / 4 {
            return;
        }
        let zeros = vec![0; window_bytes as usize];
        // Only an optimization: if there is no space, the records' own writes will report it.
        if self.segment.file.write_all_at(&zeros, offset).is_ok() {
            self.zeroed_to = offset + window_bytes;
        }
    }
}

/// Checks bytes that are about to be written at `start`, where a frame begins: each frame encodes
/// its own position, and the last one is whole if `ends_frame`. Recovery would cut anything else,
/// so it must not be acknowledged.
fn assert_frames(bytes: &[u8], start: u64, ends_frame: bool) {
    let mut at = 0;
    while let Some(header) = bytes[at..].first_chunk() {
        let header = FrameHeader::decode(header);
        let frame_bytes = header.frame_bytes();
        let position = start + at as u64;
        assert!(
            header.lsn.0 == position + frame_bytes,
            "a frame of {frame_bytes} bytes at {position} says that it ends at {}",
            header.lsn
        );
        if cfg!(not(debug_assertions)) {
            // Only the first frame: the write reads its cache line anyway.
            return;
        }
        if frame_bytes > (bytes.len() - at) as u64 {
            assert!(!ends_frame, "a frame of {frame_bytes} bytes at {position} is cut");
            return;
        }
        let frame = &bytes[at..at + frame_bytes as usize];
        assert_eq!(crc32c(&frame[4..]), header.crc, "the frame at {position} was changed");
        at += frame.len();
    }
    assert!(at == bytes.len() && ends_frame, "{at} of {} bytes at {start}", bytes.len());
}

pub(crate) fn write_failed(path: &Path, offset: u64, error: io::Error) -> LogError {
    LogError::WriteFailed { path: path.to_owned(), offset, error: Arc::new(error) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::frame::{FrameKind, encode_frame};

    fn frames() -> Vec<u8> {
        let one = encode_frame(FrameKind::Changes, 0, 1, Lsn(100), b"one");
        let two = encode_frame(FrameKind::Changes, 0, 1, Lsn(127), b"two");
        [one, two].concat()
    }

    #[test]
    fn frames_in_their_places_are_written() {
        assert_frames(&frames(), 100, true);
        // A large record's header, whose payload lies elsewhere.
        assert_frames(&frames()[..24], 100, false);
    }

    #[test]
    #[should_panic = "says that it ends at"]
    fn frames_elsewhere_are_not() {
        assert_frames(&frames(), 101, true);
    }

    #[test]
    #[should_panic = "says that it ends at"]
    fn nor_is_memory_into_which_nothing_was_copied() {
        assert_frames(&[0; 54], 100, true);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic = "was changed"]
    fn nor_are_changed_ones() {
        let mut frames = frames();
        frames[53] ^= 1;
        assert_frames(&frames, 100, true);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic = "is cut"]
    fn nor_are_cut_ones() {
        assert_frames(&frames()[..53], 100, true);
    }
}
