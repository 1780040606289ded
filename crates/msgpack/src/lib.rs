//! MessagePack: values out of bytes, bytes out of values.
//!
//! Source: the MessagePack specification (spec.md of 2017). A reader is a slice that shrinks:
//! every function takes `&mut &[u8]` and advances it past what it has read. After an error the
//! slice's position is unspecified.
//!
//! **Architecture invariant:** no engine, no socket and no `unsafe` in here. Nothing is allocated
//! in proportion to a number that the bytes merely announce, and no depth of nesting needs stack.

#![forbid(unsafe_code)]

mod read;
mod skip;
mod value;
pub mod write;

pub use read::{read, read_array, read_bin, read_bool, read_map, read_nil, read_str, read_uint};
pub use skip::{DEPTH_MAX, skip, take, validate};
pub use value::{Kind, Value};

use thiserror::Error;

/// Why bytes are not the MessagePack that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The bytes end inside a value.
    #[error("the MessagePack ends inside a value")]
    Truncated,
    /// The byte 0xc1, which the specification leaves unused.
    #[error("0xc1 begins no MessagePack value")]
    Unused,
    /// The value has another type.
    #[error("expected {expected}, got {found}")]
    Type {
        /// The expected type.
        expected: &'static str,
        /// The value's type.
        found: &'static str,
    },
    /// Values are nested deeper than [`DEPTH_MAX`].
    #[error("the MessagePack is nested too deeply")]
    Depth,
    /// There are bytes after the value.
    #[error("there are bytes after the MessagePack value")]
    Trailing,
}
