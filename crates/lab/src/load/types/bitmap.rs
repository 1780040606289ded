//! Bitmaps of one size.

use crate::load::data::write_bytes;
use crate::load::question::{Question, ask};
use crate::load::words::Word::{Is, Open};
use crate::load::words::{NAME_BYTES, Pattern, array, bulk, bulk_number, bulks, integer, name, ok};

/// What the server must hold.
#[derive(Debug)]
pub struct Bitmaps {
    bitmap_bytes: usize,
    bytes: Vec<u8>,
    /// Set bits, by bitmap.
    counts: Vec<u32>,
}

impl Bitmaps {
    /// `count` bitmaps of `bitmap_bytes`, about half of the bits set.
    #[must_use]
    pub fn new(count: u32, bitmap_bytes: usize) -> Self {
        let mut bytes = vec![0; count as usize * bitmap_bytes];
        let mut counts = Vec::new();
        for (number, bitmap) in bytes.chunks_exact_mut(bitmap_bytes).enumerate() {
            write_bytes(number as u32, 0, bitmap);
            counts.push(bitmap.iter().map(|byte| byte.count_ones()).sum());
        }
        Self { bitmap_bytes, bytes, counts }
    }

    fn count(&self) -> u32 {
        self.counts.len() as u32
    }

    const fn bits(&self) -> u32 {
        self.bitmap_bytes as u32 * 8
    }
}

/// `SET` of a whole bitmap.
pub fn fill(bitmaps: &Bitmaps) -> impl Question {
    let write = |bitmaps: &mut &Bitmaps, about, to: &mut Vec<u8>| {
        let bytes = &bitmaps.bytes[about as usize * bitmaps.bitmap_bytes..];
        bulks(&[b"SET", &name(b'b', about), &bytes[..bitmaps.bitmap_bytes]], to);
    };
    ask(bitmaps, bitmaps.count(), write, |_, _, to| ok(to))
}

/// Where bit `about` of all is: the byte and its mask, the first bit being the highest.
const fn place(about: u32) -> (usize, u8) {
    (about as usize / 8, 0x80 >> (about % 8))
}

/// `SETBIT` that turns a bit over. The answer is the bit as it was.
pub fn setbit(bitmaps: &mut Bitmaps) -> impl Question {
    let count = bitmaps.count() * bitmaps.bits();
    let write = |bitmaps: &mut &mut Bitmaps, about, to: &mut Vec<u8>| {
        let (byte, mask) = place(about);
        let (bitmap, offset) = (about / bitmaps.bits(), about % bitmaps.bits());
        bitmaps.bytes[byte] ^= mask;
        let set = bitmaps.bytes[byte] & mask != 0;
        let count = &mut bitmaps.counts[bitmap as usize];
        *count = if set { *count + 1 } else { *count - 1 };
        array(4, to);
        bulk(b"SETBIT", to);
        bulk(&name(b'b', bitmap), to);
        bulk_number(offset.into(), to);
        bulk_number(set.into(), to);
    };
    let answer = |bitmaps: &&mut Bitmaps, about, to: &mut Vec<u8>| {
        let (byte, mask) = place(about);
        integer((bitmaps.bytes[byte] & mask == 0).into(), to);
    };
    ask(bitmaps, count, write, answer).ordered()
}

/// `BITCOUNT` of a whole bitmap.
pub fn bitcount(bitmaps: &Bitmaps) -> impl Question {
    let request = Pattern::new(&[Is("BITCOUNT"), Open(NAME_BYTES)]);
    ask(bitmaps, bitmaps.count(), request.about(b'b'), |bitmaps, about, to| {
        integer(bitmaps.counts[about as usize].into(), to);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_turns_over_and_the_count_follows() {
        let mut bitmaps = Bitmaps::new(2, 16);
        let about = 128 + 9;
        for _ in 0..4 {
            let before = bitmaps.bytes[17] & 0x40 != 0;
            let (mut request, mut answer) = (Vec::new(), Vec::new());
            let mut question = setbit(&mut bitmaps);
            question.write(about, &mut request);
            question.answer(about, &mut answer);
            assert_eq!(answer, if before { b":1\r\n" } else { b":0\r\n" });
            drop(question);
            let words = format!("b:00000001\r\n$1\r\n9\r\n$1\r\n{}\r\n", u8::from(!before));
            assert!(String::from_utf8(request).unwrap().ends_with(&words));
            let ones: u32 = bitmaps.bytes[16..].iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(bitmaps.counts[1], ones);
        }
    }
}
