//! HyperLogLogs of some thousand elements each.

use crate::load::question::{Question, ask};
use crate::load::words::Word::{Is, Open};
use crate::load::words::{NAME_BYTES, Pattern, array, bulk, integer, name};

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
pub fn fill(counts: &Counts) -> impl Question {
    let write = |counts: &mut &Counts, about, to: &mut Vec<u8>| {
        array(2 + counts.elements as usize, to);
        bulk(b"PFADD", to);
        bulk(&name(b'p', about), to);
        for element in 0..counts.elements {
            bulk(&name(b'e', element), to);
        }
    };
    ask(counts, counts.count, write, |_, _, to| integer(1, to))
}

/// `PFADD` of an element that was counted already, of any key.
pub fn pfadd(counts: &Counts) -> impl Question {
    let request = Pattern::new(&[Is("PFADD"), Open(NAME_BYTES), Open(NAME_BYTES)]);
    let write = move |counts: &mut &Counts, about, to: &mut Vec<u8>| {
        let mut request = request.append(to);
        request.word(0).copy_from_slice(&name(b'p', about % counts.count));
        request.word(1).copy_from_slice(&name(b'e', about / counts.count));
    };
    ask(counts, counts.count * counts.elements, write, |_, _, to| integer(0, to))
}
