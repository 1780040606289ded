//! What a request works with: the data that the node has now, and what all connections share.
//!
//! The data can be exchanged (`dataset.rs`): each thread then takes another `Node`, over the same
//! [`Shared`], when it begins its next turn.

use crate::command::table::CommandTable;
use crate::dataset::Dataset;
use crate::durability::Durability;
use crate::limits;
use crate::loading::Loading;
use crate::message::ThreadHandle;
use crate::notifications;
use crate::role::Role;
use crate::shared::Shared;
use crate::statistics::rates::Sampler;
use ladon_engine::{Keyspace, Locks, Scratch, Tx};
use ladon_log::Log;
use ladon_platform::Clock;
use ladon_settings::Settings;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Ladon's own version.
pub const LADON_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of Redis whose commands and replies these are; clients decide by it which features
/// they use.
pub const REDIS_VERSION: &str = "7.2.4";

/// What a request works with. What is not about data is found in [`Shared`].
pub struct Node {
    /// The data.
    pub keyspace: Arc<Keyspace>,
    /// The log of its changes.
    pub log: Arc<Log>,
    /// Log and checkpoints, as commands see them.
    pub durability: Arc<dyn Durability>,
    /// Present while the data is being loaded: until then, there is none.
    pub loading: Option<Arc<Loading>>,
    /// The command table.
    pub table: &'static CommandTable,
    /// [`Shared::settings`], one step nearer: every request asks for some.
    pub settings: Arc<Settings>,
    /// [`Shared::clock`], likewise.
    pub clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    /// How often the data was exchanged before.
    pub(crate) generation: u64,
    /// What an empty keyspace takes.
    fixed_bytes: u64,
}

impl Deref for Node {
    type Target = Shared;

    #[inline]
    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Node {
    /// A node with this data, and with the commands of `table`: `ladon_commands::families::table`.
    pub fn new(shared: Shared, data: Dataset, table: &'static CommandTable) -> Node {
        let shared = Arc::new(shared);
        shared.follow(&data);
        let node = Node::over(shared, data, table, 0);
        node.apply_limits();
        node
    }

    fn over(
        shared: Arc<Shared>,
        data: Dataset,
        table: &'static CommandTable,
        generation: u64,
    ) -> Node {
        let Dataset { keyspace, log, durability, loading } = data;
        let fixed_bytes = keyspace.fixed_bytes();
        let (settings, clock) = (Arc::clone(&shared.settings), Arc::clone(&shared.clock));
        Node {
            keyspace,
            log,
            durability,
            loading,
            table,
            settings,
            clock,
            shared,
            generation,
            fixed_bytes,
        }
    }

    /// Whether data may change now, by requests or by the server itself.
    #[inline]
    pub fn may_change(&self) -> bool {
        self.durability.accepts_writes() && self.role.is_free() && !self.settings.read_only()
    }

    /// Whether clients that wait for data are served now: the log works, and the node may read.
    #[inline]
    pub fn may_serve(&self) -> bool {
        self.durability.accepts_writes() && self.role.get() <= Role::Follows
    }

    /// What is not about data.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Exchanges the data. Each thread takes it at the begin of its next turn.
    pub fn exchange(&self, data: Dataset) {
        self.shared.follow(&data);
        self.shared.exchange.announce(data);
        self.threads.iter().for_each(ThreadHandle::wake);
    }

    /// Whether the data was exchanged for other data since.
    #[inline]
    pub fn is_outdated(&self) -> bool {
        self.shared.exchange.generation() != self.generation
    }

    /// The node with the newest data, which gets the settings in force. A thread that works with it
    /// from now on says so by [`Node::note_taken`], and runs no request before
    /// [`Node::is_taken_by_all`].
    pub fn renewed(&self) -> Node {
        let Some((data, generation)) = self.shared.exchange.newest() else {
            unreachable!("the data was exchanged");
        };
        let node = Node::over(Arc::clone(&self.shared), data, self.table, generation);
        // Requests on the data before may have changed settings since the exchange.
        node.apply_limits();
        node.durability.gate_changed(node.settings.gate());
        node.tracking.goes_on_with(&node.keyspace);
        node
    }

    /// This thread works with this data, and runs nothing on the data before any more.
    pub fn note_taken(&self, thread: usize) {
        self.shared.exchange.has_taken(thread, self.generation);
        // Those that have taken it wait for the last one.
        self.threads.iter().for_each(ThreadHandle::wake);
    }

    /// Whether no thread runs anything on the data before.
    #[inline]
    pub fn is_taken_by_all(&self) -> bool {
        self.shared.exchange.is_taken_by_all(self.generation)
    }

    /// Waits until all threads have taken this data, for at most so long. Returns whether they
    /// have.
    pub fn await_taken(&self, most: Duration) -> bool {
        self.shared.exchange.wait(self.generation, most)
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

    /// Takes the samples for rates and peaks. Every thread's housekeeping calls this, some ten
    /// times a second while requests arrive.
    pub fn sample(&self) {
        self.used_memory_peak();
        self.sampler.lock().sample_if_due(&self.stats, &*self.clock);
    }

    /// Sets all statistics back to zero (`CONFIG RESETSTAT`).
    pub fn reset_stats(&self) {
        for stats in self.stats.iter() {
            stats.reset();
        }
        for counter in [&self.rejected_connections, &self.evicted_clients, &self.lazy_free.freed] {
            counter.store(0, Relaxed);
        }
        self.used_bytes_peak.store(self.used_memory(), Relaxed);
        self.accounts.denials.lock().reset_denials();
        self.exceeded.reset();
        self.sync_times.reset();
        *self.sampler.lock() = Sampler::default();
    }
}
