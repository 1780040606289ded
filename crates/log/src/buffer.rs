//! The log's memory: where threads put records, and from where the writer takes them.
//!
//! ```text
//!   written        published              reserved
//!      |  ready to write |  being copied in   |
//!  ----+-----------------+--------------------+---->  LSN
//!      [ chunk ][ chunk     ][ chunk          ]
//! ```
//! An appender 1. sets its **mark** to a lower bound of what it is about to reserve, unless a batch
//! is already open, 2. reserves its range under a small mutex (a handful of additions, no IO),
//! 3. copies the frame in, outside the mutex, and 4. at the end of its batch clears the mark.
//!    Everything below every mark is published. A large record brings its payload with it: its
//!    header is copied in as above, and each part of its memory becomes a chunk.
//!
//! **Invariant:** a thread that sees `reserved` (acquire) at or above a reservation's end also sees
//! that appender's mark at or below its start, or a later mark or none, and then the copied bytes:
//! marks are stored with release before the reservation and after the copy. Hence `min(reserved,
//! every mark)`, with `reserved` read first, is a prefix of whole frames.

use crate::chunk::{Chunk, Place};
use crate::crc::{crc32c, crc32c_of_both};
use crate::frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind, PAYLOAD_BYTES_MAX};
use crate::segment::{LSN_MAX, SEGMENT_HEADER_BYTES};
use crate::sync_primitives::{
    AtomicBool, AtomicU64, AtomicUsize, CachePadded, Mutex, OrderedMutex, Ordering,
};
use ladon_platform::lock_order::Place as LockPlace;
use ladon_record::{LargeRecord, Lsn, RecordPart};
use std::collections::VecDeque;

/// Maximum number of appenders: IO threads and a few helpers.
#[cfg(not(loom))]
pub const APPENDERS_MAX: usize = 512;
/// Few, to keep loom's models small.
#[cfg(loom)]
pub const APPENDERS_MAX: usize = 4;

/// Chunks kept for reuse. More than a burst needs would only waste memory.
const SPARE_CHUNKS_MAX: usize = 2;

/// Nothing in flight.
const NO_MARK: u64 = u64::MAX;

pub(crate) struct LogBuffer {
    reserve: CachePadded<OrderedMutex<Reserve>>,
    reserved: CachePadded<AtomicU64>,
    marks: Box<[CachePadded<AtomicU64>]>,
    /// Marks from this index on were never used.
    marks_used: AtomicUsize,
    marks_free: Mutex<Vec<usize>>,
    /// Bytes of the largest large record that is not written yet.
    largest_bytes: AtomicU64,
    has_strays: AtomicBool,
    chunk_bytes: usize,
    segment_payload_bytes: u64,
    node: u16,
}

struct Reserve {
    end: u64,
    segment_base: u64,
    /// First positions of segments that the writer has not begun.
    boundaries: VecDeque<u64>,
    chunks: VecDeque<Filled>,
    spare: Vec<Chunk>,
    /// End of the last record of one's own.
    records_end: u64,
    /// Only frames from elsewhere are appended: positions are the leader's.
    is_follower: bool,
}

/// A chunk and its part of the log; `end` is the end of the reservations in it so far.
struct Filled {
    base: u64,
    end: u64,
    chunk: Chunk,
    /// Payload of the large record whose memory the chunk is; 0 of any other.
    large_record_bytes: u64,
}

/// The right to append through one mark.
pub(crate) struct MarkSlot {
    index: usize,
    in_flight: bool,
}

impl MarkSlot {
    /// Whether a batch is open.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.in_flight
    }
}

/// A contiguous run of published bytes.
pub(crate) struct Piece {
    pub(crate) place: Place,
    pub(crate) length: usize,
    /// False for a large record's header, whose payload is in another chunk.
    pub(crate) ends_frame: bool,
}

