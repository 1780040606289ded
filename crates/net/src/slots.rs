//! A dense table whose indices are reused; a generation distinguishes the users of an index.

use crate::ConnId;

pub(crate) struct Slots<T> {
    entries: Vec<Entry<T>>,
    /// Last in, first out: a small set of busy slots stays small.
    free: Vec<u32>,
}

struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Slots<T> {
        Slots { entries: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, value: T) -> ConnId {
        if let Some(slot) = self.free.pop() {
            let entry = &mut self.entries[slot as usize];
            assert!(entry.value.is_none(), "slot {slot} is free and has a connection");
            entry.value = Some(value);
            return ConnId { slot, generation: entry.generation };
        }
        // A descriptor is an i32, so there are never more connections than a u32 counts.
        let slot = self.entries.len() as u32;
        self.entries.push(Entry { generation: 1, value: Some(value) });
        ConnId { slot, generation: 1 }
    }

    pub(crate) fn get_mut(&mut self, conn: ConnId) -> Option<&mut T> {
        let entry = self.entries.get_mut(conn.slot as usize)?;
        if entry.generation == conn.generation { entry.value.as_mut() } else { None }
    }

    /// The connection in `slot`, if the low `bits` of its generation are `generation`'s.
    pub(crate) fn find(&self, slot: u32, generation: u32, bits: u32) -> Option<ConnId> {
        let entry = self.entries.get(slot as usize)?;
        let differ = (entry.generation ^ generation) << (32 - bits);
        (differ == 0 && entry.value.is_some())
            .then_some(ConnId { slot, generation: entry.generation })
    }

    pub(crate) fn remove(&mut self, conn: ConnId) -> Option<T> {
        let entry = self.entries.get_mut(conn.slot as usize)?;
        if entry.generation != conn.generation {
            return None;
        }
        let value = entry.value.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(conn.slot);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn slots_are_reused_under_a_new_generation() {
        let mut slots = Slots::new();
        let first = slots.insert('a');
        let second = slots.insert('b');
        assert_eq!((first.slot, second.slot), (0, 1));
        assert_eq!(slots.remove(first), Some('a'));
        assert_eq!(slots.remove(first), None);
        let third = slots.insert('c');
        assert_eq!(third.slot, first.slot);
        assert_ne!(third.generation, first.generation);
        assert_eq!(slots.get_mut(first), None);
        assert_eq!(slots.get_mut(third), Some(&mut 'c'));
        assert_eq!(slots.get_mut(second), Some(&mut 'b'));
    }
}
