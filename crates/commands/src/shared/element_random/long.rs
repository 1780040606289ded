//! Long replies of random elements, made from a frozen value.

use super::{CHOICE_MIN, Draw, WalkedTo};
use ladon_engine::Garbage;
use ladon_kernel::long::slices::{Keeping, Room, Slices};
use ladon_kernel::rng::Rng;
use ladon_resp::{Proto, Reply};
use std::collections::HashSet;

/// Elements still to be drawn, each independently.
pub(super) struct Repeats<V> {
    from: From<V>,
    with_values: bool,
    left: usize,
    rng: Rng,
}

/// The source of the elements.
enum From<V> {
    /// The value, and the part of it that was copied so far.
    Value {
        value: V,
        copied: WalkedTo,
        copy: Copy,
    },
    Copy(Copy),
}

/// Elements as they are in the reply.
#[derive(Default)]
struct Copy {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Copy {
    fn write(&self, reply: &mut Reply<'_>, index: usize) {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        reply.raw(&self.bytes[start..self.ends[index]]);
    }

    fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

impl<V: Draw> Repeats<V> {
    pub(super) fn new(value: V, with_values: bool, left: usize, rng: Rng) -> Repeats<V> {
        let from = From::Value { value, copied: WalkedTo::default(), copy: Copy::default() };
        Repeats { from, with_values, left, rng }
    }
}

impl<V: Draw> Slices for Repeats<V> {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        while self.left > 0 {
            if !room.take(reply) {
                return true;
            }
            self.left -= 1;
            match &self.from {
                From::Value { value, .. } => {
                    value.draw(&mut self.rng, &mut |element| {
                        element.write(reply, self.with_values);
                    });
                }
                From::Copy(copy) => copy.write(reply, self.rng.below(copy.ends.len())),
            }
        }
        false
    }

    /// The rest may be endless, so it is never made in advance. If it is larger than the value, the
    /// value is copied instead.
    fn keep(&mut self, proto: Proto, elements: usize) -> Keeping {
        let From::Value { value, copied, copy } = &mut self.from else { return Keeping::Own(None) };
        if self.left <= value.len() {
            return Keeping::Output;
        }
        if !value.is_large_form() {
            return Keeping::Own(None);
        }
        let mut left = elements.max(1);
        *copied = value.walk(*copied, &mut |element| {
            element.write(&mut Reply::new(&mut copy.bytes, proto), self.with_values);
            copy.ends.push(copy.bytes.len());
            left -= 1;
            left > 0
        });
        if copy.ends.len() < value.len() {
            return Keeping::More(None);
        }
        let copy = From::Copy(std::mem::take(copy));
        Keeping::Own(match std::mem::replace(&mut self.from, copy) {
            From::Value { value, .. } => Some(Garbage::of(value)),
            From::Copy(_) => None,
        })
    }

    fn memory(&self) -> usize {
        match &self.from {
            From::Value { value, copy, .. } if value.is_large_form() => copy.memory(),
            From::Value { value, .. } => value.bytes(),
            From::Copy(copy) => copy.memory(),
        }
    }
}

/// Distinct elements still to be taken from the large form of a value.
pub(super) struct Distinct<V> {
    value: V,
    with_values: bool,
    missing: usize,
    how: How,
    rng: Rng,
}

enum How {
    /// By drawing; these were drawn.
    Draw(HashSet<usize>),
    /// In one traversal, in which each element is taken with the probability that yields the
    /// required number.
    Walk { to: WalkedTo, left: usize },
}

impl<V: Draw> Distinct<V> {
    pub(super) fn new(value: V, with_values: bool, count: usize, rng: Rng) -> Distinct<V> {
        let how = if count.saturating_mul(CHOICE_MIN) <= value.len() {
            How::Draw(HashSet::new())
        } else {
            How::Walk { to: WalkedTo::default(), left: value.len() }
        };
        Distinct { value, with_values, missing: count, how, rng }
    }
}

impl<V: Draw> Slices for Distinct<V> {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        let Distinct { value, with_values, missing, how, rng } = self;
        match how {
            How::Draw(drawn) => {
                while *missing > 0 && room.take(reply) {
                    value.draw(rng, &mut |element| {
                        if drawn.insert(element.address()) {
                            element.write(reply, *with_values);
                            *missing -= 1;
                        }
                    });
                }
            }
            How::Walk { to, left } => {
                // Each examined element takes room, whether it is taken or not.
                if *missing > 0 && room.take(reply) {
                    *to = value.walk(*to, &mut |element| {
                        if rng.below(*left) < *missing {
                            element.write(reply, *with_values);
                            *missing -= 1;
                        }
                        *left -= 1;
                        *missing > 0 && room.take(reply)
                    });
                }
            }
        }
        *missing > 0
    }

    fn memory(&self) -> usize {
        match &self.how {
            How::Draw(drawn) => drawn.capacity() * size_of::<usize>(),
            How::Walk { .. } => 0,
        }
    }
}
