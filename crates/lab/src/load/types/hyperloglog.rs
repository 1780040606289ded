//! HyperLogLogs of some thousand elements each.

use crate::load::question::Question;
use crate::load::words::{NAME_BYTES, Pattern, Word, array, bulk, integer, name};

/// What the server must hold.
#[derive(Debug)]
pub struct Counts {
    count: u32,
    elements: u32,
}

impl Counts {
    /// `count` keys that have counted `elements` elements each.
    #[must_use]
    pub const fn new(count: u32, elements: u32) -> Self {
        Self { count, elements }
    }
}

/// `PFADD` of all elements of a key at once.
#[derive(Debug)]
pub struct Fill<'a>(pub &'a Counts);

impl Question for Fill<'_> {
    fn count(&self) -> u32 {
        self.0.count
    }

    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        array(2 + self.0.elements as usize, to);
        bulk(b"PFADD", to);
        bulk(&name(b'p', about), to);
        for element in 0..self.0.elements {
            bulk(&name(b'e', element), to);
        }
    }

    fn answer(&self, _: u32, to: &mut Vec<u8>) {
        integer(1, to);
    }
}

/// `PFADD` of an element that was counted already.
#[derive(Debug)]
pub struct Pfadd<'a> {
    counts: &'a Counts,
    request: Pattern,
}

impl<'a> Pfadd<'a> {
    /// Of any element of any key.
    #[must_use]
    pub fn new(counts: &'a Counts) -> Self {
        let words = [Word::Is("PFADD"), Word::Open(NAME_BYTES), Word::Open(NAME_BYTES)];
        Self { counts, request: Pattern::new(&words) }
    }
}

impl Question for Pfadd<'_> {
    fn count(&self) -> u32 {
        self.counts.count * self.counts.elements
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        let mut request = self.request.append(to);
        request.word(0).copy_from_slice(&name(b'p', about % self.counts.count));
        request.word(1).copy_from_slice(&name(b'e', about / self.counts.count));
    }

    #[inline]
    fn answer(&self, _: u32, to: &mut Vec<u8>) {
        integer(0, to);
    }
}
