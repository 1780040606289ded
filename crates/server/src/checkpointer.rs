//! Decides when to make a checkpoint, and makes it step by step.
//!
//! The checkpointer has its own thread and its own pace. IO threads pay only while one segment's
//! partition is locked.

use crate::backups::ClientBackups;
use crate::checkpoint_run::{Applied, CheckpointRun};
use crate::replication::ReadReplicas;
use ladon_engine::Keyspace;
use ladon_kernel::durability::CheckpointError;
use ladon_log::{CheckpointInfo, Log, LogError};
use ladon_platform::Clock;
use ladon_record::Lsn;
use ladon_settings::Settings;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The state of checkpoints, for `INFO`.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckpointStatus {
    pub(crate) running_since_ms: Option<u64>,
    pub(crate) progress: f64,
    pub(crate) last_ok_unix: u64,
    /// When the last checkpoint ended, with or without success.
    last_end_unix: u64,
    pub(crate) last_failed: Option<String>,
    pub(crate) last_seconds: Option<u64>,
    pub(crate) last: Option<CheckpointInfo>,
    pub(crate) made: u64,
    /// The log's end when the last one began.
    pub(crate) last_begin: Lsn,
    /// Changes of all threads when the last one began.
    pub(crate) dirty_at_begin: u64,
}

#[derive(Default)]
struct Shared {
    status: CheckpointStatus,
    requested: bool,
    stop: bool,
    /// Number of checkpoints that ended, with or without success. Waiters compare it.
    ended: u64,
}

/// Makes checkpoints on request and when the settings demand one.
pub struct Checkpointer {
    keyspace: Arc<Keyspace>,
    log: Arc<Log>,
    settings: Arc<Settings>,
    clock: Arc<dyn Clock>,
    dirty: Box<dyn Fn() -> u64 + Send + Sync>,
    backups: Arc<ClientBackups>,
    replicas: Arc<ReadReplicas>,
    /// Up to where the data has the log, at a node of a cluster.
    applied: OnceLock<Arc<dyn Applied>>,
    shared: Mutex<Shared>,
    changed: Condvar,
    stopping: AtomicBool,
    /// When obsolete log was last deleted to make room, in monotonic nanoseconds; 0 for never.
    tried_to_make_room_ns: AtomicU64,
}

/// Seconds until a failed checkpoint is tried again.
const RETRY_AFTER_S: u64 = 5;

/// Interval between checks of the settings' conditions.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The same while nothing is logged: the conditions then depend on the time alone, in seconds.
const LOOK_EVERY_QUIET: Duration = Duration::from_secs(1);

/// The pace of a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// As fast as possible, because a client waits for the end.
    AtOnce,
    /// The thread sleeps after each segment for as long as the segment took. A thread that sleeps
    /// often gets a core soon after it wakes, and is seldom preempted inside a segment, where it
    /// holds a partition's lock. A low priority would prolong that lock instead: `nice` 19 gets 1.5
    /// % of a busy core.
    HalfTheTime,
}

/// Longest sleep after a segment. A segment that took longer, because the thread had no core or the
/// disk was slow, already cost its time once.
const PAUSE_MAX: Duration = Duration::from_millis(2);

impl Checkpointer {
    /// Creates a checkpointer. `dirty` counts the changes of all threads since the start.
    pub fn new(
        keyspace: Arc<Keyspace>,
        log: Arc<Log>,
        settings: Arc<Settings>,
        clock: Arc<dyn Clock>,
        dirty: Box<dyn Fn() -> u64 + Send + Sync>,
    ) -> Checkpointer {
        let last = log.last_checkpoint();
        let now_s = clock.unix_ms() / 1000;
        let status = CheckpointStatus {
            last_ok_unix: last.as_ref().map_or(now_s, |info| info.created_ms / 1000),
            last_begin: last.as_ref().map_or(log.oldest(), |info| info.begin),
            last,
            ..CheckpointStatus::default()
        };
        let backups =
            ClientBackups::new(Arc::clone(&log), Arc::clone(&settings), Arc::clone(&clock));
        let replicas =
            ReadReplicas::new(Arc::clone(&log), Arc::clone(&settings), Arc::clone(&clock));
        Checkpointer {
            backups: Arc::new(backups),
            replicas: Arc::new(replicas),
            applied: OnceLock::new(),
            keyspace,
            log,
            settings,
            clock,
            dirty,
            shared: Mutex::new(Shared { status, ..Shared::default() }),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
            tried_to_make_room_ns: AtomicU64::new(0),
        }
    }

