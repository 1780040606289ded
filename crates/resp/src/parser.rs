//! The request parser: bytes -> positions of arguments.
//!
//! A request is an array of bulk strings (`*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n`) or an inline line
//! (`GET key\r\n`). Invariants:
//!
//! - Work is linear in the bytes that arrive: an unfinished request is resumed where it stopped,
//!   at the argument, however finely it is split.
//! - Memory follows what arrived, never what a header announced.
//! - As in Redis, the byte after a length line's CR and the two bytes after an argument are
//!   skipped without a look: a well-behaved client's framing does not depend on them.

use crate::error::ProtocolError;
use crate::inline::{self, Line};
use crate::limits::Limits;
use crate::number::parse_i64;

/// Where an argument lies in the slice that was given to [`Parser::parse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arg {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Arg {
    /// The argument's bytes; `buffer` is the slice that was parsed.
    #[inline]
    pub fn of(self, buffer: &[u8]) -> &[u8] {
        &buffer[self.start as usize..self.end as usize]
    }

    /// Length in bytes.
    #[inline]
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether the argument is the empty string.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// The result of parsing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// One request, its arguments appended; none for an empty line and for `*0` and `*-1`.
    Complete {
        /// Bytes of the request.
        consumed: usize,
    },
    /// One inline request with quotes, whose arguments differ from the input's bytes. Nothing was
    /// appended. Never empty.
    Inline {
        /// Bytes of the request.
        consumed: usize,
        /// The arguments, quotes and escapes undone.
        arguments: Vec<Vec<u8>>,
    },
    /// More bytes are needed. Call again with the same first byte and more bytes after it.
    Incomplete {
        /// Number of further bytes to make room for: never more than the request still needs, and
        /// never more than has arrived of it, so that a client that announces much and sends little
        /// gets little.
        needed: usize,
    },
}

/// Parses one connection's requests. Between requests it holds no heap memory.
#[derive(Debug, Default)]
pub struct Parser {
    /// Arguments still to come of the request begun; 0 before its header is read.
    remaining: u32,
    /// Where parsing continues: the next argument's length line.
    position: usize,
    /// Bytes from `position` on in which no line end was found.
    scanned: usize,
    /// Arguments found so far of a request that did not arrive in one piece.
    pending: Vec<Arg>,
    /// Their lengths together.
    pending_bytes: usize,
    /// Offset of the bytes that belong to no complete argument yet, after the line with their
    /// length.
    unfinished: usize,
}

/// The known part of a request that did not arrive in one piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    /// Bytes of the arguments that are there.
    pub argument_bytes: usize,
    /// Bytes of memory that the parser takes to remember them.
    pub parser_bytes: usize,
    /// Offset of the first incomplete argument in the slice that was parsed.
    pub unfinished: usize,
}

/// Room suggested by a header alone: about what one read brings.
const UNPROVEN_BYTES_MAX: usize = 16 * 1024;

impl Parser {
    /// A parser at the start of a request.
    pub fn new() -> Parser {
        Parser::default()
    }

    /// Whether part of a request has been seen and the rest is awaited.
    pub fn in_request(&self) -> bool {
        self.remaining != 0 || self.scanned != 0
    }

    /// What is known of a request that is not whole yet; all zero without one.
    pub fn partial(&self) -> Partial {
        Partial {
            argument_bytes: self.pending_bytes,
            parser_bytes: self.pending.capacity() * size_of::<Arg>(),
            unfinished: self.unfinished,
        }
    }

