//! The view of the log and the checkpoints that commands get.

use crate::checkpointer::Checkpointer;
use crate::shutdown::StopSignal;
use ladon_kernel::durability::{Backups, CheckpointError, Durability, PersistenceStatus, Shutdown};
use ladon_kernel::upstream::Replicas;
use ladon_log::Log;
use ladon_record::{Gate, Lsn};
use std::sync::Arc;
use std::time::Duration;

/// The log and the checkpointer behind one interface.
pub struct LogDurability {
    /// The log.
    pub log: Arc<Log>,
    /// The checkpointer.
    pub checkpointer: Arc<Checkpointer>,
    /// Stops the node.
    pub stop: Arc<StopSignal>,
    /// Number of keys that recovery found.
    pub recovered_keys: u64,
    /// How long recovery took.
    pub recovery_time: Duration,
}

/// How often the log syncs by itself at a gate.
pub(crate) fn sync_every(gate: Gate) -> Option<Duration> {
    match gate {
        Gate::EverySec => Some(Duration::from_secs(1)),
        // At `fsync`, replies request the syncs that they need; other changes may take a second.
        Gate::Fsync | Gate::Quorum => Some(Duration::from_secs(1)),
        Gate::None | Gate::Write => None,
    }
}

impl Durability for LogDurability {
    fn reserved(&self) -> Lsn {
        self.log.reserved()
    }

    fn written(&self) -> Lsn {
        self.log.written()
    }

    fn durable(&self) -> Lsn {
        self.log.durable()
    }

    fn others_have(&self, lsn: Lsn) -> usize {
        self.log.others_have(lsn)
    }

    fn want_durable(&self, lsn: Lsn) {
        self.log.want_durable(lsn);
    }

    #[inline]
    fn accepts_writes(&self) -> bool {
        self.log.accepts_writes()
    }

    fn failure(&self) -> Option<String> {
        self.log.state().error().map(ToString::to_string)
    }

    fn status(&self) -> PersistenceStatus {
        let status = self.checkpointer.status();
        let reserved = self.log.reserved();
        PersistenceStatus {
            checkpoint_in_progress: status.running_since_ms.is_some(),
            checkpoint_started_unix: status.running_since_ms.map(|ms| ms / 1000),
            checkpoint_progress: status.progress,
            last_checkpoint_unix: status.last_ok_unix,
            last_checkpoint_ok: status.last_failed.is_none(),
            last_checkpoint_seconds: status.last_seconds,
            last_checkpoint_keys: status.last.as_ref().map_or(0, |info| info.keys),
            last_checkpoint_bytes: status.last.as_ref().map_or(0, |info| info.bytes),
            changes_since_checkpoint: self.checkpointer.dirty(),
            checkpoints_made: status.made,
            log_bytes_since_checkpoint: reserved.0.saturating_sub(status.last_begin.0),
            log_bytes: reserved.0.saturating_sub(self.log.oldest().0),
            log_backlog_bytes: self.log.backlog_bytes(),
            log_ok: self.log.accepts_writes(),
            log_last_error: self.failure(),
            log_pending_syncs: u64::from(self.log.durable() < self.log.written()),
            last_recovery_keys: self.recovered_keys,
            last_recovery_seconds: self.recovery_time.as_secs_f64(),
        }
    }

    fn start_checkpoint(&self) -> Result<(), CheckpointError> {
        self.checkpointer.request()
    }

    fn checkpoint(&self) -> Result<(), CheckpointError> {
        self.checkpointer.make()
    }

    fn backups(&self) -> Option<Arc<dyn Backups>> {
        Some(Arc::clone(self.checkpointer.backups()) as Arc<dyn Backups>)
    }

    fn replicas(&self) -> Option<Arc<dyn Replicas>> {
        Some(Arc::clone(self.checkpointer.replicas()) as Arc<dyn Replicas>)
    }

    fn gate_changed(&self, gate: Gate) {
        self.log.set_sync_every(sync_every(gate));
    }

    fn request_shutdown(&self, shutdown: Shutdown) {
        self.stop.request(shutdown);
    }
}
