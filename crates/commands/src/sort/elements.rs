//! The elements to sort, copied, because lookups for BY and GET may remove expired keys.

use ladon_engine::Object;

/// Elements, concatenated.
#[derive(Default)]
pub(super) struct Elements {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// They come from a set, in any order.
    pub(super) is_unordered: bool,
}

impl Elements {
    /// Those of a value; `None` if it is of a type that has none.
    pub(super) fn of(object: &Object) -> Option<Elements> {
        let mut elements = Elements::default();
        match object {
            Object::List(list) => {
                list.for_each(|element| element.with_bytes(|bytes| elements.push(bytes)));
            }
            Object::Set(set) => {
                elements.is_unordered = true;
                for member in set.members() {
                    member.with_bytes(|bytes| elements.push(bytes));
                }
            }
            Object::SortedSet(set) => {
                set.for_each(0..set.len(), |member, _| elements.push(member));
            }
            _ => return None,
        }
        Some(elements)
    }

    fn push(&mut self, element: &[u8]) {
        self.bytes.extend_from_slice(element);
        self.ends.push(self.bytes.len());
    }

    /// Bytes that they take.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }

    /// Their indexes in the original or the reverse order.
    pub(super) fn in_order(&self, descending: bool) -> Vec<usize> {
        // A set's order has no meaning, so there is nothing to reverse.
        if descending && !self.is_unordered {
            (0..self.len()).rev().collect()
        } else {
            (0..self.len()).collect()
        }
    }
}
