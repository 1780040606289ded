//! Sets of which members expire: a hash whose values are empty, so that times and their index are
//! those of hashes.
//!
//! A set becomes one with the first time that a member gets, and stays one while it lives, as in
//! Redis. A table is taken over as it is, whatever its size.

use super::{Repr, SetLimits, SetValue};
use crate::types::hash::{HashLimits, HashValue};
use ladon_record::KeyHasher;

impl SetLimits {
    pub(super) fn of_timed(self) -> HashLimits {
        let SetLimits { listpack_entries, listpack_value, .. } = self;
        HashLimits { listpack_entries, listpack_value }
    }
}

impl SetValue {
    /// Whether some member has, or had, a time.
    pub fn is_timed(&self) -> bool {
        matches!(self.0, Repr::Timed(_))
    }

    /// When the member expires, Unix milliseconds (0: never); `None` if there is no such member.
    pub fn expire_at(&self, hasher: &KeyHasher, member: &[u8]) -> Option<u64> {
        match &self.0 {
            Repr::Timed(hash) => hash.expire_at(hasher, member),
            _ => self.contains(hasher, member).then_some(0),
        }
    }

    /// Adds a member that expires then (0: never), or changes when it does; returns whether it was
    /// new.
    pub(crate) fn put(
        &mut self,
        hasher: &KeyHasher,
        limits: SetLimits,
        member: &[u8],
        at: u64,
    ) -> bool {
        if at == 0 && !self.is_timed() {
            return self.add(hasher, limits, member);
        }
        self.timed(hasher, limits).set(hasher, limits.of_timed(), member, &[], at)
    }

    /// Changes when the member expires (0: never); returns whether there is such a member.
    pub(crate) fn set_expiry(
        &mut self,
        hasher: &KeyHasher,
        limits: SetLimits,
        member: &[u8],
        at: u64,
    ) -> bool {
        if !self.is_timed() && (at == 0 || !self.contains(hasher, member)) {
            return at == 0 && self.contains(hasher, member);
        }
        self.timed(hasher, limits).set_expiry(hasher, member, at)
    }

    /// Makes the set one without times, which none of its members has.
    pub(super) fn forget_times(&mut self) {
        if let Repr::Timed(hash) = &mut self.0 {
            debug_assert!(hash.fields().all(|field| field.expire_at == 0), "times are forgotten");
            let hash = std::mem::replace(&mut **hash, HashValue::with_room(0, 0));
            let table = hash.into_table().expect("a set that was frozen is on a table");
            self.0 = Repr::Table(Box::new(table));
        }
    }

    /// The members with their times.
    fn timed(&mut self, hasher: &KeyHasher, limits: SetLimits) -> &mut HashValue {
        if !self.is_timed() {
            self.become_timed(hasher, limits.of_timed());
        }
        match &mut self.0 {
            Repr::Timed(hash) => hash,
            _ => unreachable!("it has just become one"),
        }
    }

    #[cold]
    fn become_timed(&mut self, hasher: &KeyHasher, limits: HashLimits) {
        let hash = match &mut self.0 {
            Repr::Table(table) => {
                // A table's values are empty bytes already.
                HashValue::of_table(std::mem::replace(&mut **table, crate::table::Table::new(0)))
            }
            _ => {
                let mut hash = HashValue::with_room(self.len(), self.bytes());
                for member in self.members() {
                    member.with_bytes(|bytes| hash.set(hasher, limits, bytes, &[], 0));
                }
                hash
            }
        };
        self.0 = Repr::Timed(Box::new(hash));
    }
}

#[cfg(test)]
mod tests;