    /// The node may follow others: checkpoints are of what is applied. Before the first of them.
    pub(crate) fn follows(&self, applied: Arc<dyn Applied>) {
        let set = self.applied.set(applied);
        assert!(set.is_ok(), "data has one place in its cluster");
    }

    /// The backups of this data.
    pub(crate) fn backups(&self) -> &Arc<ClientBackups> {
        &self.backups
    }

    /// The servers that follow this data.
    pub(crate) fn replicas(&self) -> &Arc<ReadReplicas> {
        &self.replicas
    }

    pub(crate) fn status(&self) -> CheckpointStatus {
        self.shared.lock().status.clone()
    }

    /// Number of changes since the last checkpoint began.
    pub(crate) fn dirty(&self) -> u64 {
        (self.dirty)().saturating_sub(self.shared.lock().status.dirty_at_begin)
    }

    /// Requests a checkpoint and returns without waiting.
    ///
    /// # Errors
    /// `Busy` while a checkpoint is in progress.
    pub fn request(&self) -> Result<(), CheckpointError> {
        let mut shared = self.shared.lock();
        if shared.requested || shared.status.running_since_ms.is_some() {
            return Err(CheckpointError::Busy);
        }
        shared.requested = true;
        // INFO reports "in progress" from this moment on, as Redis does after a fork.
        shared.status.running_since_ms = Some(self.clock.unix_ms());
        shared.status.progress = 0.0;
        self.changed.notify_all();
        Ok(())
    }

    /// Makes a checkpoint on the calling thread. `stop` does not interrupt it.
    ///
    /// # Errors
    /// `Busy` while a checkpoint is in progress; `Failed` with the reason.
    pub fn make(&self) -> Result<(), CheckpointError> {
        {
            let mut shared = self.shared.lock();
            if shared.requested || shared.status.running_since_ms.is_some() {
                return Err(CheckpointError::Busy);
            }
            shared.status.running_since_ms = Some(self.clock.unix_ms());
        }
        self.run_now("a client waits for it", Pace::AtOnce, || false)
    }

    /// Runs the thread's loop until [`Checkpointer::stop`].
    pub fn run(&self) {
        self.run_and(|| {});
    }

    /// As `run`; does `also` once a second or more often.
    pub(crate) fn run_and(&self, mut also: impl FnMut()) {
        let mut seen = self.log.reserved();
        loop {
            let before = std::mem::replace(&mut seen, self.log.reserved());
            let look_every = if seen == before { LOOK_EVERY_QUIET } else { LOOK_EVERY };
            {
                let mut shared = self.shared.lock();
                if !shared.requested && !shared.stop {
                    self.changed.wait_for(&mut shared, look_every);
                }
                if shared.stop {
                    return;
                }
            }
            // Without holding the lock, because commands read the status.
            also();
            self.backups.end_idle();
            self.replicas.look();
            self.make_room();
            let why = {
                let mut shared = self.shared.lock();
                let why = if shared.requested { "a client asked for it" } else { "it is due" };
                if !shared.requested {
                    if shared.status.running_since_ms.is_some() || !self.is_due(&shared.status) {
                        continue;
                    }
                    shared.status.running_since_ms = Some(self.clock.unix_ms());
                }
                shared.requested = false;
                why
            };
            // The error is in the status and in the server's log.
            let _ = self.run_now(why, Pace::HalfTheTime, || self.stopping.load(Relaxed));
        }
    }

