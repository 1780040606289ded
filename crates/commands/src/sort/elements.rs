//! The elements to sort, copied out: what BY and GET look up may remove expired keys meanwhile.

use crate::error::CommandError;
use ladon_engine::{Key, Object, Tx, ValueRef};
use ladon_model::DbId;

/// Elements, one behind the other in one piece of memory.
#[derive(Default)]
pub(super) struct Elements {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// They come from a set, in any order.
    pub(super) is_unordered: bool,
}

impl Elements {
    /// Those of a key; `None` if it does not exist.
    pub(super) fn load(
        tx: &mut Tx<'_>,
        db: DbId,
        key: Key<'_>,
    ) -> Result<Option<Elements>, CommandError> {
        let Some(entry) = tx.read(db, key) else { return Ok(None) };
        let mut elements = Elements::default();
        match entry.value() {
            ValueRef::Object(Object::List(list)) => {
                list.for_each(|element| element.with_bytes(|bytes| elements.push(bytes)));
            }
            ValueRef::Object(Object::Set(set)) => {
                elements.is_unordered = true;
                for member in set.members() {
                    member.with_bytes(|bytes| elements.push(bytes));
                }
            }
            ValueRef::Object(Object::SortedSet(set)) => {
                set.for_each(0..set.len(), |member, _| elements.push(member));
            }
            _ => return Err(CommandError::WrongType),
        }
        Ok(Some(elements))
    }

    fn push(&mut self, element: &[u8]) {
        self.bytes.extend_from_slice(element);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }

    /// Their numbers as they came, or from the last one on.
    pub(super) fn in_order(&self, descending: bool) -> Vec<usize> {
        // The order of a set means nothing, so there is nothing to turn around.
        if descending && !self.is_unordered {
            (0..self.len()).rev().collect()
        } else {
            (0..self.len()).collect()
        }
    }
}
