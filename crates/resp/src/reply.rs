//! Replies: values -> bytes, in the protocol version that the connection chose with `HELLO`.

use crate::double::write_double;
use crate::long_double::LongDouble;

/// Which version of the protocol a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proto {
    /// The old one: no maps, no doubles, two nulls.
    #[default]
    Resp2,
    /// Since Redis 6.
    Resp3,
}

impl Proto {
    /// The version's number.
    pub const fn number(self) -> u8 {
        match self {
            Proto::Resp2 => 2,
            Proto::Resp3 => 3,
        }
    }
}

/// Appends replies to `out`. Types that RESP2 lacks are written as Redis writes them there: maps as
/// flat arrays, doubles as strings, booleans as 0 and 1.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    proto: Proto,
}

/// Where an aggregate of unknown length began.
#[derive(Debug)]
#[must_use = "an aggregate that is begun must be ended"]
pub struct Mark(usize);

impl<'a> Reply<'a> {
    /// Replies are appended to `out`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, proto: Proto) -> Reply<'a> {
        Reply { out, proto }
    }

    /// The protocol version.
    #[inline]
    pub fn proto(&self) -> Proto {
        self.proto
    }

    /// Changes the protocol version (`HELLO`).
    pub fn set_proto(&mut self, proto: Proto) {
        self.proto = proto;
    }

    /// Bytes in the buffer so far, those of earlier replies included.
    #[inline]
    pub fn position(&self) -> usize {
        self.out.len()
    }

    /// The bytes after `position`, which came from [`Reply::position`].
    pub fn written_since(&self, position: usize) -> &[u8] {
        &self.out[position..]
    }

    /// Takes back everything after `position`, which came from [`Reply::position`].
    pub fn rewind(&mut self, position: usize) {
        self.out.truncate(position);
    }

    /// Takes everything after `position` out of the buffer.
    pub fn take_from(&mut self, position: usize) -> Vec<u8> {
        self.out.split_off(position)
    }

    /// Exchanges the buffer's memory with `other`: what follows is written there, until both are
    /// exchanged again.
    #[inline]
    pub fn exchange(&mut self, other: &mut Vec<u8>) {
        std::mem::swap(self.out, other);
    }

    /// Appends bytes that already are a reply, or part of one.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// A status. CR and LF become spaces.
    #[inline]
    pub fn simple(&mut self, text: &str) {
        self.out.push(b'+');
        self.line(text.as_bytes());
    }

    /// An error: the full text, code included (`ERR syntax error`). Trailing line ends are dropped
    /// and others become spaces, so that a client's own words in the text cannot forge a reply.
    #[cold]
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        let mut text = text.as_ref();
        while let [rest @ .., b'\r' | b'\n'] = text {
            text = rest;
        }
        self.out.push(b'-');
        self.line(text);
    }

    fn line(&mut self, text: &[u8]) {
        let start = self.out.len();
        self.out.extend_from_slice(text);
        for byte in &mut self.out[start..] {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.out.extend_from_slice(b"\r\n");
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        self.header(b':', value);
    }

    /// A string of any bytes.
    #[inline]
    pub fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.out.reserve(bytes.len() + 26);
        self.length(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Header of a string of this many bytes; the bytes and a line end have to follow.
    pub fn bulk_header(&mut self, length: usize) {
        self.length(b'$', length);
    }

    /// A string that is an integer in decimal.
    #[inline]
    pub fn bulk_int(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value));
    }

    /// No value: `$-1` or `_`.
    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.proto {
            Proto::Resp2 => b"$-1\r\n",
            Proto::Resp3 => b"_\r\n",
        });
    }

    /// No array: `*-1` or `_`.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.proto {
            Proto::Resp2 => b"*-1\r\n",
            Proto::Resp3 => b"_\r\n",
        });
    }

    /// True or false; in RESP2 the integers 1 and 0.
    pub fn bool(&mut self, value: bool) {
        match self.proto {
            Proto::Resp2 => self.integer(i64::from(value)),
            Proto::Resp3 => self.out.extend_from_slice(if value { b"#t\r\n" } else { b"#f\r\n" }),
        }
    }

    /// A double, in Redis 7.2's shortest notation; in RESP2 a string.
    pub fn double(&mut self, value: f64) {
        let mut text = Vec::with_capacity(24);
        write_double(&mut text, value);
        self.typed_line(b',', &text);
    }

    /// A double with up to 17 decimals and no exponent, as Redis shows numbers to people; in RESP2
    /// a string.
    pub fn human_double(&mut self, value: f64) {
        let text = format!("{value:.17}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        let text = if text == "-0" { "0" } else { text };
        self.typed_line(b',', text.as_bytes());
    }

    /// As `human_double`, of a longer one.
    pub fn long_double(&mut self, value: LongDouble) {
        let mut text = Vec::with_capacity(32);
        value.write_human(&mut text);
        self.typed_line(b',', &text);
    }

    /// A decimal integer of any size, given as digits; in RESP2 a string.
    pub fn big_number(&mut self, digits: &str) {
        self.typed_line(b'(', digits.as_bytes());
    }

    fn typed_line(&mut self, kind: u8, text: &[u8]) {
        match self.proto {
            Proto::Resp2 => self.bulk(text),
            Proto::Resp3 => {
                self.out.push(kind);
                self.line(text);
            }
        }
    }

    /// Text for people. `format` says which kind (`txt`, `mkd`); in RESP2 a plain string.
    pub fn verbatim(&mut self, format: [u8; 3], text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        match self.proto {
            Proto::Resp2 => self.bulk(text),
            Proto::Resp3 => {
                self.length(b'=', text.len() + 4);
                self.out.extend_from_slice(&format);
                self.out.push(b':');
                self.out.extend_from_slice(text);
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Header of an array; `count` replies have to follow.
    #[inline]
    pub fn array(&mut self, count: usize) {
        self.length(b'*', count);
    }

    /// Header of a map; `count` keys and values in turn have to follow.
    pub fn map(&mut self, count: usize) {
        match self.proto {
            Proto::Resp2 => self.length(b'*', count * 2),
            Proto::Resp3 => self.length(b'%', count),
        }
    }

    /// Header of a set; `count` replies have to follow.
    pub fn set(&mut self, count: usize) {
        match self.proto {
            Proto::Resp2 => self.length(b'*', count),
            Proto::Resp3 => self.length(b'~', count),
        }
    }

    /// Header of a message that no request asked for; `count` replies have to follow.
    pub fn push(&mut self, count: usize) {
        match self.proto {
            Proto::Resp2 => self.length(b'*', count),
            Proto::Resp3 => self.length(b'>', count),
        }
    }

    /// Header of `count` pairs of attributes of the next reply. RESP2 has no attributes: nothing is
    /// written then, `false` is returned, and the pairs have to be left out.
    #[must_use]
    pub fn attribute(&mut self, count: usize) -> bool {
        if self.proto == Proto::Resp3 {
            self.length(b'|', count);
        }
        self.proto == Proto::Resp3
    }

    /// Begins an array whose length is not known yet.
    pub fn begin_array(&mut self) -> Mark {
        self.begin()
    }

    /// Ends what [`Reply::begin_array`] began: `count` replies were written since.
    pub fn end_array(&mut self, mark: Mark, count: usize) {
        self.end(mark, b'*', count);
    }

    /// Begins a set whose length is not known yet.
    pub fn begin_set(&mut self) -> Mark {
        self.begin()
    }

    /// Ends what [`Reply::begin_set`] began: `count` replies were written since.
    pub fn end_set(&mut self, mark: Mark, count: usize) {
        match self.proto {
            Proto::Resp2 => self.end(mark, b'*', count),
            Proto::Resp3 => self.end(mark, b'~', count),
        }
    }

    /// Begins a map whose length is not known yet.
    pub fn begin_map(&mut self) -> Mark {
        self.begin()
    }

    /// Ends what [`Reply::begin_map`] began: `count` keys with values were written since.
    pub fn end_map(&mut self, mark: Mark, count: usize) {
        match self.proto {
            Proto::Resp2 => self.end(mark, b'*', count * 2),
            Proto::Resp3 => self.end(mark, b'%', count),
        }
    }

    fn begin(&mut self) -> Mark {
        let mark = Mark(self.out.len());
        self.out.extend_from_slice(PLACEHOLDER);
        mark
    }

    fn end(&mut self, mark: Mark, kind: u8, count: usize) {
        let mut header = Vec::with_capacity(PLACEHOLDER.len());
        Reply::new(&mut header, self.proto).length(kind, count);
        // One digit is the common case and moves nothing.
        self.out.splice(mark.0..mark.0 + PLACEHOLDER.len(), header);
    }

    #[inline]
    fn length(&mut self, kind: u8, length: usize) {
        self.header(kind, length as i64);
    }

    #[inline(always)]
    fn header(&mut self, kind: u8, value: i64) {
        match value {
            0..=9 => self.out.extend_from_slice(&[kind, b'0' + value as u8, b'\r', b'\n']),
            10..=99 => {
                let (tens, ones) = (value as u8 / 10, value as u8 % 10);
                self.out.extend_from_slice(&[kind, b'0' + tens, b'0' + ones, b'\r', b'\n']);
            }
            _ => self.long_header(kind, value),
        }
    }

    #[inline(never)]
    fn long_header(&mut self, kind: u8, value: i64) {
        self.out.push(kind);
        self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }
}

/// As long as the header of an aggregate with fewer than ten elements.
const PLACEHOLDER: &[u8] = b"*0\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(write: impl Fn(&mut Reply<'_>), resp2: &str, resp3: &str) {
        for (proto, expected) in [(Proto::Resp2, resp2), (Proto::Resp3, resp3)] {
            let mut out = b"before".to_vec();
            write(&mut Reply::new(&mut out, proto));
            let text = String::from_utf8(out).unwrap().replace("\r\n", "|");
            assert_eq!(text, format!("before{expected}"), "{proto:?}");
        }
    }

    #[test]
    fn writes_scalars() {
        check(|r| r.ok(), "+OK|", "+OK|");
        check(|r| r.simple("a\rb\nc"), "+a b c|", "+a b c|");
        check(|r| r.error("ERR a\r\n-b\r\n"), "-ERR a  -b|", "-ERR a  -b|");
        check(|r| r.null(), "$-1|", "_|");
        check(|r| r.null_array(), "*-1|", "_|");
        check(|r| r.bool(true), ":1|", "#t|");
        check(|r| r.bool(false), ":0|", "#f|");
        check(|r| r.double(1.5), "$3|1.5|", ",1.5|");
        check(|r| r.big_number("123"), "$3|123|", "(123|");
        check(|r| r.verbatim(*b"txt", "hi"), "$2|hi|", "=6|txt:hi|");
        check(|r| r.bulk("x".repeat(10)), "$10|xxxxxxxxxx|", "$10|xxxxxxxxxx|");
        check(|r| r.bulk(""), "$0||", "$0||");
        check(|r| r.bulk_int(-12), "$3|-12|", "$3|-12|");
        for value in [0, 7, 10, 42, 99, 100, -1, i64::MIN, i64::MAX] {
            check(|r| r.integer(value), &format!(":{value}|"), &format!(":{value}|"));
        }
    }

    #[test]
    fn writes_aggregates() {
        check(|r| r.array(3), "*3|", "*3|");
        check(|r| r.map(3), "*6|", "%3|");
        check(|r| r.set(100), "*100|", "~100|");
        check(|r| r.push(2), "*2|", ">2|");
        check(
            |r| {
                if r.attribute(1) {
                    r.simple("ttl");
                    r.integer(5);
                }
                r.ok();
            },
            "+OK|",
            "|1|+ttl|:5|+OK|",
        );
    }

    #[test]
    fn ends_what_was_begun() {
        check(
            |r| {
                let outer = r.begin_array();
                let inner = r.begin_map();
                r.integer(1);
                r.integer(2);
                r.end_map(inner, 1);
                let twelve = r.begin_set();
                (0..12).for_each(|n| r.integer(n));
                r.end_set(twelve, 12);
                r.end_array(outer, 2);
            },
            "*2|*2|:1|:2|*12|:0|:1|:2|:3|:4|:5|:6|:7|:8|:9|:10|:11|",
            "*2|%1|:1|:2|~12|:0|:1|:2|:3|:4|:5|:6|:7|:8|:9|:10|:11|",
        );
    }
}
