//! RDB's lengths and strings, whole or piece by piece.
//!
//! ```text
//! length := 00xxxxxx | 01xxxxxx x | 10000000 u32 | 10000001 u64         (big endian)
//! string := length, bytes | 11000000 i8 | 11000001 i16 | 11000010 i32   (little endian)
//!           | 11000011 length of the compressed bytes, length of the bytes, compressed bytes
//! compressed bytes (LZF) :=
//!     000LLLLL bytes              L + 1 literal bytes
//!     LLLOOOOO O                  L + 2 bytes from O + 1 bytes before the end, L in 1..=6
//!     111OOOOO L O                as this, L + 9 bytes
//! ```
//!
//! Source: `rdb.h` and `lzf_d.c` of Redis 7.4.

use std::io::Read;

use crate::error::Fault;
use crate::source::{STEP, Source};

/// Redis' limit on a string by default (`proto-max-bulk-len`) is far below; this bounds a file that
/// compresses zeros.
const UNPACKED_BYTES_MAX: u64 = 4 << 30;

/// How far back a copy of LZF reaches.
const LZF_WINDOW: usize = 8 << 10;

/// No instruction of LZF is longer: a literal of 32 bytes.
const LZF_INSTRUCTION_MAX: usize = 33;

const LZF_INSIDE: Fault = Fault::Malformed("the compressed string ends inside an instruction");

pub(crate) enum Length {
    Bytes(u64),
    /// A string in another form.
    Encoded(u8),
}

fn read_head<R: Read>(source: &mut Source<R>) -> Result<Length, Fault> {
    let first = source.byte()?;
    Ok(match first >> 6 {
        0 => Length::Bytes(first.into()),
        1 => Length::Bytes(u64::from(first & 0x3f) << 8 | u64::from(source.byte()?)),
        2 if first == 0x80 => Length::Bytes(u32::from_be_bytes(source.array()?).into()),
        2 if first == 0x81 => Length::Bytes(u64::from_be_bytes(source.array()?)),
        2 => return Err(Fault::Malformed("the first byte of a length is none")),
        _ => Length::Encoded(first & 0x3f),
    })
}

pub(crate) fn read_length<R: Read>(source: &mut Source<R>) -> Result<u64, Fault> {
    match read_head(source)? {
        Length::Bytes(length) => Ok(length),
        Length::Encoded(_) => Err(Fault::Malformed("a string's form stands where a length should")),
    }
}

/// A whole string.
pub(crate) fn read_string<R: Read>(source: &mut Source<R>) -> Result<Vec<u8>, Fault> {
    Text::open(source)?.into_whole(source)
}

/// Takes a string without looking into it.
pub(crate) fn skip_string<R: Read>(source: &mut Source<R>) -> Result<(), Fault> {
    match read_head(source)? {
        Length::Bytes(length) => source.skip(length),
        Length::Encoded(0) => source.skip(1),
        Length::Encoded(1) => source.skip(2),
        Length::Encoded(2) => source.skip(4),
        Length::Encoded(3) => {
            let compressed = read_length(source)?;
            read_length(source)?;
            source.skip(compressed)
        }
        Length::Encoded(_) => Err(Fault::Malformed("a string has an unknown form")),
    }
}

enum Form {
    Raw,
    Lzf { compressed_left: u64 },
}

/// A string that is read piece by piece.
pub(crate) struct Text {
    /// Bytes of the string. Those before `at` are taken; LZF still copies from them.
    stage: Vec<u8>,
    at: usize,
    /// Bytes that are not in `stage` yet.
    left: u64,
    length: u64,
    form: Form,
}

impl Text {
    /// Reads what precedes a string's bytes.
    pub(crate) fn open<R: Read>(source: &mut Source<R>) -> Result<Text, Fault> {
        let number = match read_head(source)? {
            Length::Bytes(length) => return Ok(Text::new(Vec::new(), length, Form::Raw)),
            Length::Encoded(0) => i32::from(source.byte()? as i8),
            Length::Encoded(1) => i32::from(i16::from_le_bytes(source.array()?)),
            Length::Encoded(2) => i32::from_le_bytes(source.array()?),
            Length::Encoded(3) => {
                let compressed_left = read_length(source)?;
                let length = read_length(source)?;
                if length > UNPACKED_BYTES_MAX {
                    return Err(Fault::Malformed("a compressed string is longer than 4 GiB"));
                }
                return Ok(Text::new(Vec::new(), length, Form::Lzf { compressed_left }));
            }
            Length::Encoded(_) => return Err(Fault::Malformed("a string has an unknown form")),
        };
        Ok(Text::new(number.to_string().into_bytes(), 0, Form::Raw))
    }

