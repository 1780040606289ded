//! Channels with what belongs to each, found by a hash that the caller has already.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::sync::Arc;

/// A table of names. Hashes are those of `PubSub::hash`.
#[derive(Debug)]
pub(super) struct Names<T>(HashTable<Named<T>>);

#[derive(Debug)]
struct Named<T> {
    hash: u64,
    name: Arc<[u8]>,
    value: T,
}

impl<T> Default for Names<T> {
    fn default() -> Names<T> {
        Names(HashTable::new())
    }
}

/// The lowest bits have chosen the part of a table that this is in.
fn within(hash: u64) -> u64 {
    hash.rotate_right(8)
}

impl<T> Names<T> {
    #[inline]
    pub(super) fn get(&self, hash: u64, name: &[u8]) -> Option<&T> {
        let named = self.0.find(within(hash), |named| *named.name == *name)?;
        Some(&named.value)
    }

    /// The value of a name, which is added if it is missing.
    pub(super) fn get_or_insert(&mut self, hash: u64, name: &Arc<[u8]>) -> &mut T
    where
        T: Default,
    {
        let is_it = |named: &Named<T>| named.name == *name;
        match self.0.entry(within(hash), is_it, |named| within(named.hash)) {
            Entry::Occupied(place) => &mut place.into_mut().value,
            Entry::Vacant(place) => {
                let named = Named { hash, name: Arc::clone(name), value: T::default() };
                &mut place.insert(named).into_mut().value
            }
        }
    }

    /// Changes the value of a name, and removes both if `is_last` then returns true. Whether it did.
    pub(super) fn remove_if(
        &mut self,
        hash: u64,
        name: &[u8],
        is_last: impl FnOnce(&mut T) -> bool,
    ) -> bool {
        let is_it = |named: &Named<T>| *named.name == *name;
        let Ok(mut place) = self.0.find_entry(within(hash), is_it) else { return false };
        let removes = is_last(&mut place.get_mut().value);
        if removes {
            place.remove();
        }
        removes
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<[u8]>> {
        self.0.iter().map(|named| &named.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_the_same_hash_are_told_apart() {
        let mut names = Names::<Vec<u32>>::default();
        for number in 0..1000u32 {
            let name = Arc::from(number.to_string().as_bytes());
            names.get_or_insert(u64::from(number % 7), &name).push(number);
            names.get_or_insert(u64::from(number % 7), &name).push(number);
        }
        assert_eq!(names.iter().count(), 1000);
        for number in 0..1000u32 {
            let (hash, name) = (u64::from(number % 7), number.to_string().into_bytes());
            assert_eq!(names.get(hash, &name), Some(&vec![number; 2]));
            let pop = |values: &mut Vec<u32>| {
                values.pop();
                values.is_empty()
            };
            assert!(!names.remove_if(hash, &name, pop));
            assert!(names.remove_if(hash, &name, pop));
            assert!(!names.remove_if(hash, &name, pop));
            assert_eq!(names.get(hash, &name), None);
        }
        assert_eq!(names.iter().count(), 0);
    }
}
