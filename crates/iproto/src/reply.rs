//! Replies, appended to a connection's output.
//!
//! ```text
//! ce LENGTH   83 00 ce TYPE 01 cf SYNC 05 cf SCHEMA_VERSION   body
//! ```
//!
//! Every number of the header has a fixed width, as in Tarantool, so that a reply is begun before
//! its length is known: [`begin`], append what the reply shows, [`Begun::finish`].

use crate::{key, request_type};
use ladon_msgpack::write;

/// Bytes of a reply before its body.
pub const HEADER_BYTES: usize = 32;

/// A reply would have more than 4 GiB. Nothing of it is in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a reply is limited to 4 GiB")]
pub struct ReplyTooLong;

/// A reply whose body is being appended.
#[derive(Debug)]
#[must_use = "its length is written by `finish`"]
pub struct Begun {
    start: usize,
}

/// Begins an OK reply. The body, a map, has to follow.
#[inline]
pub fn begin(out: &mut Vec<u8>, sync: u64, schema_version: u64) -> Begun {
    begin_type(out, request_type::OK, sync, schema_version)
}

#[inline]
fn begin_type(out: &mut Vec<u8>, reply_type: u32, sync: u64, schema_version: u64) -> Begun {
    let start = out.len();
    let mut header = [0; HEADER_BYTES];
    header[0] = 0xce;
    header[5..8].copy_from_slice(&[0x83, key::REQUEST_TYPE, 0xce]);
    header[8..12].copy_from_slice(&reply_type.to_be_bytes());
    header[12..14].copy_from_slice(&[key::SYNC, 0xcf]);
    header[14..22].copy_from_slice(&sync.to_be_bytes());
    header[22..24].copy_from_slice(&[key::SCHEMA_VERSION, 0xcf]);
    header[24..].copy_from_slice(&schema_version.to_be_bytes());
    out.extend_from_slice(&header);
    Begun { start }
}

impl Begun {
    /// Writes the length in front of the reply.
    ///
    /// # Errors
    /// More than 4 GiB: the reply is taken out again.
    #[inline]
    pub fn finish(self, out: &mut Vec<u8>) -> Result<(), ReplyTooLong> {
        let length = out.len() - self.start - 5;
        match u32::try_from(length) {
            Ok(length) => {
                out[self.start + 1..self.start + 5].copy_from_slice(&length.to_be_bytes());
                Ok(())
            }
            Err(_) => {
                self.abandon(out);
                Err(ReplyTooLong)
            }
        }
    }

    /// Takes the reply out again.
    pub fn abandon(self, out: &mut Vec<u8>) {
        out.truncate(self.start);
    }
}

/// An OK reply whose tuples are being appended.
#[derive(Debug)]
#[must_use = "its length is written by `finish`"]
pub struct Data {
    reply: Begun,
    /// Where the body begins.
    body: usize,
}

/// The number of values of a reply that [`begin_data`] has begun and [`Data::finish`] completed, and
/// their bytes. `None` of any other packet.
#[inline]
pub fn plain_data(packet: &[u8]) -> Option<(u32, &[u8])> {
    const BEGINS: [u8; 7] = [0x83, key::REQUEST_TYPE, 0xce, 0, 0, 0, 0];
    let (head, body) = packet.split_at_checked(HEADER_BYTES)?;
    let (&[0x81, key::DATA, 0xdd, a, b, c, d], values) = body.split_first_chunk::<7>()? else {
        return None;
    };
    (head[5..12] == BEGINS).then_some((u32::from_be_bytes([a, b, c, d]), values))
}

/// Begins a reply with data. The tuples have to follow, and then [`Data::finish`].
#[inline]
pub fn begin_data(out: &mut Vec<u8>, sync: u64, schema_version: u64) -> Data {
    let reply = begin(out, sync, schema_version);
    let body = out.len();
    out.extend_from_slice(&[0x81, key::DATA, 0xdd, 0, 0, 0, 0]);
    Data { reply, body }
}

