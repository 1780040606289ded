//! Saving for a fuzzy checkpoint: one segment at a time, each as of its own LSN.
//!
//! The saver holds one partition's lock while it encodes one segment (at most some five hundred
//! keys), so no writer pays for a save and none waits long. A large value would take longer than
//! that by itself. If the order of its elements has no meaning, its segment holds the key and its
//! expiry only, and the elements follow in pieces, each a range of their hashes as of its own LSN.
//! Replay skips what a block already contains (`apply.rs`).
//!
//! ```text
//! segment  (key hashes a..=b, LSN 70)   Put small.. Put large{}
//! piece    (member hashes 0..=m, LSN 75)   Update large add ...
//! piece    (member hashes m+1..=n, LSN 90) Update large add ...
//! ```
//!
//! If the key is removed between two pieces, the rest is not saved: replay reaches the removal,
//! which also removes the loaded pieces. If another value of the type replaces it, the pieces of
//! the new value do no harm, because replay reaches its creation.
//!
//! For a value whose order counts, and for a long string, a snapshot is taken with the segment and
//! encoded without the lock, as a separate block that covers the same hashes as of the same LSN.
//!
//! The libraries of functions come after the keys, in blocks of their own, which cover no keys. The
//! spaces come last (`space/saving.rs`).

use crate::keyspace::{Keyspace, Locks};
use crate::libraries::Library;
use crate::partition::{PARTITION_BITS, PARTITIONS};
use crate::saved_bytes::SavedBytes;
use crate::space::SpaceCursor;
use crate::table::entry::ValueRef;
use crate::types;
use crate::types::collection::{Saving, Snapshot};
use ladon_record::{Change, DbId, KeyHash, Lsn, ValueKind};
use std::sync::Arc;

/// Minimum number of elements of a piece, except the last: about a tenth of a millisecond's work.
const PIECE_ELEMENTS: usize = 2048;

/// Libraries share a block up to this size.
const LIBRARIES_BYTES: usize = 64 << 10;

/// The progress of a saver.
pub struct SaveCursor {
    db: DbId,
    partition: usize,
    local: u64,
    piece: usize,
    /// Partitions that hold nothing are saved, too.
    saves_empty: bool,
    /// Large values of the last segment that are still to be saved.
    large: Vec<LargeValue>,
    /// After the last partition: the libraries that are still to be saved, as of one LSN.
    libraries: Option<(Lsn, std::vec::IntoIter<Arc<Library>>)>,
    /// After the libraries.
    spaces: Option<SpaceCursor>,
}

struct LargeValue {
    db: DbId,
    key: Vec<u8>,
    hash: KeyHash,
    kind: ValueKind,
    /// See [`Change::PutItem`].
    marks: u64,
    expire_at: u64,
    rest: Rest,
}

/// What remains to be saved of a large value.
enum Rest {
    /// The elements from this hash on.
    Ranges(u64),
    /// The whole value, in a block like that of its key's segment, which is filled in when the
    /// segment is done.
    Snapshot(Option<SavedBlock>, Snapshot),
}

/// What was saved: one segment, or a part of one large value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedBlock {
    /// The database.
    pub db: DbId,
    /// The first hash that the block covers: of keys, or in a piece, of elements.
    pub hash_first: u64,
    /// The last hash that the block covers.
    pub hash_last: u64,
    /// The block contains the effect of every change up to here on these hashes, and of no later
    /// one.
    pub lsn: Lsn,
    /// Number of keys; a piece has none of its own.
    pub keys: u32,
}

