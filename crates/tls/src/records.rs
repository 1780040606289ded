//! Where a TLS record ends: its header says so.

use thiserror::Error;

/// Type, version, length.
pub(crate) const HEADER_BYTES: usize = 5;

/// A record's payload is 2^14 bytes, and what encryption adds: 2048 in TLS 1.2, less in 1.3.
const PAYLOAD_BYTES_MAX: usize = (1 << 14) + 2048;

/// Why bytes are no TLS.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum RecordError {
    /// The first byte is no type of a record.
    #[error("it does not speak TLS")]
    NotTls,
    /// The header announces more than a record may have.
    #[error("a record of {0} bytes is too long")]
    TooLong(usize),
}

/// The length of the record at the beginning, header included, if all of it is there. Only bytes
/// that can begin a record are waited for.
pub(crate) fn whole_record(bytes: &[u8]) -> Result<Option<usize>, RecordError> {
    // change_cipher_spec, alert, handshake, application_data; the version's first byte is always 3.
    let begins = match bytes {
        [] => return Ok(None),
        [kind] => (20..=23).contains(kind),
        [kind, major, ..] => (20..=23).contains(kind) && *major == 3,
    };
    if !begins {
        return Err(RecordError::NotTls);
    }
    let [_, _, _, high, low, ..] = *bytes else { return Ok(None) };
    let payload = usize::from(u16::from_be_bytes([high, low]));
    if payload > PAYLOAD_BYTES_MAX {
        return Err(RecordError::TooLong(payload));
    }
    let length = HEADER_BYTES + payload;
    Ok((bytes.len() >= length).then_some(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_ends_where_its_header_says() {
        for (bytes, expected) in [
            (&b""[..], Ok(None)),
            (b"\x16", Ok(None)),
            (b"\x16\x03\x01\x00", Ok(None)),
            (b"\x16\x03\x01\x00\x02a", Ok(None)),
            (b"\x16\x03\x01\x00\x02ab", Ok(Some(7))),
            (b"\x17\x03\x03\x00\x02abc", Ok(Some(7))),
            (b"\x17\x03\x03\x00\x00", Ok(Some(5))),
            (b"\x17\x03\x03\x48\x00", Ok(None)),
            (b"\x17\x03\x03\x48\x01", Err(RecordError::TooLong(18433))),
            (b"PING\r\n", Err(RecordError::NotTls)),
            (b"*", Err(RecordError::NotTls)),
            (b"\x16\x02", Err(RecordError::NotTls)),
        ] {
            assert_eq!(whole_record(bytes), expected, "{bytes:x?}");
        }
    }
}
