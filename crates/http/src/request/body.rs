//! Where a body ends: after its length, or after the last of its chunks (RFC 9112, section 7.1).

use super::head::{BodyKind, Refused};

/// Bytes of the line before a chunk, and of all lines behind the last chunk.
const LINE_BYTES_MAX: usize = 256;
const TRAILER_BYTES_MAX: usize = 4 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// So many bytes are to come; of the chunk, if there are chunks.
    Data(u64),
    /// In the line with a chunk's length.
    Length {
        value: u64,
        digits: u8,
        /// Behind the digits, in an extension.
        is_over: bool,
    },
    /// In the line's end behind a chunk.
    AfterData,
    /// In the lines behind the last chunk.
    Trailer,
    End,
}

/// Takes a body out of the bytes of a connection.
#[derive(Clone, Debug)]
pub struct Body {
    state: State,
    is_chunked: bool,
    /// Bytes of the line of the moment, or of the trailer.
    line: usize,
    /// The last byte was CR.
    was_cr: bool,
    /// The line of the trailer has something.
    line_has_text: bool,
}

impl Body {
    /// A body that is delimited so.
    pub fn new(kind: BodyKind) -> Body {
        let state = match kind {
            BodyKind::Length(0) => State::End,
            BodyKind::Length(length) => State::Data(length),
            BodyKind::Chunked => State::Length { value: 0, digits: 0, is_over: false },
        };
        let is_chunked = kind == BodyKind::Chunked;
        Body { state, is_chunked, line: 0, was_cr: false, line_has_text: false }
    }

    /// Whether all of it was taken.
    pub fn is_over(&self) -> bool {
        self.state == State::End
    }

    /// Takes from the beginning of `bytes`: returns how many bytes of them were taken, and which of
    /// them are the body's. To be called until nothing is taken.
    ///
    /// # Errors
    /// When the chunks are not what they should be.
    pub fn take<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, &'a [u8]), Refused> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::End {
            if let State::Data(left) = self.state {
                let count = (bytes.len() - at).min(usize::try_from(left).unwrap_or(usize::MAX));
                let left = left - count as u64;
                self.state = match (left, self.is_chunked) {
                    (0, true) => State::AfterData,
                    (0, false) => State::End,
                    _ => State::Data(left),
                };
                return Ok((at + count, &bytes[at..at + count]));
            }
            self.step(bytes[at])?;
            at += 1;
        }
        Ok((at, &[]))
    }

    /// One byte that is none of the body's.
    fn step(&mut self, byte: u8) -> Result<(), Refused> {
        let wrong = |what: &str| Refused::new(400, format!("a chunk of the body {what}"));
        if byte == b'\n' && !self.was_cr {
            return Err(wrong("has a line that ends with a bare LF"));
        }
        if self.was_cr && byte != b'\n' {
            return Err(wrong("has a CR inside of a line"));
        }
        self.was_cr = byte == b'\r';
        self.line += 1;
        let line_max =
            if self.state == State::Trailer { TRAILER_BYTES_MAX } else { LINE_BYTES_MAX };
        if self.line > line_max {
            return Err(wrong("has too long a line"));
        }
        match self.state {
            State::Length { value, digits, is_over } => match byte {
                b'\r' if digits > 0 => {}
                b'\n' => {
                    self.line = 0;
                    self.line_has_text = false;
                    self.state = if value == 0 { State::Trailer } else { State::Data(value) };
                }
                b';' | b' ' | b'\t' if digits > 0 => {
                    self.state = State::Length { value, digits, is_over: true };
                }
                _ if is_over => {}
                _ => {
                    let digit = char::from(byte).to_digit(16);
                    let Some(digit) = digit.filter(|_| digits < 15) else {
                        return Err(wrong("has no length"));
                    };
                    let value = value << 4 | u64::from(digit);
                    self.state = State::Length { value, digits: digits + 1, is_over };
                }
            },
            State::AfterData => match byte {
                b'\r' => {}
                b'\n' => {
                    self.line = 0;
                    self.state = State::Length { value: 0, digits: 0, is_over: false };
                }
                _ => return Err(wrong("is longer than it said")),
            },
            State::Trailer => match byte {
                b'\r' => {}
                b'\n' if self.line_has_text => self.line_has_text = false,
                b'\n' => self.state = State::End,
                _ => self.line_has_text = true,
            },
            State::Data(_) | State::End => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(kind: BodyKind, bytes: &[u8], at_once: usize) -> Result<(Vec<u8>, usize), String> {
        let mut body = Body::new(kind);
        let mut found = Vec::new();
        let mut used = 0;
        while !body.is_over() && used < bytes.len() {
            let part = &bytes[used..bytes.len().min(used + at_once)];
            let (count, data) = body.take(part).map_err(|refused| refused.why)?;
            found.extend_from_slice(data);
            used += count;
        }
        if body.is_over() { Ok((found, used)) } else { Err("incomplete".to_owned()) }
    }

    #[test]
    fn bodies_end_where_they_say() {
        for at_once in 1..40 {
            let all = b"4\r\nWiki\r\nB;x=\"y\"\r\n pedia in \n\r\n0\r\nExpires: never\r\n\r\nGET";
            let (body, used) = taken(BodyKind::Chunked, all, at_once).expect("chunks");
            assert_eq!((&body[..], &all[used..]), (&b"Wiki pedia in \n"[..], &b"GET"[..]));
            let (body, used) = taken(BodyKind::Length(3), b"abcd", at_once).expect("length");
            assert_eq!((&body[..], used), (&b"abc"[..], 3));
        }
        assert!(Body::new(BodyKind::Length(0)).is_over());
    }

    #[test]
    fn chunks_that_could_be_read_in_two_ways_are_refused() {
        let long = format!("1;{}\r\n", "x".repeat(LINE_BYTES_MAX));
        let trailer = format!("0\r\n{}", "a: b\r\n".repeat(TRAILER_BYTES_MAX));
        for (bytes, why) in [
            ("\r\n", "no length"),
            ("x\r\n", "no length"),
            ("-1\r\n", "no length"),
            ("0x1\r\n", "no length"),
            ("1\nab\r\n", "bare LF"),
            ("1\r\nabc", "longer"),
            ("1\r\na\n", "bare LF"),
            ("1\ra", "CR inside"),
            ("fffffffffffffffff\r\n", "no length"),
            (long.as_str(), "too long"),
            (trailer.as_str(), "too long"),
            ("0\r\n", "incomplete"),
        ] {
            for at_once in [1, 1000] {
                let error = taken(BodyKind::Chunked, bytes.as_bytes(), at_once).expect_err(bytes);
                assert!(error.contains(why), "{bytes:?}: {error}");
            }
        }
    }
}