impl Keyspace {
    /// Saves the segment or the piece at `cursor`: adds changes to `out`, which is empty (a `Put` for each key
    /// of a segment, one `Update` for a piece, a `Library` for each library), advances the cursor,
    /// and returns what was saved; `None` if nothing is left.
    ///
    /// `reserved` returns the present end of the log; it is called under the partition's lock.
    /// Partitions that hold nothing and have not changed since `begin` are skipped, unless the cursor
    /// saves them.
    pub fn save_next(
        &self,
        cursor: &mut SaveCursor,
        begin: Lsn,
        reserved: impl Fn() -> Lsn,
        out: &mut SavedBytes,
    ) -> Option<SavedBlock> {
        while let Some(large) = cursor.large.pop() {
            let (block, rest) = self.save_large(large, cursor.piece, &reserved, out);
            cursor.large.extend(rest);
            if block.is_some() {
                return block;
            }
        }
        loop {
            if cursor.db >= self.databases() {
                let out = &mut out.changes;
                let block = self.save_libraries(cursor, &reserved, out);
                return block.or_else(|| self.save_spaces(&mut cursor.spaces, &reserved, out));
            }
            let (db, partition) = (cursor.db, cursor.partition);
            let mut held = self.lock(Locks::Partition(partition));
            let held = held.at(partition);
            let table = &held.dbs[usize::from(db)].table;
            let is_unchanged = held.dependency_of_all() <= begin && !cursor.saves_empty;
            if table.len() == 0 && is_unchanged {
                cursor.next_partition();
                continue;
            }
            let (hasher, from) = (self.hasher(), cursor.local);
            let (large, piece) = (&mut cursor.large, cursor.piece);
            let mut keys = 0;
            let mut body = Vec::new();
            let last = table.segment_from(hasher, from, |entry| {
                let (key, expire_at, value) = (entry.key(), entry.expire_at(), entry.value());
                let (kind, marks) = (types::kind_of(value), entry.item().marks());
                let rest = begin_to_save(value, piece, &mut body);
                let is_here = !matches!(rest, Some(Rest::Snapshot(..)));
                if let Some(rest) = rest {
                    let (key, hash) = (key.to_vec(), hasher.hash(key));
                    large.push(LargeValue { db, key, hash, kind, marks, expire_at, rest });
                }
                if is_here {
                    keys += 1;
                    let body = &body;
                    let put = match marks {
                        0 => Change::Put { db, key, expire_at, kind, body },
                        marks => Change::PutItem { db, key, expire_at, marks, body },
                    };
                    put.encode(&mut out.changes);
                }
            });
            let lsn = reserved();
            // Under the partition's lock: what the block holds is in the log below this.
            let newest = held.dependency_of_all();
            assert!(newest <= lsn, "a block as of {lsn}, which holds a change at {newest}");
            let base = (partition as u64) << (64 - PARTITION_BITS);
            let block = SavedBlock {
                db,
                hash_first: base | from >> PARTITION_BITS,
                hash_last: base | last >> PARTITION_BITS,
                lsn,
                keys,
            };
            for value in &mut cursor.large {
                if let Rest::Snapshot(of, _) = &mut value.rest {
                    *of = Some(block);
                }
            }
            match last.checked_add(1) {
                // The bits below the partition's are no part of any hash.
                Some(next) if last >> PARTITION_BITS != u64::MAX >> PARTITION_BITS => {
                    cursor.local = next;
                }
                _ => cursor.next_partition(),
            }
            return Some(block);
        }
    }

    /// Saves the next libraries: they do not change while others are saved, and code is shared, so
    /// that the lock is held for their list only.
    fn save_libraries(
        &self,
        cursor: &mut SaveCursor,
        reserved: impl Fn() -> Lsn,
        out: &mut Vec<u8>,
    ) -> Option<SavedBlock> {
        let (lsn, rest) = cursor.libraries.get_or_insert_with(|| {
            let _held = self.lock(Locks::Partition(0));
            (reserved(), self.libraries.all().into_iter())
        });
        let mut body = Vec::new();
        while out.len() < LIBRARIES_BYTES {
            let Some(library) = rest.next() else { break };
            body.clear();
            library.body.encode(&mut body);
            Change::Library { name: &library.name, body: &body }.encode(out);
        }
        let block = SavedBlock { db: 0, hash_first: 0, hash_last: 0, lsn: *lsn, keys: 0 };
        (!out.is_empty()).then_some(block)
    }