    /// Ends the loop, and with it a checkpoint in progress.
    pub fn stop(&self) {
        self.stopping.store(true, Relaxed);
        self.shared.lock().stop = true;
        self.changed.notify_all();
    }

    /// When disk space is short, deletes log that no start needs: the log kept by `log-keep-bytes`
    /// and for backups, which end, and files that could not be deleted before.
    fn make_room(&self) {
        let log_bytes = self.log.bytes_on_disk();
        // A backup may hold a checkpoint that has no name any more.
        if log_bytes == self.log.needed_bytes() && !self.backups.is_any() {
            return;
        }
        let now_ns = self.clock.monotonic_ns().max(1);
        let tried_ns = self.tried_to_make_room_ns.load(Relaxed);
        if tried_ns != 0 && now_ns.saturating_sub(tried_ns) < RETRY_AFTER_S * 1_000_000_000 {
            return;
        }
        let last_bytes = self.shared.lock().status.last.as_ref().map_or(0, |info| info.bytes);
        let free = self.log.look_at_room();
        if !self.log.is_out_of_space() && !fills_the_disk(log_bytes, last_bytes, free) {
            return;
        }
        self.tried_to_make_room_ns.store(now_ns, Relaxed);
        self.backups.end_all();
        self.replicas.make_room();
        match self.log.delete_obsolete() {
            Ok(deleted) if deleted.segments > 0 => tracing::info!(
                "disk space is short: deleted {} log files that no start needs",
                deleted.segments
            ),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(
                    "cannot delete obsolete log files, and disk space is short: {error}"
                );
            }
        }
    }

    /// Whether the settings demand a checkpoint now.
    fn is_due(&self, status: &CheckpointStatus) -> bool {
        let now_s = self.clock.unix_ms() / 1000;
        let since_s = now_s.saturating_sub(status.last_ok_unix);
        if status.last_failed.is_some()
            && now_s.saturating_sub(status.last_end_unix) < RETRY_AFTER_S
        {
            return false;
        }
        if self.is_short_of_room(status) {
            return true;
        }
        let log_bytes = self.log.reserved().0.saturating_sub(status.last_begin.0);
        if log_bytes == 0 {
            return false;
        }
        let by_bytes = self.settings.checkpoint_log_bytes();
        let base = status.last.as_ref().map_or(0, |info| info.bytes);
        let by_share = u128::from(base) * u128::from(self.settings.checkpoint_log_percent()) / 100;
        if by_bytes != 0 && log_bytes >= by_bytes && u128::from(log_bytes) >= by_share {
            return true;
        }
        let interval_s = self.settings.checkpoint_interval();
        if interval_s != 0 && since_s >= interval_s {
            return true;
        }
        let dirty = (self.dirty)().saturating_sub(status.dirty_at_begin);
        self.settings
            .save()
            .iter()
            .any(|point| dirty >= point.changes && since_s >= point.after.as_secs())
    }

    /// Whether the log occupies the space that the next checkpoint needs. A checkpoint that would
    /// delete this log is then due, whatever the settings say. Files that the last checkpoint made
    /// obsolete do not count: another checkpoint would not delete them either.
    fn is_short_of_room(&self, status: &CheckpointStatus) -> bool {
        /// Deleting less log than this is not worth a checkpoint.
        const LOG_BYTES_MIN: u64 = 256 << 10;
        const LOG_BYTES_MIN_FULL: u64 = 64 << 10;
        // Called in any case, because the log adapts to the free space.
        let free = self.log.look_at_room();
        let log_bytes = self.log.needed_bytes();
        if self.log.is_out_of_space() {
            return log_bytes >= LOG_BYTES_MIN_FULL;
        }
        let last_bytes = status.last.as_ref().map_or(0, |info| info.bytes);
        log_bytes >= LOG_BYTES_MIN && fills_the_disk(log_bytes, last_bytes, free)
    }

    fn run_now(
        &self,
        why: &str,
        pace: Pace,
        is_unwanted: impl Fn() -> bool,
    ) -> Result<(), CheckpointError> {
        let begin_ns = self.clock.monotonic_ns();
        tracing::info!("checkpoint begins: {why}");
        let (dirty, begin) = ((self.dirty)(), self.log.reserved());
        let result = self.run_steps(pace, is_unwanted);
        let taken_ns = self.clock.monotonic_ns() - begin_ns;
        let seconds = taken_ns / 1_000_000_000;
        match &result {
            Ok(info) => tracing::info!(
                "checkpoint made in {:.3} s: {} keys, {} bytes, {}",
                taken_ns as f64 / 1e9,
                info.keys,
                info.bytes,
                info.path.display()
            ),
            Err(error) => tracing::error!("checkpoint failed: {error}"),
        }
        let mut shared = self.shared.lock();
        shared.status.running_since_ms = None;
        shared.status.last_end_unix = self.clock.unix_ms() / 1000;
        shared.status.last_seconds = Some(seconds);
        shared.ended += 1;
        self.changed.notify_all();
        match result {
            Ok(info) => {
                shared.status.last_ok_unix = self.clock.unix_ms() / 1000;
                shared.status.last_failed = None;
                shared.status.last_begin = begin;
                shared.status.dirty_at_begin = dirty;
                shared.status.made += 1;
                shared.status.last = Some(info);
                Ok(())
            }
            Err(error) => {
                shared.status.last_failed = Some(error.to_string());
                Err(CheckpointError::Failed(error.to_string()))
            }
        }
    }

    fn run_steps(
        &self,
        pace: Pace,
        is_unwanted: impl Fn() -> bool,
    ) -> Result<CheckpointInfo, LogError> {
        /// Segments between two checks for a stop or a request.
        const STEPS: usize = 64;
        let is_short = self.is_short_of_room(&self.status());
        if is_short {
            tracing::info!("the log fills the disk; making a checkpoint in order to delete it");
            self.log.turn_segment()?;
        }
        let keep_bytes = |settings: &Settings| if is_short { 0 } else { settings.log_keep_bytes() };
        let mut run =
            CheckpointRun::begin_at(&self.keyspace, &self.log, self.applied.get().cloned())?;
        loop {
            for _ in 0..STEPS {
                let (before, began_ns) = (run.keys(), self.clock.monotonic_ns());
                if !run.step()? {
                    return run.finish(keep_bytes(&self.settings));
                }
                if pace == Pace::HalfTheTime {
                    let took_ns = self.clock.monotonic_ns().saturating_sub(began_ns);
                    std::thread::sleep(Duration::from_nanos(took_ns).min(PAUSE_MAX));
                }
                self.delay(run.keys() - before);
            }
            self.shared.lock().status.progress = run.progress();
            if is_unwanted() {
                return Err(LogError::Checkpoint {
                    path: self.log.dir().to_owned(),
                    error: Arc::new(std::io::ErrorKind::Interrupted.into()),
                });
            }
        }
    }

    /// Sleeps for the configured delay of this many keys (`rdb-key-save-delay`), as long as the
    /// setting stays and the server runs.
    fn delay(&self, keys: u64) {
        const LOOK_AGAIN: Duration = Duration::from_millis(5);
        let mut spent = Duration::ZERO;
        while !self.stopping.load(Relaxed) {
            let wanted = keys.saturating_mul(self.settings.rdb_key_save_delay());
            let left = Duration::from_micros(wanted).saturating_sub(spent);
            if left.is_zero() {
                return;
            }
            let nap = left.min(LOOK_AGAIN);
            std::thread::sleep(nap);
            spent += nap;
        }
    }
}

