//! The binary protocol: packets of a header, extras, a key and a value.
//!
//! ```text
//! 0      magic u8 (0x80 of requests, 0x81 of replies), opcode u8, key length u16
//! 4      extras length u8, data type u8, status of replies u16
//! 8      body length u32: extras, key and value
//! 12     opaque u32: comes back with the reply
//! 16     cas u64
//! ```
//!
//! Numbers are big-endian. Source: memcached's `protocol_binary.h` and `proto_bin.c`.

/// The first byte of a request.
pub const REQUEST: u8 = 0x80;
/// The first byte of a reply.
const REPLY: u8 = 0x81;

/// Length of the header.
pub const HEADER_BYTES: usize = 24;

/// The most extras that a request has.
const EXTRAS_BYTES_MAX: usize = 20;

/// An expiry that stands for: do not make the item.
pub const NOT_MADE: u32 = u32::MAX;

/// What a packet asks for.
#[allow(missing_docs, reason = "as the protocol names them")]
pub mod opcode {
    pub const GET: u8 = 0x00;
    pub const SET: u8 = 0x01;
    pub const ADD: u8 = 0x02;
    pub const REPLACE: u8 = 0x03;
    pub const DELETE: u8 = 0x04;
    pub const INCREMENT: u8 = 0x05;
    pub const DECREMENT: u8 = 0x06;
    pub const QUIT: u8 = 0x07;
    pub const FLUSH: u8 = 0x08;
    pub const GETQ: u8 = 0x09;
    pub const NOOP: u8 = 0x0a;
    pub const VERSION: u8 = 0x0b;
    pub const GETK: u8 = 0x0c;
    pub const GETKQ: u8 = 0x0d;
    pub const APPEND: u8 = 0x0e;
    pub const PREPEND: u8 = 0x0f;
    pub const STAT: u8 = 0x10;
    pub const SETQ: u8 = 0x11;
    pub const PREPENDQ: u8 = 0x1a;
    pub const VERBOSITY: u8 = 0x1b;
    pub const TOUCH: u8 = 0x1c;
    pub const GAT: u8 = 0x1d;
    pub const GATQ: u8 = 0x1e;
    pub const SASL_LIST: u8 = 0x20;
    pub const SASL_AUTH: u8 = 0x21;
    pub const SASL_STEP: u8 = 0x22;
    pub const GATK: u8 = 0x23;
    pub const GATKQ: u8 = 0x24;
}

/// How a request went.
#[allow(missing_docs, reason = "as the protocol names them")]
pub mod status {
    pub const OK: u16 = 0x00;
    pub const NOT_FOUND: u16 = 0x01;
    pub const EXISTS: u16 = 0x02;
    pub const TOO_LARGE: u16 = 0x03;
    pub const INVALID: u16 = 0x04;
    pub const NOT_STORED: u16 = 0x05;
    pub const NON_NUMERIC: u16 = 0x06;
    pub const AUTH_ERROR: u16 = 0x20;
    pub const UNKNOWN_COMMAND: u16 = 0x81;
    pub const OUT_OF_MEMORY: u16 = 0x82;
    pub const INTERNAL: u16 = 0x84;
}

/// A request's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it asks for; the quiet ones as they came.
    pub opcode: u8,
    key_bytes: u16,
    extras_bytes: u8,
    /// Of extras, key and value.
    pub body_bytes: u32,
    /// Comes back with the reply.
    pub opaque: [u8; 4],
    /// The version that the item must have; 0 for any.
    pub cas: u64,
}

impl Header {
    /// Reads a header; `None` if `bytes` are too few.
    pub fn read(bytes: &[u8]) -> Option<Header> {
        let head: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let [_, opcode, k0, k1, extras_bytes, _, _, _, b0, b1, b2, b3, rest @ ..] = *head;
        let [o0, o1, o2, o3, cas @ ..] = rest;
        Some(Header {
            opcode,
            key_bytes: u16::from_be_bytes([k0, k1]),
            extras_bytes,
            body_bytes: u32::from_be_bytes([b0, b1, b2, b3]),
            opaque: [o0, o1, o2, o3],
            cas: u64::from_be_bytes(cas),
        })
    }

    /// Bytes of extras and key, if they may be so long and are in the body.
    pub fn beside_value(&self) -> Option<usize> {
        let (extras, key) = (usize::from(self.extras_bytes), usize::from(self.key_bytes));
        let may_be = key <= crate::KEY_BYTES_MAX && extras <= EXTRAS_BYTES_MAX;
        (may_be && extras + key <= self.body_bytes as usize).then_some(extras + key)
    }
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its header.
    pub header: Header,
    /// Its extras.
    pub extras: &'a [u8],
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
}

/// Why a packet cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketError<'a> {
    /// Its lengths contradict each other.
    Invalid(Header),
    /// Its value is longer than allowed, and is skipped.
    TooLarge {
        /// The packet's header.
        header: Header,
        /// The key, unless it is too long as well.
        key: Option<&'a [u8]>,
    },
}

