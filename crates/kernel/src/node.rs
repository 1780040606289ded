//! What all connections of a node share.

use crate::client::clients::{ClientInfo, Clients, Monitor};
use crate::client::schema_watchers::SchemaWatchers;
use crate::command::command_id::CommandId;
use crate::command::table::CommandTable;
use crate::limits;
use crate::loading::Loading;
use crate::long::aside_job::AsideCounts;
use crate::long::large::Slicing;
use crate::memory::eviction_state::Exceeded;
use crate::memory::lazy_free::LazyFree;
use crate::message::{Message, ThreadHandle};
use crate::notifications;
use crate::pubsub::registry::PubSub;
use crate::rng::Rng;
use crate::scan_positions::ScanPositions;
use crate::scripts::Scripts;
use crate::statistics::command_logs::CommandLogs;
use crate::statistics::histogram::HistogramSum;
use crate::statistics::hot_keys::HotKeys;
use crate::statistics::latency_events::LatencyEvents;
use crate::statistics::rates::{Rates, Sampler};
use crate::statistics::stats::ThreadStats;
use crate::tracking::registry::{self as trackers, Tracking};
use ladon_engine::{Keyspace, Locks, Scratch, TransactionLimits, Tx};
use ladon_platform::{Clock, Process, SystemProcess};
use ladon_record::{Gate, KeyHasher, Lsn};
use ladon_settings::Settings;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Ladon's own version.
pub const LADON_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of Redis whose commands and replies these are; clients decide by it which features
/// they use.
pub const REDIS_VERSION: &str = "7.2.4";

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

/// What a node is created from.
pub struct NodeParts {
    /// The data.
    pub keyspace: Arc<Keyspace>,
    /// The settings in force.
    pub settings: Arc<Settings>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Log and checkpoints.
    pub durability: Arc<dyn Durability>,
    /// One for each IO thread.
    pub threads: Vec<ThreadHandle>,
    /// 40 hexadecimal digits that distinguish this run from others.
    pub run_id: String,
    /// `io_uring` or `mio`, for `INFO`.
    pub io_backend: String,
    /// The commands that it runs: `ladon_commands::families::table`.
    pub table: &'static CommandTable,
}

/// What all connections of a node share.
pub struct Node {
    /// The data.
    pub keyspace: Arc<Keyspace>,
    /// The settings in force.
    pub settings: Arc<Settings>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Log and checkpoints.
    pub durability: Arc<dyn Durability>,
    /// The IO threads.
    pub threads: Arc<[ThreadHandle]>,
    /// Who subscribes to what.
    pub pubsub: Arc<PubSub>,
    event_forms: Arc<notifications::Forms>,
    /// Who keeps copies of which values.
    pub tracking: Arc<Tracking>,
    /// Counters, one for each IO thread.
    pub stats: Vec<Arc<ThreadStats>>,
    /// All connections.
    pub clients: Clients,
    /// The command table.
    pub table: &'static CommandTable,
    /// Tells this run from others.
    pub run_id: Mutex<String>,
    /// `io_uring` or `mio`.
    pub io_backend: String,
    /// When the node started, Unix milliseconds.
    pub started_ms: u64,
    pause: Pause,
    /// `DEBUG SET-ACTIVE-EXPIRE`.
    pub active_expire: std::sync::atomic::AtomicBool,
    /// Highest number of bytes that the data took.
    pub used_bytes_peak: AtomicU64,
    /// Connections refused because of `maxclients`.
    pub rejected_connections: AtomicU64,
    /// Commands that took long or were large.
    pub command_logs: CommandLogs,
    /// Which keys take most time and traffic, while somebody looks.
    pub hot_keys: HotKeys,
    /// Delays that were observed; shared with the code that may observe one.
    pub latency_events: Arc<LatencyEvents>,
    /// The process and its machine.
    pub process: Arc<dyn Process>,
    /// Applies other consequences of changed settings, where there are any.
    pub follow_settings: Option<FollowSettings>,
    /// Testing only: sees the changes that evict keys before they are logged, and returns whether
    /// to log them. They must be logged, and the simulator must notice if they are not.
    pub watch_evictions: Option<WatchEvictions>,
    /// Testing only: called with each client whose wait for a key was served, in order.
    pub watch_served: Option<WatchServed>,
    /// Identifies the history of the data, as far as this node knows it.
    pub replication_id: Mutex<String>,
    /// Large values that wait to be freed.
    pub lazy_free: LazyFree,
    /// Connections closed because of `maxmemory-clients`.
    pub evicted_clients: AtomicU64,
    /// How long the data has exceeded `maxmemory`.
    pub exceeded: Exceeded,
    /// Which replies are made in slices.
    pub slicing: Slicing,
    /// Counts of results computed aside.
    pub aside: AsideCounts,
    /// Present while the data is being loaded, on the node that serves clients without data.
    pub loading: Option<Arc<Loading>>,
    /// Scripts: their cache, and which run.
    pub scripts: Scripts,
    /// Where scans of mounted spaces go on.
    pub scan_positions: ScanPositions,
    /// Who wants to hear of changed definitions of spaces.
    pub schema_watchers: SchemaWatchers,
    sampler: Mutex<Sampler>,
    /// What an empty keyspace takes.
    fixed_bytes: u64,
}

