//! How the log is doing.

use crate::sync_primitives::{AtomicBool, Mutex, Ordering};
use ladon_model::Lsn;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// Why the log cannot do what it was asked.
#[derive(Clone, Debug, Error)]
pub enum LogError {
    /// The file system refused a write. It is retried about once a second, at the same place, and
    /// the log heals by itself when it succeeds.
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
    /// The file system failed to make written bytes durable. After that no later success can be
    /// believed, so the log stays closed until the server is started again and has recovered.
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
    /// A checkpoint's file could not be written; the log itself is well.
    #[error("cannot write the checkpoint {path}: {error}")]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: Arc<io::Error>,
    },
    /// A batch that began before was not published in time.
    #[error("the log up to {lsn} was not published within {waited_ms} ms")]
    Unpublished {
        /// What was waited for.
        lsn: Lsn,
        /// For how long.
        waited_ms: u64,
    },
}

/// Whether the disk, or the user's share of it, is full.
pub(crate) fn is_out_of_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl LogError {
    /// Whether it is for want of room on the disk.
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
    /// All is well.
    Healthy,
    /// A write failed and is being retried.
    WriteFailed {
        /// The last failure, [`LogError::WriteFailed`].
        error: LogError,
        /// When the first failure of this series was, nanoseconds of the monotonic clock.
        since_ns: u64,
    },
    /// A sync failed: only a restart helps.
    SyncFailed {
        /// The failure, [`LogError::SyncFailed`].
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

/// The state, with a flag beside it that the hot path reads.
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

    /// Notes a failed write; a failed sync outranks it.
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

    /// Notes a failed sync, for good.
    pub(crate) fn sync_failed(&self, error: LogError) {
        *self.state.lock() = LogState::SyncFailed { error };
        self.accepts_writes.store(false, Ordering::Relaxed);
    }

    /// Notes a write that succeeded; returns whether that ended a series of failures.
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