impl<'a> Packet<'a> {
    /// Reads a whole packet.
    ///
    /// # Errors
    /// If its lengths contradict each other, or its body is not there because it is too long.
    pub fn read(bytes: &'a [u8]) -> Option<Result<Packet<'a>, PacketError<'a>>> {
        let header = Header::read(bytes)?;
        let body = bytes[HEADER_BYTES..].get(..header.body_bytes as usize);
        let Some(body) = body else {
            let beside =
                header.beside_value().and_then(|beside| bytes[HEADER_BYTES..].get(..beside));
            let key = beside.map(|beside| &beside[usize::from(header.extras_bytes)..]);
            return Some(Err(PacketError::TooLarge { header, key }));
        };
        let (extras, key) = (usize::from(header.extras_bytes), usize::from(header.key_bytes));
        let split = body.split_at_checked(extras).and_then(|(extras, rest)| {
            let (key, value) = rest.split_at_checked(key)?;
            Some((extras, key, value))
        });
        let Some((extras, key, value)) = split else {
            return Some(Err(PacketError::Invalid(header)));
        };
        match key.len() <= crate::KEY_BYTES_MAX {
            true => Some(Ok(Packet { header, extras, key, value })),
            false => Some(Err(PacketError::Invalid(header))),
        }
    }

    /// The 32-bit number at a place of the extras.
    pub fn extra_u32(&self, at: usize) -> u32 {
        let bytes = self.extras.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_be_bytes)
    }

    /// The 64-bit number at a place of the extras.
    pub fn extra_u64(&self, at: usize) -> u64 {
        let bytes = self.extras.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_be_bytes)
    }
}

/// A reply's parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reply<'a> {
    /// How it went.
    pub status: u16,
    /// The item's version.
    pub cas: u64,
    /// Extras.
    pub extras: &'a [u8],
    /// Key.
    pub key: &'a [u8],
    /// Value.
    pub value: &'a [u8],
}

/// Appends a reply's header, extras and key; `value_bytes` of a value have to follow.
pub fn write_head(out: &mut Vec<u8>, to: &Header, reply: &Reply<'_>, value_bytes: usize) {
    let Reply { status, cas, extras, key, .. } = *reply;
    let body = extras.len() + key.len() + value_bytes;
    out.extend_from_slice(&[REPLY, to.opcode]);
    out.extend_from_slice(&(key.len() as u16).to_be_bytes());
    out.extend_from_slice(&[extras.len() as u8, 0]);
    out.extend_from_slice(&status.to_be_bytes());
    out.extend_from_slice(&(body as u32).to_be_bytes());
    out.extend_from_slice(&to.opaque);
    out.extend_from_slice(&cas.to_be_bytes());
    out.extend_from_slice(extras);
    out.extend_from_slice(key);
}

/// Appends a whole reply.
pub fn write(out: &mut Vec<u8>, to: &Header, reply: &Reply<'_>) {
    write_head(out, to, reply, reply.value.len());
    out.extend_from_slice(reply.value);
}

/// The words that memcached has for an error.
pub const fn text(status: u16) -> &'static str {
    match status {
        status::NOT_FOUND => "Not found",
        status::EXISTS => "Data exists for key.",
        status::TOO_LARGE => "Too large.",
        status::INVALID => "Invalid arguments",
        status::NOT_STORED => "Not stored.",
        status::NON_NUMERIC => "Non-numeric server-side value for incr or decr",
        status::AUTH_ERROR => "Auth failure.",
        status::UNKNOWN_COMMAND => "Unknown command",
        status::OUT_OF_MEMORY => "Out of memory",
        _ => "Internal error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(opcode: u8, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![REQUEST, opcode];
        bytes.extend_from_slice(&(key.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&[extras.len() as u8, 0, 0, 0]);
        let body = extras.len() + key.len() + value.len();
        bytes.extend_from_slice(&(body as u32).to_be_bytes());
        bytes.extend_from_slice(b"opaq\0\0\0\0\0\0\0\x09");
        [&bytes[..], extras, key, value].concat()
    }

    #[test]
    fn a_packet_is_read() {
        let bytes = packet(opcode::SET, &[0, 0, 0, 7, 0, 0, 0, 60], b"key", b"value");
        let read = Packet::read(&bytes).unwrap().unwrap();
        assert_eq!((read.key, read.value), (&b"key"[..], &b"value"[..]));
        assert_eq!((read.extra_u32(0), read.extra_u32(4), read.extra_u32(8)), (7, 60, 0));
        assert_eq!((read.header.cas, read.header.opaque), (9, *b"opaq"));
        for cut in 0..bytes.len() {
            let cut_off = Packet::read(&bytes[..cut]);
            assert!(!matches!(cut_off, Some(Ok(_))), "cut at {cut}");
        }
    }

    #[test]
    fn lengths_that_contradict_each_other_are_refused() {
        let mut bytes = packet(opcode::GET, b"", b"key", b"");
        bytes[3] = 4;
        assert!(matches!(Packet::read(&bytes), Some(Err(PacketError::Invalid(_)))));
        let long = packet(opcode::GET, b"", &[b'k'; 251], b"");
        assert!(matches!(Packet::read(&long), Some(Err(PacketError::Invalid(_)))));
    }

    #[test]
    fn a_reply_has_the_requests_opaque() {
        let request = packet(opcode::GETK, b"", b"key", b"");
        let header = Header::read(&request).unwrap();
        let mut out = Vec::new();
        let (extras, key, value) = (&[0, 0, 0, 1][..], &b"key"[..], &b"v"[..]);
        write(&mut out, &header, &Reply { status: 0, cas: 5, extras, key, value });
        assert_eq!(out[..12], [REPLY, opcode::GETK, 0, 3, 4, 0, 0, 0, 0, 0, 0, 8]);
        assert_eq!(&out[12..], b"opaq\0\0\0\0\0\0\0\x05\0\0\0\x01keyv");
    }
}