/// Checks and prepares a change of settings (the new ones, the names of what changed), or refuses
/// it: see [`Settings::set_many_with`].
pub type FollowSettings =
    Box<dyn Fn(&Settings, &[&'static str]) -> Result<(), (&'static str, String)> + Send + Sync>;

/// See [`Node::watch_evictions`].
pub type WatchEvictions = Box<dyn Fn(&Node, &[u8]) -> bool + Send + Sync>;

/// See [`Node::watch_served`].
pub type WatchServed = Box<dyn Fn(&Node, &ClientInfo) + Send + Sync>;

/// `CLIENT PAUSE`: its end, and whether reads continue.
#[derive(Default)]
struct Pause {
    until_ms: AtomicU64,
    writes_only: std::sync::atomic::AtomicBool,
    /// Counts pauses.
    generation: AtomicU64,
    /// For each thread, the number of pauses that it has seen between two turns: what it ran before
    /// them is over. The maximum if it runs nothing.
    seen: Box<[AtomicU64]>,
}

/// What a pause holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paused {
    /// Commands that may change data.
    Writes,
    /// All commands.
    All,
}

impl Node {
    /// A node.
    pub fn new(parts: NodeParts) -> Node {
        let fixed_bytes = parts.keyspace.fixed_bytes();
        let seen = parts.threads.iter().map(|_| AtomicU64::new(u64::MAX)).collect();
        let pause = Pause { seen, ..Pause::default() };
        let threads: Arc<[ThreadHandle]> = parts.threads.into();
        let seed = KeyHasher::new(0).hash(parts.run_id.as_bytes()).0;
        let pubsub = Arc::new(PubSub::new(Arc::clone(&threads), seed));
        let event_forms = Arc::default();
        let threads_count = threads.len();
        notifications::follow(&parts.keyspace, &pubsub, &event_forms);
        let tracking = Arc::new(Tracking::new(Arc::clone(&pubsub), Arc::clone(&parts.settings)));
        trackers::follow(&parts.keyspace, &tracking);
        let node = Node {
            stats: threads.iter().map(|_| Arc::new(ThreadStats::new(parts.table.len()))).collect(),
            started_ms: parts.clock.unix_ms(),
            keyspace: parts.keyspace,
            latency_events: Arc::new(LatencyEvents::new(Arc::clone(&parts.settings))),
            command_logs: CommandLogs::default(),
            hot_keys: HotKeys::new(threads_count),
            settings: parts.settings,
            clock: parts.clock,
            durability: parts.durability,
            threads,
            pubsub,
            event_forms,
            tracking,
            clients: Clients::default(),
            table: parts.table,
            replication_id: Mutex::new(hex_id(&mut Rng::new(seed))),
            process: Arc::new(SystemProcess::default()),
            follow_settings: None,
            watch_evictions: None,
            watch_served: None,
            lazy_free: LazyFree::default(),
            evicted_clients: AtomicU64::new(0),
            exceeded: Exceeded::default(),
            slicing: Slicing::default(),
            aside: AsideCounts::default(),
            loading: None,
            scripts: Scripts::new(threads_count),
            schema_watchers: SchemaWatchers::default(),
            scan_positions: ScanPositions::default(),
            sampler: Mutex::default(),
            fixed_bytes,
            run_id: Mutex::new(parts.run_id),
            io_backend: parts.io_backend,
            pause,
            active_expire: std::sync::atomic::AtomicBool::new(true),
            used_bytes_peak: AtomicU64::new(0),
            rejected_connections: AtomicU64::new(0),
        };
        node.apply_limits();
        node
    }

