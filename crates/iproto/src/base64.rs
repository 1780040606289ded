//! Base64 with padding (RFC 4648, section 4), for salts and stored password hashes.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, PAD};

/// Bits of the last digit that belong to no byte may be set, as in Tarantool.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&base64::alphabet::STANDARD, PAD.with_decode_allow_trailing_bits(true));

/// Appends the bytes in base64.
pub fn encode(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(BASE64.encode(bytes).as_bytes());
}

/// Decodes exactly `N` bytes; `None` if the text is anything else.
pub fn decode<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    // A text of another length is not worth decoding.
    if text.len() != N.div_ceil(3) * 4 {
        return None;
    }
    BASE64.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const N: usize>(bytes: [u8; N], text: &str) {
        let mut out = Vec::new();
        encode(&mut out, &bytes);
        assert_eq!(String::from_utf8(out).unwrap(), text);
        assert_eq!(decode::<N>(text.as_bytes()), Some(bytes));
    }

    #[test]
    fn vectors_of_the_rfc() {
        check(*b"", "");
        check(*b"f", "Zg==");
        check(*b"fo", "Zm8=");
        check(*b"foo", "Zm9v");
        check(*b"foob", "Zm9vYg==");
        check(*b"fooba", "Zm9vYmE=");
        check(*b"foobar", "Zm9vYmFy");
        check([0xff; 5], "//////8=");
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["Zm9", "Zm9vYg==", "Zm9*", "Zm=v", "====", ""] {
            assert_eq!(decode::<3>(text.as_bytes()), None, "{text}");
        }
        assert_eq!(decode::<2>(b"Zm9v"), None);
        assert_eq!(decode(b"Zh=="), Some(*b"f"), "bits that belong to no byte");
    }
}
