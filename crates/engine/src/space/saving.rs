//! Saving spaces for a checkpoint: some hundred tuples at a time, each block as of its own LSN.
//!
//! Every block belongs to a *generation*: the LSN at which the saver took the catalog. A definition
//! that changes meanwhile begins a new generation, in which every space is saved anew; a loader
//! uses the newest generation alone. So the tuples of a generation fit its definitions, and replay
//! starts after the generation's LSN: what was logged before is in its blocks. What was logged
//! after may be there too, and is repeated: a change names the whole tuple.
//!
//! ```text
//! block: db 0, hash_first = hash_last = the generation, SpacePut .. of one space
//! ```

use super::catalog::Catalog;
use crate::keyspace::Keyspace;
use crate::save::SavedBlock;
use ladon_record::{Change, Lsn, SpaceId};
use std::sync::Arc;

/// Tuples of a block, unless they are long: about a tenth of a millisecond's work.
const BLOCK_TUPLES: usize = 512;

/// A block ends once it has this many bytes.
const BLOCK_BYTES: usize = 64 << 10;

/// After this many generations a saver gives up, because definitions change all the time. The
/// checkpoint has failed then, and is tried again later.
const GENERATIONS_MAX: u32 = 64;

/// The progress of saving the spaces.
pub(crate) struct SpaceCursor {
    generation: Lsn,
    generations: u32,
    catalog: Arc<Catalog>,
    /// Spaces that are still to be saved, last first.
    rest: Vec<SpaceId>,
    /// The primary key after which the present space goes on.
    after: Option<Vec<u8>>,
}

impl SpaceCursor {
    fn new(keyspace: &Keyspace, reserved: &impl Fn() -> Lsn, generations: u32) -> SpaceCursor {
        // While the catalog does not change, its LSN is that of all definitions.
        let changing = keyspace.spaces.lock_catalog();
        let catalog = keyspace.spaces.catalog();
        let generation = reserved();
        drop(changing);
        let mut rest: Vec<SpaceId> = catalog.cells().map(|cell| cell.id()).collect();
        rest.reverse();
        SpaceCursor { generation, generations, catalog: Arc::clone(&catalog), rest, after: None }
    }

    /// Whether something was left that could not be saved.
    pub(crate) fn has_given_up(&self) -> bool {
        !self.rest.is_empty()
    }
}

impl Keyspace {
    /// Saves the next tuples of spaces; `None` if nothing is left, or if the saver has given up.
    pub(crate) fn save_spaces(
        &self,
        cursor: &mut Option<SpaceCursor>,
        reserved: &impl Fn() -> Lsn,
        out: &mut Vec<u8>,
    ) -> Option<SavedBlock> {
        if !self.spaces.are_in_use() {
            return None;
        }
        let cursor = cursor.get_or_insert_with(|| SpaceCursor::new(self, reserved, 0));
        loop {
            let &id = cursor.rest.last()?;
            let cell = cursor.catalog.get(id).expect("it is of this catalog");
            let held = cell.lock();
            if self.spaces.catalog().version != cursor.catalog.version {
                drop(held);
                if cursor.generations == GENERATIONS_MAX {
                    return None;
                }
                let before = cursor.generation;
                *cursor = SpaceCursor::new(self, reserved, cursor.generations + 1);
                // A loader could not tell the blocks of two generations of one LSN apart.
                assert!(cursor.generation > before, "definitions changed, and nothing was logged");
                continue;
            }
            if held.space.def().is_temporary {
                drop(held);
                cursor.rest.pop();
                continue;
            }
            let mut keys = 0;
            let next = held.space.save_range(cursor.after.as_deref(), BLOCK_TUPLES, &mut |tuple| {
                Change::SpacePut { space: id, tuple: tuple.bytes() }.encode(out);
                keys += 1;
                out.len() < BLOCK_BYTES
            });
            // Under the space's lock: what the block holds is in the log below this.
            let lsn = reserved();
            drop(held);
            if next.is_none() {
                cursor.rest.pop();
            }
            cursor.after = next;
            if keys == 0 {
                continue;
            }
            let generation = cursor.generation.0;
            let (hash_first, hash_last) = (generation, generation);
            return Some(SavedBlock { db: 0, hash_first, hash_last, lsn, keys });
        }
    }
}
