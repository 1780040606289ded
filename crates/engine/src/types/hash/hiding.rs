//! Fields that have expired and may not be removed here: another node says when they go, or the log
//! takes no record of it now.
//!
//! Readers see the fields that have not expired. What applies a change finds all fields, whatever
//! the clock says here. Checkpoints, digests and memory's account have all of them, too.
//!
//! Fields that were hidden are last in the order of a packed hash when they come back.

use super::packed::Packed;
use super::{Field, HashLimits, HashValue, Repr};
use crate::types::collection::Collection;
use ladon_record::KeyHasher;

/// A hash of which some fields are hidden.
pub(super) struct Hiding {
    /// What readers see. It is on a table if and only if `hidden` is.
    pub(super) seen: HashValue,
    /// Never empty, and none of it is in `seen`.
    pub(super) hidden: HashValue,
}

/// What [`HashValue::next_expiry`] is of a hash that hides fields: it is always looked at before it
/// is read, and first in line once fields may be removed.
pub(super) const LOOKED_AT_FIRST: u64 = 1;

impl Hiding {
    pub(super) fn bytes(&self) -> usize {
        size_of::<Hiding>() + Collection::bytes(&self.seen) + Collection::bytes(&self.hidden)
    }

    pub(super) fn duplicate(&self, hasher: &KeyHasher) -> Hiding {
        Hiding { seen: self.seen.copy(hasher), hidden: self.hidden.copy(hasher) }
    }

    pub(super) fn become_table(&mut self, hasher: &KeyHasher) {
        self.seen.become_table(hasher);
        self.hidden.become_table(hasher);
    }

    /// See [`HashValue::set`].
    pub(super) fn set(
        &mut self,
        hasher: &KeyHasher,
        limits: HashLimits,
        name: &[u8],
        value: &[u8],
        at: u64,
    ) -> bool {
        let was_hidden = self.hidden.remove(hasher, name);
        let is_new = self.seen.set(hasher, limits, name, value, at);
        if self.seen.is_on_table() || self.seen.len() + self.hidden.len() > limits.listpack_entries
        {
            self.become_table(hasher);
        }
        is_new && !was_hidden
    }

    /// See [`HashValue::set_expiry`].
    pub(super) fn set_expiry(&mut self, hasher: &KeyHasher, name: &[u8], at: u64) -> bool {
        let Some((value, _)) = self.hidden.look(hasher, name) else {
            return self.seen.set_expiry(hasher, name, at);
        };
        self.seen.insert(hasher, Field { name, value, expire_at: at });
        self.hidden.remove(hasher, name)
    }

    /// See [`HashValue::remove`].
    pub(super) fn remove(&mut self, hasher: &KeyHasher, name: &[u8]) -> bool {
        self.hidden.remove(hasher, name) || self.seen.remove(hasher, name)
    }

    /// Whether every field is due.
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.hidden.last_expiry() <= now && (self.seen.is_empty() || self.seen.is_over(now))
    }

    /// Whether at least `count` fields are due, as far as that can be told without a walk.
    pub(super) fn has_due(&self, now: u64, count: usize) -> bool {
        let hidden = self.hidden.len();
        hidden >= count || self.seen.has_due(now, count - hidden)
    }
}

impl HashValue {
    /// Number of fields that no reader sees.
    pub(crate) fn hidden(&self) -> usize {
        match &self.0 {
            Repr::Hiding(hiding) => hiding.hidden.len(),
            Repr::Packed(_) | Repr::Table(_) => 0,
        }
    }

    /// Whether at least `count` fields would be hidden, or shown again, by `hide_due`.
    pub(crate) fn has_to_hide(&self, now: u64, count: usize) -> bool {
        match &self.0 {
            Repr::Hiding(hiding) if hiding.hidden.last_expiry() > now => {
                hiding.hidden.len() >= count
            }
            Repr::Hiding(hiding) => hiding.seen.has_due(now, count),
            Repr::Packed(_) | Repr::Table(_) => Collection::has_due(self, now, count),
        }
    }

    /// Hides up to `max` fields that are due at `now`; returns how many. Should the clock have gone
    /// back, so that what is hidden is no longer due, shows that first.
    pub(crate) fn hide_due(&mut self, hasher: &KeyHasher, now: u64, max: usize) -> usize {
        let mut moved = 0;
        if let Repr::Hiding(hiding) = &self.0
            && hiding.hidden.last_expiry() > now
        {
            moved = self.unhide(hasher, max);
        }
        if moved == max || !self.has_to_hide(now, 1) {
            return moved;
        }
        if let Repr::Packed(_) | Repr::Table(_) = self.0 {
            let empty = Repr::Packed(Packed::with_room(0));
            let seen = HashValue(std::mem::replace(&mut self.0, empty));
            let mut hidden = HashValue::with_room(0, 0);
            if seen.is_on_table() {
                hidden.become_table(hasher);
            }
            self.0 = Repr::Hiding(Box::new(Hiding { seen, hidden }));
        }
        if let Repr::Hiding(hiding) = &mut self.0 {
            let Hiding { seen, hidden } = &mut **hiding;
            let hide = |field: Field<'_>| hidden.insert(hasher, field);
            moved += seen.expire_each(hasher, now, max - moved, hide);
        }
        moved
    }

    /// Shows up to `max` fields that were hidden; returns how many.
    pub(crate) fn unhide(&mut self, hasher: &KeyHasher, max: usize) -> usize {
        let Repr::Hiding(hiding) = &mut self.0 else { return 0 };
        let Hiding { seen, hidden } = &mut **hiding;
        let show = |field: Field<'_>| seen.insert(hasher, field);
        let shown = hidden.expire_each(hasher, u64::MAX, max, show);
        self.stop_hiding_nothing();
        shown
    }

    /// Every field once, hidden ones too.
    pub(crate) fn all_fields(&self) -> impl Iterator<Item = Field<'_>> {
        let hidden = match &self.0 {
            Repr::Hiding(hiding) => Some(&hiding.hidden),
            Repr::Packed(_) | Repr::Table(_) => None,
        };
        self.fields().chain(hidden.into_iter().flat_map(HashValue::fields))
    }

    /// After a field was removed that may have been the last one that was hidden.
    pub(super) fn stop_hiding_nothing(&mut self) {
        if let Repr::Hiding(hiding) = &mut self.0
            && hiding.hidden.is_empty()
        {
            let empty = Repr::Packed(Packed::with_room(0));
            self.0 = std::mem::replace(&mut hiding.seen.0, empty);
        }
    }

    /// Adds a field that is not there, in the present form.
    fn insert(&mut self, hasher: &KeyHasher, field: Field<'_>) {
        let Field { name, value, expire_at } = field;
        match &mut self.0 {
            Repr::Packed(packed) => packed.push(name, value, expire_at),
            Repr::Table(fields) => {
                fields.set(hasher, name, value, expire_at);
            }
            Repr::Hiding(_) => unreachable!("what is hidden, or seen beside it, hides nothing"),
        }
    }

    /// When the last field expires; 0 where none does.
    fn last_expiry(&self) -> u64 {
        match &self.0 {
            Repr::Packed(packed) => packed.fields().map(|field| field.expire_at).max().unwrap_or(0),
            Repr::Table(fields) => fields.last_expiry(),
            Repr::Hiding(hiding) => hiding.hidden.last_expiry().max(hiding.seen.last_expiry()),
        }
    }
}