impl LogBuffer {
    /// An empty buffer whose first record begins at `start`, the first position of a segment.
    pub(crate) fn new(start: Lsn, node: u16, segment_bytes: u64, chunk_bytes: usize) -> LogBuffer {
        let reserve = Reserve {
            end: start.0,
            segment_base: start.0,
            boundaries: VecDeque::new(),
            chunks: VecDeque::new(),
            spare: Vec::new(),
            records_end: start.0,
            is_follower: false,
        };
        LogBuffer {
            reserve: CachePadded(OrderedMutex::new(LockPlace::LOG_MEMORY, reserve)),
            reserved: CachePadded(AtomicU64::new(start.0)),
            marks: (0..APPENDERS_MAX).map(|_| CachePadded(AtomicU64::new(NO_MARK))).collect(),
            marks_used: AtomicUsize::new(0),
            marks_free: Mutex::new(Vec::new()),
            largest_bytes: AtomicU64::new(0),
            has_strays: AtomicBool::new(false),
            chunk_bytes,
            segment_payload_bytes: segment_bytes.saturating_sub(SEGMENT_HEADER_BYTES),
            node,
        }
    }

    /// A free mark, or `None` when [`APPENDERS_MAX`] are taken.
    pub(crate) fn take_mark(&self) -> Option<MarkSlot> {
        let mut free = self.marks_free.lock();
        let index = match free.pop() {
            Some(index) => index,
            None => {
                let index = self.marks_used.load(Ordering::Relaxed);
                if index == self.marks.len() {
                    return None;
                }
                // Every later reservation releases this again, and so readers see it.
                self.marks_used.store(index + 1, Ordering::Release);
                index
            }
        };
        Some(MarkSlot { index, in_flight: false })
    }

    /// Publishes what is in flight and frees the mark.
    pub(crate) fn give_mark(&self, slot: &mut MarkSlot) {
        self.publish(slot);
        let mut free = self.marks_free.lock();
        debug_assert!(!free.contains(&slot.index), "a mark is given back once");
        free.push(slot.index);
    }

    /// Reserves, copies, and returns the record's LSN. The record is not written before `publish`.
    #[inline]
    pub(crate) fn append(
        &self,
        slot: &mut MarkSlot,
        kind: FrameKind,
        unix_ms: u64,
        payload: &[u8],
    ) -> Lsn {
        let payload_bytes = payload.len() as u64;
        assert!(payload_bytes <= PAYLOAD_BYTES_MAX, "a log record is at most 1 TiB");
        let frame_bytes = FRAME_HEADER_BYTES + payload.len();
        self.open_batch(slot);
        // Allocated before the mutex is taken, because allocating half a gigabyte would make others
        // wait.
        let mut own_chunk = (frame_bytes > self.chunk_bytes).then(|| Chunk::new(frame_bytes));
        let (place, lsn) = {
            let mut reserve = self.reserve.0.lock();
            if reserve.is_follower {
                return self.stray();
            }
            reserve.turn_segment(frame_bytes as u64, self.segment_payload_bytes);
            let place = reserve.place(frame_bytes, &mut own_chunk, self.chunk_bytes);
            if kind == FrameKind::Changes {
                reserve.records_end = reserve.end;
            }
            self.reserved.0.store(reserve.end, Ordering::Release);
            (place, reserve.end)
        };
        self.debug_assert_held_back(slot, lsn - frame_bytes as u64);
        let header = FrameHeader {
            crc: 0,
            payload_bytes,
            lsn: Lsn(lsn),
            unix_ms,
            kind: kind as u8,
            node: self.node,
        };
        // SAFETY: `place` was reserved above for exactly this frame, and the mark holds
        // publication back until `publish`.
        unsafe { place.put_frame(&header.encode(), payload) };
        Lsn(lsn)
    }

