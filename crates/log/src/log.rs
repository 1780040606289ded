//! The open log: one order of records for the whole node, from memory to the disk.
//!
//! ```text
//!  Appender::append -> publish        (any thread, while it holds the partitions' locks)
//!        |  memory: buffer.rs
//!  write_published / step             (an IO thread, or the background writer) write.rs
//!        |  operating system: `written`
//!  sync: step / make_durable          (the background writer, the checkpoint)  durable.rs
//!        |  disk: `durable`
//!  position waiters wake the threads that wait                                position_waiter.rs
//! ```
//! **Invariants:** `durable <= written <= published <= reserved`, and each only grows. Locks are
//! taken in the order sync, io, buffer; none is held by an appender while it copies or waits.

use crate::agreement::Agreement;
use crate::appender::Appender;
use crate::buffer::LogBuffer;
use crate::checkpoint::CheckpointInfo;
use crate::durable::SyncSide;
use crate::log_end::LogEndFile;
use crate::obsolete::Pins;
use crate::options::LogOptions;
use crate::position_waiter::{PositionWaiter, PositionWaiters, Positions};
use crate::reserve::Reserve;
use crate::segment::segment_path;
use crate::state::{LogError, LogState, StateCell};
use crate::sync_primitives::{AtomicBool, AtomicU64, Mutex, OrderedMutex, Ordering, fence};
use crate::worker::Worker;
use crate::write::{Io, OpenSegment};
use ladon_platform::lock_order::Place as LockPlace;
use ladon_platform::{Clock, Disk, DiskLock};
use ladon_record::Lsn;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// An open log; made by [`crate::DataDir::recover`].
pub struct Log {
    pub(crate) buffer: LogBuffer,
    pub(crate) positions: Arc<Positions>,
    pub(crate) wanted_durable: AtomicU64,
    pub(crate) sync_every_ns: AtomicU64,
    /// The gate `everysec`: everything up to here is promised to be synced within a second.
    pub(crate) wanted_soon: AtomicU64,
    pub(crate) state: StateCell,
    pub(crate) waiters: PositionWaiters,
    pub(crate) agreement: Agreement,
    pub(crate) io: OrderedMutex<Io>,
    pub(crate) sync: OrderedMutex<SyncSide>,
    pub(crate) worker: Worker,
    pub(crate) place: Place,
    pub(crate) options: LogOptions,
    pub(crate) segments: Mutex<BTreeSet<u64>>,
    pub(crate) newest_checkpoint: Mutex<Option<CheckpointInfo>>,
    pub(crate) pins: Arc<Pins>,
    pub(crate) reserve: Reserve,
    /// Whether the next segment may hold entries of a group, and so has the format that says so.
    pub(crate) has_entries: AtomicBool,
    /// Counts cuts: a file that was opened before one may be another now.
    pub(crate) cuts: AtomicU64,
    /// With more unwritten bytes than this, the log is backlogged.
    backlog_bytes_max: AtomicU64,
    lock: Mutex<Option<Box<dyn DiskLock>>>,
}

/// The directory and what accesses its files.
pub(crate) struct Place {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) dir: PathBuf,
    pub(crate) dir_id: u64,
    pub(crate) node: u16,
}

impl Place {
    pub(crate) fn segment_path(&self, base: Lsn) -> PathBuf {
        segment_path(&self.dir, base)
    }
}

/// What recovery hands over: the durable end of the log, and its files.
pub(crate) struct Opened {
    pub(crate) place: Place,
    pub(crate) options: LogOptions,
    pub(crate) lock: Box<dyn DiskLock>,
    /// An empty segment that begins at the log's end.
    pub(crate) segment: OpenSegment,
    pub(crate) segments: BTreeSet<u64>,
    pub(crate) checkpoint: Option<CheckpointInfo>,
    pub(crate) log_end: Option<LogEndFile>,
    pub(crate) reserve: Reserve,
    pub(crate) has_entries: bool,
}

impl Log {
    pub(crate) fn new(opened: Opened) -> Arc<Log> {
        let Opened { place, options, lock, segment, segments, checkpoint, log_end, .. } = opened;
        let Opened { reserve, has_entries, .. } = opened;
        let end = segment.base;
        let last = segments.last().copied();
        assert_eq!(last, Some(end.0), "the log goes on in its last segment");
        let buffer = LogBuffer::new(end, place.node, options.segment_bytes, options.chunk_bytes);
        let sync = SyncSide::new(&buffer, end, log_end);
        Arc::new(Log {
            positions: Arc::new(Positions::new(end)),
            wanted_durable: AtomicU64::new(0),
            sync_every_ns: AtomicU64::new(0),
            wanted_soon: AtomicU64::new(0),
            state: StateCell::new(),
            waiters: PositionWaiters::new(),
            agreement: Agreement::new(),
            io: OrderedMutex::new(LockPlace::LOG_IO, Io::new(segment)),
            sync: OrderedMutex::new(LockPlace::LOG_SYNC, sync),
            worker: Worker::new(),
            segments: Mutex::new(segments),
            newest_checkpoint: Mutex::new(checkpoint),
            pins: Arc::default(),
            reserve,
            has_entries: AtomicBool::new(has_entries),
            cuts: AtomicU64::new(0),
            backlog_bytes_max: AtomicU64::new(options.backlog_bytes_max),
            lock: Mutex::new(Some(lock)),
            buffer,
            place,
            options,
        })
    }