    fn new(stage: Vec<u8>, left: u64, form: Form) -> Text {
        Text { length: left + stage.len() as u64, stage, at: 0, left, form }
    }

    /// Bytes of the whole string, as announced.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Bytes that have not been taken.
    pub(crate) fn remaining(&self) -> u64 {
        self.left + (self.stage.len() - self.at) as u64
    }

    /// Bytes that have been taken.
    pub(crate) fn taken(&self) -> u64 {
        self.length - self.remaining()
    }

    /// The next `count` bytes, which stay; an error if the string is shorter.
    pub(crate) fn peek<R: Read>(
        &mut self,
        source: &mut Source<R>,
        count: usize,
    ) -> Result<&[u8], Fault> {
        if self.stage.len() - self.at < count {
            self.fill(source, count)?;
        }
        Ok(&self.stage[self.at..self.at + count])
    }

    /// Takes what [`Self::peek`] has shown.
    pub(crate) fn advance(&mut self, count: usize) {
        self.at += count;
    }

    /// Takes a fixed number of bytes.
    pub(crate) fn array<const N: usize, R: Read>(
        &mut self,
        source: &mut Source<R>,
    ) -> Result<[u8; N], Fault> {
        let mut out = [0; N];
        out.copy_from_slice(self.peek(source, N)?);
        self.advance(N);
        Ok(out)
    }

    /// Takes `count` bytes.
    pub(crate) fn take<R: Read>(
        &mut self,
        source: &mut Source<R>,
        count: u64,
    ) -> Result<Vec<u8>, Fault> {
        if count > self.remaining() {
            return Err(Fault::Malformed("an element is longer than what holds it"));
        }
        let staged = (self.stage.len() - self.at) as u64;
        if matches!(self.form, Form::Raw) && count > staged {
            // A long element is not copied twice.
            let mut out = self.stage[self.at..].to_vec();
            self.at = self.stage.len();
            self.left -= count - staged;
            source.append_to(&mut out, count - staged)?;
            return Ok(out);
        }
        let count = count as usize;
        let out = self.peek(source, count)?.to_vec();
        self.advance(count);
        Ok(out)
    }

    /// The next piece, of at most [`STEP`] bytes and some more; `None` at the end.
    pub(crate) fn next_piece<R: Read>(
        &mut self,
        source: &mut Source<R>,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let count = self.remaining().min(STEP as u64);
        if count == 0 {
            return Ok(None);
        }
        if matches!(self.form, Form::Lzf { .. }) && count == self.length {
            // A short string need not be kept for later copies.
            while self.left > 0 {
                self.decompress(source)?;
            }
            self.check_end()?;
            return Ok(Some(std::mem::take(&mut self.stage)));
        }
        let room = if self.taken() == 0 { self.room(source) } else { 0 };
        if room == 0 {
            return self.take(source, count).map(Some);
        }
        let mut first = Vec::new();
        // Without it, the string is moved while it grows.
        let _ = first.try_reserve_exact(room);
        first.extend_from_slice(&self.take(source, count)?);
        Ok(Some(first))
    }

    /// Bytes of the string, if it is long and so much of it is there that it is no mere announcement.
    fn room<R: Read>(&self, source: &Source<R>) -> usize {
        /// The longest copy of LZF, 264 bytes, takes three.
        const LZF_RATIO_MAX: u64 = 88;
        let to_come = source.known_to_come();
        let is_there = match self.form {
            Form::Raw => self.left <= to_come,
            Form::Lzf { compressed_left } => {
                compressed_left <= to_come
                    && self.length <= compressed_left.saturating_mul(LZF_RATIO_MAX)
            }
        };
        if is_there && self.length > STEP as u64 { self.length as usize } else { 0 }
    }

    /// Takes the rest without looking into it.
    pub(crate) fn skip_rest<R: Read>(&self, source: &mut Source<R>) -> Result<(), Fault> {
        match self.form {
            Form::Raw => source.skip(self.left),
            Form::Lzf { compressed_left } => source.skip(compressed_left),
        }
    }

    fn into_whole<R: Read>(mut self, source: &mut Source<R>) -> Result<Vec<u8>, Fault> {
        // Without it, a long string is moved while it grows.
        let _ = self.stage.try_reserve_exact(self.room(source));
        match self.form {
            Form::Raw => {
                source.append_to(&mut self.stage, self.left)?;
            }
            Form::Lzf { .. } => {
                while self.left > 0 {
                    self.decompress(source)?;
                }
                self.check_end()?;
            }
        }
        Ok(self.stage)
    }

