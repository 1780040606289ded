//! Checkpoint files: the data in blocks, so that the log before them may be deleted.
//!
//! A checkpoint is fuzzy: each block holds the keys of one hash range as of the block's own LSN.
//! The file is written under a temporary name. It gets its final name only when all of it, and the
//! log up to its newest block, is on the disk.

pub mod format;
pub mod reader;
pub mod writer;

use ladon_record::Lsn;
use std::path::PathBuf;

pub use format::BlockHeader;
pub use writer::CheckpointWriter;

/// A complete checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointInfo {
    /// The file.
    pub path: PathBuf,
    /// Replay begins here.
    pub begin: Lsn,
    /// The newest LSN of any part.
    pub newest: Lsn,
    /// Keys in all blocks.
    pub keys: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// When the checkpoint began, Unix milliseconds.
    pub created_ms: u64,
}
