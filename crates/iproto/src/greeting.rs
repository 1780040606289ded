//! The greeting: the first 128 bytes of a connection, from the server.
//!
//! ```text
//! Tarantool 2.11.5 (Binary) 7170b4af-c72f-4f07-8729-08fc678543a1     63 bytes, padded, and \n
//! B0ZJVxsTZ1PCv9DSQzL3ZGRs5ZSUAqzMJ6Xx1aB5FhE=                       63 bytes, padded, and \n
//! ```

use crate::base64;

/// Bytes of a greeting.
pub const GREETING_BYTES: usize = 128;

/// Bytes of the salt that a greeting shows. Authentication uses the first 20 of them.
pub const SALT_BYTES: usize = 32;

const LINE_BYTES: usize = GREETING_BYTES / 2;

/// Makes the greeting that shows this version (`2.11.5`), instance and salt.
///
/// # Panics
/// If the version is so long that the line has no room for it.
pub fn write(version: &str, instance_uuid: &str, salt: &[u8; SALT_BYTES]) -> [u8; GREETING_BYTES] {
    let mut greeting = [b' '; GREETING_BYTES];
    let line = format!("Tarantool {version} (Binary) {instance_uuid}");
    assert!(line.len() < LINE_BYTES, "no room for the version {version}");
    greeting[..line.len()].copy_from_slice(line.as_bytes());
    greeting[LINE_BYTES - 1] = b'\n';
    let mut text = Vec::with_capacity(LINE_BYTES);
    base64::encode(&mut text, salt);
    greeting[LINE_BYTES..LINE_BYTES + text.len()].copy_from_slice(&text);
    greeting[GREETING_BYTES - 1] = b'\n';
    greeting
}

/// A server's greeting, as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// `2.11.5`.
    pub version: String,
    /// The instance's UUID.
    pub instance_uuid: String,
    /// The salt.
    pub salt: [u8; SALT_BYTES],
}

/// Reads a greeting; `None` if the bytes are something else.
pub fn read(bytes: &[u8; GREETING_BYTES]) -> Option<Greeting> {
    let (first, second) = bytes.split_at(LINE_BYTES);
    let line = |line: &[u8]| {
        let text = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
        Some(text.trim_end_matches(' ').to_owned())
    };
    let first = line(first)?;
    let (version, instance_uuid) = first.strip_prefix("Tarantool ")?.split_once(" (Binary) ")?;
    let salt = base64::decode(line(second)?.as_bytes())?;
    Some(Greeting { version: version.to_owned(), instance_uuid: instance_uuid.to_owned(), salt })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "7170b4af-c72f-4f07-8729-08fc678543a1";

    #[test]
    fn a_greeting_is_read_as_written() {
        let salt = std::array::from_fn(|index| index as u8 * 7);
        let bytes = write("2.11.5", UUID, &salt);
        let expected = Greeting { version: "2.11.5".into(), instance_uuid: UUID.into(), salt };
        assert_eq!(read(&bytes), Some(expected));
        assert_eq!((bytes[63], bytes[127]), (b'\n', b'\n'));
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 2);
        assert_eq!(bytes[64 + 44], b' ');
    }

    #[test]
    fn other_bytes_are_no_greeting() {
        let good = write("2.11.5", UUID, &[1; SALT_BYTES]);
        for position in [0, 63, 64, 127] {
            let mut bytes = good;
            bytes[position] = b'*';
            assert_eq!(read(&bytes), None, "{position}");
        }
    }
}