/// The beginning of a reply with `count` values whose bytes, `value_bytes` of them, follow later,
/// and after them `tail_bytes` of what [`position`] gives, if any.
///
/// # Errors
/// More than 4 GiB: nothing is appended.
pub fn data_ahead(
    out: &mut Vec<u8>,
    (sync, schema_version): (u64, u64),
    count: u32,
    value_bytes: u64,
    tail_bytes: usize,
) -> Result<(), ReplyTooLong> {
    let Data { reply, body } = begin_data(out, sync, schema_version);
    if tail_bytes > 0 {
        out[body] = 0x82;
    }
    out[body + 3..body + 7].copy_from_slice(&count.to_be_bytes());
    let length = (out.len() - reply.start - 5 + tail_bytes) as u64 + value_bytes;
    let Ok(length) = u32::try_from(length) else {
        reply.abandon(out);
        return Err(ReplyTooLong);
    };
    out[reply.start + 1..reply.start + 5].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Appends the position of the last tuple, as the body's second pair.
pub fn position(out: &mut Vec<u8>, position: &[u8]) {
    write::uint(out, key::POSITION.into());
    write::str(out, position);
}

impl Data {
    /// Completes the reply: `count` values were appended.
    ///
    /// # Errors
    /// More than 4 GiB: the reply is taken out again.
    #[inline]
    pub fn finish(self, out: &mut Vec<u8>, count: u32) -> Result<(), ReplyTooLong> {
        out[self.body + 3..self.body + 7].copy_from_slice(&count.to_be_bytes());
        self.reply.finish(out)
    }

    /// Completes the reply with the position of its last tuple, for FETCH_POSITION.
    ///
    /// # Errors
    /// As [`Data::finish`].
    pub fn finish_with_position(
        self,
        out: &mut Vec<u8>,
        count: u32,
        position: &[u8],
    ) -> Result<(), ReplyTooLong> {
        out[self.body] = 0x82;
        self::position(out, position);
        self.finish(out, count)
    }

    /// Takes the reply out again, for an error in its place.
    pub fn abandon(self, out: &mut Vec<u8>) {
        self.reply.abandon(out);
    }
}

/// Appends an OK reply without data: to PING, AUTH, BEGIN, COMMIT, ROLLBACK and NOP.
pub fn ok(out: &mut Vec<u8>, sync: u64, schema_version: u64) {
    let reply = begin(out, sync, schema_version);
    write::map(out, 0);
    finish_short(reply, out);
}

/// One error of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorEntry<'a> {
    /// The class: `ClientError`, `AccessDeniedError` ...
    pub class: &'a [u8],
    /// Where it was raised: the source file.
    pub file: &'a [u8],
    /// Where it was raised: the line.
    pub line: u64,
    /// The message.
    pub message: &'a [u8],
    /// The system's error number, 0 for none.
    pub errno: u64,
    /// The code, of `errcode.h`.
    pub code: u64,
    /// Further fields: a MessagePack map.
    pub fields: Option<&'a [u8]>,
}

/// The keys of an error and its stack (`mp_error.cc`).
pub(crate) mod error_key {
    pub const STACK: u8 = 0;
    pub const CLASS: u8 = 0;
    pub const FILE: u8 = 1;
    pub const LINE: u8 = 2;
    pub const MESSAGE: u8 = 3;
    pub const ERRNO: u8 = 4;
    pub const CODE: u8 = 5;
    pub const FIELDS: u8 = 6;
}

/// Appends an error reply. `stack` begins with the error itself; its causes follow.
///
/// # Panics
/// If the stack is empty.
pub fn error(out: &mut Vec<u8>, sync: u64, schema_version: u64, stack: &[ErrorEntry<'_>]) {
    let first = stack.first().expect("an error reply has an error");
    // The codes of `errcode.h` are far below the bit.
    let code = first.code as u32 & (request_type::ERROR - 1);
    let reply = begin_type(out, request_type::ERROR | code, sync, schema_version);
    write::map(out, 2);
    write::uint(out, key::ERROR_24.into());
    write::str(out, first.message);
    write::uint(out, key::ERROR.into());
    write::map(out, 1);
    write::uint(out, error_key::STACK.into());
    write::array(out, stack.len() as u32);
    for entry in stack {
        write_entry(out, entry);
    }
    finish_short(reply, out);
}

fn write_entry(out: &mut Vec<u8>, entry: &ErrorEntry<'_>) {
    write::map(out, 6 + u32::from(entry.fields.is_some()));
    write::uint(out, error_key::CLASS.into());
    write::str(out, entry.class);
    write::uint(out, error_key::LINE.into());
    write::uint(out, entry.line);
    write::uint(out, error_key::FILE.into());
    write::str(out, entry.file);
    write::uint(out, error_key::MESSAGE.into());
    write::str(out, entry.message);
    write::uint(out, error_key::ERRNO.into());
    write::uint(out, entry.errno);
    write::uint(out, error_key::CODE.into());
    write::uint(out, entry.code);
    if let Some(fields) = entry.fields {
        write::uint(out, error_key::FIELDS.into());
        out.extend_from_slice(fields);
    }
}

/// What the server says of itself in reply to ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerId<'a> {
    /// The version of the protocol.
    pub version: u64,
    /// The features, in growing order.
    pub features: &'a [u64],
    /// The authentication method that clients should use.
    pub auth_type: &'a str,
}

