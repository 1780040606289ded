//! A map ordered by id that is copied quickly: its runs of items are shared, and a run is copied
//! before its first change after that.
//!
//! ```text
//! (1-0, ->[1-0 1-1 5-0]) (7-0, ->[7-0 8-0]) ...      first ids beside the pointers
//! ```
//!
//! Most items arrive at the end and leave at the beginning. Removing anywhere is as fast; inserting
//! in the middle splits a full run.

use super::id::StreamId;
use std::collections::VecDeque;
use std::sync::Arc;

/// Items of a run: copying one takes about a microsecond.
const RUN_MAX: usize = 128;

/// Runs that together have this many items, or fewer, become one.
const JOINED_MAX: usize = RUN_MAX / 2;

/// Counters of an `Arc`, and the vector inside.
const RUN_HEAD_BYTES: usize = 2 * size_of::<usize>() + size_of::<Vec<u8>>();

#[derive(Clone)]
pub(super) struct IdMap<V, K = StreamId> {
    runs: VecDeque<Run<V, K>>,
    len: usize,
    /// Bytes of all runs, without the list of them.
    run_bytes: usize,
}

#[derive(Clone)]
struct Run<V, K> {
    first: K,
    /// Never empty.
    items: Arc<Vec<(K, V)>>,
}

impl<V, K> Run<V, K> {
    fn bytes(&self) -> usize {
        RUN_HEAD_BYTES + self.items.capacity() * size_of::<(K, V)>()
    }
}

impl<V, K> Default for IdMap<V, K> {
    fn default() -> IdMap<V, K> {
        IdMap { runs: VecDeque::new(), len: 0, run_bytes: 0 }
    }
}

impl<V, K: Copy + Ord> IdMap<V, K> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Number of allocations of it, without what the values own.
    pub(super) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Bytes of memory, without what the values own.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.run_bytes + self.runs.capacity() * size_of::<Run<V, K>>()
    }

    /// The run in which `id` is, or would be.
    #[inline]
    fn run_of(&self, id: K) -> usize {
        // Most searches are for what is near the end.
        match self.runs.back() {
            Some(last) if last.first <= id => self.runs.len() - 1,
            _ => self.runs.partition_point(|run| run.first <= id).saturating_sub(1),
        }
    }

    pub(super) fn get(&self, id: K) -> Option<&V> {
        let items = &self.runs.get(self.run_of(id))?.items;
        let at = items.binary_search_by_key(&id, |item| item.0).ok()?;
        Some(&items[at].1)
    }

    pub(super) fn first(&self) -> Option<&(K, V)> {
        self.runs.front()?.items.first()
    }

    #[inline]
    pub(super) fn last(&self) -> Option<&(K, V)> {
        self.runs.back()?.items.last()
    }

    /// The address of the last run, and its last item.
    #[inline]
    pub(super) fn last_run(&self) -> Option<(usize, &(K, V))> {
        let items = &self.runs.back()?.items;
        Some((Arc::as_ptr(items).addr(), items.last()?))
    }

    /// The last item whose id is not larger.
    pub(super) fn floor(&self, id: K) -> Option<&(K, V)> {
        let items = &self.runs.get(self.run_of(id))?.items;
        items.partition_point(|item| item.0 <= id).checked_sub(1).map(|at| &items[at])
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &(K, V)> {
        self.runs.iter().flat_map(|run| run.items.iter())
    }

    /// The items from this id on.
    pub(super) fn from(&self, id: K) -> impl Iterator<Item = &(K, V)> {
        let at = self.run_of(id);
        let (first, rest) = match self.runs.get(at) {
            Some(run) => {
                let from = run.items.partition_point(|item| item.0 < id);
                (&run.items[from..], self.runs.range(at + 1..))
            }
            None => (&[][..], self.runs.range(..0)),
        };
        first.iter().chain(rest.flat_map(|run| run.items.iter()))
    }

    /// The items up to this id, from the last to the first.
    pub(super) fn up_to(&self, id: K) -> impl Iterator<Item = &(K, V)> {
        let at = self.run_of(id);
        let (first, rest) = match self.runs.get(at) {
            Some(run) => {
                let end = run.items.partition_point(|item| item.0 <= id);
                (&run.items[..end], self.runs.range(..at))
            }
            None => (&[][..], self.runs.range(..0)),
        };
        first.iter().rev().chain(rest.rev().flat_map(|run| run.items.iter().rev()))
    }
}

