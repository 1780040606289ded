//! Counters, each a key of its own.

use crate::load::question::Question;
use crate::load::words::{NAME_BYTES, Pattern, Word, array, bulk, bulk_number, integer, name};

/// What the server must hold.
#[derive(Debug)]
pub struct Counters(Vec<u32>);

/// As much as a counter that has been in use for a while.
const START: u32 = 1_000_000;

impl Counters {
    /// `count` counters.
    #[must_use]
    pub fn new(count: u32) -> Self {
        Self(vec![START; count as usize])
    }
}

/// `SET` of a counter to its first value.
#[derive(Debug)]
pub struct Fill<'a>(pub &'a Counters);

impl Question for Fill<'_> {
    fn count(&self) -> u32 {
        self.0.0.len() as u32
    }

    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        array(3, to);
        bulk(b"SET", to);
        bulk(&name(b'c', about), to);
        bulk_number(START.into(), to);
    }

    fn answer(&self, _: u32, to: &mut Vec<u8>) {
        to.extend_from_slice(b"+OK\r\n");
    }
}

/// `INCR`.
#[derive(Debug)]
pub struct Incr<'a> {
    counters: &'a mut Counters,
    request: Pattern,
}

impl<'a> Incr<'a> {
    /// Of any counter.
    #[must_use]
    pub fn new(counters: &'a mut Counters) -> Self {
        Self { counters, request: Pattern::new(&[Word::Is("INCR"), Word::Open(NAME_BYTES)]) }
    }
}

impl Question for Incr<'_> {
    const ORDERED: bool = true;

    fn count(&self) -> u32 {
        self.counters.0.len() as u32
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        self.counters.0[about as usize] += 1;
        self.request.append(to).word(0).copy_from_slice(&name(b'c', about));
    }

    #[inline]
    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        integer(self.counters.0[about as usize].into(), to);
    }
}
