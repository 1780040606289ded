//! What is reported about a file that is not usable.

use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// A damaged file: where, what was found, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// What was found there.
    pub found: String,
    /// What can be done.
    pub advice: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { path, offset, found, advice } = self;
        write!(f, "{} is damaged at byte {offset}: {found}; {advice}", path.display())
    }
}
