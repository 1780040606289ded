//! The operations of every collection type, so that transactions, log, checkpoints and tools depend
//! on no type in particular.

use super::dump_value::DumpValue;
use super::limits::Limits;
use crate::table::bucket::BucketHint;
use crossbeam_epoch::Guard;
use ladon_record::{KeyHash, KeyHasher, ValueKind};
use thiserror::Error;

/// What a value needs to know beyond itself.
#[derive(Clone, Copy, Debug)]
pub struct Env<'a> {
    /// Hashes members.
    pub hasher: &'a KeyHasher,
    /// Up to where collections stay packed.
    pub limits: &'a Limits,
}

/// The key holds a value of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the key holds a value of another type")]
pub struct WrongType;

/// A value type other than string. A new one implements this in its own file and gets a row in the
/// table of types (`object.rs`).
pub trait Collection: Sized {
    /// Its number in files.
    const KIND: ValueKind;
    /// Whether the order of its elements is part of its value.
    const ORDERED: bool;

    /// Number of elements.
    fn len(&self) -> usize;
    /// Whether no key may hold it: it has no elements. A stream may be without.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes of memory beyond the value itself, exactly and without a walk.
    fn bytes(&self) -> usize;
    /// What `OBJECT ENCODING` answers.
    fn encoding(&self) -> &'static str;
    /// Cost of dropping it, in allocations.
    fn drop_effort(&self) -> usize;
    /// A copy in the same encoding.
    fn duplicate(&self, env: Env<'_>) -> Self;
    /// Calls `visit` with the parts of each element: a member, or a field and its value.
    fn for_each(&self, visit: &mut dyn FnMut(&[&[u8]]));

    /// The value as it is now, for reading on any thread, unaffected by later changes; never to be
    /// changed. Fast, or `None` for small values and for forms that would have to be copied.
    fn freeze(&mut self) -> Option<Self> {
        None
    }

    /// Takes changes back: `before` was frozen before them, and `ops` are what they wrote for the
    /// log, in any order. By default all of it is copied; a type whose ops name the changed
    /// elements sets only these.
    fn revert(&mut self, before: &Self, ops: &mut dyn Iterator<Item = &[u8]>, env: Env<'_>) {
        let _ = ops;
        *self = before.duplicate(env);
    }

    /// Prefetches the bucket of the element with this hash, if it is in a table.
    fn prefetch_element(&self, hash: KeyHash, guard: &Guard) -> BucketHint {
        let _ = (hash, guard);
        BucketHint::NONE
    }

    /// When the first element expires, Unix milliseconds; 0 where none does.
    fn next_expiry(&self) -> u64 {
        0
    }
    /// Whether every element is due at `now`, as far as that is known without a walk over many.
    fn is_over(&self, now: u64) -> bool {
        let _ = now;
        false
    }
    /// Whether at least `count` elements are due at `now`; takes no longer than to count them.
    fn has_due(&self, now: u64, count: usize) -> bool {
        let _ = (now, count);
        false
    }
    /// Removes up to `max` elements that are due at `now` (Unix milliseconds) and writes that into
    /// `op`; returns how many.
    fn expire_due(&mut self, now: u64, max: usize, env: Env<'_>, op: &mut Vec<u8>) -> usize {
        let _ = (now, max, env, op);
        0
    }

    /// Number of elements that `hide_due` has hidden: no reader sees them, while changes, the log's
    /// forms and the account of memory have them as all others. `next_expiry` is then due at any
    /// time.
    fn hidden(&self) -> usize {
        0
    }
    /// Whether `hide_due` has at least `count` elements to hide, or to show again; takes no longer
    /// than to count them.
    fn has_to_hide(&self, now: u64, count: usize) -> bool {
        let _ = (now, count);
        false
    }
    /// Hides up to `max` elements that are due at `now`; returns how many. Elements that are due
    /// and that no reader sees anyway (what a stream remembers of its producers) need not be.
    fn hide_due(&mut self, now: u64, max: usize, env: Env<'_>) -> usize {
        let _ = (now, max, env);
        0
    }
    /// Shows up to `max` hidden elements again; returns how many. Before a client's change, and
    /// before anything is removed, nothing may be hidden.
    fn unhide(&mut self, max: usize, env: Env<'_>) -> usize {
        let _ = (max, env);
        0
    }

    /// Moves its memory if that is one allocation and saves some; returns how many bytes were
    /// moved. Its elements and its size do not change.
    fn compact(&mut self) -> usize {
        0
    }

    /// Appends the body of a `Put`.
    fn encode(&self, out: &mut Vec<u8>);
    /// Reads what `encode` wrote; `None` if it is malformed or has no element.
    fn decode(body: &[u8], env: Env<'_>) -> Option<Self>;
    /// Applies an `Update`'s op; `None` if it is malformed.
    ///
    /// For a type that is saved in ranges, an op may be repeated after later ones have had their
    /// effect. So an op sets an element regardless of its present state, and changes to a missing
    /// element are ignored.
    fn apply_op(&mut self, op: &[u8], env: Env<'_>) -> Option<()>;

    /// How a value of this size is saved by a checkpoint that takes `piece` elements at a time.
    fn saving(&self, piece: usize) -> Saving {
        let _ = piece;
        Saving::Whole
    }
    /// Appends to `op` what an `Update` needs to restore the elements of a range of hashes that
    /// begins at `from`. Returns the range's last hash, and the number of its elements.
    ///
    /// # Panics
    /// For a type that is not saved in ranges.
    fn encode_range(&self, from: u64, env: Env<'_>, op: &mut Vec<u8>) -> (u64, usize) {
        let _ = (from, env, op);
        unreachable!("a {} is not saved in ranges", Self::KIND.name())
    }
    /// Whether `encode_range` can continue with this value; it cannot if the value was replaced.
    fn is_in_ranges(&self) -> bool {
        false
    }
    /// An empty value into which ranges are loaded; `None` for a type that is not saved in ranges.
    fn for_ranges() -> Option<Self> {
        None
    }

    /// The content of a body, for tools; `None` if it is malformed.
    fn show_body(body: &[u8]) -> Option<DumpValue<'_>>;
    /// The content of an op, for tools: a record whose labels are verbs; `None` if it is malformed.
    fn show_op(op: &[u8]) -> Option<DumpValue<'_>>;
}

/// How a value is saved.
pub enum Saving {
    /// With the others of its segment, while the lock is held.
    Whole,
    /// In ranges of its elements' hashes, each as of a separate moment (`encode_range`).
    InRanges,
    /// From a snapshot that is taken quickly: it has the body of a `Put`, for after the lock was
    /// released.
    Snapshot(Snapshot),
}

/// A body that was fixed earlier: gives it piece by piece, the same each time.
pub type Snapshot = Box<dyn Fn(&mut dyn FnMut(&[u8])) + Send>;
