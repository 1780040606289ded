//! IPROTO's greeting and replies.
//!
//! Source: as [`super::request`].

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::msgpack::{Reader, Value};
use super::request::{DATA, ERROR, REQUEST_TYPE, SALT_BYTES, SYNC};
use crate::dialects::{Framed, Malformed, Refused};

/// What the server says first: two lines of 64 bytes, version and salt.
pub const GREETING_BYTES: usize = 128;

/// Longer than any reply that a work causes: what a peer announces must not make us wait for ever.
const REPLY_BYTES_MAX: u64 = 1 << 30;

/// The salt of a greeting.
///
/// # Errors
/// When it is not Tarantool's.
pub fn salt(greeting: &[u8]) -> Result<[u8; SALT_BYTES], Malformed> {
    let not_ours = || {
        let start = &greeting[..greeting.len().min(64)];
        Malformed(format!("no greeting of IPROTO: {}", start.escape_ascii()))
    };
    if greeting.len() != GREETING_BYTES || !greeting.starts_with(b"Tarantool ") {
        return Err(not_ours());
    }
    // 32 bytes in 44 characters; the rest of the line is blank.
    let decoded = STANDARD.decode(&greeting[64..64 + 44]).map_err(|_| not_ours())?;
    decoded.first_chunk().copied().ok_or_else(not_ours)
}

/// Finds the first whole reply in `bytes`.
///
/// # Errors
/// When they cannot be a reply.
#[inline]
pub fn frame(bytes: &[u8]) -> Result<Framed, Malformed> {
    // The server always writes the length in the five-byte form, but owes only a number.
    let head = match bytes.first() {
        None => return Ok(Framed::Incomplete),
        Some(0..0x80) => 1,
        Some(kind @ 0xcc..=0xcf) => 1 + (1 << (kind - 0xcc)),
        Some(_) => return Err(malformed("no length", bytes)),
    };
    let mut reader = Reader::new(bytes);
    let Some(length) = reader.unsigned() else {
        return if bytes.len() < head {
            Ok(Framed::Incomplete)
        } else {
            Err(malformed("no length", bytes))
        };
    };
    if !(1..=REPLY_BYTES_MAX).contains(&length) {
        return Err(malformed("a length out of bounds", bytes));
    }
    let length = head + length as usize;
    if bytes.len() < length {
        return Ok(Framed::Incomplete);
    }
    let reply = Reply::parse(&bytes[..length])?;
    Ok(Framed::Frame { length, tag: Some(reply.sync) })
}

/// The parts of a whole reply.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    /// 0 when it went well; else 0x8000 and the error's number.
    pub code: u64,
    /// Which request it answers.
    pub sync: u64,
    body: Reader<'a>,
}

impl<'a> Reply<'a> {
    /// Takes a frame apart.
    ///
    /// # Errors
    /// When it is no reply.
    #[inline]
    pub fn parse(frame: &'a [u8]) -> Result<Self, Malformed> {
        let parse = || {
            let mut reader = Reader::new(frame);
            reader.unsigned()?;
            let (mut code, mut sync) = (None, None);
            for _ in 0..reader.map()? {
                match u8::try_from(reader.unsigned()?).ok()? {
                    REQUEST_TYPE => code = Some(reader.unsigned()?),
                    SYNC => sync = Some(reader.unsigned()?),
                    _ => reader.skip()?,
                }
            }
            Some(Self { code: code?, sync: sync?, body: reader })
        };
        parse().ok_or_else(|| malformed("no header", frame))
    }

    /// The tuples or returned values: how many, and a reader at the first.
    ///
    /// # Errors
    /// The server's error, in its words; or that the reply holds no data.
    #[inline]
    pub fn data(self) -> Result<(usize, Reader<'a>), Refused> {
        if self.code != 0 {
            return Err(self.refused());
        }
        let mut body = self.body;
        let find = || {
            for _ in 0..body.map()? {
                if body.unsigned()? == u64::from(DATA) {
                    return body.array();
                }
                body.skip()?;
            }
            None
        };
        let mut find = find;
        let count = find().ok_or_else(|| Refused("a reply without data".to_owned()))?;
        Ok((count, body))
    }

    /// The body of a reply that is no error.
    ///
    /// # Errors
    /// The server's error, in its words.
    #[inline]
    pub fn body(self) -> Result<Reader<'a>, Refused> {
        if self.code == 0 { Ok(self.body) } else { Err(self.refused()) }
    }

    /// As [`Self::data`], as values.
    ///
    /// # Errors
    /// As [`Self::data`].
    pub fn values(self) -> Result<Vec<Value>, Refused> {
        let (count, mut reader) = self.data()?;
        let values = (0..count).map(|_| reader.value()).collect::<Option<Vec<_>>>();
        values.ok_or_else(|| Refused("data that is no MessagePack".to_owned()))
    }

    /// Whether it says that all is well, whatever else it says.
    ///
    /// # Errors
    /// The server's error, in its words.
    #[inline]
    pub fn went_well(self) -> Result<(), Refused> {
        if self.code == 0 { Ok(()) } else { Err(self.refused()) }
    }

    fn refused(self) -> Refused {
        let mut body = self.body;
        let mut find = || {
            for _ in 0..body.map()? {
                if body.unsigned()? == u64::from(ERROR) {
                    return body.bytes();
                }
                body.skip()?;
            }
            None
        };
        let text = find().map(String::from_utf8_lossy).unwrap_or_default();
        Refused(format!("error {}: {text}", self.code & 0x7fff))
    }
}

fn malformed(what: &str, bytes: &[u8]) -> Malformed {
    Malformed(format!("{what}: {}", bytes[..bytes.len().min(40)].escape_ascii()))
}
