//! A clock that moves only when a test moves it, and a log in memory.

use ladon_kernel::durability::Durability;
use ladon_kernel::durability::{Backups, CheckpointError, PersistenceStatus, Shutdown};
use ladon_platform::Clock;
use ladon_record::{Gate, Lsn};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A clock that moves when told, and counts how often its monotonic time is read.
pub struct FakeClock(AtomicU64, AtomicU64, AtomicU64);

impl FakeClock {
    pub fn new(unix_ms: u64) -> FakeClock {
        FakeClock(AtomicU64::new(unix_ms), AtomicU64::new(0), AtomicU64::new(0))
    }

    /// From now on each reading of the monotonic time moves it by so much.
    pub fn advance_when_read(&self, ms: u64) {
        self.1.store(ms, Relaxed);
    }

    /// How often the monotonic time was read.
    pub fn reads(&self) -> u64 {
        self.2.load(Relaxed)
    }

    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Relaxed);
    }
}

impl Clock for FakeClock {
    fn unix_us(&self) -> u64 {
        self.0.load(Relaxed) * 1000
    }

    fn monotonic_ns(&self) -> u64 {
        self.2.fetch_add(1, Relaxed);
        let step_ms = self.1.load(Relaxed);
        (self.0.fetch_add(step_ms, Relaxed) + step_ms) * 1_000_000
    }
}

/// A log in memory, whose records count as durable at once.
#[derive(Default)]
pub struct FakeLog {
    records: Mutex<Vec<(Lsn, Vec<u8>)>>,
    /// It refuses changes.
    pub broken: AtomicBool,
    /// It breaks as soon as it has said once that it takes changes.
    pub breaks_next: AtomicBool,
    /// Checkpoints asked for.
    pub checkpoints: AtomicU64,
    /// How it was asked to stop.
    pub shutdown: Mutex<Option<Shutdown>>,
}

impl FakeLog {
    pub fn append(&self, changes: &[u8]) -> Lsn {
        let mut records = self.records.lock();
        let lsn = Lsn(records.last().map_or(0, |(lsn, _)| lsn.0) + changes.len() as u64);
        records.push((lsn, changes.to_vec()));
        lsn
    }

    pub fn records(&self) -> Vec<(Lsn, Vec<u8>)> {
        self.records.lock().clone()
    }
}

impl Durability for FakeLog {
    fn reserved(&self) -> Lsn {
        self.records.lock().last().map_or(Lsn::ZERO, |(lsn, _)| *lsn)
    }

    fn written(&self) -> Lsn {
        self.reserved()
    }

    fn durable(&self) -> Lsn {
        self.reserved()
    }

    fn want_durable(&self, _lsn: Lsn) {}

    fn accepts_writes(&self) -> bool {
        let accepts = !self.broken.load(Relaxed);
        if accepts && self.breaks_next.swap(false, Relaxed) {
            self.broken.store(true, Relaxed);
        }
        accepts
    }

    fn failure(&self) -> Option<String> {
        self.broken.load(Relaxed).then(|| "No space left on device".to_owned())
    }

    fn status(&self) -> PersistenceStatus {
        PersistenceStatus { log_ok: self.accepts_writes(), ..PersistenceStatus::default() }
    }

    fn start_checkpoint(&self) -> Result<(), CheckpointError> {
        self.checkpoint()
    }

    fn checkpoint(&self) -> Result<(), CheckpointError> {
        self.checkpoints.fetch_add(1, Relaxed);
        Ok(())
    }

    fn backups(&self) -> Option<Arc<dyn Backups>> {
        None
    }

    fn gate_changed(&self, _gate: Gate) {}

    fn request_shutdown(&self, shutdown: Shutdown) {
        *self.shutdown.lock() = Some(shutdown);
    }
}