impl<V: Clone, K: Copy + Ord> IdMap<V, K> {
    /// Changes the items of a run, which may become empty.
    fn edit<R>(&mut self, at: usize, change: impl FnOnce(&mut Vec<(K, V)>) -> R) -> R {
        let run = &mut self.runs[at];
        // A shared run's copy takes just what it holds.
        let before = run.bytes();
        let items = Arc::make_mut(&mut run.items);
        let result = change(items);
        if let Some(first) = items.first() {
            run.first = first.0;
        }
        self.run_bytes = self.run_bytes + run.bytes() - before;
        result
    }

    /// Changes the value of an id; `None` if there is none.
    pub(super) fn update<R>(&mut self, id: K, change: impl FnOnce(&mut V) -> R) -> Option<R> {
        let at = self.run_of(id);
        let within = self.runs.get(at)?.items.binary_search_by_key(&id, |item| item.0).ok()?;
        Some(self.edit(at, |items| change(&mut items[within].1)))
    }

    /// Changes the last value; `None` if there is none.
    #[inline]
    pub(super) fn update_last<R>(&mut self, change: impl FnOnce(K, &mut V) -> R) -> Option<R> {
        let at = self.runs.len().checked_sub(1)?;
        self.edit(at, |items| items.last_mut().map(|(id, value)| change(*id, value)))
    }

    /// Sets the value of an id; returns the old one.
    pub(super) fn insert(&mut self, id: K, value: V) -> Option<V> {
        if self.last().is_none_or(|last| last.0 < id) {
            self.push(id, value);
            return None;
        }
        let at = self.run_of(id);
        let within = match self.runs[at].items.binary_search_by_key(&id, |item| item.0) {
            Ok(found) => {
                return Some(self.edit(at, |items| std::mem::replace(&mut items[found].1, value)));
            }
            Err(within) => within,
        };
        self.len += 1;
        if self.runs[at].items.len() < RUN_MAX {
            self.edit(at, |items| items.insert(within, (id, value)));
            return None;
        }
        let half = RUN_MAX / 2;
        let mut rest = self.edit(at, |items| {
            let rest = items.split_off(half);
            items.shrink_to_fit();
            rest
        });
        if within > half {
            rest.insert(within - half, (id, value));
        } else {
            self.edit(at, |items| items.insert(within, (id, value)));
        }
        let run = Run { first: rest[0].0, items: Arc::new(rest) };
        self.run_bytes += run.bytes();
        self.runs.insert(at + 1, run);
        None
    }

    /// Appends an item whose id is larger than all others.
    fn push(&mut self, id: K, value: V) {
        self.len += 1;
        match self.runs.back() {
            Some(run) if run.items.len() < RUN_MAX => {
                self.edit(self.runs.len() - 1, |items| items.push((id, value)));
            }
            _ => {
                let run = Run { first: id, items: Arc::new(vec![(id, value)]) };
                self.run_bytes += run.bytes();
                self.runs.push_back(run);
            }
        }
    }

    /// Removes an id; returns its value.
    pub(super) fn remove(&mut self, id: K) -> Option<V> {
        let at = self.run_of(id);
        let within = self.runs.get(at)?.items.binary_search_by_key(&id, |item| item.0).ok()?;
        let (_, value) = self.edit(at, |items| items.remove(within));
        self.len -= 1;
        self.shrunk(at);
        Some(value)
    }

    /// Removes the first `count` items.
    pub(super) fn remove_first(&mut self, mut count: usize) {
        while count > 0
            && let Some(run) = self.runs.front()
        {
            let here = run.items.len();
            if here <= count {
                self.run_bytes -= run.bytes();
                self.runs.pop_front();
                self.len -= here;
                count -= here;
            } else {
                self.edit(0, |items| drop(items.drain(..count)));
                self.len -= count;
                self.shrunk(0);
                count = 0;
            }
        }
        self.shrink_list();
    }

