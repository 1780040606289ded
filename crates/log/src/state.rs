//! The state of the log.

use crate::sync_primitives::{AtomicBool, Mutex, Ordering};
use ladon_record::Lsn;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// Why the log cannot do what was asked.
#[derive(Clone, Debug, Error)]
pub enum LogError {
    /// The file system refused a write. The log retries about once a second, at the same position,
    /// and recovers by itself when a retry succeeds.
    #[error(
        "cannot write {path} at byte {offset}: {error}; writes are refused until a retry succeeds \
         (about once a second): free space or repair the disk"
    )]
    WriteFailed {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What the system said.
        error: Arc<io::Error>,
    },
    /// The file system failed to make written bytes durable. No later success can be trusted, so
    /// the log stays closed until the server has restarted and recovered.
    #[error(
        "cannot make {path} durable: {error}; writes are refused until a restart, because a later \
         success of the same file could not be believed: check the disk, then restart the server"
    )]
    SyncFailed {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: Arc<io::Error>,
    },
    /// A file that the next start needs is not in the directory any more. As final as
    /// [`LogError::SyncFailed`].
    #[error(
        "{path} is gone: it was removed, moved or replaced while the server was running, and the next \
         start would not find what is written; writes are refused until a restart: read what you \
         need from this server first"
    )]
    Removed {
        /// The file or directory.
        path: PathBuf,
    },
    /// A checkpoint's file could not be written; the log itself has not failed.
    #[error("cannot write the checkpoint {path}: {error}")]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: Arc<io::Error>,
    },
    /// The caller could not complete a checkpoint; the log itself has not failed.
    #[error("the checkpoint was given up: {0}")]
    GivenUp(&'static str),
    /// A batch that was open was not published in time.
    #[error("the log up to {lsn} was not published within {waited_ms} ms")]
    Unpublished {
        /// What was waited for.
        lsn: Lsn,
        /// For how long.
        waited_ms: u64,
    },
}

/// Whether the disk, or the user's quota, is full.
pub(crate) fn is_out_of_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl LogError {
    /// Whether the cause is a full disk.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            LogError::WriteFailed { error, .. } | LogError::Checkpoint { error, .. } => {
                is_out_of_space(error)
            }
            _ => false,
        }
    }
}

/// Whether the log takes writes, and why not.
#[derive(Clone, Debug)]
pub enum LogState {
    /// The log works.
    Healthy,
    /// A write failed and is being retried.
    WriteFailed {
        /// The last failure, [`LogError::WriteFailed`].
        error: LogError,
        /// When the first failure of this series happened, monotonic nanoseconds.
        since_ns: u64,
    },
    /// A sync failed, or files are gone: only a restart helps.
    SyncFailed {
        /// The failure, [`LogError::SyncFailed`] or [`LogError::Removed`].
        error: LogError,
    },
}

impl LogState {
    /// The error to show, if there is one.
    pub fn error(&self) -> Option<&LogError> {
        match self {
            LogState::Healthy => None,
            LogState::WriteFailed { error, .. } | LogState::SyncFailed { error } => Some(error),
        }
    }
}

/// The state, with a flag for the hot path.
pub(crate) struct StateCell {
    accepts_writes: AtomicBool,
    state: Mutex<LogState>,
}

impl StateCell {
    pub(crate) fn new() -> StateCell {
        StateCell { accepts_writes: AtomicBool::new(true), state: Mutex::new(LogState::Healthy) }
    }

    #[inline]
    pub(crate) fn accepts_writes(&self) -> bool {
        self.accepts_writes.load(Ordering::Relaxed)
    }

    pub(crate) fn get(&self) -> LogState {
        self.state.lock().clone()
    }

    /// Records a failed write; a failed sync takes precedence.
    pub(crate) fn write_failed(&self, error: LogError, now_ns: u64) {
        let mut state = self.state.lock();
        let since_ns = match &*state {
            LogState::SyncFailed { .. } => return,
            LogState::WriteFailed { since_ns, .. } => *since_ns,
            LogState::Healthy => now_ns,
        };
        *state = LogState::WriteFailed { error, since_ns };
        self.accepts_writes.store(false, Ordering::Relaxed);
    }

    /// Records a failed sync, permanently.
    pub(crate) fn sync_failed(&self, error: LogError) {
        *self.state.lock() = LogState::SyncFailed { error };
        self.accepts_writes.store(false, Ordering::Relaxed);
    }

    /// Records a write that succeeded. Returns whether that ended a series of failures.
    pub(crate) fn write_succeeded(&self) -> bool {
        if self.accepts_writes() {
            return false;
        }
        let mut state = self.state.lock();
        if !matches!(*state, LogState::WriteFailed { .. }) {
            return false;
        }
        *state = LogState::Healthy;
        self.accepts_writes.store(true, Ordering::Relaxed);
        true
    }
}
