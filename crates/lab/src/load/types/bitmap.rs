//! Bitmaps of one size.

use crate::load::data::write_bytes;
use crate::load::question::Question;
use crate::load::words::{NAME_BYTES, Pattern, Word, array, bulk, bulk_number, integer, name};

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

    const fn bits(&self) -> u32 {
        self.bitmap_bytes as u32 * 8
    }
}

/// `SET` of a whole bitmap.
#[derive(Debug)]
pub struct Fill<'a>(pub &'a Bitmaps);

impl Question for Fill<'_> {
    fn count(&self) -> u32 {
        self.0.counts.len() as u32
    }

    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        array(3, to);
        bulk(b"SET", to);
        bulk(&name(b'b', about), to);
        bulk(&self.0.bytes[about as usize * self.0.bitmap_bytes..][..self.0.bitmap_bytes], to);
    }

    fn answer(&self, _: u32, to: &mut Vec<u8>) {
        to.extend_from_slice(b"+OK\r\n");
    }
}

/// `SETBIT` that turns a bit over.
#[derive(Debug)]
pub struct Setbit<'a>(pub &'a mut Bitmaps);

impl Setbit<'_> {
    /// Where bit `about` of all is: the byte and its mask, the first bit being the highest.
    const fn place(about: u32) -> (usize, u8) {
        (about as usize / 8, 0x80 >> (about % 8))
    }
}

impl Question for Setbit<'_> {
    const ORDERED: bool = true;

    fn count(&self) -> u32 {
        self.0.counts.len() as u32 * self.0.bits()
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        let (byte, mask) = Self::place(about);
        let (bitmap, offset) = (about / self.0.bits(), about % self.0.bits());
        self.0.bytes[byte] ^= mask;
        let set = self.0.bytes[byte] & mask != 0;
        let count = &mut self.0.counts[bitmap as usize];
        *count = if set { *count + 1 } else { *count - 1 };
        array(4, to);
        bulk(b"SETBIT", to);
        bulk(&name(b'b', bitmap), to);
        bulk_number(offset.into(), to);
        bulk_number(set.into(), to);
    }

    /// The bit as it was.
    #[inline]
    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        let (byte, mask) = Self::place(about);
        integer((self.0.bytes[byte] & mask == 0).into(), to);
    }
}

/// `BITCOUNT` of a whole bitmap.
#[derive(Debug)]
pub struct Bitcount<'a> {
    bitmaps: &'a Bitmaps,
    request: Pattern,
}

impl<'a> Bitcount<'a> {
    /// Of any bitmap.
    #[must_use]
    pub fn new(bitmaps: &'a Bitmaps) -> Self {
        Self { bitmaps, request: Pattern::new(&[Word::Is("BITCOUNT"), Word::Open(NAME_BYTES)]) }
    }
}

impl Question for Bitcount<'_> {
    fn count(&self) -> u32 {
        self.bitmaps.counts.len() as u32
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        self.request.append(to).word(0).copy_from_slice(&name(b'b', about));
    }

    #[inline]
    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        integer(self.bitmaps.counts[about as usize].into(), to);
    }
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
            let mut setbit = Setbit(&mut bitmaps);
            setbit.write(about, &mut request);
            setbit.answer(about, &mut answer);
            assert_eq!(answer, if before { b":1\r\n" } else { b":0\r\n" });
            let words = format!("b:00000001\r\n$1\r\n9\r\n$1\r\n{}\r\n", u8::from(!before));
            assert!(String::from_utf8(request).unwrap().ends_with(&words));
            let ones: u32 = bitmaps.bytes[16..].iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(bitmaps.counts[1], ones);
        }
    }
}
