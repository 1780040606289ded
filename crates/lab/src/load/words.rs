//! Requests and replies word by word, for those whose words differ in length or number; and
//! requests of fixed lengths, which are copied whole and patched.

use std::ops::Range;

use super::data::write_digits;

/// Appends the head of an array of `count` elements.
#[inline]
pub fn array(count: usize, to: &mut Vec<u8>) {
    head(b'*', count as u64, to);
}

/// Appends an array of bulk strings: a request, and some replies.
pub fn bulks(words: &[&[u8]], to: &mut Vec<u8>) {
    array(words.len(), to);
    for word in words {
        bulk(word, to);
    }
}

/// Appends a bulk string.
#[inline]
pub fn bulk(bytes: &[u8], to: &mut Vec<u8>) {
    bulk_head(bytes.len(), to);
    to.extend_from_slice(bytes);
    to.extend_from_slice(b"\r\n");
}

/// Appends the head of a bulk string of `length` bytes.
#[inline]
pub fn bulk_head(length: usize, to: &mut Vec<u8>) {
    head(b'$', length as u64, to);
}

/// Appends a number as a bulk string.
#[inline]
pub fn bulk_number(number: u64, to: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let start = decimal(number, &mut digits);
    bulk(&digits[start..], to);
}

/// Appends an integer reply.
#[inline]
pub fn integer(number: u64, to: &mut Vec<u8>) {
    head(b':', number, to);
}

/// Room for any integer reply.
pub const INTEGER_BYTES_MAX: usize = 24;

#[inline]
fn head(kind: u8, number: u64, to: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let start = decimal(number, &mut digits);
    to.push(kind);
    to.extend_from_slice(&digits[start..]);
    to.extend_from_slice(b"\r\n");
}

/// Writes `number` at the end of `digits`; returns where it begins.
#[inline]
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> usize {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return start;
        }
    }
}

/// A name of ten bytes: `prefix`, a colon and `number` in eight digits.
#[inline]
#[must_use]
pub fn name(prefix: u8, number: u32) -> [u8; NAME_BYTES] {
    let mut name = [prefix, b':', 0, 0, 0, 0, 0, 0, 0, 0];
    write_digits(number, &mut name[2..]);
    name
}

/// Length of a [`name`].
pub const NAME_BYTES: usize = 10;
/// What a [`name`] takes as a bulk string: `$10`, itself, and both line ends.
pub const NAME_BULK_BYTES: usize = 5 + NAME_BYTES + 2;
/// Appends `+OK`, the reply to many writes.
#[inline]
pub fn ok(to: &mut Vec<u8>) {
    to.extend_from_slice(b"+OK\r\n");
}

/// As many as a [`name`] tells apart.
pub const NAMES_MAX: u32 = 100_000_000;

/// A word of a [`Pattern`].
#[derive(Clone, Copy, Debug)]
pub enum Word<'a> {
    /// The same in every request.
    Is(&'a str),
    /// Written anew, of this many bytes.
    Open(usize),
}

/// A request of fixed length.
#[derive(Clone, Debug)]
pub struct Pattern {
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
}

impl Pattern {
    /// The request with these words, the command's name first.
    #[must_use]
    pub fn new(words: &[Word<'_>]) -> Self {
        let mut bytes = Vec::new();
        let mut places = Vec::new();
        array(words.len(), &mut bytes);
        for word in words {
            match *word {
                Word::Is(text) => bulk(text.as_bytes(), &mut bytes),
                Word::Open(length) => {
                    bulk(&vec![b' '; length], &mut bytes);
                    places.push(bytes.len() - 2 - length..bytes.len() - 2);
                }
            }
        }
        Self { bytes, places }
    }

    /// Writes the request about thing `about` of [`super::question::ask`]: its one open word is
    /// the [`name`] of the thing.
    pub fn about<M>(self, prefix: u8) -> impl FnMut(&mut M, u32, &mut Vec<u8>) {
        move |_, about, to| self.append(to).word(0).copy_from_slice(&name(prefix, about))
    }

    /// Appends the request; its open words are to be written.
    #[inline]
    pub fn append<'a>(&'a self, to: &'a mut Vec<u8>) -> Appended<'a> {
        let start = to.len();
        to.extend_from_slice(&self.bytes);
        Appended { bytes: &mut to[start..], places: &self.places }
    }
}

/// A request that was just appended.
#[derive(Debug)]
pub struct Appended<'a> {
    bytes: &'a mut [u8],
    places: &'a [Range<usize>],
}

impl Appended<'_> {
    /// Open word `index`, to be written.
    #[inline]
    pub fn word(&mut self, index: usize) -> &mut [u8] {
        &mut self.bytes[self.places[index].clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let mut bytes = Vec::new();
        array(2, &mut bytes);
        bulk(b"", &mut bytes);
        bulk_number(1200, &mut bytes);
        integer(0, &mut bytes);
        integer(u64::MAX, &mut bytes);
        assert_eq!(bytes, b"*2\r\n$0\r\n\r\n$4\r\n1200\r\n:0\r\n:18446744073709551615\r\n");
        assert!(INTEGER_BYTES_MAX > b":18446744073709551615\r\n".len());
        assert_eq!(&name(b'm', 1234), b"m:00001234");
        assert_eq!(&name(b'm', NAMES_MAX - 1), b"m:99999999");
    }

    #[test]
    fn patterns_are_patched_in_their_places() {
        let pattern = Pattern::new(&[Word::Is("SET"), Word::Open(2), Word::Is("x")]);
        let mut bytes = b"before".to_vec();
        for key in [b"k0", b"k1"] {
            pattern.append(&mut bytes).word(0).copy_from_slice(key);
        }
        let request = |key| format!("*3\r\n$3\r\nSET\r\n$2\r\n{key}\r\n$1\r\nx\r\n");
        assert_eq!(bytes, format!("before{}{}", request("k0"), request("k1")).as_bytes());
    }
}
