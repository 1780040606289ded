//! Keys and fields as text, for clients whose protocol has strings only (a space that is mounted
//! under a prefix of Redis' keys).
//!
//! Every key has exactly one text, so that two texts never name the same tuple.

mod key;
mod sum;
mod value;

pub use crate::text::uuid_text;
pub use key::{check_parts, encode_key, write_key};
pub use sum::{SumError, add_float, add_integer};
pub use value::{encode_value, is_writable, write_value};

use thiserror::Error;

/// Why a text is no key or no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TextError {
    /// It is no value of this type.
    #[error("'{text}' is no value of type {kind}")]
    Value {
        /// The text.
        text: String,
        /// The type's name.
        kind: &'static str,
    },
    /// It is a value, but not written as the server writes it.
    #[error("'{text}' is not how {kind} keys are written, which is '{canonical}'")]
    NotCanonical {
        /// The text.
        text: String,
        /// The type's name.
        kind: &'static str,
        /// The one text of that value.
        canonical: String,
    },
    /// The key has another number of parts.
    #[error("the key has {found} parts, and the primary key has {expected}, joined by ':'")]
    Parts {
        /// Parts of the primary key.
        expected: usize,
        /// Parts of the text.
        found: usize,
    },
    /// A backslash is followed by something else than a backslash or a colon.
    #[error("'\\' comes before ':' or '\\' only, in a part of a key that is not the last one")]
    Escape,
    /// Values of this type have no text that could be read back.
    #[error("values of type {0} are written over IPROTO only")]
    NotWritable(&'static str),
}

/// A text for a message, cut off at some length.
fn shown(text: &[u8]) -> String {
    const BYTES_MAX: usize = 64;
    let cut = &text[..text.len().min(BYTES_MAX)];
    let more = if cut.len() < text.len() { "..." } else { "" };
    format!("{}{more}", String::from_utf8_lossy(cut))
}

#[cfg(test)]
mod tests;
