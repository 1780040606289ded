//! The bytes of an input one after the other, with their position and checksum.
//!
//! **Invariant:** the buffer has a fixed size, and what is collected for a caller grows with the
//! bytes that arrive, never with a length that the input announces.

use std::io::{self, Cursor, Read};

use crc_fast::{CrcAlgorithm, Digest};

use crate::error::Fault;

/// The size of the buffer of a file, and the step in which strings are read.
pub(crate) const STEP: usize = 64 << 10;

/// How many bytes can be looked at before they are taken.
const LOOK_AHEAD_MAX: usize = 64;

pub(crate) struct Source<R> {
    read: R,
    buffer: Vec<u8>,
    /// `buffer[at..end]` is not taken yet.
    at: usize,
    end: usize,
    /// Position of the buffer's first byte in the input.
    before: u64,
    /// The input is known to have the bytes before this position; more, perhaps.
    known_end: u64,
    /// `None` where no checksum is wanted.
    digest: Option<Digest>,
    /// `buffer[..digested]` is in the digest.
    digested: usize,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(read: R, buffer_bytes: usize) -> Source<R> {
        Source {
            read,
            buffer: vec![0; buffer_bytes.clamp(LOOK_AHEAD_MAX, STEP)],
            at: 0,
            end: 0,
            before: 0,
            known_end: 0,
            digest: Some(Digest::new(CrcAlgorithm::Crc64Redis)),
            digested: 0,
        }
    }

    /// The same, of `bytes` that begin at this position of its input and are there, without a
    /// checksum.
    pub(crate) fn of_part(read: R, at: u64, bytes: u64) -> Source<R> {
        let known_end = at.saturating_add(bytes);
        Source { before: at, known_end, digest: None, ..Source::new(read, STEP) }
    }

    /// So many bytes are there and not taken; more, perhaps.
    pub(crate) fn known_to_come(&self) -> u64 {
        self.known_end.saturating_sub(self.offset())
    }

    fn digest(&mut self, until: usize) {
        if let Some(digest) = &mut self.digest {
            digest.update(&self.buffer[self.digested..until]);
        }
        self.digested = until;
    }

    /// How many bytes have been taken.
    pub(crate) fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    /// The checksum of all bytes taken so far.
    pub(crate) fn checksum(&mut self) -> u64 {
        self.digest(self.at);
        self.digest.as_ref().map_or(0, |digest| digest.clone().finalize())
    }

    /// What has not been taken.
    pub(crate) fn into_rest(self) -> impl Read {
        let buffered = self.buffer[self.at..self.end].to_vec();
        Cursor::new(buffered).chain(self.read)
    }

    /// Makes at least one byte available.
    fn fill(&mut self) -> Result<(), Fault> {
        if self.is_at_end()? { Err(Fault::Truncated) } else { Ok(()) }
    }

    /// Whether nothing more comes.
    pub(crate) fn is_at_end(&mut self) -> Result<bool, Fault> {
        if self.at < self.end {
            return Ok(false);
        }
        self.digest(self.end);
        self.before += self.end as u64;
        (self.at, self.end, self.digested) = (0, 0, 0);
        loop {
            match self.read.read(&mut self.buffer) {
                Ok(0) => return Ok(true),
                Ok(count) => {
                    self.end = count;
                    return Ok(false);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What comes next: at least `count` bytes unless the input ends, at least one.
    pub(crate) fn look_ahead(&mut self, count: usize) -> Result<&[u8], Fault> {
        debug_assert!(count <= LOOK_AHEAD_MAX);
        self.fill()?;
        if self.end - self.at < count {
            self.digest(self.at);
            self.buffer.copy_within(self.at..self.end, 0);
            self.before += self.at as u64;
            (self.at, self.end, self.digested) = (0, self.end - self.at, 0);
            while self.end < count {
                match self.read.read(&mut self.buffer[self.end..]) {
                    Ok(0) => break,
                    Ok(more) => self.end += more,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(&self.buffer[self.at..self.end])
    }

    /// Takes what [`Self::look_ahead`] has shown.
    pub(crate) fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.at);
        self.at += count;
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Fault> {
        self.fill()?;
        let byte = self.buffer[self.at];
        self.at += 1;
        Ok(byte)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut out = [0; N];
        if let Some(bytes) = self.buffer[self.at..self.end].get(..N) {
            out.copy_from_slice(bytes);
            self.at += N;
        } else {
            for byte in &mut out {
                *byte = self.byte()?;
            }
        }
        Ok(out)
    }

    /// Appends the next `count` bytes to `out`.
    pub(crate) fn append_to(&mut self, out: &mut Vec<u8>, count: u64) -> Result<(), Fault> {
        out.reserve(count.min(STEP as u64) as usize);
        let mut left = count;
        while left > 0 {
            self.fill()?;
            let step = left.min((self.end - self.at) as u64) as usize;
            out.extend_from_slice(&self.buffer[self.at..self.at + step]);
            self.at += step;
            left -= step as u64;
        }
        Ok(())
    }

    /// Takes the next `count` bytes and drops them.
    pub(crate) fn skip(&mut self, count: u64) -> Result<(), Fault> {
        let mut left = count;
        while left > 0 {
            self.fill()?;
            let step = left.min((self.end - self.at) as u64) as usize;
            self.at += step;
            left -= step as u64;
        }
        Ok(())
    }

    /// 64 bits, little endian: a time in milliseconds.
    pub(crate) fn i64_le(&mut self) -> Result<i64, Fault> {
        Ok(i64::from_le_bytes(self.array()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_checksums_do_not_depend_on_the_buffer() {
        let bytes: Vec<u8> = (0..1000_u32).map(|n| (n * 7) as u8).collect();
        for size in [1, 2, 7, 999, 1000, STEP] {
            let mut source = Source::new(&bytes[..], size);
            let mut out = vec![source.byte().unwrap()];
            out.extend(source.array::<5>().unwrap());
            source.append_to(&mut out, 900).unwrap();
            assert_eq!(source.offset(), 906);
            assert_eq!(out, bytes[..906]);
            let expected = crc_fast::checksum(CrcAlgorithm::Crc64Redis, &bytes[..906]);
            assert_eq!(source.checksum(), expected);
            assert_eq!(source.checksum(), expected, "asked twice");
            let mut rest = Vec::new();
            source.into_rest().read_to_end(&mut rest).unwrap();
            assert_eq!(rest, bytes[906..]);
        }
    }

    #[test]
    fn an_announced_length_allocates_nothing() {
        let mut out = Vec::new();
        let result = Source::new(&b"abc"[..], STEP).append_to(&mut out, u64::MAX);
        assert!(matches!(result, Err(Fault::Truncated)));
        assert!(out.capacity() <= 2 * STEP, "{}", out.capacity());
    }
}
