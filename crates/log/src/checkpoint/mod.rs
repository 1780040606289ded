//! Checkpoint files: the data, block by block, so that the log before them may be deleted.
//!
//! A checkpoint is fuzzy: each block holds the keys of one hash range as they were at the block's
//! own LSN. It is written beside the log under a temporary name, and gets its name only when every
//! byte of it, and the log up to its newest block, is on the disk.

pub mod format;
pub mod reader;
pub mod writer;

use ladon_model::Lsn;
use std::path::PathBuf;

pub use format::BlockHeader;
pub use writer::CheckpointWriter;

/// A whole checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointInfo {
    /// The file.
    pub path: PathBuf,
    /// Replay begins here.
    pub begin: Lsn,
    /// The newest LSN that any part of it shows.
    pub newest: Lsn,
    /// Keys in all blocks.
    pub keys: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// When it was begun, Unix milliseconds.
    pub created_ms: u64,
}
