//! A set whose members get or lose times, together with the operation that the log gets.

use super::collection::{OP_ITEMS, put_item};
use super::{SetLimits, SetValue};
use crate::types::hash::item::Item;
use ladon_record::KeyHasher;

/// A set being changed, together with the operation that the log gets.
pub struct SetEdit<'e> {
    pub(crate) set: &'e mut SetValue,
    pub(crate) op: &'e mut Vec<u8>,
    pub(crate) hasher: &'e KeyHasher,
    pub(crate) limits: SetLimits,
}

impl SetEdit<'_> {
    /// See [`SetValue::expire_at`].
    pub fn expire_at(&self, member: &[u8]) -> Option<u64> {
        self.set.expire_at(self.hasher, member)
    }

    /// Adds a member that expires then (Unix milliseconds, 0: never), or changes when it does;
    /// returns whether it was new.
    pub fn put(&mut self, member: &[u8], at: u64) -> bool {
        self.log(Item::Set { field: member, value: &[], at });
        self.set.put(self.hasher, self.limits, member, at)
    }

    /// Changes when the member expires (0: never); returns whether there is such a member.
    pub fn set_expiry(&mut self, member: &[u8], at: u64) -> bool {
        let found = self.set.set_expiry(self.hasher, self.limits, member, at);
        if found {
            self.log(Item::Expire { field: member, at });
        }
        found
    }

    /// See [`SetValue::remove`].
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let found = self.set.remove(self.hasher, member);
        if found {
            self.log(Item::Remove { field: member });
        }
        found
    }

    fn log(&mut self, item: Item<'_>) {
        debug_assert!(self.op.first().is_none_or(|tag| *tag == OP_ITEMS), "one form an operation");
        put_item(self.op, item);
    }
}