    /// Parses the request at the start of `buffer`. On [`Progress::Complete`] its arguments are
    /// appended to `args` (which is not cleared). On [`Progress::Incomplete`] and on an error
    /// `args` is unchanged. After an error the stream has no known request boundary any more: close
    /// it.
    ///
    /// Positions are 32 bits wide, so a single request is limited to 4 GiB.
    #[inline]
    pub fn parse(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
        args: &mut Vec<Arg>,
    ) -> Result<Progress, ProtocolError> {
        if self.in_request() {
            return self.resume(buffer, limits, args);
        }
        // The common case: a whole request with a one-digit count.
        if let [b'*', digit @ b'1'..=b'9', b'\r', _, ..] = buffer {
            let count = digit - b'0';
            return match whole(buffer, 4, count.into(), limits, args) {
                Some(consumed) => Ok(Progress::Complete { consumed }),
                None => self.fresh(buffer, 4, count.into(), limits, args),
            };
        }
        self.header(buffer, limits, args)
    }

    fn fresh(
        &mut self,
        buffer: &[u8],
        start: usize,
        count: u32,
        limits: &Limits,
        args: &mut Vec<Arg>,
    ) -> Result<Progress, ProtocolError> {
        let before = args.len();
        match bulks(buffer, start, count, 0, limits, args) {
            Ok(Step::Done { position }) => Ok(Progress::Complete { consumed: position }),
            Ok(Step::Stopped { position, remaining, scanned, needed, unfinished }) => {
                self.pending = args[before..].to_vec();
                self.pending_bytes = lengths(&self.pending);
                args.truncate(before);
                (self.position, self.remaining, self.scanned) = (position, remaining, scanned);
                self.unfinished = unfinished;
                Ok(Progress::Incomplete { needed: believable(needed, remaining, buffer.len()) })
            }
            Err(error) => {
                args.truncate(before);
                Err(error)
            }
        }
    }

    #[cold]
    fn resume(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
        args: &mut Vec<Arg>,
    ) -> Result<Progress, ProtocolError> {
        if self.remaining == 0 {
            return self.header(buffer, limits, args);
        }
        // Directly into `pending`: copying back and forth would be quadratic for long requests.
        let (position, remaining, scanned) = (self.position, self.remaining, self.scanned);
        let before = self.pending.len();
        match bulks(buffer, position, remaining, scanned, limits, &mut self.pending)? {
            Step::Done { position } => {
                // Many arguments change hands; a copy would be as much memory again.
                let mut pending = std::mem::take(self).pending;
                if args.is_empty() && args.capacity() < pending.len() {
                    *args = pending;
                } else {
                    args.append(&mut pending);
                }
                Ok(Progress::Complete { consumed: position })
            }
            Step::Stopped { position, remaining, scanned, needed, unfinished } => {
                self.pending_bytes += lengths(&self.pending[before..]);
                (self.position, self.remaining, self.scanned) = (position, remaining, scanned);
                self.unfinished = unfinished;
                Ok(Progress::Incomplete { needed: believable(needed, remaining, buffer.len()) })
            }
        }
    }

    /// The first line: an array's count, or an inline request.
    #[cold]
    fn header(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
        args: &mut Vec<Arg>,
    ) -> Result<Progress, ProtocolError> {
        let Some(first) = buffer.first() else { return Ok(Progress::Incomplete { needed: 1 }) };
        if *first != b'*' {
            return self.inline(buffer, limits, args);
        }
        let (line, next) = match length_line(buffer, 0, self.scanned, limits) {
            LengthLine::Found { line, next } => (line, next),
            LengthLine::Unfinished { scanned } => {
                self.scanned = scanned;
                return Ok(Progress::Incomplete { needed: 1 });
            }
            LengthLine::TooLong => return Err(ProtocolError::MultibulkLineTooBig),
        };
        self.scanned = 0;
        let count = parse_i64(&line[1..]).ok_or(ProtocolError::MultibulkLength)?;
        if count > i64::from(limits.multibulk_count_max) {
            return Err(ProtocolError::MultibulkLength);
        }
        if !limits.authenticated && count > i64::from(Limits::UNAUTHENTICATED_COUNT_MAX) {
            return Err(ProtocolError::UnauthenticatedMultibulkLength);
        }
        match u32::try_from(count) {
            Ok(count @ 1..) => self.fresh(buffer, next, count, limits, args),
            _ => Ok(Progress::Complete { consumed: next }),
        }
    }

