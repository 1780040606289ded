//! Strings of replies as JSON's, or as base64 in JSON's, in pieces of any size.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// How the bytes of strings become text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// As they are; what is not UTF-8 becomes U+FFFD.
    #[default]
    Utf8,
    /// `Upstash-Encoding: base64`.
    Base64,
}

/// A string that is being written. Between two pieces it keeps what it cannot write yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text {
    encoding: Encoding,
    kept: [u8; 3],
    kept_count: usize,
}

impl Text {
    /// A string in this encoding, whose quotation marks are the caller's.
    pub fn new(encoding: Encoding) -> Text {
        Text { encoding, ..Text::default() }
    }

    /// Writes a whole string.
    pub fn whole(encoding: Encoding, bytes: &[u8], out: &mut Vec<u8>) {
        let mut text = Text::new(encoding);
        text.push(bytes, out);
        text.finish(out);
    }

    /// Writes some bytes.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match self.encoding {
            Encoding::Utf8 => self.push_utf8(bytes, out),
            Encoding::Base64 => self.push_base64(bytes, out),
        }
    }

    /// Writes what it has kept.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let kept = std::mem::take(&mut self.kept_count);
        match self.encoding {
            Encoding::Utf8 if kept > 0 => put_char(char::REPLACEMENT_CHARACTER, out),
            Encoding::Utf8 => {}
            Encoding::Base64 => put_base64(&self.kept[..kept], out),
        }
    }

    fn push_base64(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while self.kept_count > 0 && self.kept_count < 3 {
            let Some((&byte, rest)) = bytes.split_first() else { return };
            self.kept[self.kept_count] = byte;
            self.kept_count += 1;
            bytes = rest;
        }
        if self.kept_count == 3 {
            put_base64(&self.kept, out);
        }
        let (whole, rest) = bytes.split_at(bytes.len() - bytes.len() % 3);
        put_base64(whole, out);
        self.kept[..rest.len()].copy_from_slice(rest);
        self.kept_count = rest.len();
    }

    fn push_utf8(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        // The rest of a character that was cut.
        while self.kept_count > 0 {
            let Some((&byte, rest)) = bytes.split_first() else { return };
            let mut joined = [0; 4];
            joined[..self.kept_count].copy_from_slice(&self.kept[..self.kept_count]);
            joined[self.kept_count] = byte;
            let joined = &joined[..=self.kept_count];
            match std::str::from_utf8(joined) {
                Ok(char) => {
                    out.extend_from_slice(char.as_bytes());
                    self.kept_count = 0;
                    bytes = rest;
                }
                Err(error) if error.error_len().is_none() => {
                    self.kept[self.kept_count] = byte;
                    self.kept_count += 1;
                    bytes = rest;
                }
                Err(_) => {
                    // This byte may begin the next character.
                    put_char(char::REPLACEMENT_CHARACTER, out);
                    self.kept_count = 0;
                }
            }
        }
        loop {
            match std::str::from_utf8(bytes) {
                Ok(text) => return escape(text, out),
                Err(error) => {
                    let (valid, rest) = bytes.split_at(error.valid_up_to());
                    // What was found to be valid is.
                    escape(std::str::from_utf8(valid).unwrap_or_default(), out);
                    let Some(length) = error.error_len() else {
                        self.kept[..rest.len()].copy_from_slice(rest);
                        self.kept_count = rest.len();
                        return;
                    };
                    put_char(char::REPLACEMENT_CHARACTER, out);
                    bytes = &rest[length..];
                }
            }
        }
    }
}

fn put_char(char: char, out: &mut Vec<u8>) {
    out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
}

fn put_base64(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    // The room is what the encoding needs.
    let written = STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
}

/// Writes text inside of a JSON string.
fn escape(text: &str, out: &mut Vec<u8>) {
    let mut bytes = text.as_bytes();
    while let Some(at) = bytes.iter().position(|&byte| byte < b' ' || byte == b'"' || byte == b'\\')
    {
        out.extend_from_slice(&bytes[..at]);
        match bytes[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                let (high, low) = (usize::from(other >> 4), usize::from(other & 15));
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', DIGITS[high], DIGITS[low]]);
            }
        }
        bytes = &bytes[at + 1..];
    }
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(encoding: Encoding, bytes: &[u8], at_once: usize) -> String {
        let mut out = Vec::new();
        let mut text = Text::new(encoding);
        for part in bytes.chunks(at_once) {
            text.push(part, &mut out);
        }
        text.finish(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn strings_are_what_json_reads_back_however_they_are_cut() {
        for bytes in [
            &b"plain"[..],
            "\" \\ / \n \r \t \u{8} \u{1f} \u{7f} \u{2028} é € 😀".as_bytes(),
            b"",
            b"\xff",
            b"a\xc3",
            b"\xc3\xc3\xa9",
            b"\xe2\x82x\xf0\x9f\x98",
            b"\xed\xa0\x80 \xf8\x88 \xc0\xaf",
        ] {
            for at_once in 1..=bytes.len().max(1) {
                let json = format!("\"{}\"", written(Encoding::Utf8, bytes, at_once));
                let back: String = serde_json::from_str(&json).expect(&json);
                assert_eq!(back, String::from_utf8_lossy(bytes), "{bytes:?} by {at_once}");
                let base64 = written(Encoding::Base64, bytes, at_once);
                assert_eq!(base64, STANDARD.encode(bytes), "by {at_once}");
            }
        }
    }
}
