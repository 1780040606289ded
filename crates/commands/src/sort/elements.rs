//! The elements to sort, copied out: what BY and GET look up may remove expired keys meanwhile.

use ladon_engine::Object;

/// Elements, one behind the other in one piece of memory.
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