    /// After items left a run: removes an empty one, and joins or shrinks a sparse one.
    fn shrunk(&mut self, at: usize) {
        let (length, room) = (self.runs[at].items.len(), self.runs[at].items.capacity());
        if length == 0 {
            self.run_bytes -= self.runs[at].bytes();
            self.runs.remove(at);
            self.shrink_list();
            return;
        }
        if length * 4 > room || room <= 8 {
            return;
        }
        if let Some(next) = self.runs.get(at + 1)
            && next.items.len() + length <= JOINED_MAX
        {
            self.run_bytes -= next.bytes();
            let next = self.runs.remove(at + 1).map(|next| Arc::unwrap_or_clone(next.items));
            self.edit(at, |items| items.extend(next.into_iter().flatten()));
        }
        self.edit(at, |items| items.shrink_to(items.len() * 2));
    }

    fn shrink_list(&mut self) {
        if self.runs.len() * 4 < self.runs.capacity() {
            self.runs.shrink_to(self.runs.len() * 2);
        }
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        let items: Vec<K> = self.iter().map(|item| item.0).collect();
        assert!(items.is_sorted_by(|a, b| a < b));
        assert_eq!(items.len(), self.len);
        assert_eq!(self.runs.iter().map(Run::bytes).sum::<usize>(), self.run_bytes);
        for run in &self.runs {
            assert!(run.first == run.items[0].0);
            assert!(run.items.len() <= RUN_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

        #[test]
        fn it_does_what_a_tree_does(
            steps in prop::collection::vec(
                (0u8..9, 0u64..700, 0u64..3),
                0..if cfg!(miri) { 20 } else { 900 },
            ),
            prefill in 0u64..700,
        ) {
            let (mut map, mut model) = (IdMap::default(), BTreeMap::new());
            for ms in 0..prefill {
                map.insert(StreamId::new(ms, 1), ms);
                model.insert(StreamId::new(ms, 1), ms);
            }
            let mut frozen = map.clone();
            let mut frozen_model = model.clone();
            for (step, ms, seq) in steps {
                let id = StreamId::new(ms, seq);
                match step {
                    0 => prop_assert_eq!(map.insert(id, ms), model.insert(id, ms)),
                    1 => {
                        let end = model.keys().next_back().map_or(0, |id| id.ms) + 1;
                        let id = StreamId::new(end, 0);
                        prop_assert_eq!(map.insert(id, ms), model.insert(id, ms));
                    }
                    2 | 3 => prop_assert_eq!(map.remove(id), model.remove(&id)),
                    4 => {
                        let count = (ms % 5) as usize;
                        map.remove_first(count);
                        for _ in 0..count {
                            model.pop_first();
                        }
                    }
                    5 => {
                        let updated = map.update(id, |value| *value += 1);
                        prop_assert_eq!(updated, model.get_mut(&id).map(|value| *value += 1));
                    }
                    6 => {
                        let found: Vec<_> = map.from(id).take(5).copied().collect();
                        let expected: Vec<_> =
                            model.range(id..).take(5).map(|(id, v)| (*id, *v)).collect();
                        prop_assert_eq!(found, expected);
                        let found: Vec<_> = map.up_to(id).take(5).copied().collect();
                        let expected: Vec<_> =
                            model.range(..=id).rev().take(5).map(|(id, v)| (*id, *v)).collect();
                        prop_assert_eq!(map.floor(id), expected.first());
                        prop_assert_eq!(found, expected);
                    }
                    7 => prop_assert_eq!(map.get(id), model.get(&id)),
                    _ => {
                        prop_assert!(frozen.iter().copied().eq(
                            frozen_model.iter().map(|(id, v)| (*id, *v))
                        ));
                        frozen = map.clone();
                        frozen_model = model.clone();
                    }
                }
                map.check();
            }
            prop_assert!(map.iter().copied().eq(model.iter().map(|(id, v)| (*id, *v))));
        }
    }
}
