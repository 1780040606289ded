//! Base64 as Tarantool writes and reads it.

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Letters of a line.
const LINE: usize = 72;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// How base64 is written.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    pub(crate) pads: bool,
    pub(crate) wraps: bool,
    pub(crate) url_safe: bool,
}

/// Appends the bytes as base64.
pub(crate) fn encode(bytes: &[u8], style: Style, out: &mut Vec<u8>) {
    let alphabet = if style.url_safe { &URL_SAFE } else { &STANDARD };
    let config = GeneralPurposeConfig::new().with_encode_padding(style.pads);
    let text = GeneralPurpose::new(alphabet, config).encode(bytes);
    if !style.wraps {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    for line in text.as_bytes().chunks(LINE) {
        out.extend_from_slice(line);
        if line.len() == LINE && line[LINE - 1] != b'=' {
            out.push(b'\n');
        }
    }
}

/// Reads base64 of either alphabet as far as it is some; what is no letter of it is skipped.
pub(crate) fn decode(text: &[u8], out: &mut Vec<u8>) {
    let mut letters: Vec<u8> = text
        .iter()
        .filter_map(|byte| match byte {
            b'-' => Some(b'+'),
            b'_' => Some(b'/'),
            b'+' | b'/' => Some(*byte),
            _ => byte.is_ascii_alphanumeric().then_some(*byte),
        })
        .collect();
    if letters.len() % 4 == 1 {
        letters.pop();
    }
    if let Ok(decoded) = LENIENT.decode(letters) {
        *out = decoded;
    }
}
