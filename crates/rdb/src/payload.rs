//! The payload of `DUMP`, `RESTORE` and `FUNCTION DUMP`.
//!
//! ```text
//! payload := body, RDB version u16, checksum u64 of all before it         (little endian)
//! body    := encoding u8, value | (f5 library)...
//! ```
//!
//! Source: `cluster.c` and `functions.c` of Redis 7.4.

use crc_fast::{CrcAlgorithm, Digest};

use crate::dialect::Dialect;
use crate::elements::Elements;
use crate::encoding::Encoding;
use crate::error::{Error, Fault};
use crate::source::Source;
use crate::value::{Element, Value};
use crate::write::{Head, Sink, ValueWriter, Version, put_value};

/// Bytes behind the body.
pub const FOOTER_BYTES: usize = 10;

/// The checksum of a payload that is being written.
pub struct Sealing(Digest);

impl Sealing {
    /// The seal of an empty payload.
    #[expect(clippy::new_without_default, reason = "a seal is always begun by name")]
    pub fn new() -> Sealing {
        Sealing(Digest::new(CrcAlgorithm::Crc64Redis))
    }

    /// The next bytes of the body.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The footer, which makes the body a payload of `version`.
    pub fn footer(mut self, version: u16) -> [u8; FOOTER_BYTES] {
        let version = version.to_le_bytes();
        self.0.update(&version);
        let mut footer = [0; FOOTER_BYTES];
        footer[..2].copy_from_slice(&version);
        footer[2..].copy_from_slice(&self.0.finalize().to_le_bytes());
        footer
    }
}

/// The body of a payload and its dialect; `None` if its version or checksum is wrong.
pub fn open(payload: &[u8]) -> Option<(&[u8], Dialect)> {
    let (body, footer) = payload.split_at_checked(payload.len().checked_sub(FOOTER_BYTES)?)?;
    let version = u16::from_le_bytes([footer[0], footer[1]]);
    let dialect = Dialect::of_version(version.into()).ok()?;
    let stored = u64::from_le_bytes(footer[2..].try_into().ok()?);
    (stored == checksum(&payload[..payload.len() - 8])).then_some((body, dialect))
}

/// The version that a payload names, right or wrong; `None` if it is too short for one.
pub fn version_of(payload: &[u8]) -> Option<u16> {
    let footer = payload.last_chunk::<FOOTER_BYTES>()?;
    Some(u16::from_le_bytes([footer[0], footer[1]]))
}

fn checksum(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Redis, bytes)
}

/// The value in a body that [`open`] gave.
///
/// # Errors
/// A body that is malformed or goes on behind the value, and a value of a module.
pub fn read_value(body: &[u8], dialect: Dialect) -> Result<Value, Error> {
    let mut elements = BodyElements::open(body, dialect)?;
    let mut value = Value::empty(elements.encoding().type_name());
    elements.try_for_each(|element| element.map(|element| value.push(element)))?;
    Ok(value)
}

/// The elements of the value in a body, one after the other. After an error there are none.
pub struct BodyElements<'b> {
    source: Source<&'b [u8]>,
    bytes: u64,
    encoding: Encoding,
    elements: Option<Elements>,
}

impl<'b> BodyElements<'b> {
    /// Begins with a body that [`open`] gave.
    ///
    /// # Errors
    /// As of [`read_value`].
    pub fn open(body: &'b [u8], dialect: Dialect) -> Result<BodyElements<'b>, Error> {
        let mut source = Source::new(body, body.len());
        let mut known = None;
        match begin(&mut source, dialect, &mut known) {
            Ok((encoding, elements)) => {
                let elements = Some(elements);
                Ok(BodyElements { source, bytes: body.len() as u64, encoding, elements })
            }
            Err(fault) => Err(Error { at: source.offset(), key: None, encoding: known, fault }),
        }
    }

    /// How the value is encoded.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    fn step(&mut self) -> Result<Option<Element>, Fault> {
        let Some(elements) = &mut self.elements else { return Ok(None) };
        let element = elements.next(&mut self.source)?;
        if element.is_none() && self.bytes != self.source.offset() {
            return Err(Fault::Malformed("bytes follow the value"));
        }
        Ok(element)
    }
}

