//! Operations on lists, by position, and their form in the log.
//!
//! ```text
//! op    := step*
//! step  := 1 count element*            pushed to the front one after the other
//!        | 2 count element*            pushed to the back
//!        | 3 count                     popped from the front
//!        | 4 count                     popped from the back
//!        | 5 index element             replaces the one of this index
//!        | 6 index element             inserted before the one of this index, or at the end
//!        | 7 index count               this many removed from this index on
//!        | 8 count gap*                removed individually: a gap is the number of elements
//!                                      that stay between two removed ones, or before the first
//! ```
//! An element is its length and its bytes. Counts, indexes and lengths are varints; indexes count
//! from the front, from zero.

use super::{End, ListLimits, ListValue};
use crate::types::dump_value::DumpValue;
use ladon_record::varint;

const PUSH_FRONT: u8 = 1;
const PUSH_BACK: u8 = 2;
const POP_FRONT: u8 = 3;
const POP_BACK: u8 = 4;
const SET: u8 = 5;
const INSERT: u8 = 6;
const REMOVE: u8 = 7;
const REMOVE_EACH: u8 = 8;

/// One thing done to a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Elements pushed to an end, one after the other.
    Push(End, Vec<&'a [u8]>),
    /// So many popped from an end.
    Pop(End, usize),
    /// The element of this index has another in its place.
    Set(usize, &'a [u8]),
    /// An element put before the one of this index, or at the end.
    Insert(usize, &'a [u8]),
    /// So many removed from an index on: (index, count).
    Remove(usize, usize),
    /// The elements of these indexes removed; they ascend.
    RemoveEach(Vec<usize>),
}

impl<'a> Step<'a> {
    /// Appends the encoding.
    pub(crate) fn encode(&self, op: &mut Vec<u8>) {
        match self {
            Step::Push(end, elements) => {
                Step::encode_push(*end, elements.iter().copied(), op);
            }
            Step::Pop(end, count) => {
                op.push(if *end == End::Front { POP_FRONT } else { POP_BACK });
                varint::put(op, *count as u64);
            }
            Step::Set(index, element) => {
                op.push(SET);
                varint::put(op, *index as u64);
                varint::put_bytes(op, element);
            }
            Step::Insert(index, element) => {
                op.push(INSERT);
                varint::put(op, *index as u64);
                varint::put_bytes(op, element);
            }
            Step::Remove(index, count) => {
                op.push(REMOVE);
                varint::put(op, *index as u64);
                varint::put(op, *count as u64);
            }
            Step::RemoveEach(indexes) => {
                op.push(REMOVE_EACH);
                varint::put(op, indexes.len() as u64);
                let mut next = 0;
                for index in indexes {
                    varint::put(op, (index - next) as u64);
                    next = index + 1;
                }
            }
        }
    }

    /// As `encode` of a `Push`, of borrowed elements.
    #[inline]
    pub(crate) fn encode_push<'e>(
        end: End,
        elements: impl ExactSizeIterator<Item = &'e [u8]>,
        op: &mut Vec<u8>,
    ) {
        op.push(if end == End::Front { PUSH_FRONT } else { PUSH_BACK });
        varint::put(op, elements.len() as u64);
        elements.for_each(|element| varint::put_bytes(op, element));
    }

    /// Takes the next step off an operation; `None` if it is malformed.
    pub(crate) fn take(op: &mut &'a [u8]) -> Option<Step<'a>> {
        let (&tag, rest) = op.split_first()?;
        *op = rest;
        let number = |op: &mut &'a [u8]| usize::try_from(varint::take(op)?).ok();
        Some(match tag {
            PUSH_FRONT | PUSH_BACK => {
                let end = if tag == PUSH_FRONT { End::Front } else { End::Back };
                let count = number(op)?;
                // Every element has at least one byte, so a wrong count cannot request much memory.
                let mut elements = Vec::with_capacity(count.min(op.len()));
                for _ in 0..count {
                    elements.push(varint::take_bytes(op)?);
                }
                Step::Push(end, elements)
            }
            POP_FRONT => Step::Pop(End::Front, number(op)?),
            POP_BACK => Step::Pop(End::Back, number(op)?),
            SET => Step::Set(number(op)?, varint::take_bytes(op)?),
            INSERT => Step::Insert(number(op)?, varint::take_bytes(op)?),
            REMOVE => Step::Remove(number(op)?, number(op)?),
            REMOVE_EACH => {
                let count = number(op)?;
                let mut indexes = Vec::with_capacity(count.min(op.len()));
                let mut next = 0usize;
                for _ in 0..count {
                    let index = next.checked_add(number(op)?)?;
                    next = index.checked_add(1)?;
                    indexes.push(index);
                }
                Step::RemoveEach(indexes)
            }
            _ => return None,
        })
    }

    /// The step for tools.
    pub(super) fn show(&self) -> Option<DumpValue<'a>> {
        let number = |number: usize| i64::try_from(number).ok().map(DumpValue::Int);
        let verb = |front, back, end| if end == End::Front { front } else { back };
        Some(DumpValue::Record(match self {
            Step::Push(end, elements) => {
                let elements = elements.iter().map(|element| DumpValue::Bytes(element)).collect();
                vec![(verb("push_front", "push_back", *end), DumpValue::List(elements))]
            }
            Step::Pop(end, count) => vec![(verb("pop_front", "pop_back", *end), number(*count)?)],
            Step::Set(index, element) => {
                vec![("at", number(*index)?), ("set", DumpValue::Bytes(element))]
            }
            Step::Insert(index, element) => {
                vec![("at", number(*index)?), ("insert", DumpValue::Bytes(element))]
            }
            Step::Remove(index, count) => {
                vec![("at", number(*index)?), ("remove", number(*count)?)]
            }
            Step::RemoveEach(indexes) => {
                let indexes: Option<Vec<_>> = indexes.iter().map(|index| number(*index)).collect();
                vec![("remove_each", DumpValue::List(indexes?))]
            }
        }))
    }

    /// Every step of an operation; `None` if it is malformed.
    pub fn decode_all(mut op: &'a [u8]) -> Option<Vec<Step<'a>>> {
        let mut steps = Vec::new();
        while !op.is_empty() {
            steps.push(Step::take(&mut op)?);
        }
        Some(steps)
    }
}

impl ListValue {
    /// Applies `step` to the list; `None` if the list has no such place.
    pub(crate) fn apply(&mut self, step: &Step<'_>, limits: ListLimits) -> Option<()> {
        match step {
            Step::Push(end, elements) => {
                let bytes = elements.iter().map(|element| element.len()).sum();
                self.expect(*end, limits, bytes, elements.len());
                elements.iter().for_each(|element| self.push(*end, limits, element));
                return Some(());
            }
            Step::Pop(End::Front, count) if *count <= self.len() => self.remove(0, *count),
            Step::Pop(End::Back, count) => self.remove(self.len().checked_sub(*count)?, *count),
            Step::Set(index, element) => {
                self.expect(End::Back, limits, element.len(), 1);
                self.set(*index, limits, element).then_some(())?;
            }
            Step::Insert(index, element) => {
                self.expect(End::Back, limits, element.len(), 1);
                self.insert(*index, limits, element).then_some(())?;
                return Some(());
            }
            Step::Remove(index, count) if index.checked_add(*count)? <= self.len() => {
                self.remove(*index, *count);
            }
            Step::RemoveEach(indexes) if indexes.last().is_none_or(|&last| last < self.len()) => {
                self.remove_each(indexes);
            }
            _ => return None,
        }
        self.settle(limits);
        Some(())
    }
}