    /// A handle for appending, one per thread.
    ///
    /// # Panics
    /// When 511 others are alive: more IO threads than any machine this is meant for.
    pub fn appender(self: &Arc<Self>) -> Appender {
        Appender::new(self.clone())
    }

    /// End of the last reservation, and so the highest LSN that the next record can depend on.
    #[inline]
    pub fn reserved(&self) -> Lsn {
        Lsn(self.buffer.reserved())
    }

    /// Everything up to here is handed to the operating system: the gate `write`.
    #[inline]
    pub fn written(&self) -> Lsn {
        Lsn(self.positions.written.0.load(Ordering::Acquire))
    }

    /// Everything up to here is on the disk: the gate `fsync`.
    #[inline]
    pub fn durable(&self) -> Lsn {
        Lsn(self.positions.durable.0.load(Ordering::Acquire))
    }

    /// Whether there are published records that no thread has written yet.
    #[inline]
    pub fn has_unwritten(&self) -> bool {
        fence(Ordering::SeqCst);
        self.buffer.published() > self.written().0
    }

    /// Bytes that are appended and not yet written.
    #[inline]
    pub fn backlog_bytes(&self) -> u64 {
        self.reserved().0.saturating_sub(self.written().0)
    }

    /// Whether requests should wait, before they take any lock, until the disk has caught up. Never
    /// while the log takes no records, because writes are then refused and waiting would help
    /// nobody.
    #[inline]
    pub fn is_backlogged(&self) -> bool {
        if !self.accepts_writes() {
            return false;
        }
        // One large record is as long as a burst and no reason for others to wait; several are.
        self.backlog_bytes().saturating_sub(self.buffer.largest_bytes())
            > self.backlog_bytes_max.load(Ordering::Relaxed)
    }

    /// Whether the log has not failed. One relaxed load, for the hot path.
    #[inline]
    pub fn accepts_writes(&self) -> bool {
        self.state.accepts_writes()
    }

    /// Whether the log takes no records because the disk is full.
    pub fn is_out_of_space(&self) -> bool {
        !self.accepts_writes() && self.state().error().is_some_and(LogError::is_out_of_space)
    }

    /// How many bytes may still be written to the disk, if known. Also adapts the log's reserve to
    /// it, and the backlog limit, because the backlog must fit into the reserve.
    pub fn look_at_room(&self) -> Option<u64> {
        /// Below this many backlogs of free space, the backlog limit shrinks.
        const CAREFUL_BELOW_BACKLOGS: u64 = 4;
        const BACKLOG_BYTES_MIN: u64 = 4 << 10;
        let free = self.place.disk.free_bytes(&self.place.dir).ok().flatten();
        let most = self.options.backlog_bytes_max;
        let max = match free {
            Some(free) if free < most.saturating_mul(CAREFUL_BELOW_BACKLOGS) => {
                (self.reserve.wanted() / 4).max(BACKLOG_BYTES_MIN).min(most)
            }
            _ => most,
        };
        self.backlog_bytes_max.store(max, Ordering::Relaxed);
        if self.accepts_writes() {
            self.reserve.adapt(&*self.place.disk, free, self.bytes_on_disk());
        }
        free
    }

    /// Approximate size of all segment files together.
    pub fn bytes_on_disk(&self) -> u64 {
        self.reserved().0.saturating_sub(self.oldest().0)
    }

    /// The state of the log, with the error if it has failed.
    pub fn state(&self) -> LogState {
        self.state.get()
    }

    /// Sets how often the log syncs while there is something to sync; `None` syncs only on demand:
    /// see [`Log::want_durable`] and [`Log::sync_soon`].
    pub fn set_sync_every(&self, interval: Option<Duration>) {
        let nanos = interval.map_or(0, |interval| (interval.as_nanos() as u64).max(1));
        self.sync_every_ns.store(nanos, Ordering::Relaxed);
        self.worker.wake();
    }

    /// Registers a waiter that is woken when a position that it awaits is reached, and whenever the
    /// state changes. `wake` runs on the thread that advanced the log. It must be cheap and must
    /// not call back into the log.
    pub fn add_waiter(&self, wake: Arc<dyn Fn() + Send + Sync>) -> Arc<PositionWaiter> {
        self.waiters.add(&self.positions, wake)
    }

    /// Removes a waiter.
    pub fn remove_waiter(&self, waiter: &Arc<PositionWaiter>) {
        self.waiters.remove(waiter);
    }

    /// Lets the directory go, for another log to be opened on it, whoever still has this one. Nobody
    /// may append or write any more.
    pub fn let_go(&self) {
        *self.lock.lock() = None;
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.place.dir
    }

    /// This node's number.
    pub fn node_id(&self) -> u16 {
        self.place.node
    }

    /// The newest complete checkpoint, if there is one.
    pub fn last_checkpoint(&self) -> Option<CheckpointInfo> {
        self.newest_checkpoint.lock().clone()
    }

    /// Begin of the oldest segment on the disk.
    pub fn oldest(&self) -> Lsn {
        Lsn(self.segments.lock().first().copied().unwrap_or_default())
    }
}