    /// Begins a transaction, unless a long script holds one of its locks.
    pub fn begin_or_busy<'a>(
        &'a self,
        locks: Locks<'_>,
        scratch: &'a mut Scratch,
        now_ms: u64,
    ) -> Option<Tx<'a>> {
        let is_busy = |partition| self.scripts.running.is_held(partition);
        self.keyspace.begin_or_busy(locks, scratch, now_ms, is_busy)
    }

    /// Whether writes have to wait for missing replicas: there are no replicas yet.
    #[inline]
    pub fn lacks_replicas(&self) -> bool {
        self.settings.min_replicas_to_write() != 0 && self.settings.min_replicas_max_lag() != 0
    }

    /// Passes the sizes up to which collections stay packed, the rules for tracking the use of
    /// keys, and the wanted events to the keyspace.
    pub fn apply_limits(&self) {
        limits::apply(&self.keyspace, &self.settings);
        notifications::apply(&self.keyspace, &self.settings, &self.event_forms);
    }

    /// Bytes of the data and its tables, free memory within slabs, removed values that are not
    /// freed yet, the clients' buffers, the table of what they have read, the libraries of
    /// functions, and scripts: what `maxmemory` limits, as in Redis. And what open transactions on
    /// spaces hold, which has limits of its own.
    #[inline]
    pub fn used_memory(&self) -> u64 {
        self.data_memory()
            + self.keyspace.spaces.transaction_bytes()
            + self.keyspace.slack_bytes()
            + self.lazy_free.pending_bytes()
            + self.clients_memory()
            + self.tracking.bytes() as u64
            + self.keyspace.library_bytes()
            + self.scripts.cache.bytes() as u64
    }

    /// Bytes of all clients: their buffers and the state kept for them.
    #[inline]
    pub fn clients_memory(&self) -> u64 {
        // Threads add and subtract in any order.
        (self.clients.bytes.load(Relaxed) as i64).max(0) as u64
    }

    /// Bytes of [`Node::used_memory`] that are not data.
    pub fn overhead_memory(&self) -> u64 {
        self.fixed_bytes
            + self.clients_memory()
            + self.keyspace.spaces.transaction_bytes()
            + self.tracking.bytes() as u64
            + self.keyspace.library_bytes()
            + self.scripts.cache.bytes() as u64
    }

    /// Bytes that the data and its tables take, spaces included.
    #[inline]
    pub fn data_memory(&self) -> u64 {
        self.keyspace.used_bytes() + self.keyspace.spaces.bytes() + self.fixed_bytes
    }

    /// As `data_memory`, with free memory within slabs and the clients' buffers: what evictions
    /// keep below `maxmemory`. Free memory counts up to an eighth of the limit, so that data is not
    /// evicted for more.
    #[inline]
    pub fn evictable_memory(&self) -> u64 {
        const SLACK_SHARE: u64 = 8;
        let slack_max = self.settings.maxmemory() / SLACK_SHARE;
        self.data_memory()
            + self.keyspace.slack_bytes().min(slack_max)
            + self.clients_memory()
            + self.tracking.bytes() as u64
            + self.keyspace.library_bytes()
            + self.scripts.cache.bytes() as u64
    }

    /// Limits of what open transactions on spaces hold.
    pub fn transaction_limits(&self) -> TransactionLimits {
        TransactionLimits {
            all: self.settings.transaction_memory(),
            of_client: self.settings.client_transaction_memory(),
        }
    }

    /// Looks what spaces have left to open transactions, and asks some to end while that is too
    /// much.
    pub fn look_at_transactions(&self) {
        let asked = self.keyspace.spaces.look_at_transactions(self.transaction_limits());
        if asked > 0 {
            tracing::warn!(
                "{asked} transactions end: what they keep of changed spaces takes more than \
                 transaction-memory or client-transaction-memory allows"
            );
        }
    }

    /// The maximum observed value of [`Node::used_memory`].
    pub fn used_memory_peak(&self) -> u64 {
        let used = self.used_memory();
        self.used_bytes_peak.fetch_max(used, Relaxed).max(used)
    }

    /// A counter summed over all threads.
    pub fn total(&self, counter: impl Fn(&ThreadStats) -> u64) -> u64 {
        self.stats.iter().map(|stats| counter(stats)).sum()
    }

    /// How long a command took, over all threads.
    pub fn latency(&self, id: CommandId) -> HistogramSum {
        let mut sum = HistogramSum::default();
        for stats in &self.stats {
            if let Some(latency) = stats.command(id).latency.get() {
                sum.add(latency);
            }
        }
        sum
    }

    /// Takes the samples for rates and peaks. Every thread's housekeeping calls this, some ten
    /// times a second while requests arrive.
    pub fn sample(&self) {
        self.used_memory_peak();
        self.sampler.lock().sample_if_due(&self.stats, &*self.clock);
    }

    /// The present rates per second.
    pub fn rates(&self) -> Rates {
        let mut sampler = self.sampler.lock();
        sampler.sample_if_old(&self.stats, &*self.clock);
        sampler.rates()
    }

    /// Sets all statistics back to zero (`CONFIG RESETSTAT`).
    pub fn reset_stats(&self) {
        for stats in &self.stats {
            stats.reset();
        }
        for counter in [&self.rejected_connections, &self.evicted_clients, &self.lazy_free.freed] {
            counter.store(0, Relaxed);
        }
        self.used_bytes_peak.store(self.used_memory(), Relaxed);
        self.exceeded.reset();
        *self.sampler.lock() = Sampler::default();
    }

    /// Pauses clients (`CLIENT PAUSE`); a longer or stricter pause in force stays. Requests that
    /// other threads are running continue until [`Node::is_pause_seen`] with the returned number.
    pub fn pause(&self, until_ms: u64, what: Paused) -> u64 {
        let now_ms = self.clock.unix_ms();
        let was = self.paused(now_ms);
        self.pause.until_ms.fetch_max(until_ms, Relaxed);
        if was != Some(Paused::All) || what == Paused::All {
            self.pause.writes_only.store(what == Paused::Writes, Relaxed);
        }
        // A thread that sees the new count sees the pause.
        let generation = self.pause.generation.fetch_add(1, Release) + 1;
        self.threads.iter().for_each(ThreadHandle::wake);
        generation
    }

    /// Whether every thread except `thread` has finished what began before this pause.
    pub fn is_pause_seen(&self, generation: u64, thread: usize) -> bool {
        let others = self.pause.seen.iter().enumerate().filter(|&(other, _)| other != thread);
        others.into_iter().all(|(_, seen)| seen.load(Acquire) >= generation)
    }

    /// Called by a thread between two turns: it now knows of all pauses so far.
    #[inline]
    pub fn see_pauses(&self, thread: usize) {
        let generation = self.pause.generation.load(Acquire);
        if self.pause.seen[thread].load(Relaxed) != generation {
            self.pause.seen[thread].store(generation, Release);
            self.threads.iter().for_each(ThreadHandle::wake);
        }
    }

    /// Called by a thread that runs nothing any more.
    pub fn ends_running(&self, thread: usize) {
        self.pause.seen[thread].store(u64::MAX, Release);
    }

    /// Ends a pause.
    pub fn unpause(&self) {
        self.pause.until_ms.store(0, Relaxed);
        for thread in &*self.threads {
            thread.send(Message::Pause);
        }
    }

    /// Whether connections have to authenticate.
    pub fn requires_login(&self) -> bool {
        !self.settings.requirepass().is_empty()
    }

    /// What is held back at `now_ms`.
    #[inline]
    pub fn paused(&self, now_ms: u64) -> Option<Paused> {
        if self.pause.until_ms.load(Relaxed) <= now_ms {
            return None;
        }
        let writes_only = self.pause.writes_only.load(Relaxed);
        Some(if writes_only { Paused::Writes } else { Paused::All })
    }

    /// When the pause ends, Unix milliseconds; 0 without one.
    pub fn pause_until_ms(&self) -> u64 {
        self.pause.until_ms.load(Relaxed)
    }

    /// Sends lines to all monitoring clients, each at its own gate once that has passed `depends`.
    pub fn feed_monitors(&self, lines: &[Arc<[u8]>], depends: Lsn) {
        for Monitor { client, thread, slot } in self.clients.monitors() {
            for bytes in lines.iter().map(Arc::clone) {
                self.threads[thread].leave(Message::Deliver { client, slot, bytes, depends });
            }
            self.threads[thread].wake();
        }
    }
}

/// Forty hexadecimal digits at random.
pub fn hex_id(rng: &mut Rng) -> String {
    let digits: String = (0..3).map(|_| format!("{:016x}", rng.next_u64())).collect();
    digits[..40].to_owned()
}
