//! Why bytes are no RDB that is read here, and where.

use std::fmt;
use std::io;

use thiserror::Error;

use crate::encoding::Encoding;

/// What is wrong, without its place.
#[derive(Debug, Error)]
pub enum Fault {
    /// The bytes could not be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The input ends too early.
    #[error("the data ends in the middle")]
    Truncated,
    /// The bytes break the format.
    #[error("{0}")]
    Malformed(&'static str),
    /// The format is right, and not read here.
    #[error("{0}")]
    Unsupported(String),
    /// The checksum at the end is that of other bytes.
    #[error("the checksum is {stored:016x}, that of the data is {computed:016x}")]
    Checksum {
        /// What the file says.
        stored: u64,
        /// What its bytes give.
        computed: u64,
    },
}

/// A [`Fault`] and its place.
#[derive(Debug)]
pub struct Error {
    /// How many bytes had been taken when it was noticed.
    pub at: u64,
    /// The key whose value was being read.
    pub key: Option<Box<[u8]>>,
    /// How that value is encoded.
    pub encoding: Option<Encoding>,
    /// What is wrong.
    pub fault: Fault,
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            Fault::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// "in key 'x' of type hash (listpack), at byte 1234: ...".
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// A longer key is cut in messages.
        const KEY_BYTES_SHOWN: usize = 128;
        let of_type = |f: &mut fmt::Formatter<'_>| match self.encoding {
            Some(encoding) => write!(f, " of type {encoding}"),
            None => Ok(()),
        };
        match &self.key {
            Some(key) => {
                let shown = &key[..key.len().min(KEY_BYTES_SHOWN)];
                let more = if shown.len() < key.len() { "..." } else { "" };
                write!(f, "in key '{}{more}'", shown.escape_ascii())?;
                of_type(f)?;
                f.write_str(", ")?;
            }
            None if self.encoding.is_some() => {
                f.write_str("in a value")?;
                of_type(f)?;
                f.write_str(", ")?;
            }
            None => (),
        }
        write!(f, "at byte {}: {}", self.at, self.fault)
    }
}