/// Whether this much log leaves no room for the next checkpoint. The next checkpoint is at most as
/// large as the last one plus the log since then, so a checkpoint made now still fits.
fn fills_the_disk(log_bytes: u64, last_bytes: u64, free: Option<u64>) -> bool {
    log_bytes >= last_bytes && free.is_some_and(|free| log_bytes >= free / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::{Recovered, recover};
    use ladon_log::{DataDir, LogOptions};
    use ladon_platform::SystemClock;
    use ladon_record::{Change, ChangeBuffer, ValueKind};
    use ladon_sim_disk::{Fault, SimDisk};
    use std::path::Path;

    const CAPACITY: u64 = 600 << 10;

    fn start(disk: &SimDisk) -> Checkpointer {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let options = LogOptions { reserve_bytes: 16 << 20, ..LogOptions::default() };
        let shared = Arc::new(disk.clone());
        let dir = DataDir::open(shared, Arc::clone(&clock), Path::new("/data"), options, 42);
        let recovered = recover(dir.unwrap(), 16, clock.unix_ms(), 1, |_| {}, &|_| {}, None);
        let Recovered { keyspace, log, .. } = recovered.unwrap();
        Checkpointer::new(keyspace, log, Arc::new(Settings::new()), clock, Box::new(|| 0))
    }

    /// Writes one key repeatedly.
    fn write(log: &Arc<Log>, bytes: u64) {
        let mut changes = ChangeBuffer::new();
        let (kind, body) = (ValueKind::String, [b'v'; 1000]);
        changes.push(Change::Put { db: 0, key: b"the only one", expire_at: 0, kind, body: &body });
        let mut appender = log.appender();
        let until = log.reserved().0 + bytes;
        while log.reserved().0 < until {
            appender.append(changes.as_bytes(), 0);
            appender.publish();
            log.write_published().unwrap();
        }
    }

    fn is_due(checkpointer: &Checkpointer) -> bool {
        checkpointer.is_due(&checkpointer.status())
    }

    fn make(checkpointer: &Checkpointer) {
        checkpointer.run_now("a test", Pace::AtOnce, || false).unwrap();
    }

    /// Another checkpoint makes no room if the files that the last one made obsolete cannot be
    /// deleted. They are deleted once that is possible, without another checkpoint.
    #[test]
    fn a_log_that_cannot_be_deleted_is_no_reason_for_checkpoint_after_checkpoint() {
        let disk = SimDisk::new(1);
        disk.set_capacity(Some(CAPACITY));
        let checkpointer = start(&disk);
        write(&checkpointer.log, CAPACITY / 2);
        assert!(is_due(&checkpointer));
        disk.fail_next(Fault::Remove, u64::MAX);
        make(&checkpointer);
        assert!(checkpointer.log.bytes_on_disk() > CAPACITY / 2, "nothing could be deleted");
        assert!(!is_due(&checkpointer), "the next checkpoint would make no room");
        checkpointer.make_room();
        disk.fail_next(Fault::Remove, 0);
        checkpointer.tried_to_make_room_ns.store(0, Relaxed);
        checkpointer.make_room();
        assert!(checkpointer.log.bytes_on_disk() < CAPACITY / 10);
        assert!(!is_due(&checkpointer));
    }

    /// Kept log is deleted first when disk space is short.
    #[test]
    fn log_that_is_only_kept_makes_room() {
        let disk = SimDisk::new(2);
        disk.set_capacity(Some(CAPACITY));
        let checkpointer = start(&disk);
        checkpointer.settings.set_many(&[("log-keep-bytes", "100mb")]).unwrap();
        write(&checkpointer.log, CAPACITY / 8);
        checkpointer.log.turn_segment().unwrap();
        make(&checkpointer);
        write(&checkpointer.log, CAPACITY / 4);
        checkpointer.log.turn_segment().unwrap();
        make(&checkpointer);
        let kept = checkpointer.log.bytes_on_disk();
        assert!(kept > CAPACITY * 3 / 8);
        checkpointer.make_room();
        assert!(checkpointer.log.bytes_on_disk() < kept / 4);
    }

    #[test]
    fn log_that_is_small_beside_the_data_is_kept() {
        assert!(!fills_the_disk(40, 100, Some(60)), "the next checkpoint needs the room anyway");
        assert!(fills_the_disk(40, 30, Some(60)));
        assert!(!fills_the_disk(40, 30, Some(90)));
        assert!(!fills_the_disk(40, 30, None));
    }
}