impl Iterator for BodyElements<'_> {
    type Item = Result<Element, Error>;

    fn next(&mut self) -> Option<Result<Element, Error>> {
        let step = self.step();
        if !matches!(step, Ok(Some(_))) {
            self.elements = None;
        }
        let (at, encoding) = (self.source.offset(), Some(self.encoding));
        step.map_err(|fault| Error { at, key: None, encoding, fault }).transpose()
    }
}

fn begin(
    source: &mut Source<&[u8]>,
    dialect: Dialect,
    known: &mut Option<Encoding>,
) -> Result<(Encoding, Elements), Fault> {
    let byte = source.byte()?;
    let Some(encoding) = Encoding::of(byte, dialect) else {
        let what = if matches!(byte, 6 | 7) { "a module's value" } else { "an unknown encoding" };
        return Err(Fault::Unsupported(format!("{what} is not read (byte {byte})")));
    };
    *known = Some(encoding);
    Ok((encoding, Elements::open(encoding, source)?))
}

/// Begins a payload in `out`, which is empty; the caller writes the value's elements, and then the
/// footer: [`seal`] does, or a [`Sealing`] that has seen all of them.
///
/// # Errors
/// As of [`make`].
pub fn begin_value<S: Sink>(
    out: &mut S,
    head: Head,
    version: Version,
) -> Result<ValueWriter<'_, S>, Fault> {
    ValueWriter::begin(out, None, head, version)
}

/// Completes a payload.
pub fn seal(payload: &mut Vec<u8>, version: Version) {
    let mut sealing = Sealing::new();
    sealing.update(payload);
    payload.extend_from_slice(&sealing.footer(version.number()));
}

/// The payload of a value.
///
/// # Errors
/// A value that servers of this version do not know.
pub fn make(value: &Value, version: Version) -> Result<Vec<u8>, Fault> {
    let mut payload = Vec::new();
    put_value(&mut payload, None, value, version)?;
    seal(&mut payload, version);
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Redis' own test vector of this CRC, and a payload that redis-server 7.0.15 made of no
    /// functions.
    #[test]
    fn checksums_are_those_of_redis() {
        assert_eq!(checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        let empty = b"\n\x00]\x9b\\@\x0f\x7f\xa2\xda";
        assert_eq!(open(empty), Some((&b""[..], Dialect::Redis)));
        assert_eq!(Sealing::new().footer(10), *empty);
        for at in 0..empty.len() {
            let mut damaged = empty.to_vec();
            damaged[at] ^= 1;
            assert_eq!(open(&damaged), None, "byte {at}");
        }
        assert_eq!(open(&empty[..9]), None);
        assert_eq!(open(b"\x0c\x00\0\0\0\0\0\0\0\0"), None, "without a checksum");
        assert_eq!(open(&Sealing::new().footer(13)), None, "a newer version");
        let footers = [12, 80].map(|version| Sealing::new().footer(version));
        assert_eq!(open(&footers[0]), Some((&b""[..], Dialect::Redis)));
        assert_eq!(open(&footers[1]), Some((&b""[..], Dialect::Valkey)));
    }

    #[test]
    fn a_value_that_goes_on_or_ends_early_is_refused() {
        let read = |body: &[u8]| read_value(body, Dialect::Redis).map_err(|e| e.to_string());
        assert_eq!(read(b"\0\x01a"), Ok(Value::String(b"a".to_vec())));
        let trailing = "in a value of type string (plain), at byte 3: bytes follow the value";
        assert_eq!(read(b"\0\x01ab").unwrap_err(), trailing);
        let cut = "in a value of type list (plain), at byte 2: the data ends in the middle";
        assert_eq!(read(b"\x01\x02").unwrap_err(), cut);
        let module = "at byte 1: a module's value is not read (byte 7)";
        assert_eq!(read(b"\x07\x02").unwrap_err(), module);
    }
}
