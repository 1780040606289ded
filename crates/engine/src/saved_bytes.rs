//! The bytes of a saved block: changes that are encoded, and behind them perhaps the body of one that
//! is too long to be in memory a second time.
//!
//! ```text
//! [changes .................................... head of a Put] [body, in pieces]
//! ```
//!
//! **Invariant:** beside the value itself, a body that is encoded in pieces takes one piece.

use crate::types::collection::Snapshot;
use ladon_record::{Change, DbId, UnixMillis, ValueKind, varint};
use std::fmt;

/// A body of up to so many bytes is encoded at once.
const WHOLE_BYTES_MAX: usize = 1 << 20;

/// A block's bytes.
#[derive(Default)]
pub struct SavedBytes {
    pub(crate) changes: Vec<u8>,
    /// What follows them, and how many bytes that is.
    body: Option<(u64, Snapshot)>,
}

impl SavedBytes {
    /// How many there are.
    pub fn len(&self) -> u64 {
        self.in_memory() as u64 + self.body.as_ref().map_or(0, |(bytes, _)| *bytes)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// How many of them take memory of their own.
    pub fn in_memory(&self) -> usize {
        self.changes.len()
    }

    /// Those that take memory of their own, behind which the others come.
    pub fn changes(&self) -> &[u8] {
        &self.changes
    }

    /// Removes them all, and keeps the memory of so many.
    pub fn clear(&mut self, kept_bytes: usize) {
        self.body = None;
        self.changes.clear();
        self.changes.shrink_to(kept_bytes);
    }

    /// Gives them piece by piece, the same each time.
    pub fn for_each_piece(&self, take: &mut dyn FnMut(&[u8])) {
        take(&self.changes);
        if let Some((_, body)) = &self.body {
            body(take);
        }
    }

    /// All of them together.
    pub fn whole(&self) -> Vec<u8> {
        let mut whole = Vec::new();
        self.for_each_piece(&mut |piece| whole.extend_from_slice(piece));
        whole
    }

    /// Adds a `Put`, or with marks a `PutItem`, of this value, behind which nothing may be added.
    pub(crate) fn put_snapshot(
        &mut self,
        key: (DbId, &[u8]),
        expire_at: UnixMillis,
        (kind, marks): (ValueKind, u64),
        body: Snapshot,
    ) {
        let (mut bytes, mut whole) = (0, Vec::new());
        body(&mut |piece| {
            bytes += piece.len();
            if bytes <= WHOLE_BYTES_MAX {
                whole.extend_from_slice(piece);
            }
        });
        match marks {
            0 => Change::encode_put_head(&mut self.changes, key, expire_at, kind, bytes),
            marks => {
                Change::encode_put_item_head(&mut self.changes, key, expire_at, marks, bytes);
            }
        }
        if bytes <= WHOLE_BYTES_MAX {
            self.changes.extend_from_slice(&whole);
        } else {
            self.body = Some((bytes as u64, body));
        }
    }
}

impl fmt::Debug for SavedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body.as_ref().map(|(bytes, _)| bytes);
        f.debug_struct("SavedBytes").field("changes", &self.changes).field("body", &body).finish()
    }
}

/// Takes an encoding step by step.
pub(crate) trait Steps {
    /// Appends what `encode` appends.
    fn step(&mut self, encode: impl FnOnce(&mut Vec<u8>));
    /// Appends a length and that many bytes.
    fn bytes(&mut self, bytes: &[u8]);
}

/// All of it in one place.
impl Steps for Vec<u8> {
    #[inline]
    fn step(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(self);
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        varint::put_bytes(self, bytes);
    }
}

/// In pieces, each of which leaves once it is long enough.
pub(crate) struct PieceWriter<'t> {
    buffer: Vec<u8>,
    take: &'t mut dyn FnMut(&[u8]),
}

impl<'t> PieceWriter<'t> {
    /// A piece has at least so many bytes, the last one excepted.
    const PIECE_BYTES: usize = 64 << 10;

    pub(crate) fn new(take: &'t mut dyn FnMut(&[u8])) -> PieceWriter<'t> {
        PieceWriter { buffer: Vec::new(), take }
    }

    /// The last piece leaves.
    pub(crate) fn finish(mut self) {
        self.leave();
    }

    fn leave(&mut self) {
        (self.take)(&self.buffer);
        self.buffer.clear();
    }
}

impl Steps for PieceWriter<'_> {
    fn step(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.buffer);
        if self.buffer.len() >= PieceWriter::PIECE_BYTES {
            self.leave();
        }
    }

    /// A long run is not copied.
    fn bytes(&mut self, bytes: &[u8]) {
        if bytes.len() < PieceWriter::PIECE_BYTES {
            return self.step(|out| varint::put_bytes(out, bytes));
        }
        varint::put(&mut self.buffer, bytes.len() as u64);
        self.leave();
        (self.take)(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Object;
    use crate::types::Limits;
    use crate::types::collection::Saving;
    use crate::types::list::ListValue;
    use crate::types::stream::{Stream, StreamId};

    /// A value is saved as if it were encoded at once; returns how much of it was in memory.
    fn saved(object: &Object) -> usize {
        let Saving::Snapshot(snapshot) = object.saving(100) else {
            panic!("it is saved with its segment")
        };
        let (kind, mut body) = (object.kind(), Vec::new());
        object.encode(&mut body);
        let mut expected = Vec::new();
        Change::Put { db: 3, key: b"key", expire_at: 9, kind, body: &body }.encode(&mut expected);
        let mut saved = SavedBytes::default();
        saved.put_snapshot((3, b"key"), 9, (kind, 0), snapshot);
        assert_eq!(saved.len(), expected.len() as u64);
        assert!(saved.whole() == expected, "other bytes");
        saved.in_memory()
    }

    #[test]
    fn a_long_value_is_saved_in_pieces() {
        let limits = Limits::default();
        let text: Vec<u8> = (0..3u32 << 20).map(|n| (n % 251) as u8).collect();
        assert!(saved(&Object::String(text.clone().into())) < 100);
        let (mut list, mut stream) = (ListValue::new(), Stream::new());
        for n in 1..30_000 {
            list.append(limits.of_lists(), &text[n..n + 100]);
            let id = StreamId::new(n as u64, 1);
            stream.add(limits.of_streams(), id, &[&b"field"[..], &text[n..n + 100]]);
        }
        list.append(limits.of_lists(), &text);
        assert!(saved(&Object::List(list)) < 100);
        assert!(saved(&Object::Stream(stream)) < 100);
    }

    #[test]
    fn one_that_is_not_long_is_saved_at_once() {
        let mut list = ListValue::new();
        (0..1000).for_each(|_| list.append(Limits::default().of_lists(), &[b'x'; 100]));
        assert!(saved(&Object::List(list)) > 100_000);
    }

    #[test]
    fn no_piece_is_long_but_for_a_long_run() {
        let mut lengths = Vec::new();
        let mut take = |piece: &[u8]| lengths.push(piece.len());
        let mut pieces = PieceWriter::new(&mut take);
        (0..10_000).for_each(|_| pieces.bytes(&[1; 99]));
        pieces.bytes(&[2; 300_000]);
        pieces.finish();
        assert_eq!(lengths.iter().sum::<usize>(), 10_000 * 100 + 300_003);
        let at = lengths.iter().position(|&length| length == 300_000).expect("not copied");
        lengths.remove(at);
        assert!(lengths.iter().all(|&length| length < PieceWriter::PIECE_BYTES + 100));
    }
}