    /// Puts at least `count` bytes that are not taken into the stage.
    fn fill<R: Read>(&mut self, source: &mut Source<R>, count: usize) -> Result<(), Fault> {
        if count as u64 > self.remaining() {
            return Err(Fault::Malformed("an element is longer than what holds it"));
        }
        let kept = if matches!(self.form, Form::Raw) { 0 } else { LZF_WINDOW };
        if self.at >= STEP + kept || kept == 0 {
            self.stage.drain(..self.at - kept);
            self.at = kept;
        }
        match self.form {
            Form::Raw => {
                let wanted = (count - (self.stage.len() - self.at)).max(STEP) as u64;
                let step = wanted.min(self.left);
                source.append_to(&mut self.stage, step)?;
                self.left -= step;
            }
            Form::Lzf { .. } => {
                while self.left > 0 && self.stage.len() - self.at < count.max(STEP) {
                    self.decompress(source)?;
                }
                if self.left == 0 {
                    self.check_end()?;
                }
            }
        }
        Ok(())
    }

    fn check_end(&self) -> Result<(), Fault> {
        match self.form {
            Form::Lzf { compressed_left: 1.. } => {
                Err(Fault::Malformed("a compressed string is longer than announced"))
            }
            _ => Ok(()),
        }
    }

    /// Some instructions of LZF, at least one.
    fn decompress<R: Read>(&mut self, source: &mut Source<R>) -> Result<(), Fault> {
        let Form::Lzf { compressed_left } = &mut self.form else { return Ok(()) };
        let input = source.look_ahead(LZF_INSTRUCTION_MAX)?;
        let is_all = input.len() as u64 >= *compressed_left;
        if !is_all && input.len() < LZF_INSTRUCTION_MAX {
            return Err(Fault::Truncated);
        }
        let input = if is_all { &input[..*compressed_left as usize] } else { input };
        let mut rest = input;
        let enough = self.stage.len() + STEP;
        let result = loop {
            match lzf_instruction(rest, &mut self.stage, &mut self.left) {
                Ok(behind) => rest = behind,
                Err(fault) => break Err(fault),
            }
            let is_whole =
                if is_all { !rest.is_empty() } else { rest.len() >= LZF_INSTRUCTION_MAX };
            if !is_whole || self.left == 0 || self.stage.len() >= enough {
                break Ok(());
            }
        };
        let used = input.len() - rest.len();
        *compressed_left -= used as u64;
        source.advance(used);
        result
    }
}

/// Does the first instruction of `input`, and returns those behind it.
fn lzf_instruction<'a>(
    input: &'a [u8],
    out: &mut Vec<u8>,
    left: &mut u64,
) -> Result<&'a [u8], Fault> {
    const TOO_LONG: Fault = Fault::Malformed("a compressed string is longer than announced");
    let (&first, rest) = input.split_first().ok_or(LZF_INSIDE)?;
    if first < 0x20 {
        let (literal, rest) = rest.split_at_checked(usize::from(first) + 1).ok_or(LZF_INSIDE)?;
        *left = left.checked_sub(literal.len() as u64).ok_or(TOO_LONG)?;
        out.extend_from_slice(literal);
        return Ok(rest);
    }
    let (count, rest) = match first >> 5 {
        7 => {
            let (&more, rest) = rest.split_first().ok_or(LZF_INSIDE)?;
            (usize::from(more) + 9, rest)
        }
        count => (usize::from(count) + 2, rest),
    };
    let (&low, rest) = rest.split_first().ok_or(LZF_INSIDE)?;
    let back = (usize::from(first & 0x1f) << 8 | usize::from(low)) + 1;
    let Some(from) = out.len().checked_sub(back) else {
        return Err(Fault::Malformed("a compressed string copies from before itself"));
    };
    *left = left.checked_sub(count as u64).ok_or(TOO_LONG)?;
    // What is copied may begin in what is being written: then it repeats.
    let mut copied = 0;
    while copied < count {
        let step = (count - copied).min(back + copied);
        out.extend_from_within(from..from + step);
        copied += step;
    }
    Ok(rest)
}

/// Appends what precedes the bytes of a string that is not compressed, or a number.
pub fn put_length(out: &mut Vec<u8>, length: u64) {
    match length {
        0..0x40 => out.push(length as u8),
        0x40..0x4000 => out.extend_from_slice(&(length as u16 | 0x4000).to_be_bytes()),
        _ => match u32::try_from(length) {
            Ok(length) => {
                out.push(0x80);
                out.extend_from_slice(&length.to_be_bytes());
            }
            Err(_) => {
                out.push(0x81);
                out.extend_from_slice(&length.to_be_bytes());
            }
        },
    }
}

