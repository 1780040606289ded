//! The address of an entry, as segments keep it; `entry.rs` says what lies there.

use std::ptr::NonNull;

/// Owner of an entry's allocation; freed by hand through its arena.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryPtr(pub(crate) NonNull<u8>);