/// The features that ID tells (`iproto_features.h`).
pub mod feature {
    /// Streams.
    pub const STREAMS: u64 = 0;
    /// Interactive transactions.
    pub const TRANSACTIONS: u64 = 1;
    /// Errors as an extension type.
    pub const ERROR_EXTENSION: u64 = 2;
    /// WATCH, UNWATCH and EVENT.
    pub const WATCHERS: u64 = 3;
    /// AFTER_POSITION, AFTER_TUPLE and FETCH_POSITION.
    pub const PAGINATION: u64 = 4;
    /// SPACE_NAME and INDEX_NAME (3.x).
    pub const SPACE_AND_INDEX_NAMES: u64 = 5;
    /// WATCH_ONCE (3.x).
    pub const WATCH_ONCE: u64 = 6;
}

/// Appends the reply to ID.
pub fn id(out: &mut Vec<u8>, sync: u64, schema_version: u64, server: &ServerId<'_>) {
    let reply = begin(out, sync, schema_version);
    write::map(out, 3);
    write::uint(out, key::VERSION.into());
    write::uint(out, server.version);
    write::uint(out, key::FEATURES.into());
    write::array(out, server.features.len() as u32);
    for feature in server.features {
        write::uint(out, *feature);
    }
    write::uint(out, key::AUTH_TYPE.into());
    write::str(out, server.auth_type.as_bytes());
    finish_short(reply, out);
}

/// What a request's reply has ahead of it: one value.
///
/// # Errors
/// It is longer than a packet may be: nothing is appended.
pub fn chunk(
    out: &mut Vec<u8>,
    (sync, schema_version): (u64, u64),
    value: &[u8],
) -> Result<(), ReplyTooLong> {
    let reply = Begun { start: out.len() };
    out.extend_from_slice(&[0xce, 0, 0, 0, 0]);
    write::map(out, 3);
    write::uint(out, key::REQUEST_TYPE.into());
    write::uint(out, request_type::CHUNK.into());
    write::uint(out, key::SYNC.into());
    write::uint(out, sync);
    write::uint(out, key::SCHEMA_VERSION.into());
    write::uint(out, schema_version);
    write::map(out, 1);
    write::uint(out, key::DATA.into());
    write::array(out, 1);
    out.extend_from_slice(value);
    reply.finish(out)
}

/// Appends an event for a watcher: the number of its last WATCH, the key, and its value
/// (MessagePack) if it has one. An event has no schema version.
///
/// # Errors
/// More than 4 GiB: nothing is appended.
pub fn event(
    out: &mut Vec<u8>,
    sync: u64,
    name: &[u8],
    value: Option<&[u8]>,
) -> Result<(), ReplyTooLong> {
    let reply = Begun { start: out.len() };
    out.extend_from_slice(&[0xce, 0, 0, 0, 0]);
    write::map(out, 2);
    write::uint(out, key::REQUEST_TYPE.into());
    write::uint(out, request_type::EVENT.into());
    write::uint(out, key::SYNC.into());
    write::uint(out, sync);
    write::map(out, 1 + u32::from(value.is_some()));
    write::uint(out, key::EVENT_KEY.into());
    write::str(out, name);
    if let Some(value) = value {
        write::uint(out, key::EVENT_DATA.into());
        out.extend_from_slice(value);
    }
    reply.finish(out)
}

/// Completes a reply whose parts are the server's own or a message.
fn finish_short(reply: Begun, out: &mut Vec<u8>) {
    reply.finish(out).expect("a reply without data is short");
}