    /// As `append`, but takes over the payload, whose checksum is known: the cost does not depend
    /// on its size.
    pub(crate) fn append_large(
        &self,
        slot: &mut MarkSlot,
        kind: FrameKind,
        unix_ms: u64,
        record: LargeRecord,
    ) -> Lsn {
        let length = record.len();
        let (parts, payload_crc) = record.into_parts();
        let payload_bytes = length as u64;
        assert!(payload_bytes <= PAYLOAD_BYTES_MAX, "a log record is at most 1 TiB");
        self.open_batch(slot);
        let parts: Vec<(u64, Chunk)> = parts
            .into_iter()
            .map(|part| match part {
                RecordPart::Own(bytes) => (bytes.len() as u64, Chunk::of(bytes)),
                RecordPart::Shared(bytes) => (bytes.len() as u64, Chunk::shared(bytes)),
            })
            .collect();
        let (place, lsn) = {
            let mut reserve = self.reserve.0.lock();
            let frame_bytes = FRAME_HEADER_BYTES as u64 + payload_bytes;
            if reserve.is_follower {
                return self.stray();
            }
            self.largest_bytes.fetch_max(payload_bytes, Ordering::Relaxed);
            reserve.turn_segment(frame_bytes, self.segment_payload_bytes);
            let place = reserve.place(FRAME_HEADER_BYTES, &mut None, self.chunk_bytes);
            for (bytes, chunk) in parts {
                reserve.take_over(chunk, bytes, payload_bytes);
            }
            reserve.records_end = reserve.end;
            self.reserved.0.store(reserve.end, Ordering::Release);
            (place, reserve.end)
        };
        self.debug_assert_held_back(slot, lsn - FRAME_HEADER_BYTES as u64 - payload_bytes);
        let lsn = Lsn(lsn);
        let mut header =
            FrameHeader { crc: 0, payload_bytes, lsn, unix_ms, kind: kind as u8, node: self.node };
        header.crc = crc32c_of_both(crc32c(&header.encode()[4..]), payload_crc, length);
        // SAFETY: `place` was reserved above for exactly this header, and the mark holds
        // publication back until `publish`.
        unsafe { place.put_header(&header.encode()) };
        lsn
    }

    /// Appends a frame that is complete, and whose place is the end of the log: a follower's.
    /// Returns its LSN. It is not written before `publish`.
    pub(crate) fn append_frame(&self, slot: &mut MarkSlot, frame: &[u8]) -> Lsn {
        self.open_batch(slot);
        let mut own_chunk = (frame.len() > self.chunk_bytes).then(|| Chunk::new(frame.len()));
        let (place, lsn) = {
            let mut reserve = self.reserve.0.lock();
            assert!(reserve.is_follower, "a foreign frame in a log that has records of its own");
            reserve.turn_segment(frame.len() as u64, self.segment_payload_bytes);
            let place = reserve.place(frame.len(), &mut own_chunk, self.chunk_bytes);
            self.reserved.0.store(reserve.end, Ordering::Release);
            (place, reserve.end)
        };
        self.debug_assert_held_back(slot, lsn - frame.len() as u64);
        // SAFETY: `place` was reserved above for exactly this frame, and the mark holds
        // publication back until `publish`.
        unsafe { place.put_whole(frame) };
        Lsn(lsn)
    }

    /// End of the last record of one's own; marks may follow it.
    pub(crate) fn records_end(&self) -> u64 {
        self.reserve.0.lock().records_end
    }

    /// A record of one's own would make positions differ from the leader's for good.
    #[cold]
    fn stray(&self) -> Lsn {
        self.has_strays.store(true, Ordering::SeqCst);
        Lsn(LSN_MAX)
    }

    /// Whether a record of one's own came while the log's records come from elsewhere.
    pub(crate) fn has_strays(&self) -> bool {
        self.has_strays.load(Ordering::SeqCst)
    }

    /// Whether any batch is open.
    pub(crate) fn has_open_batch(&self) -> bool {
        let used = self.marks_used.load(Ordering::Acquire);
        self.marks[..used].iter().any(|mark| mark.0.load(Ordering::Acquire) != NO_MARK)
    }

