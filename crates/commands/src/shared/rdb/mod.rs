//! Redis' own serialization (RDB), as far as payloads of `DUMP` and `FUNCTION DUMP` need it.
//!
//! ```text
//! payload := body, RDB version u16, CRC-64 u64 of all before it         (little endian)
//! length  := 00xxxxxx | 01xxxxxx x | 10000000 u32 | 10000001 u64        (big endian)
//! string  := length, bytes | 11000000 i8 | 11000001 i16 | 11000010 i32
//!            | 11000011 length of the compressed bytes, length of the bytes, compressed bytes
//! ```

mod lzf;

use crc_fast::{CrcAlgorithm, Digest};

/// The RDB version that is written: of Redis 7.0, so that every version with functions reads it.
const VERSION_WRITTEN: u16 = 10;

/// The newest RDB version that is read: of Redis 8. What is read here has been the same since.
const VERSION_READ_MAX: u16 = 12;

/// Bytes behind the body.
pub(crate) const FOOTER_BYTES: usize = 10;

/// The checksum of a payload that is being written.
pub(crate) struct Sealing(Digest);

impl Sealing {
    /// The seal of an empty payload.
    pub(crate) fn new() -> Sealing {
        Sealing(Digest::new(CrcAlgorithm::Crc64Redis))
    }

    /// The next bytes of the body.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The footer, which makes the body a payload.
    pub(crate) fn footer(mut self) -> [u8; FOOTER_BYTES] {
        let version = VERSION_WRITTEN.to_le_bytes();
        self.0.update(&version);
        let mut footer = [0; FOOTER_BYTES];
        footer[..2].copy_from_slice(&version);
        footer[2..].copy_from_slice(&self.0.finalize().to_le_bytes());
        footer
    }
}

/// The body of a payload; `None` if its version or checksum is wrong. A checksum of zero is not
/// checked, as in Redis.
pub(crate) fn open(payload: &[u8]) -> Option<&[u8]> {
    let (body, footer) = payload.split_at_checked(payload.len().checked_sub(FOOTER_BYTES)?)?;
    let version = u16::from_le_bytes([footer[0], footer[1]]);
    let crc = u64::from_le_bytes(footer[2..].try_into().ok()?);
    let is_right = crc == 0 || crc == crc64(&payload[..payload.len() - 8]);
    (version <= VERSION_READ_MAX && is_right).then_some(body)
}

fn crc64(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Redis, bytes)
}

/// Appends what precedes the bytes of a string that is not compressed.
pub(crate) fn put_string_head(out: &mut Vec<u8>, length: usize) {
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
                out.extend_from_slice(&(length as u64).to_be_bytes());
            }
        },
    }
}

/// Takes a string of at most `bytes_max` off the front of `input`; `None` if it is malformed, or
/// longer.
pub(crate) fn take_string(input: &mut &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let bytes = match take_length(input)? {
        Length::Bytes(length) => take(input, length)?.to_vec(),
        Length::Encoded(0) => (take(input, 1)?[0] as i8).to_string().into_bytes(),
        Length::Encoded(1) => i16::from_le_bytes(array(input)?).to_string().into_bytes(),
        Length::Encoded(2) => i32::from_le_bytes(array(input)?).to_string().into_bytes(),
        Length::Encoded(3) => {
            let (Length::Bytes(compressed), Length::Bytes(length)) =
                (take_length(input)?, take_length(input)?)
            else {
                return None;
            };
            let compressed = take(input, compressed)?;
            if length > bytes_max as u64 {
                return None;
            }
            lzf::decompress(compressed, length as usize)?
        }
        Length::Encoded(_) => return None,
    };
    (bytes.len() <= bytes_max).then_some(bytes)
}

enum Length {
    Bytes(u64),
    /// A string in another form.
    Encoded(u8),
}

fn take_length(input: &mut &[u8]) -> Option<Length> {
    let first = take(input, 1)?[0];
    Some(match first >> 6 {
        0 => Length::Bytes(first.into()),
        1 => Length::Bytes(u64::from(first & 0x3f) << 8 | u64::from(take(input, 1)?[0])),
        2 if first == 0x80 => Length::Bytes(u32::from_be_bytes(array(input)?).into()),
        2 if first == 0x81 => Length::Bytes(u64::from_be_bytes(array(input)?)),
        2 => return None,
        _ => Length::Encoded(first & 0x3f),
    })
}

fn take<'a>(input: &mut &'a [u8], count: u64) -> Option<&'a [u8]> {
    let (bytes, rest) = input.split_at_checked(usize::try_from(count).ok()?)?;
    *input = rest;
    Some(bytes)
}

fn array<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    take(input, N as u64)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_every_length_read_back_and_every_cut_is_an_error() {
        for length in [0, 1, 63, 64, 0x3fff, 0x4000, 70_000] {
            let bytes: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let mut out = Vec::new();
            put_string_head(&mut out, length);
            out.extend_from_slice(&bytes);
            let mut input = &out[..];
            assert_eq!(take_string(&mut input, length).as_ref(), Some(&bytes));
            assert!(input.is_empty());
            if length > 0 {
                assert_eq!(take_string(&mut &out[..], length - 1), None, "longer than allowed");
                assert_eq!(take_string(&mut &out[..out.len() - 1], length), None);
            }
        }
    }

    #[test]
    fn numbers_are_strings_too() {
        let read = |mut input: &[u8]| take_string(&mut input, 100);
        assert_eq!(read(b"\xc0\xff").as_deref(), Some(&b"-1"[..]));
        assert_eq!(read(b"\xc1\x00\x80").as_deref(), Some(&b"-32768"[..]));
        assert_eq!(read(b"\xc2\x01\x00\x01\x00").as_deref(), Some(&b"65537"[..]));
        for malformed in [&b""[..], b"\xc1\x00", b"\xc4", b"\x82", b"\x81\xff\xff\xff\xff\0\0\0\0"]
        {
            assert_eq!(read(malformed), None, "{malformed:?}");
        }
    }

    /// Redis' own test vector of this CRC, and a payload that redis-server 7.0.15 made of no
    /// functions.
    #[test]
    fn checksums_are_those_of_redis() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        let empty = b"\n\x00]\x9b\\@\x0f\x7f\xa2\xda";
        assert_eq!(open(empty), Some(&b""[..]));
        assert_eq!(Sealing::new().footer(), *empty);
        for at in 0..empty.len() {
            let mut damaged = empty.to_vec();
            damaged[at] ^= 1;
            assert_eq!(open(&damaged), None, "byte {at}");
        }
        assert_eq!(open(&empty[..9]), None);
        assert_eq!(open(b"\x0d\x00\0\0\0\0\0\0\0\0"), None, "a newer version");
        assert_eq!(open(b"\x0c\x00\0\0\0\0\0\0\0\0"), Some(&b""[..]), "without checksum");
    }
}
