//! What recovery needs from whoever owns the data.

use crate::checkpoint::{BlockHeader, CheckpointInfo};
use crate::damage::Damage;
use ladon_model::Lsn;
use std::path::PathBuf;
use std::time::Duration;

/// Takes the recovered data. An error stops recovery and is shown with the file and the place.
pub trait RecoverySink: Sync {
    /// One block of the checkpoint: encoded `Put`s of the keys of `block.db` whose hash lies in
    /// `block.hash_first..=block.hash_last`, as of `block.lsn`, or a piece of one key's value.
    /// Several threads call it at once, in no order.
    fn block(&self, block: &BlockHeader, changes: &[u8]) -> Result<(), String>;

    /// What the server stored with [`crate::CheckpointWriter::finish`], as of `lsn`. Once, before the
    /// first record, at any time among the blocks.
    fn meta(&self, lsn: Lsn, meta: &[u8]) -> Result<(), String>;

    /// One record behind the checkpoint's begin, after all blocks. Each of the `workers` threads gets
    /// every record, in order, and applies its own share of the partitions.
    fn record(&self, worker: usize, lsn: Lsn, changes: &[u8]) -> Result<(), String>;
}

/// What recovery is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Loading the checkpoint.
    Checkpoint,
    /// Replaying the log.
    Replay,
}

/// How far recovery is; bytes of the files of this phase.
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

/// A tail that was not whole and has been cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The file in which the log ends now.
    pub path: PathBuf,
    /// Where it was cut.
    pub offset: u64,
    /// How many bytes went, later files included.
    pub bytes: u64,
    /// What stood at the place.
    pub found: String,
    /// Whole records behind the place that had never been synced, and went with it.
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
    /// What was cut off the end.
    pub torn: Option<TornTail>,
    /// What was given up because [`crate::LogOptions::accept_loss_after`] says so.
    pub given_up: Option<Damage>,
    /// Why nobody could tell whether the end of the log is missing: the file `log-end` is not
    /// usable. It has been written anew.
    pub log_end_fault: Option<Damage>,
    /// The log had been closed in good order.
    pub clean: bool,
    /// Where the log goes on.
    pub end: Lsn,
    /// How long it took.
    pub duration: Duration,
}
