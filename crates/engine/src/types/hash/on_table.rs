//! Fields in a table, with an index of those that expire.

use super::field::Field;
use crate::expiry::Expires;
use crate::table::Table;
use crate::table::entry::{EntryRef, ValueInit, ValueRef};
use ladon_record::KeyHasher;

/// Any number of fields of any length.
pub(super) struct OnTable {
    pub(super) table: Table,
    expires: Expires,
}

impl OnTable {
    pub(super) fn new() -> OnTable {
        OnTable::of(Table::new(0))
    }

    /// Of fields that never expire.
    pub(super) fn of(table: Table) -> OnTable {
        OnTable { table, expires: Expires::default() }
    }

    /// A frozen copy; see [`Table::freeze`]. Of the fields that
    /// expire, it knows when the first one does.
    pub(super) fn freeze(&mut self) -> OnTable {
        OnTable { table: self.table.freeze(), expires: self.expires.first_alone() }
    }

    /// Bytes of memory, itself included.
    pub(super) fn bytes(&self) -> usize {
        size_of::<OnTable>() + self.table.bytes() + self.expires.bytes()
    }

    /// When the first field expires; 0 for never.
    pub(super) fn next_expiry(&self) -> u64 {
        self.expires.due(u64::MAX).map_or(0, |(at, _)| at)
    }

    /// When the last field expires; 0 for never.
    pub(super) fn last_expiry(&self) -> u64 {
        self.expires.last().unwrap_or(0)
    }

    /// Whether every field is due at `now`. Two fields that share an entry of the index hide that.
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.expires.len() == self.table.len() && self.expires.last().is_some_and(|at| at <= now)
    }

    /// Whether at least `count` fields are due at `now`. Two that share an entry count as one.
    pub(super) fn has_due(&self, now: u64, count: usize) -> bool {
        self.expires.are_due(now, count)
    }

    #[inline]
    pub(super) fn get(&self, hasher: &KeyHasher, field: &[u8]) -> Option<Field<'_>> {
        self.table.get(hasher.hash(field).0, field).map(field_of)
    }

    /// Whether it was new.
    pub(super) fn set(&mut self, hasher: &KeyHasher, field: &[u8], value: &[u8], at: u64) -> bool {
        let hash = hasher.hash(field).0;
        let value = ValueInit::Bytes { bytes: value, grown: false };
        let mut old = 0;
        let is_new = match self.table.get_mut(hash, field) {
            Some(mut slot) => {
                old = slot.get().expire_at();
                slot.set(at, value);
                false
            }
            None => {
                self.table.insert(hasher, hash, field, at, value, 0);
                true
            }
        };
        let _ = self.expires.change(hash, old, at);
        is_new
    }

    /// Whether there is such a field.
    pub(super) fn set_expiry(&mut self, hasher: &KeyHasher, field: &[u8], at: u64) -> bool {
        let hash = hasher.hash(field).0;
        let Some(mut slot) = self.table.get_mut(hash, field) else { return false };
        let old = slot.get().expire_at();
        slot.set_expire(at);
        let _ = self.expires.change(hash, old, at);
        true
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, hasher: &KeyHasher, field: &[u8]) -> bool {
        let hash = hasher.hash(field).0;
        let Some(slot) = self.table.get_mut(hash, field) else { return false };
        let old = slot.get().expire_at();
        slot.remove(hasher);
        let _ = self.expires.change(hash, old, 0);
        true
    }

    /// Removes up to `max` fields that are due at `now`; `visit` sees them.
    pub(super) fn expire_due(
        &mut self,
        hasher: &KeyHasher,
        now: u64,
        max: usize,
        mut visit: impl FnMut(Field<'_>),
    ) -> usize {
        let mut removed = 0;
        while removed < max
            && let Some((at, hash)) = self.expires.due(now)
        {
            let is_due = |entry: EntryRef<'_>| entry.expire_at() == at;
            // Two fields with the same hash and expiry share the index's entry.
            while let Some(name) = self.table.key_where(hasher, hash, is_due) {
                if let Some(slot) = self.table.get_mut(hash, &name) {
                    visit(field_of(slot.get()));
                    slot.remove(hasher);
                }
                removed += 1;
            }
            let _ = self.expires.remove(at, hash);
        }
        removed
    }
}

/// A table's entry as a field.
#[inline]
pub(super) fn field_of(entry: EntryRef<'_>) -> Field<'_> {
    let value = match entry.value() {
        ValueRef::Bytes { bytes, .. } => bytes,
        ValueRef::Int(_) | ValueRef::Object(_) => unreachable!("fields hold bytes"),
    };
    Field { name: entry.key(), value, expire_at: entry.expire_at() }
}