    /// Whether the log's records come from elsewhere.
    pub(crate) fn is_follower(&self) -> bool {
        self.reserve.0.lock().is_follower
    }

    /// From now on, the log's records come from elsewhere, or do not any more.
    pub(crate) fn set_follower(&self, is_follower: bool) {
        self.reserve.0.lock().is_follower = is_follower;
    }

    /// Forgets everything behind `to`, which is in the segment that begins at `segment_base`.
    /// Everything has been written, and nothing is in flight. `turn`: the next record begins a new
    /// segment.
    pub(crate) fn cut(&self, to: u64, segment_base: u64, turn: bool) {
        assert!(!self.has_open_batch(), "a batch is open while the log is cut");
        let mut reserve = self.reserve.0.lock();
        let end = reserve.end;
        // The next record may have been going to begin a segment.
        let is_written = reserve.boundaries.iter().all(|&boundary| boundary == end);
        assert!(to <= end && is_written, "cut at {to}, but not all of {end} is written");
        reserve.boundaries.clear();
        // At most the last chunk is left, whose content is written.
        reserve.chunks.clear();
        (reserve.end, reserve.segment_base) = (to, segment_base);
        // Otherwise who has the next records would take what is in their places for its own.
        reserve.records_end = reserve.records_end.min(to);
        if turn {
            reserve.turn_segment(u64::MAX / 2, 0);
        }
        self.reserved.0.store(to, Ordering::Release);
    }

    #[inline]
    fn open_batch(&self, slot: &mut MarkSlot) {
        if !slot.in_flight {
            slot.in_flight = true;
            let lower_bound = self.reserved.0.load(Ordering::Relaxed);
            self.marks[slot.index].0.store(lower_bound, Ordering::Release);
        }
    }

    /// A record at `start` is not published before its batch ends.
    #[inline]
    fn debug_assert_held_back(&self, slot: &MarkSlot, start: u64) {
        if cfg!(all(debug_assertions, not(loom))) {
            let mark = self.marks[slot.index].0.load(Ordering::Relaxed);
            assert!(mark <= start, "a record at {start} above the mark {mark} of its batch");
        }
    }

    /// Bytes of the largest large record that is not written yet.
    pub(crate) fn largest_bytes(&self) -> u64 {
        self.largest_bytes.load(Ordering::Relaxed)
    }

    /// Publishes everything appended through this mark. Returns whether there was anything.
    #[inline]
    pub(crate) fn publish(&self, slot: &mut MarkSlot) -> bool {
        let had = std::mem::take(&mut slot.in_flight);
        if had {
            self.marks[slot.index].0.store(NO_MARK, Ordering::Release);
        }
        had
    }

