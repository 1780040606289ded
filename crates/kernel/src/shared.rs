//! What all connections of a node share, whatever its data.

use crate::access::Accounts;
use crate::background::Background;
use crate::client::clients::{ClientInfo, Clients, Monitor};
use crate::client::events::Events;
use crate::client::item_watchers::{ItemWatchers, Watched};
use crate::client::schema_watchers::SchemaWatchers;
use crate::cluster::Cluster;
use crate::command::command_id::CommandId;
use crate::command::table::CommandTable;
use crate::dataset::{Dataset, Exchange};
use crate::leader_reads::LeaderReads;
use crate::long::aside_job::{AsideCounts, ReadAhead, ReadFiles};
use crate::long::large::Slicing;
use crate::long::parcel::Peers;
use crate::memory::eviction_state::Exceeded;
use crate::memory::lazy_free::LazyFree;
use crate::message::{Message, ThreadHandle};
use crate::notifications;
use crate::program::Program;
use crate::pubsub::registry::PubSub;
use crate::rng::Rng;
use crate::role::RoleCell;
use crate::scan_positions::ScanPositions;
use crate::scripts::Scripts;
use crate::statistics::command_logs::CommandLogs;
use crate::statistics::histogram::HistogramSum;
use crate::statistics::hot_keys::HotKeys;
use crate::statistics::key_prefixes::KeyPrefixes;
use crate::statistics::latency_events::LatencyEvents;
use crate::statistics::rates::{Rates, Sampler};
use crate::statistics::stats::ThreadStats;
use crate::statistics::sync_times::SyncTimes;
use crate::tracking::registry::{self as trackers, Tracking};
use crate::upstream::Upstream;
use ladon_engine::TransactionLimits;
use ladon_platform::{Clock, Process, SystemProcess};
use ladon_record::{KeyHasher, Lsn};
use ladon_settings::Settings;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// What it is created from.
pub struct SharedParts {
    /// The settings in force.
    pub settings: Arc<Settings>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// One for each IO thread.
    pub threads: Vec<ThreadHandle>,
    /// 40 hexadecimal digits that distinguish this run from others.
    pub run_id: String,
    /// `io_uring` or `mio`, for `INFO`.
    pub io_backend: String,
    /// The commands.
    pub table: &'static CommandTable,
}

/// What all connections of a node share, whatever its data.
pub struct Shared {
    /// The settings in force.
    pub settings: Arc<Settings>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The IO threads.
    pub threads: Arc<[ThreadHandle]>,
    /// Who subscribes to what.
    pub pubsub: Arc<PubSub>,
    pub(crate) event_forms: Arc<notifications::Forms>,
    /// Who keeps copies of which values.
    pub tracking: Arc<Tracking>,
    /// Counters, one for each IO thread.
    pub stats: Arc<[Arc<ThreadStats>]>,
    /// All connections.
    pub clients: Clients,
    /// The users.
    pub accounts: Accounts,
    /// Tells this run from others.
    pub run_id: Mutex<String>,
    /// `io_uring` or `mio`.
    pub io_backend: String,
    /// When the node started, Unix milliseconds.
    pub started_ms: u64,
    /// The node's cluster, where it may have one.
    pub cluster: Option<Arc<dyn Cluster>>,
    /// The server that this one follows, where it may follow one.
    pub upstream: Option<Arc<dyn Upstream>>,
    /// The program that runs beside the data, which has the last of the threads.
    pub program: Option<Arc<dyn Program>>,
    /// Bytes that the program has made for clients and that no connection has taken yet.
    pub untaken_bytes: Arc<AtomicUsize>,
    /// Other members that the leader of a cluster has heard of within `min-replicas-max-lag`, or read
    /// replicas.
    pub good_replicas: AtomicU64,
    /// When all keys of database 0 are to be removed, because a client of memcached's protocol has asked
    /// for it; Unix milliseconds, 0 for never.
    pub flush_at_ms: AtomicU64,
    /// Those who watch what memcached's protocol does with items.
    pub item_watchers: ItemWatchers,
    /// What memcached's protocol counts of prefixes of keys, once it is told to.
    pub key_prefixes: KeyPrefixes,
    /// The node's place in its cluster.
    pub role: RoleCell,
    /// Reads at the gate `quorum`, while the node follows.
    pub leader_reads: LeaderReads,
    pause: Pause,
    pub(crate) exchange: Exchange,
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
    /// How long the disk takes to sync; shared with the code that does it.
    pub sync_times: Arc<SyncTimes>,
    /// The process and its machine.
    pub process: Arc<dyn Process>,
    /// Threads for work beside requests, where there are some.
    pub background: Option<Box<dyn Background>>,
    /// The way to other servers, where there is one.
    pub peers: Option<Box<dyn Peers>>,
    /// Applies other consequences of changed settings, where there are any.
    pub follow_settings: Option<Box<dyn FollowSettings>>,
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
    /// Scripts: their cache, and which run.
    pub scripts: Scripts,
    /// Where scans of mounted spaces go on.
    pub scan_positions: ScanPositions,
    /// Who wants to hear of changed definitions of spaces.
    pub schema_watchers: SchemaWatchers,
    /// What programs broadcast.
    pub events: Events,
    pub(crate) sampler: Mutex<Sampler>,
}