/// Takes a string of at most `bytes_max` off the front of `input`.
///
/// # Errors
/// If it is malformed, or longer.
pub fn take_string(input: &mut &[u8], bytes_max: usize) -> Result<Vec<u8>, Fault> {
    let mut source = Source::new(*input, input.len());
    let text = Text::open(&mut source)?;
    if text.length() > bytes_max as u64 {
        return Err(Fault::Malformed("a string is too long"));
    }
    let bytes = text.into_whole(&mut source)?;
    *input = &input[source.offset() as usize..];
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_every_length_read_back_and_every_cut_is_an_error() {
        for length in [0, 1, 63, 64, 0x3fff, 0x4000, 70_000] {
            let bytes: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let mut out = Vec::new();
            put_length(&mut out, length as u64);
            out.extend_from_slice(&bytes);
            let mut input = &out[..];
            assert_eq!(take_string(&mut input, length).unwrap(), bytes);
            assert!(input.is_empty());
            if length > 0 {
                assert!(take_string(&mut &out[..], length - 1).is_err(), "longer than allowed");
                assert!(take_string(&mut &out[..out.len() - 1], length).is_err());
            }
        }
    }

    #[test]
    fn numbers_are_strings_too() {
        let read = |mut input: &[u8]| take_string(&mut input, 100).ok();
        assert_eq!(read(b"\xc0\xff").as_deref(), Some(&b"-1"[..]));
        assert_eq!(read(b"\xc1\x00\x80").as_deref(), Some(&b"-32768"[..]));
        assert_eq!(read(b"\xc2\x01\x00\x01\x00").as_deref(), Some(&b"65537"[..]));
        for malformed in [&b""[..], b"\xc1\x00", b"\xc4", b"\x82", b"\x81\xff\xff\xff\xff\0\0\0\0"]
        {
            assert_eq!(read(malformed), None, "{malformed:?}");
        }
    }

    /// A string of `length` bytes that `compressed` makes.
    fn lzf(compressed: &[u8], length: u64) -> Vec<u8> {
        let mut out = vec![0xc3];
        put_length(&mut out, compressed.len() as u64);
        put_length(&mut out, length);
        out.extend_from_slice(compressed);
        out
    }

    fn decompress(compressed: &[u8], length: u64) -> Option<Vec<u8>> {
        take_string(&mut &lzf(compressed, length)[..], usize::MAX).ok()
    }

    #[test]
    fn literals_and_copies() {
        assert_eq!(decompress(b"\x02abc", 3).as_deref(), Some(&b"abc"[..]));
        assert_eq!(decompress(b"\x00a\x20\x00", 4).as_deref(), Some(&b"aaaa"[..]));
        assert_eq!(decompress(b"\x01ab\xe0\x01\x01", 12).as_deref(), Some(&b"abababababab"[..]));
        assert_eq!(decompress(b"", 0).as_deref(), Some(&b""[..]));
    }

    #[test]
    fn what_is_malformed_is_refused() {
        for (input, length) in [
            (&b"\x02ab"[..], 3),
            (b"\x02abc", 2),
            (b"\x02abc", 4),
            (b"\x00a\x20\x01", 4),
            (b"\x00a\x20\x00", 3),
            (b"\x00a\x20", 4),
            (b"\x00a\xe0", 10),
            (b"\x00a\xe0\x00", 10),
            (b"\x20\x00", 3),
            (b"\x00a", 1 << 40),
            (b"\x00a\x00b", 1),
        ] {
            assert_eq!(decompress(input, length), None, "{input:?} to {length}");
        }
    }

    /// Far more than the window and the step: copies reach back over what was given away.
    #[test]
    fn a_long_compressed_string_is_read_in_pieces() {
        let mut compressed = b"\x07abcdefgh".to_vec();
        let mut length = 8;
        while length < 5 * STEP as u64 {
            // 264 bytes from 8 before the end.
            compressed.extend_from_slice(b"\xe0\xff\x07");
            length += 264;
        }
        let bytes = lzf(&compressed, length);
        let mut source = Source::new(&bytes[..], 100);
        let mut text = Text::open(&mut source).unwrap();
        let mut whole = Vec::new();
        while let Some(piece) = text.next_piece(&mut source).unwrap() {
            assert!(piece.len() <= STEP);
            assert!(text.stage.capacity() <= 4 * STEP, "{}", text.stage.capacity());
            whole.extend(piece);
        }
        assert_eq!(text.taken(), length);
        let expected: Vec<u8> = b"abcdefgh".iter().copied().cycle().take(length as usize).collect();
        assert!(whole == expected);
    }
}