    /// Saves more of a large value, if it still exists. Returns what then remains.
    fn save_large(
        &self,
        large: LargeValue,
        piece: usize,
        reserved: impl Fn() -> Lsn,
        out: &mut SavedBytes,
    ) -> (Option<SavedBlock>, Option<LargeValue>) {
        match large.rest {
            Rest::Ranges(from) => {
                let block = self.save_piece(&large, from, piece, reserved, &mut out.changes);
                let next = block.and_then(|block| block.hash_last.checked_add(1));
                let rest = next.map(|next| LargeValue { rest: Rest::Ranges(next), ..large });
                (block, rest)
            }
            Rest::Snapshot(block, body) => {
                let LargeValue { db, ref key, kind, marks, expire_at, .. } = large;
                out.put_snapshot((db, key), expire_at, (kind, marks), body);
                (block.map(|block| SavedBlock { keys: 1, ..block }), None)
            }
        }
    }

    /// Saves the elements of a large value from a hash on; `None` if the value no longer exists.
    fn save_piece(
        &self,
        large: &LargeValue,
        hash_first: u64,
        piece: usize,
        reserved: impl Fn() -> Lsn,
        out: &mut Vec<u8>,
    ) -> Option<SavedBlock> {
        let (db, kind) = (large.db, large.kind);
        let mut held = self.lock(Locks::One(large.hash));
        let keys = &held.partition(large.hash).dbs[usize::from(db)].table;
        let entry = keys.get(keys.local(large.hash.0), &large.key)?;
        let ValueRef::Object(object) = entry.value() else { return None };
        if object.kind() != kind {
            return None;
        }
        let mut op = Vec::new();
        let (mut count, mut from) = (0, hash_first);
        let hash_last = loop {
            let (last, more) = object.encode_range(from, self.env(), &mut op)?;
            count += more;
            match last.checked_add(1) {
                Some(next) if count < piece => from = next,
                _ => break last,
            }
        };
        Change::Update { db, key: &large.key, kind, op: &op }.encode(out);
        Some(SavedBlock { db, hash_first, hash_last, lsn: reserved(), keys: 0 })
    }
}

/// Encodes a value that is saved with its segment; what remains to be saved of another.
fn begin_to_save(value: ValueRef<'_>, piece: usize, body: &mut Vec<u8>) -> Option<Rest> {
    body.clear();
    let saving = match value {
        ValueRef::Object(object) => object.saving(piece),
        _ => Saving::Whole,
    };
    match saving {
        Saving::Whole => {
            types::encode_body(value, body);
            None
        }
        Saving::InRanges => Some(Rest::Ranges(0)),
        Saving::Snapshot(snapshot) => Some(Rest::Snapshot(None, snapshot)),
    }
}

impl Default for SaveCursor {
    fn default() -> Self {
        SaveCursor::in_pieces_of(PIECE_ELEMENTS)
    }
}

impl SaveCursor {
    /// A cursor at the beginning. Values of more than twice `piece` elements are saved in pieces of
    /// at least `piece`.
    pub fn in_pieces_of(piece: usize) -> SaveCursor {
        SaveCursor {
            db: 0,
            partition: 0,
            local: 0,
            piece,
            saves_empty: false,
            large: Vec::new(),
            libraries: None,
            spaces: None,
        }
    }

    /// Saves partitions that hold nothing, too: for a checkpoint that begins in front of records which
    /// recovery has replayed. It notes no changes, and what removed the last key of a partition would be
    /// replayed over nothing.
    pub fn with_empty_partitions(self) -> SaveCursor {
        SaveCursor { saves_empty: true, ..self }
    }

    /// After the last block: whether something could not be saved, because the spaces' definitions
    /// changed all the time. The checkpoint is not complete then.
    pub fn has_given_up(&self) -> bool {
        self.spaces.as_ref().is_some_and(SpaceCursor::has_given_up)
    }

    fn next_partition(&mut self) {
        self.local = 0;
        self.partition += 1;
        if self.partition == PARTITIONS {
            self.partition = 0;
            self.db += 1;
        }
    }

    /// Progress from 0 to 1, for progress lines.
    pub fn progress(&self, databases: u16) -> f64 {
        let total = PARTITIONS * usize::from(databases);
        (usize::from(self.db) * PARTITIONS + self.partition) as f64 / total as f64
    }
}
