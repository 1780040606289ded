//! What a transaction does to lists.

use super::Tx;
use crate::key::Key;
use crate::types::collection::WrongType;
use crate::types::list::{Element, Elements, End, ListLimits, ListValue, Needle, Step};
use ladon_record::DbId;
use std::ops::ControlFlow::{Break, Continue};
use std::ops::Range;

impl Tx<'_> {
    /// Sizes up to which a list is one chunk, and of its chunks.
    #[inline]
    pub fn list_limits(&self) -> ListLimits {
        self.keyspace.limits().of_lists()
    }

    /// Pushes elements to an end of the key's list, one after the other, creating it; returns its
    /// new length.
    #[inline]
    pub fn list_push<'e>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        end: End,
        elements: impl ExactSizeIterator<Item = &'e [u8]> + Clone,
    ) -> Result<usize, WrongType> {
        let limits = self.list_limits();
        self.upsert_value(
            db,
            key,
            |_| ListValue::new(),
            |list, op, _| push(list, op, limits, end, elements),
        )
    }

    /// As `list_push` if there is a list; `None` if there is none.
    pub fn list_push_existing<'e>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        end: End,
        elements: impl ExactSizeIterator<Item = &'e [u8]> + Clone,
    ) -> Result<Option<usize>, WrongType> {
        let limits = self.list_limits();
        self.change_value(db, key, |list, op, _| push(list, op, limits, end, elements))
    }

    /// Pops up to `count` elements from an end of the key's list; `visit` sees each, after `begin`
    /// got their number. Returns whether there was a list.
    #[inline]
    pub fn list_pop<S>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        end: End,
        count: usize,
        begin: impl FnOnce(usize) -> S,
        mut visit: impl FnMut(&mut S, Element<'_>),
    ) -> Result<bool, WrongType> {
        let limits = self.list_limits();
        let popped = self.change_value(db, key, |list: &mut ListValue, op, _| {
            let count = count.min(list.len());
            let mut state = begin(count);
            for _ in 0..count {
                list.pop(end, |element| visit(&mut state, element));
            }
            list.settle(limits);
            if count != 0 {
                Step::Pop(end, count).encode(op);
            }
        })?;
        Ok(popped.is_some())
    }

    /// Pops the element at one end of the key's list and pushes it to an end, the same or the
    /// other. Returns the element, or `None` if there is no list.
    pub fn list_rotate(
        &mut self,
        db: DbId,
        key: Key<'_>,
        from: End,
        to: End,
    ) -> Result<Option<Vec<u8>>, WrongType> {
        let limits = self.list_limits();
        let moved = self.change_value(db, key, |list: &mut ListValue, op, _| {
            let element = list.pop(from, |element| element.to_vec())?;
            Step::Pop(from, 1).encode(op);
            push(list, op, limits, to, [&element[..]].into_iter());
            list.settle(limits);
            Some(element)
        })?;
        Ok(moved.flatten())
    }

    /// Pops up to `count` elements of the key's list into `popped` and pushes them, one after the
    /// other, to an end, the same or the other: in the order in which they left, or `reversed`.
    /// Returns whether there is a list.
    pub fn list_rotate_many(
        &mut self,
        db: DbId,
        key: Key<'_>,
        (from, to): (End, End),
        count: usize,
        reversed: bool,
        popped: &mut Elements,
    ) -> Result<bool, WrongType> {
        let limits = self.list_limits();
        let found = self.change_value(db, key, |list: &mut ListValue, op, _| {
            let count = count.min(list.len());
            if count == 0 {
                return;
            }
            for _ in 0..count {
                list.pop(from, |element| popped.push(element));
            }
            Step::Pop(from, count).encode(op);
            push(list, op, limits, to, popped.in_order(reversed).into_iter());
            list.settle(limits);
        })?;
        Ok(found.is_some())
    }

    /// Replaces an element of the key's list. `index` computes its index from the list's length.
    /// Returns whether there is such an element; `None` if there is no list.
    pub fn list_set(
        &mut self,
        db: DbId,
        key: Key<'_>,
        index: impl FnOnce(usize) -> Option<usize>,
        element: &[u8],
    ) -> Result<Option<bool>, WrongType> {
        let limits = self.list_limits();
        self.change_value(db, key, |list: &mut ListValue, op, _| {
            list.expect(End::Back, limits, element.len(), 1);
            let set = index(list.len()).filter(|&index| list.set(index, limits, element));
            list.settle(limits);
            if let Some(index) = set {
                Step::Set(index, element).encode(op);
            }
            set.is_some()
        })
    }

    /// Inserts an element before or after the first that is `pivot`; returns the new length.
    /// `Some(None)` if there is no such element, `None` if there is no list.
    pub fn list_insert(
        &mut self,
        db: DbId,
        key: Key<'_>,
        before: bool,
        pivot: &[u8],
        element: &[u8],
    ) -> Result<Option<Option<usize>>, WrongType> {
        let (limits, pivot) = (self.list_limits(), Needle::new(pivot));
        self.change_value(db, key, |list: &mut ListValue, op, _| {
            list.expect(End::Back, limits, element.len(), 1);
            let found = list.position(pivot)?;
            let index = if before { found } else { found + 1 };
            list.insert(index, limits, element);
            Step::Insert(index, element).encode(op);
            Some(list.len())
        })
    }

    /// Removes up to `max` elements equal to `element`, from the end `from` on; returns how many.
    pub fn list_remove(
        &mut self,
        db: DbId,
        key: Key<'_>,
        from: End,
        max: usize,
        element: &[u8],
    ) -> Result<usize, WrongType> {
        let (limits, needle) = (self.list_limits(), Needle::new(element));
        let removed = self.change_value(db, key, |list: &mut ListValue, op, _| {
            let mut indexes = Vec::new();
            let _ = list.search(from, |index, element| {
                if indexes.len() == max {
                    return Break(());
                }
                if needle.is(element) {
                    indexes.push(index);
                }
                Continue(())
            });
            if from == End::Back {
                indexes.reverse();
            }
            let count = indexes.len();
            if count != 0 {
                list.remove_each(&indexes);
                list.settle(limits);
                Step::RemoveEach(indexes).encode(op);
            }
            count
        })?;
        Ok(removed.unwrap_or(0))
    }

    /// Keeps the elements in the range that `keep` computes from the list's length; the range is
    /// within the list. Returns whether there is a list.
    pub fn list_trim(
        &mut self,
        db: DbId,
        key: Key<'_>,
        keep: impl FnOnce(usize) -> Range<usize>,
    ) -> Result<bool, WrongType> {
        let limits = self.list_limits();
        let found = self.change_value(db, key, |list: &mut ListValue, op, _| {
            let keep = keep(list.len());
            let back = list.len() - keep.end;
            for (end, index, count) in [(End::Back, keep.end, back), (End::Front, 0, keep.start)] {
                if count != 0 {
                    list.remove(index, count);
                    Step::Pop(end, count).encode(op);
                }
            }
            list.settle(limits);
            !op.is_empty()
        })?;
        if found == Some(false) {
            self.touch_watchers(db, key, true);
        }
        Ok(found.is_some())
    }
}

#[inline]
fn push<'e>(
    list: &mut ListValue,
    op: &mut Vec<u8>,
    limits: ListLimits,
    end: End,
    elements: impl ExactSizeIterator<Item = &'e [u8]> + Clone,
) -> usize {
    let bytes = elements.clone().map(<[u8]>::len).sum();
    list.expect(end, limits, bytes, elements.len());
    Step::encode_push(end, elements.clone(), op);
    elements.for_each(|element| list.push(end, limits, element));
    list.len()
}