    /// End of the last reservation.
    #[inline]
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved.0.load(Ordering::Acquire)
    }

    /// Everything below this position is complete. Callers order the read with a fence after the
    /// stores that they must not miss.
    #[inline]
    pub(crate) fn published(&self) -> u64 {
        // Read `reserved` first: see the invariant at the top of the file.
        let reserved = self.reserved.0.load(Ordering::Acquire);
        let used = self.marks_used.load(Ordering::Acquire);
        self.marks[..used]
            .iter()
            .map(|mark| mark.0.load(Ordering::Acquire))
            .fold(reserved, u64::min)
    }

    /// Begins a new segment with the next record, if the present one has at least so many bytes.
    /// Returns where the segment of the next record begins.
    pub(crate) fn turn_segment(&self, from_bytes: u64) -> u64 {
        let mut reserve = self.reserve.0.lock();
        if reserve.end - reserve.segment_base >= from_bytes {
            reserve.turn_segment(u64::MAX / 2, 0);
        }
        reserve.segment_base
    }

    /// Called when the writer has begun the segment at `base`, the first boundary.
    pub(crate) fn take_boundary(&self, base: u64) {
        let taken = self.reserve.0.lock().boundaries.pop_front();
        assert_eq!(taken, Some(base), "a segment begins where one was reserved");
    }

    /// Collects the memory of `from..to`, which must be published and not released, up to the next
    /// segment boundary. Returns that boundary. Collects nothing if the boundary is `from` itself:
    /// the writer then begins the next file first.
    pub(crate) fn pieces(&self, from: u64, to: u64, out: &mut Vec<Piece>) -> Option<u64> {
        out.clear();
        let reserve = self.reserve.0.lock();
        let boundary = reserve.boundaries.front().copied();
        let to = boundary.map_or(to, |boundary| boundary.min(to));
        assert!(from <= to, "written up to {from}, behind a segment's or the log's end at {to}");
        let mut collected = from;
        for filled in &reserve.chunks {
            let (first, last) = (from.max(filled.base), to.min(filled.end));
            if first < last {
                if let Some(header) = out.last_mut().filter(|_| filled.large_record_bytes > 0) {
                    header.ends_frame = false;
                }
                assert_eq!(first, collected, "the log's memory has a gap");
                collected = last;
                let place = filled.chunk.place((first - filled.base) as usize);
                out.push(Piece { place, length: (last - first) as usize, ends_frame: true });
            }
        }
        assert_eq!(collected, to, "the log's memory ends before what is published");
        boundary
    }

    /// Frees the memory of everything below `to`, which has been written to the file.
    pub(crate) fn release(&self, to: u64) {
        // Dropped after the mutex is released, because freeing may be a system call.
        let mut freed = Vec::new();
        let mut has_freed_large = false;
        let mut reserve = self.reserve.0.lock();
        assert!(to <= reserve.end, "{to} was written, but only {} reserved", reserve.end);
        while let Some(first) = reserve.chunks.front() {
            let is_last = reserve.chunks.len() == 1;
            if first.end > to || (is_last && reserve.end > to) {
                break;
            }
            let Some(filled) = reserve.chunks.pop_front() else { break };
            if filled.large_record_bytes > 0 {
                has_freed_large = true;
                freed.push(filled.chunk);
            } else if filled.chunk.capacity() != self.chunk_bytes {
                freed.push(filled.chunk);
            } else if is_last {
                // Everything is written: reuse the same memory while the caches still hold it.
                let chunk = filled.chunk;
                reserve.chunks.push_back(Filled {
                    base: to,
                    end: to,
                    chunk,
                    large_record_bytes: 0,
                });
                break;
            } else if reserve.spare.len() < SPARE_CHUNKS_MAX {
                reserve.spare.push(filled.chunk);
            } else {
                freed.push(filled.chunk);
            }
        }
        if has_freed_large {
            let left = reserve.chunks.iter().map(|filled| filled.large_record_bytes).max();
            self.largest_bytes.store(left.unwrap_or(0), Ordering::Relaxed);
        }
        drop(reserve);
    }
}

impl Reserve {
    /// Begins a new segment if the frame would overfill this one.
    #[inline]
    fn turn_segment(&mut self, frame_bytes: u64, segment_payload_bytes: u64) {
        let begun = self.end - self.segment_base;
        if begun + frame_bytes > segment_payload_bytes && begun > 0 {
            self.segment_base = self.end;
            self.boundaries.push_back(self.end);
        }
    }

    #[inline]
    fn place(&mut self, bytes: usize, own: &mut Option<Chunk>, chunk_bytes: usize) -> Place {
        let start = self.end;
        self.end += bytes as u64;
        // A large record's chunk has no free space, and appending to it would keep its memory
        // alive.
        if let Some(last) = self.chunks.back_mut().filter(|last| last.large_record_bytes == 0) {
            let used = (last.end - last.base) as usize;
            if last.chunk.capacity() - used >= bytes {
                last.end = self.end;
                return last.chunk.place(used);
            }
        }
        self.assert_goes_on_at(start);
        let chunk = match own.take() {
            Some(chunk) => chunk,
            None => self.spare.pop().unwrap_or_else(|| Chunk::new(chunk_bytes)),
        };
        let place = chunk.place(0);
        self.chunks.push_back(Filled { base: start, end: self.end, chunk, large_record_bytes: 0 });
        place
    }

