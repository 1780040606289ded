//! A glob pattern with its text: two patterns are the same if their texts are.

use ladon_settings::Glob;
use std::fmt;
use std::sync::Arc;

/// A pattern of keys or channels. A copy shares the compiled pattern.
#[derive(Clone)]
pub(crate) struct Pattern {
    text: Arc<[u8]>,
    glob: Arc<Glob>,
}

impl Pattern {
    pub(crate) fn new(text: &[u8]) -> Pattern {
        Pattern { text: text.into(), glob: Arc::new(Glob::new(text, false)) }
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        self.glob.matches(name)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.text.escape_ascii())
    }
}

/// Whether a text has a blank or a zero byte. Names and patterns must not: descriptions and files
/// of users are split at blanks.
pub(crate) fn has_blank(text: &[u8]) -> bool {
    text.iter().any(|&byte| is_blank(byte))
}

/// The bytes of C's `isspace`, and zero.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r' | 0)
}
