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

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// Notes that a counter was counted up.
    pub fn add(&mut self, counter: u32) {
        self.0[counter as usize] += 1;
    }

    /// What a counter stands at.
    #[must_use]
    pub fn value(&self, counter: u32) -> u32 {
        self.0[counter as usize]
    }
}

/// `SET` of a counter to its first value.
#[derive(Debug)]
pub struct Fill<'a>(pub &'a Counters);

impl Question for Fill<'_> {
    fn count(&self) -> u32 {
        self.0.count()
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

/// `INCR`, and other requests that count up a counter by one.
#[derive(Debug)]
pub struct Count<'a> {
    counters: &'a mut Counters,
    request: Pattern,
}

impl<'a> Count<'a> {
    /// By `INCR`, of any counter.
    #[must_use]
    pub fn incr(counters: &'a mut Counters) -> Self {
        Self::by(counters, &[Word::Is("INCR"), Word::Open(NAME_BYTES)])
    }

    /// By these words, whose open one is the counter's name.
    #[must_use]
    pub fn by(counters: &'a mut Counters, words: &[Word<'_>]) -> Self {
        Self { counters, request: Pattern::new(words) }
    }
}

impl Question for Count<'_> {
    const ORDERED: bool = true;

    fn count(&self) -> u32 {
        self.counters.count()
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        self.counters.add(about);
        self.request.append(to).word(0).copy_from_slice(&name(b'c', about));
    }

    #[inline]
    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        integer(self.counters.value(about).into(), to);
    }
}