    /// Checked once per chunk: it begins where the last one ends, and the frames in it can encode
    /// their positions.
    fn assert_goes_on_at(&self, base: u64) {
        const BASE_MAX: u64 = LSN_MAX - PAYLOAD_BYTES_MAX;
        let last = self.chunks.back().map_or(base, |last| last.end);
        assert_eq!(last, base, "the log's memory has a gap");
        assert!(base <= BASE_MAX, "the log comes to the last position that its format has");
    }

    /// Adds a chunk that already contains its bytes, of a large record.
    fn take_over(&mut self, chunk: Chunk, bytes: u64, large_record_bytes: u64) {
        if bytes == 0 {
            return;
        }
        let base = self.end;
        self.assert_goes_on_at(base);
        self.end += bytes;
        self.chunks.push_back(Filled { base, end: self.end, chunk, large_record_bytes });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn bytes(buffer: &LogBuffer, from: u64, to: u64) -> Vec<u8> {
        let mut pieces = Vec::new();
        buffer.pieces(from, to, &mut pieces);
        let mut out = Vec::new();
        for piece in &pieces {
            // SAFETY: the tests ask for published, unreleased bytes only.
            unsafe { piece.place.read(piece.length, |bytes| out.extend_from_slice(bytes)) };
        }
        out
    }

    #[test]
    fn a_prefix_is_published_only_when_every_lower_batch_is() {
        let buffer = LogBuffer::new(Lsn(0), 0, 1 << 20, 64);
        let (mut a, mut b) = (buffer.take_mark().unwrap(), buffer.take_mark().unwrap());
        let first = buffer.append(&mut a, FrameKind::Changes, 1, b"one");
        let second = buffer.append(&mut b, FrameKind::Changes, 2, b"two");
        buffer.publish(&mut b);
        assert_eq!(buffer.published(), 0);
        buffer.publish(&mut a);
        assert_eq!(buffer.published(), second.0);
        let whole = bytes(&buffer, 0, second.0);
        let one = crate::frame::encode_frame(FrameKind::Changes, 0, 1, Lsn(0), b"one");
        let two = crate::frame::encode_frame(FrameKind::Changes, 0, 2, first, b"two");
        assert_eq!(whole, [one, two].concat());
    }

    #[test]
    fn records_larger_than_a_chunk_and_memory_reuse() {
        let buffer = LogBuffer::new(Lsn(0), 0, 1 << 30, 256);
        let mut slot = buffer.take_mark().unwrap();
        let mut expected = Vec::new();
        let mut written = 0;
        for round in 0..200usize {
            let payload = vec![round as u8; (round * 37) % 700];
            let start = Lsn(buffer.reserved());
            expected.extend(crate::frame::encode_frame(FrameKind::Changes, 0, 0, start, &payload));
            buffer.append(&mut slot, FrameKind::Changes, 0, &payload);
            if round % 3 == 0 {
                buffer.publish(&mut slot);
                let to = buffer.published();
                assert_eq!(bytes(&buffer, written, to), expected[written as usize..to as usize]);
                written = to;
                buffer.release(to);
                let reserve = buffer.reserve.0.lock();
                assert!(reserve.chunks.len() <= 1 && reserve.spare.len() <= SPARE_CHUNKS_MAX);
            }
        }
    }

    #[test]
    fn a_large_record_brings_its_memory() {
        let buffer = LogBuffer::new(Lsn(0), 3, 1 << 20, 256);
        let mut slot = buffer.take_mark().unwrap();
        let payloads: Vec<Vec<u8>> =
            [10, 4000, 0, 5000, 6000, 20].map(|length| vec![length as u8; length]).into();
        let mut expected = Vec::new();
        for payload in &payloads {
            let start = Lsn(buffer.reserved());
            expected.extend(crate::frame::encode_frame(FrameKind::Changes, 3, 7, start, payload));
            if payload.len() == 10 {
                buffer.append(&mut slot, FrameKind::Changes, 7, payload);
            } else {
                let record = match payload.len() {
                    4000 => LargeRecord::new(payload.clone()),
                    length => {
                        let (own, shared) = payload.split_at(length.min(77));
                        let shared = RecordPart::Shared(Arc::new(shared.to_vec()));
                        LargeRecord::of(vec![RecordPart::Own(own.into()), shared])
                    }
                };
                buffer.append_large(&mut slot, FrameKind::Changes, 7, record);
            }
        }
        assert_eq!(buffer.published(), 0);
        buffer.publish(&mut slot);
        let end = buffer.published();
        assert_eq!(bytes(&buffer, 0, end), expected);
        assert_eq!(buffer.largest_bytes(), 6000);
        // All but the record of 20 bytes.
        buffer.release(end - 1);
        assert_eq!(buffer.largest_bytes(), 20);
        buffer.release(end);
        assert_eq!(buffer.largest_bytes(), 0);
        buffer.append(&mut slot, FrameKind::Changes, 7, b"after");
        assert_eq!(buffer.reserve.0.lock().chunks.len(), 1);
    }

    #[test]
    fn a_record_never_spans_segments() {
        let buffer = LogBuffer::new(Lsn(0), 0, SEGMENT_HEADER_BYTES + 100, 1024);
        let mut slot = buffer.take_mark().unwrap();
        buffer.append(&mut slot, FrameKind::Changes, 0, &[0; 26]);
        buffer.append(&mut slot, FrameKind::Changes, 0, &[0; 26]);
        assert_eq!(buffer.pieces(0, 0, &mut Vec::new()), None);
        buffer.append(&mut slot, FrameKind::Changes, 0, &[0; 500]);
        buffer.append(&mut slot, FrameKind::Changes, 0, &[0; 1]);
        assert_eq!(buffer.pieces(0, 0, &mut Vec::new()), Some(100));
        buffer.take_boundary(100);
        assert_eq!(buffer.pieces(0, 0, &mut Vec::new()), Some(624));
    }

    #[test]
    #[should_panic = "27 was written, but only 26 reserved"]
    fn what_was_not_reserved_is_not_released() {
        let buffer = LogBuffer::new(Lsn(0), 0, 1 << 20, 64);
        let mut slot = buffer.take_mark().unwrap();
        buffer.append(&mut slot, FrameKind::Changes, 0, b"ab");
        buffer.publish(&mut slot);
        buffer.release(27);
    }

    #[test]
    #[should_panic = "the log's memory has a gap"]
    fn what_was_released_is_not_written_again() {
        let buffer = LogBuffer::new(Lsn(0), 0, 1 << 20, 24);
        let mut slot = buffer.take_mark().unwrap();
        for _ in 0..3 {
            buffer.append(&mut slot, FrameKind::Changes, 0, b"");
        }
        buffer.publish(&mut slot);
        buffer.release(24);
        buffer.pieces(0, 72, &mut Vec::new());
    }

    #[test]
    #[should_panic = "a segment begins where one was reserved"]
    fn segments_begin_where_they_were_reserved() {
        LogBuffer::new(Lsn(0), 0, 1 << 20, 64).take_boundary(100);
    }

    #[test]
    fn marks_run_out_and_come_back() {
        let buffer = LogBuffer::new(Lsn(0), 0, 1 << 20, 64);
        let mut taken: Vec<_> = (0..APPENDERS_MAX).map(|_| buffer.take_mark().unwrap()).collect();
        assert!(buffer.take_mark().is_none());
        buffer.give_mark(&mut taken[3]);
        assert_eq!(buffer.take_mark().map(|slot| slot.index), Some(3));
    }
}
