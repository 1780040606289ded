//! Base64 with padding (RFC 4648, section 4), for salts and stored password hashes.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the bytes in base64.
pub fn encode(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let symbol = ALPHABET[(group >> (18 - 6 * digit) & 0x3f) as usize];
            out.push(if digit > chunk.len() { b'=' } else { symbol });
        }
    }
}

/// Decodes exactly `N` bytes; `None` if the text is anything else.
pub fn decode<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() != N.div_ceil(3) * 4 {
        return None;
    }
    let mut bytes = [0; N];
    let padding = text.len() / 4 * 3 - N;
    let digits = &text[..text.len() - padding];
    if text[digits.len()..].iter().any(|byte| *byte != b'=') {
        return None;
    }
    for (index, byte) in digits.iter().enumerate() {
        let value = ALPHABET.iter().position(|symbol| symbol == byte)? as u32;
        let bit = index * 6;
        // A digit's six bits lie in one byte or in two.
        let shifted = value << (10 - bit % 8);
        bytes[bit / 8] |= (shifted >> 8) as u8;
        if let Some(next) = bytes.get_mut(bit / 8 + 1) {
            *next |= shifted as u8;
        }
    }
    Some(bytes)
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
    }
}