/// Whoever has to do something when settings change.
pub trait FollowSettings: Send + Sync {
    /// How the files of a change (the new settings, the names of those that change) are read.
    fn reading(&self, next: &Settings, changed: &[&'static str]) -> Option<ReadFiles>;

    /// Checks and prepares a change, or refuses it: see [`Settings::set_many_with`]. It has what
    /// the job has read, unless there was none or nothing can be run aside here.
    ///
    /// # Errors
    /// The setting that is refused, and why.
    fn follow(
        &self,
        next: &Settings,
        changed: &[&'static str],
        read: Option<ReadAhead>,
    ) -> Result<(), (&'static str, String)>;
}

/// See [`Shared::watch_evictions`].
pub type WatchEvictions = Box<dyn Fn(&Shared, &[u8]) -> bool + Send + Sync>;

/// See [`Shared::watch_served`].
pub type WatchServed = Box<dyn Fn(&Shared, &ClientInfo) + Send + Sync>;

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

impl Shared {
    /// Lets those who follow changes of the data follow the changes of this.
    pub(crate) fn follow(&self, data: &Dataset) {
        notifications::follow(&data.keyspace, &self.pubsub, &self.event_forms);
        trackers::follow(&data.keyspace, &self.tracking);
    }

    /// That of a node which has no connections yet.
    pub fn new(parts: SharedParts) -> Shared {
        let seen = parts.threads.iter().map(|_| AtomicU64::new(u64::MAX)).collect();
        let pause = Pause { seen, ..Pause::default() };
        let threads: Arc<[ThreadHandle]> = parts.threads.into();
        let seed = KeyHasher::new(0).hash(parts.run_id.as_bytes()).0;
        let pubsub = Arc::new(PubSub::new(Arc::clone(&threads), seed));
        let accounts = Accounts::new(parts.table, &parts.settings, Arc::clone(&threads));
        Shared {
            stats: threads.iter().map(|_| Arc::new(ThreadStats::new(parts.table.len()))).collect(),
            started_ms: parts.clock.unix_ms(),
            latency_events: Arc::new(LatencyEvents::new(Arc::clone(&parts.settings))),
            sync_times: Arc::default(),
            command_logs: CommandLogs::default(),
            hot_keys: HotKeys::new(threads.len()),
            tracking: Arc::new(Tracking::new(Arc::clone(&pubsub), Arc::clone(&parts.settings))),
            settings: parts.settings,
            clock: parts.clock,
            scripts: Scripts::new(threads.len()),
            accounts,
            exchange: Exchange::of(threads.len()),
            leader_reads: LeaderReads::new(Arc::clone(&threads)),
            threads,
            pubsub,
            event_forms: Arc::default(),
            clients: Clients::default(),
            replication_id: Mutex::new(hex_id(&mut Rng::new(seed))),
            process: Arc::new(SystemProcess::default()),
            background: None,
            peers: None,
            follow_settings: None,
            watch_evictions: None,
            watch_served: None,
            lazy_free: LazyFree::default(),
            evicted_clients: AtomicU64::new(0),
            exceeded: Exceeded::default(),
            slicing: Slicing::default(),
            aside: AsideCounts::default(),
            schema_watchers: SchemaWatchers::default(),
            events: Events::default(),
            scan_positions: ScanPositions::default(),
            sampler: Mutex::default(),
            run_id: Mutex::new(parts.run_id),
            io_backend: parts.io_backend,
            cluster: None,
            upstream: None,
            program: None,
            untaken_bytes: Arc::default(),
            good_replicas: AtomicU64::new(0),
            flush_at_ms: AtomicU64::new(0),
            item_watchers: ItemWatchers::default(),
            key_prefixes: KeyPrefixes::default(),
            role: RoleCell::default(),
            pause,
            active_expire: std::sync::atomic::AtomicBool::new(true),
            used_bytes_peak: AtomicU64::new(0),
            rejected_connections: AtomicU64::new(0),
        }
    }

    /// Whether the settings ask for replicas before writes.
    #[inline]
    pub fn wants_replicas(&self) -> bool {
        self.settings.min_replicas_to_write() != 0 && self.settings.min_replicas_max_lag() != 0
    }

    /// Whether writes are refused because there are too few replicas.
    #[inline]
    pub fn lacks_replicas(&self) -> bool {
        self.wants_replicas()
            && self.good_replicas.load(Relaxed) < u64::from(self.settings.min_replicas_to_write())
    }

    /// Bytes of all clients: their buffers and the state kept for them.
    #[inline]
    pub fn clients_memory(&self) -> u64 {
        // Threads add and subtract in any order.
        (self.clients.bytes.load(Relaxed) as i64).max(0) as u64
    }

    /// Limits of what open transactions on spaces hold.
    pub fn transaction_limits(&self) -> TransactionLimits {
        TransactionLimits {
            all: self.settings.transaction_memory(),
            of_client: self.settings.client_transaction_memory(),
        }
    }

    /// A counter summed over all threads.
    pub fn total(&self, counter: impl Fn(&ThreadStats) -> u64) -> u64 {
        self.stats.iter().map(|stats| counter(stats)).sum()
    }

    /// How long a command took, over all threads.
    pub fn latency(&self, id: CommandId) -> HistogramSum {
        let mut sum = HistogramSum::default();
        for stats in self.stats.iter() {
            if let Some(latency) = stats.command(id).latency.get() {
                sum.add(latency);
            }
        }
        sum
    }

    /// The present rates per second.
    pub fn rates(&self) -> Rates {
        let mut sampler = self.sampler.lock();
        sampler.sample_if_old(&self.stats, &*self.clock);
        sampler.rates()
    }

    /// Pauses clients (`CLIENT PAUSE`); a longer or stricter pause in force stays. Requests that
    /// other threads are running continue until [`Shared::is_pause_seen`] with the returned number.
    pub fn pause(&self, until_ms: u64, what: Paused) -> u64 {
        let now_ms = self.clock.unix_ms();
        let was = self.paused(now_ms);
        self.pause.until_ms.fetch_max(until_ms, Relaxed);
        if was != Some(Paused::All) || what == Paused::All {
            self.pause.writes_only.store(what == Paused::Writes, Relaxed);
        }
        // A thread that sees the new count sees the pause.
        self.begin_barrier()
    }

    /// Lets every thread see what was set before this call: once [`Shared::is_pause_seen`] with the
    /// returned number, what they ran before is over.
    pub fn begin_barrier(&self) -> u64 {
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
        self.exchange.has_taken(thread, u64::MAX);
        self.threads.iter().for_each(ThreadHandle::wake);
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
        !self.accounts.users().new_connections_are_in()
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

    /// Tells the connections that watch it of something that memcached's protocol has done, and that
    /// depends on `depends`.
    #[cold]
    pub fn tell_watchers(&self, watched: Watched, what: &str, depends: Lsn) {
        let unix_us = self.clock.unix_us();
        self.item_watchers.tell(&self.threads, unix_us, watched, what, depends);
    }
}

/// Forty hexadecimal digits at random.
pub fn hex_id(rng: &mut Rng) -> String {
    let digits: String = (0..3).map(|_| format!("{:016x}", rng.next_u64())).collect();
    digits[..40].to_owned()
}
