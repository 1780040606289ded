//! Sorted elements, on their way into a reply or a list.

use super::elements::Elements;
use super::options::Options;
use super::order;
use super::pattern::{Pattern, Source};
use ladon_engine::types::list::{ListLimits, ListValue};
use ladon_kernel::command::error::CommandError;
use ladon_kernel::long::slices::{Keeping, Room, Slices};
use ladon_resp::{Proto, Reply};
use std::ops::Range;

pub(super) struct Sorted<'a> {
    elements: Elements,
    order: Vec<usize>,
    /// The range of the order that remains to be returned.
    left: Range<usize>,
    /// What is returned for each element; at least one.
    get: Vec<Pattern<'a>>,
    /// How much was already returned for the first remaining element.
    got: usize,
}

impl<'a> Sorted<'a> {
    pub(super) fn new(
        source: &mut Source<'_, '_>,
        elements: Elements,
        mut options: Options<'a>,
    ) -> Result<Sorted<'a>, CommandError> {
        if elements.is_unordered && options.keeps_order() && options.hides_order {
            // What is stored, or what a script does, must not depend on a set's order in memory.
            (options.by, options.alpha) = (None, true);
        }
        let order = if options.keeps_order() {
            elements.in_order(options.descending)
        } else {
            order::sorted(source, &elements, &options)?
        };
        let left = limited(order.len(), options.limit);
        let mut get = options.get;
        if get.is_empty() {
            get.push(Pattern::Element);
        }
        Ok(Sorted { elements, order, left, get, got: 0 })
    }

    /// Elements of the reply.
    pub(super) fn count(&self) -> usize {
        self.left.len() * self.get.len()
    }

    /// Replies with the next element, or with the next value that GET names for it. Returns whether
    /// there was one.
    pub(super) fn write_next(
        &mut self,
        source: &mut Source<'_, '_>,
        reply: &mut Reply<'_>,
    ) -> bool {
        if self.left.is_empty() {
            return false;
        }
        let element = self.elements.get(self.order[self.left.start]);
        self.get[self.got].look_up(source, element, |found| match found {
            Some(value) => reply.bulk(value),
            None => reply.null(),
        });
        self.got += 1;
        if self.got == self.get.len() {
            self.got = 0;
            self.left.start += 1;
        }
        true
    }

    /// The whole result; missing values are empty.
    pub(super) fn into_list(self, source: &mut Source<'_, '_>, limits: ListLimits) -> ListValue {
        let mut list = ListValue::new();
        for at in self.left {
            for pattern in &self.get {
                pattern.look_up(source, self.elements.get(self.order[at]), |found| {
                    list.append(limits, found.unwrap_or_default());
                });
            }
        }
        list
    }
}

impl Slices for Sorted<'static> {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        while room.take(reply) {
            if !self.write_next(&mut Source::Elements, reply) {
                return false;
            }
        }
        true
    }

    /// Nothing of it is frozen, and with many GETs the reply may be many times the elements.
    fn keep(&mut self, _: Proto, _: usize) -> Keeping {
        Keeping::Own(None)
    }

    fn memory(&self) -> usize {
        self.elements.memory() + self.order.capacity() * size_of::<usize>()
    }
}

/// The range of this many elements that `LIMIT` leaves.
pub(super) fn limited(length: usize, (offset, count): (i64, i64)) -> Range<usize> {
    let start = usize::try_from(offset).unwrap_or(0).min(length);
    let count = usize::try_from(count).unwrap_or(length);
    start..length.min(start.saturating_add(count))
}

#[cfg(test)]
mod tests {
    use super::limited;

    #[test]
    fn limits_are_cut_to_what_there_is() {
        for (limit, expected) in [
            ((0, -1), 0..5),
            ((0, 2), 0..2),
            ((1, 2), 1..3),
            ((-3, 2), 0..2),
            ((4, 9), 4..5),
            ((5, 1), 5..5),
            ((9, 1), 5..5),
            ((2, 0), 2..2),
            ((2, -7), 2..5),
            ((i64::MAX, i64::MAX), 5..5),
            ((1, i64::MAX), 1..5),
        ] {
            assert_eq!(limited(5, limit), expected, "{limit:?}");
        }
    }
}
