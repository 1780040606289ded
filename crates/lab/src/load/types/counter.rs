//! Counters, each a key of its own.

use crate::load::question::{Question, ask};
use crate::load::words::Word::{Is, Open};
use crate::load::words::{NAME_BYTES, Pattern, Word, bulks, integer, name, ok};

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

    fn count(&self) -> u32 {
        self.0.len() as u32
    }
}

/// `SET` of a counter to its first value.
pub fn fill(counters: &Counters) -> impl Question {
    let write = |_: &mut _, about, to: &mut Vec<u8>| {
        bulks(&[b"SET", &name(b'c', about), START.to_string().as_bytes()], to);
    };
    ask(counters, counters.count(), write, |_, _, to| ok(to))
}

/// `INCR` of any counter.
pub fn incr(counters: &mut Counters) -> impl Question {
    count_up(counters, &[Is("INCR"), Open(NAME_BYTES)])
}

/// A request that counts up by one; its open word is the counter's name.
pub(super) fn count_up<'a>(
    counters: &'a mut Counters,
    words: &[Word<'_>],
) -> impl Question + use<'a> {
    let request = Pattern::new(words);
    let count = counters.count();
    let write = move |counters: &mut &mut Counters, about, to: &mut Vec<u8>| {
        counters.0[about as usize] += 1;
        request.append(to).word(0).copy_from_slice(&name(b'c', about));
    };
    ask(counters, count, write, |counters, about, to| {
        integer(counters.0[about as usize].into(), to)
    })
    .ordered()
}