    fn inline(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
        args: &mut Vec<Arg>,
    ) -> Result<Progress, ProtocolError> {
        if buffer.starts_with(TLS_HANDSHAKE) {
            return Err(ProtocolError::Tls);
        }
        let window = &buffer[..buffer.len().min(limits.inline_bytes_max.saturating_add(1))];
        let unseen = &window[self.scanned.min(window.len())..];
        let Some(found) = memchr::memchr(b'\n', unseen) else {
            if window.len() > limits.inline_bytes_max {
                return Err(ProtocolError::InlineTooBig);
            }
            self.scanned = window.len();
            return Ok(Progress::Incomplete { needed: 1 });
        };
        let end = self.scanned + found;
        self.scanned = 0;
        let consumed = end + 1;
        let line = &window[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match inline::split(line, args)? {
            Line::InPlace => Ok(Progress::Complete { consumed }),
            Line::Unquoted(arguments) => Ok(Progress::Inline { consumed, arguments }),
        }
    }
}

/// A handshake's record begins so, whatever version it is of. A client that sends it waits for an
/// answer, and may have sent no end of a line.
const TLS_HANDSHAKE: &[u8] = b"\x16\x03";

/// Limits `needed`, what the first of `remaining` arguments still needs, by what the client has
/// sent. Each of the others needs some bytes at least.
fn believable(needed: usize, remaining: u32, arrived: usize) -> usize {
    const ARGUMENT_BYTES_MIN: usize = b"$0\r\n\r\n".len();
    let others = (remaining as usize - 1) * ARGUMENT_BYTES_MIN;
    needed.min(arrived.max(UNPROVEN_BYTES_MAX)).max(others.min(arrived))
}

fn lengths(args: &[Arg]) -> usize {
    args.iter().map(|arg| arg.len()).sum()
}

enum Step {
    Done { position: usize },
    Stopped { position: usize, remaining: u32, scanned: usize, needed: usize, unfinished: usize },
}

/// The most arguments that a one-digit count announces.
const FEW_ARGUMENTS_MAX: usize = 9;

/// Reads `count` complete, short arguments from `position` on, and appends them; returns where they
/// end. `None` asks for the slow path; `args` is then unchanged.
#[inline]
fn whole(
    buffer: &[u8],
    mut position: usize,
    count: usize,
    limits: &Limits,
    args: &mut Vec<Arg>,
) -> Option<usize> {
    // Appended together, because each separate push would check the capacity.
    let mut found = [Arg { start: 0, end: 0 }; FEW_ARGUMENTS_MAX];
    let found = found.get_mut(..count)?;
    let buffer = &buffer[..buffer.len().min(u32::MAX as usize)];
    for arg in &mut *found {
        let (start, length) = short_length(buffer, position)?;
        let end = start + length;
        if length as u64 > limits.bulk_bytes_max || end + 2 > buffer.len() {
            return None;
        }
        *arg = Arg { start: start as u32, end: end as u32 };
        position = end + 2;
    }
    args.extend_from_slice(found);
    Some(position)
}

/// Reads `remaining` arguments from `position` on and appends them.
fn bulks(
    buffer: &[u8],
    mut position: usize,
    mut remaining: u32,
    mut scanned: usize,
    limits: &Limits,
    args: &mut Vec<Arg>,
) -> Result<Step, ProtocolError> {
    // Positions are `u32`. A request that needs more room than that is refused below.
    let buffer = &buffer[..buffer.len().min(u32::MAX as usize)];
    while remaining > 0 {
        let (start, length) = match short_length(buffer, position) {
            Some((start, length)) if length as u64 <= limits.bulk_bytes_max => (start, length),
            _ => match long_length(buffer, position, scanned, limits)? {
                Ok(found) => found,
                Err(scanned) => {
                    if buffer.len() == u32::MAX as usize {
                        return Err(ProtocolError::BulkLength);
                    }
                    let unfinished = position;
                    return Ok(Step::Stopped {
                        position,
                        remaining,
                        scanned,
                        needed: 1,
                        unfinished,
                    });
                }
            },
        };
        let end = start + length;
        if buffer.len() < end + 2 {
            if end + 2 > u32::MAX as usize {
                return Err(ProtocolError::BulkLength);
            }
            let needed = end + 2 - buffer.len();
            let (scanned, unfinished) = (0, start);
            return Ok(Step::Stopped { position, remaining, scanned, needed, unfinished });
        }
        args.push(Arg { start: start as u32, end: end as u32 });
        position = end + 2;
        remaining -= 1;
        scanned = 0;
    }
    Ok(Step::Done { position })
}

/// `$` and one to four digits without a leading zero: nearly every argument. Returns where the
/// argument starts and its length; `None` asks for the slow path, and is not an error.
#[inline]
fn short_length(buffer: &[u8], position: usize) -> Option<(usize, usize)> {
    let line: &[u8; 8] = buffer.get(position..)?.first_chunk()?;
    let [b'$', first, rest @ ..] = line else { return None };
    let mut length = usize::from(digit(*first)?);
    if rest[0] == b'\r' {
        return Some((position + 4, length));
    }
    if length == 0 {
        return None;
    }
    for (index, byte) in rest[..3].iter().enumerate() {
        length = length * 10 + usize::from(digit(*byte)?);
        if rest[index + 1] == b'\r' {
            return Some((position + 5 + index, length));
        }
    }
    None
}

#[inline]
fn digit(byte: u8) -> Option<u8> {
    let value = byte.wrapping_sub(b'0');
    (value < 10).then_some(value)
}

/// Any length line. `Err` holds how far an incomplete one was searched.
#[cold]
fn long_length(
    buffer: &[u8],
    position: usize,
    scanned: usize,
    limits: &Limits,
) -> Result<Result<(usize, usize), usize>, ProtocolError> {
    let (line, next) = match length_line(buffer, position, scanned, limits) {
        LengthLine::Found { line, next } => (line, next),
        LengthLine::Unfinished { scanned } => return Ok(Err(scanned)),
        LengthLine::TooLong => return Err(ProtocolError::BulkLineTooBig),
    };
    match line.split_first() {
        Some((b'$', digits)) => {
            let length = parse_i64(digits).and_then(|length| u64::try_from(length).ok());
            let length = length.filter(|length| *length <= limits.bulk_bytes_max);
            let length = length.ok_or(ProtocolError::BulkLength)?;
            if !limits.authenticated && length > Limits::UNAUTHENTICATED_BULK_BYTES_MAX {
                return Err(ProtocolError::UnauthenticatedBulkLength);
            }
            // Beyond 32 bits no position could name its end; the caller refuses the sum too.
            let length = u32::try_from(length).map_err(|_| ProtocolError::BulkLength)?;
            Ok(Ok((next, length as usize)))
        }
        _ => Err(ProtocolError::ExpectedBulk { got: buffer[position] }),
    }
}

enum LengthLine<'a> {
    Found { line: &'a [u8], next: usize },
    Unfinished { scanned: usize },
    TooLong,
}

/// The line at `position` without its CR LF. The first `scanned` bytes are known to hold no CR.
fn length_line<'a>(
    buffer: &'a [u8],
    position: usize,
    scanned: usize,
    limits: &Limits,
) -> LengthLine<'a> {
    let rest = &buffer[position.min(buffer.len())..];
    let window = &rest[..rest.len().min(limits.inline_bytes_max.saturating_add(1))];
    match memchr::memchr(b'\r', &window[scanned.min(window.len())..]) {
        // The LF has to be there too.
        Some(found) if scanned + found + 1 < rest.len() => {
            let end = scanned + found;
            LengthLine::Found { line: &rest[..end], next: position + end + 2 }
        }
        Some(found) => LengthLine::Unfinished { scanned: scanned + found },
        None if window.len() > limits.inline_bytes_max => LengthLine::TooLong,
        None => LengthLine::Unfinished { scanned: window.len() },
    }
}
