//! What commands need of the log and the checkpoints.

use crate::client::clients::ClientInfo;
use crate::upstream::Replicas;
use ladon_record::{Gate, Lsn};
use std::sync::Arc;

/// What commands need of the log and the checkpoints.
pub trait Durability: Send + Sync {
    /// The end of the log: every change so far has at most this LSN.
    fn reserved(&self) -> Lsn;
    /// Everything up to here is handed to the operating system.
    fn written(&self) -> Lsn;
    /// Everything up to here is on the disk.
    fn durable(&self) -> Lsn;
    /// How many other nodes have everything up to `lsn` on their disks; none without a group.
    fn others_have(&self, _lsn: Lsn) -> usize {
        0
    }
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
    /// What clients copy the data's files with; `None` where there are none.
    fn backups(&self) -> Option<Arc<dyn Backups>>;
    /// The servers that follow this one; `None` where there can be none.
    fn replicas(&self) -> Option<Arc<dyn Replicas>> {
        None
    }
    /// The default gate changed: adapts how often the log syncs.
    fn gate_changed(&self, gate: Gate);
    /// Asks the node to stop: finish replies, sync, leave a clean log.
    fn request_shutdown(&self, shutdown: Shutdown);
}

/// Consistent copies of the data's files, which clients fetch piece by piece. All of it may wait for
/// the disk: it is for the threads of long jobs.
pub trait Backups: Send + Sync {
    /// Begins one, for this client: every change that anybody has seen by now is in it.
    ///
    /// # Errors
    /// See [`BackupError`].
    fn begin(&self, client: &Arc<ClientInfo>) -> Result<BackupBegun, BackupError>;
    /// Reads up to `count` bytes at `at` of a file; fewer only at its end.
    ///
    /// # Errors
    /// See [`BackupError`].
    fn read(&self, id: u64, file: usize, at: u64, count: usize) -> Result<Vec<u8>, BackupError>;
    /// Ends one. Returns whether it was there.
    fn end(&self, id: u64) -> bool;
}

/// A backup that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupBegun {
    /// Its number, which nobody guesses.
    pub id: u64,
    /// The end of the log in it.
    pub end: Lsn,
    /// Name and bytes of each file.
    pub files: Vec<(String, u64)>,
}

/// Why there is no backup, or no piece of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackupError {
    /// Others are being made.
    #[error("{0} backups are being made already; wait for one")]
    TooMany(usize),
    /// There is none of this number.
    #[error(
        "there is no such backup: it has ended, because nothing was read of it for a minute, the \
         disk was full, or the server was restarted"
    )]
    NoSuchBackup,
    /// The disk or the log failed.
    #[error("{0}")]
    Failed(String),
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
