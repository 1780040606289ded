//! What commands need of the log and the checkpoints.

use ladon_record::{Gate, Lsn};

/// What commands need of the log and the checkpoints.
pub trait Durability: Send + Sync {
    /// The end of the log: every change so far has at most this LSN.
    fn reserved(&self) -> Lsn;
    /// Everything up to here is handed to the operating system.
    fn written(&self) -> Lsn;
    /// Everything up to here is on the disk.
    fn durable(&self) -> Lsn;
    /// Asks for `durable` to reach `lsn` soon, without waiting.
    fn want_durable(&self, lsn: Lsn);
    /// Whether the log takes changes now; one relaxed load.
    fn accepts_writes(&self) -> bool;
    /// Why not, for the error reply.
    fn failure(&self) -> Option<String>;
    /// The figures of `INFO persistence`.
    fn status(&self) -> PersistenceStatus;
    /// Starts a checkpoint in the background.
    fn start_checkpoint(&self) -> Result<(), CheckpointError>;
    /// Makes a checkpoint and waits for it.
    fn checkpoint(&self) -> Result<(), CheckpointError>;
    /// The default gate changed: adapts how often the log syncs.
    fn gate_changed(&self, gate: Gate);
    /// Asks the node to stop: finish replies, sync, leave a clean log.
    fn request_shutdown(&self, shutdown: Shutdown);
}

/// How to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shutdown {
    /// Make a checkpoint first; `None`: as the settings say.
    pub save: Option<bool>,
    /// Stop even if saving fails.
    pub force: bool,
}

/// Why there is no new checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// One is being made.
    #[error("a checkpoint is already in progress")]
    Busy,
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// What `INFO persistence` tells; times in Unix seconds, durations in seconds.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "INFO's names, or plain")]
pub struct PersistenceStatus {
    pub checkpoint_in_progress: bool,
    pub checkpoint_started_unix: Option<u64>,
    pub checkpoint_progress: f64,
    pub last_checkpoint_unix: u64,
    pub last_checkpoint_ok: bool,
    pub last_checkpoint_seconds: Option<u64>,
    pub last_checkpoint_keys: u64,
    pub last_checkpoint_bytes: u64,
    pub changes_since_checkpoint: u64,
    pub checkpoints_made: u64,
    pub log_bytes_since_checkpoint: u64,
    pub log_bytes: u64,
    pub log_backlog_bytes: u64,
    pub log_ok: bool,
    pub log_last_error: Option<String>,
    pub log_pending_syncs: u64,
    pub last_recovery_keys: u64,
    pub last_recovery_seconds: f64,
}
