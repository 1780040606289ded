//! A packet's header.

use crate::fields::Fields;
use crate::{RequestError, key};
use ladon_msgpack::{Value, read_uint};

/// What a packet's header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The type of the request, or of the reply.
    pub request_type: u32,
    /// The number by which the client recognises the reply.
    pub sync: u64,
    /// The version of the schema, if the client says which one it knows (not 0) and in replies.
    pub schema_version: u64,
    /// The stream, 0 for none.
    pub stream_id: u64,
}

/// A header that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderError {
    /// What the error reply carries: as much as was known of the sync.
    pub sync: u64,
    /// Why.
    pub error: RequestError,
}

const INVALID: RequestError = RequestError::InvalidMsgpack("packet header");

impl Header {
    /// Reads the header of a packet, and returns it with the packet's body, which may be empty and
    /// is not read.
    ///
    /// # Errors
    /// No map, a key that is no number, or a known key with a value of another type.
    #[inline]
    pub fn decode(packet: &[u8]) -> Result<(Header, &[u8]), HeaderError> {
        match Header::decode_usual(packet) {
            Some(decoded) => Ok(decoded),
            None => Header::decode_any(packet),
        }
    }

    /// As [`Header::decode`], of a header as connectors send it; `None` of any other.
    #[inline]
    fn decode_usual(packet: &[u8]) -> Option<(Header, &[u8])> {
        let (&first @ 0x80..=0x8f, mut rest) = packet.split_first()? else { return None };
        let mut header = Header::default();
        for _ in 0..first & 0x0f {
            let (&key, value) = rest.split_first()?;
            if !matches!(key, key::REQUEST_TYPE | key::SYNC | key::SCHEMA_VERSION | key::STREAM_ID)
            {
                return None;
            }
            rest = value;
            header.set(key.into(), read_uint(&mut rest).ok()?);
        }
        Some((header, rest))
    }

    fn decode_any(packet: &[u8]) -> Result<(Header, &[u8]), HeaderError> {
        let mut header = Header::default();
        let unreadable = |_| HeaderError { sync: 0, error: INVALID };
        let Some(mut fields) = Fields::new(packet).map_err(unreadable)? else {
            return Err(HeaderError { sync: 0, error: INVALID });
        };
        while let Some(field) = fields.next().map_err(unreadable)? {
            match (field.key, field.value) {
                (Some(key), value) if !key::allows(key, value.kind()) => {
                    return Err(HeaderError { sync: header.sync, error: INVALID });
                }
                (Some(key), Value::Uint(value)) => header.set(key, value),
                (Some(_), _) => {}
                (None, _) => return Err(HeaderError { sync: header.sync, error: INVALID }),
            }
        }
        Ok((header, fields.rest()))
    }

    #[inline]
    fn set(&mut self, key: u64, value: u64) {
        match u8::try_from(key) {
            // A type beyond 32 bits is as unknown as the largest one.
            Ok(key::REQUEST_TYPE) => self.request_type = u32::try_from(value).unwrap_or(u32::MAX),
            Ok(key::SYNC) => self.sync = value,
            Ok(key::SCHEMA_VERSION) => self.schema_version = value,
            Ok(key::STREAM_ID) => self.stream_id = value,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Result<(Header, &[u8]), u64>) {
        let expected = expected.map_err(|sync| HeaderError { sync, error: INVALID });
        assert_eq!(Header::decode(bytes), expected, "{bytes:x?}");
    }

    #[test]
    fn keys_in_any_order_and_unknown_ones() {
        let header = Header { request_type: 64, sync: 7, schema_version: 80, stream_id: 3 };
        check(&[0x84, 0x0a, 3, 0x05, 80, 0x01, 7, 0x00, 64, 0x80], Ok((header, &[0x80])));
        let header = Header { request_type: 64, ..Header::default() };
        // Keys 0x0f (unknown, with an array), 0x03 (LSN) and 300.
        check(&[0x84, 0x0f, 0x91, 0xc0, 0x03, 9, 0xcd, 1, 44, 0xc0, 0x00, 64], Ok((header, &[])));
    }

    #[test]
    fn what_is_no_header() {
        check(&[], Err(0));
        check(&[0xc0], Err(0));
        check(&[0x91, 0x00], Err(0));
        check(&[0x81, 0x00], Err(0));
        // SYNC is known before the mistake ...
        check(&[0x82, 0x01, 7, 0x00, 0xc0], Err(7));
        check(&[0x82, 0x01, 7, 0xa0, 0x01], Err(7));
        check(&[0x82, 0x01, 7, 0x00, 0xff], Err(7));
        // ... but not where the bytes are no MessagePack.
        check(&[0x82, 0x01, 7, 0x00, 0xc1], Err(0));
    }
}
