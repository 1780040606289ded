//! What recovery needs from the owner of the data.

use crate::checkpoint::{BlockHeader, CheckpointInfo};
use crate::damage::Damage;
use crate::reader::Batch;
use ladon_record::Lsn;
use std::path::PathBuf;
use std::time::Duration;

/// Receives the recovered data. An error stops recovery and is reported with the file and the
/// position.
pub trait RecoverySink: Sync {
    /// One block of the checkpoint: encoded `Put`s of the keys of `block.db` whose hash is in
    /// `block.hash_first..=block.hash_last`, as of `block.lsn`, or a piece of one key's value.
    /// Several threads call this at once, in any order.
    fn block(&self, block: &BlockHeader, changes: &[u8]) -> Result<(), String>;

    /// What the server stored with [`crate::CheckpointWriter::finish`], as of `lsn`. Called once,
    /// before the first record, at any time among the blocks.
    fn meta(&self, lsn: Lsn, meta: &[u8]) -> Result<(), String>;

    /// Records after the checkpoint's begin position, see [`Batch::records`]; called after all
    /// blocks. Each of the `workers` threads gets every record, in order, and applies its own share
    /// of the partitions. An error says at which record.
    fn records(&self, worker: usize, batch: &Batch) -> Result<(), (Lsn, String)>;

    /// After the last record, once, before anything in the directory changes.
    fn end(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The present phase of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Loading the checkpoint.
    Checkpoint,
    /// Replaying the log.
    Replay,
}

/// Progress of recovery, in bytes of this phase's files.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Which files.
    pub phase: Phase,
    /// Bytes read.
    pub bytes_done: u64,
    /// Bytes to read.
    pub bytes_total: u64,
    /// Keys loaded, or records replayed.
    pub items: u64,
}

/// An incomplete tail that was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The file in which the log now ends.
    pub path: PathBuf,
    /// Where it was cut.
    pub offset: u64,
    /// Number of bytes cut, later files included.
    pub bytes: u64,
    /// What was found at the offset.
    pub found: String,
    /// Complete records after the offset, never synced, that were cut too.
    pub frames: u64,
}

/// What recovery did.
#[derive(Clone, Debug)]
pub struct RecoveryReport {
    /// The checkpoint that was loaded.
    pub checkpoint: Option<CheckpointInfo>,
    /// Records replayed behind it.
    pub records: u64,
    /// Bytes of log read.
    pub log_bytes: u64,
    /// The tail that was cut off.
    pub torn: Option<TornTail>,
    /// What was discarded because of [`crate::LogOptions::accept_loss_after`].
    pub given_up: Option<Damage>,
    /// Why it is unknown whether the end of the log is missing: the file `log-end` was not usable.
    /// It has been rewritten.
    pub log_end_fault: Option<Damage>,
    /// The log was closed cleanly.
    pub clean: bool,
    /// Position at which the log continues.
    pub end: Lsn,
    /// How long it took.
    pub duration: Duration,
}
