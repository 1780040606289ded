//! All connections of the node: what others may know of them (`CLIENT LIST`) and ask of them
//! (`CLIENT KILL`).

use crate::command::command_id::CommandId;
use crate::command::error::{CommandError, CommandResult};
use ladon_engine::{Claim, WatchFlag};
use ladon_identity::DEFAULT_USER;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::Relaxed,
};

/// Names appear in the lines of `CLIENT LIST`, so they must not break these.
pub fn check_name(name: &[u8]) -> CommandResult {
    if is_plain(name) {
        return Ok(());
    }
    Err(CommandError::text(
        "ERR Client names cannot contain spaces, newlines or special characters.",
    ))
}

/// Whether a text does not break a line of `CLIENT LIST`.
pub fn is_plain(text: &[u8]) -> bool {
    text.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

/// What other threads may see of a connection; written by its own thread.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "CLIENT LIST's fields")]
pub struct ClientInfo {
    pub id: u64,
    pub thread: usize,
    /// Its slot in its thread.
    pub slot: u32,
    pub fd: i32,
    pub addr: String,
    pub laddr: String,
    /// The client connected through a unix socket.
    pub unix: bool,
    /// The names in the certificate that the client has shown over TLS; it was verified.
    pub certificate: Option<Box<CertificateNames>>,
    pub created_ms: u64,
    pub name: Mutex<Vec<u8>>,
    /// Its user's name; empty for the default user.
    pub user: Mutex<Arc<[u8]>>,
    pub lib_name: Mutex<Vec<u8>>,
    pub lib_ver: Mutex<Vec<u8>>,
    pub last_active_ms: AtomicU64,
    pub db: AtomicU16,
    pub resp: AtomicU8,
    /// The last command's number plus one; zero before the first.
    pub command: AtomicU16,
    /// Queued commands of an open MULTI; -1 without.
    pub multi: AtomicI64,
    pub watched: AtomicU32,
    /// Shared with the session while it watches keys.
    pub watch_flag: Mutex<Option<Arc<WatchFlag>>>,
    pub query_bytes: AtomicUsize,
    pub query_capacity: AtomicUsize,
    pub output_bytes: AtomicUsize,
    /// Capacity of the reply buffer, and its maximum use so far.
    pub output_capacity: AtomicUsize,
    pub output_peak: AtomicUsize,
    /// Replies of earlier batches were not sent yet.
    pub writing: AtomicBool,
    pub argv_bytes: AtomicUsize,
    pub multi_bytes: AtomicUsize,
    pub blocked: AtomicBool,
    /// A pause has held back its request, which has not run since. Written with ordering, so that a
    /// thread that sees it cleared also sees what the request waits for.
    pub postponed: AtomicBool,
    /// It waits for a key or for the log, with a deadline.
    pub times_out: AtomicBool,
    /// The claim of its wait; a taken claim means that the wait is over.
    pub claim: Mutex<Option<Arc<Claim>>>,
    pub monitor: AtomicBool,
    /// Numbers of subscriptions: to channels, shard channels, patterns.
    pub subscriptions: [AtomicU32; 3],
    /// `CLIENT TRACKING` is on,
    pub tracked: AtomicBool,
    /// in broadcasting mode.
    pub tracked_by_prefix: AtomicBool,
    /// The connection that gets its invalidations instead; 0 for none.
    pub redirect: AtomicU64,
    /// That one is gone.
    pub redirect_broken: AtomicBool,
    pub no_evict: AtomicBool,
    /// It is that of a server that follows this one.
    pub is_replica: AtomicBool,
    pub no_touch: AtomicBool,
    /// Errors that functions return come as errors, not as texts (Tarantool's clients).
    pub marshals_errors: AtomicBool,
    /// Memory besides its buffers: its names, watched keys, a request that waits for a job, the
    /// parser's state.
    pub held_bytes: AtomicUsize,
    /// Memory that its transport holds (TLS): keys, and records that are not whole.
    pub transport_bytes: AtomicUsize,
    /// Bytes of its names.
    pub name_bytes: AtomicUsize,
    /// Its share of [`Clients::bytes`]; zero once it was asked to close.
    pub counted_bytes: AtomicUsize,
    /// Its rank in `Clients::by_size`; 0 if it has none.
    pub rank: AtomicU8,
    /// Its thread closes it at the next turn.
    pub killed: AtomicBool,
    /// Its last reply is made; it is closed once that is sent.
    pub leaving: AtomicBool,
}

/// The names in a client's certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateNames {
    /// The subject's common name (CN).
    pub common_name: Option<String>,
    /// The URIs among its alternative names (SAN).
    pub uris: Vec<String>,
}

/// Memory of an idle connection: the state that commands know, and about as much again in the
/// server.
const CONNECTION_BYTES: usize = 2 * SESSION_BYTES + size_of::<ClientInfo>() + 256;

/// Memory of a `Session`, which checks it.
pub(crate) const SESSION_BYTES: usize = 144;

/// Buffers count as multiples of this.
const BUFFER_STEP_BYTES: usize = 4096;

impl ClientInfo {
    /// Whether it is gone as far as others can see: closed or being closed.
    pub fn is_gone(&self) -> bool {
        self.killed.load(Relaxed) || self.leaving.load(Relaxed)
    }

    /// Whether it has subscriptions of any kind.
    pub fn is_subscribed(&self) -> bool {
        self.subscriptions.iter().any(|count| count.load(Relaxed) != 0)
    }

    /// Remembers the last command.
    #[inline]
    pub fn set_command(&self, id: CommandId) {
        self.command.store(id.0 + 1, Relaxed);
    }

    /// Memory of the connection: its buffers, its queued commands and their containers.
    #[inline]
    pub fn bytes(&self) -> usize {
        let load = |field: &AtomicUsize| field.load(Relaxed);
        let (query, capacity) = (load(&self.query_bytes), load(&self.query_capacity));
        // Capacity for bytes that are about to arrive was not written yet.
        let is_filling = capacity / 2 <= query;
        let query = if is_filling { query } else { capacity.max(query) };
        let output = load(&self.output_capacity).max(load(&self.output_bytes));
        // In steps, so that replies of usual length do not change the used memory all the time.
        CONNECTION_BYTES
            + (query + output).next_multiple_of(BUFFER_STEP_BYTES)
            + load(&self.multi_bytes)
            + load(&self.held_bytes)
            + load(&self.transport_bytes)
    }

    /// Changes one of its names.
    pub fn set_name(&self, name: &Mutex<Vec<u8>>, to: &[u8]) {
        *name.lock() = to.to_vec();
        let names = [&self.name, &self.lib_name, &self.lib_ver];
        let bytes = names.iter().map(|name| name.lock().len()).sum();
        self.name_bytes.store(bytes, Relaxed);
    }

    /// The name of its user.
    pub fn user(&self) -> Arc<[u8]> {
        let user = self.user.lock();
        if user.is_empty() { DEFAULT_USER.into() } else { Arc::clone(&user) }
    }

    /// The connection is this user's from now on.
    pub(crate) fn set_user(&self, name: &[u8]) {
        *self.user.lock() = if name == DEFAULT_USER { Arc::default() } else { name.into() };
    }

    /// The last command.
    pub fn last_command(&self) -> Option<CommandId> {
        self.command.load(Relaxed).checked_sub(1).map(CommandId)
    }
}

/// A connection that monitors every command.
#[derive(Clone, Copy, Debug)]
pub struct Monitor {
    /// The connection.
    pub client: u64,
    /// Its thread.
    pub thread: usize,
    /// Its place in the thread.
    pub slot: u32,
}

/// Every connection.
#[derive(Default)]
pub struct Clients {
    by_id: Mutex<BTreeMap<u64, Arc<ClientInfo>>>,
    next_id: AtomicU64,
    count: AtomicUsize,
    monitors: Mutex<Vec<Monitor>>,
    monitor_count: AtomicUsize,
    /// Memory of all connections together. Each thread adds the growth of its own at the end of a
    /// turn at the latest.
    pub bytes: AtomicU64,
    /// The large connections, by rank.
    by_size: Mutex<BTreeMap<(u8, u64), Arc<ClientInfo>>>,
    /// Where the search among the small connections has got to.
    looked_up_to: AtomicU64,
}

/// A smaller connection has no rank: replies of usual length must not change ranks all the time.
const RANKED_BYTES_MIN: usize = 16 * 1024;

/// Unranked connections compared to find the largest of them.
const UNRANKED_SAMPLES: usize = 64;

/// Orders connections by size, four ranks for each power of two; 0 for none.
fn rank_of(bytes: usize) -> u8 {
    if bytes < RANKED_BYTES_MIN {
        return 0;
    }
    let log = bytes.ilog2();
    (log * 4) as u8 + (bytes >> (log - 2) & 3) as u8
}

impl Clients {
    /// Updates a connection's rank; called by its own thread.
    #[inline]
    pub fn rank(&self, info: &Arc<ClientInfo>, bytes: usize) {
        let exempt = info.no_evict.load(Relaxed) || info.killed.load(Relaxed);
        let rank = if exempt { 0 } else { rank_of(bytes) };
        if rank != info.rank.load(Relaxed) {
            self.move_to_rank(info, rank);
        }
    }

    #[cold]
    fn move_to_rank(&self, info: &Arc<ClientInfo>, rank: u8) {
        let mut by_size = self.by_size.lock();
        let before = info.rank.swap(rank, Relaxed);
        if before != 0 {
            by_size.remove(&(before, info.id));
        }
        if rank != 0 {
            by_size.insert((rank, info.id), Arc::clone(info));
        }
    }

    /// A connection that is about as large as any and may be evicted. It is not returned again. The
    /// effort is bounded, however many connections there are.
    pub fn take_largest(&self) -> Option<Arc<ClientInfo>> {
        if let Some((_, info)) = self.by_size.lock().pop_last() {
            info.rank.store(0, Relaxed);
            return Some(info);
        }
        let by_id = self.by_id.lock();
        let from = self.looked_up_to.load(Relaxed);
        let found = by_id.range(from..).chain(by_id.range(..from)).take(UNRANKED_SAMPLES);
        let (mut next, mut largest) = (0, None);
        for (&id, info) in found {
            next = id + 1;
            let bytes = info.counted_bytes.load(Relaxed);
            let exempt = info.no_evict.load(Relaxed) || info.killed.load(Relaxed) || bytes == 0;
            if !exempt && largest.as_ref().is_none_or(|&(most, _)| bytes > most) {
                largest = Some((bytes, info));
            }
        }
        self.looked_up_to.store(next, Relaxed);
        largest.map(|(_, info)| Arc::clone(info))
    }

    /// An identifier that was never used before.
    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed) + 1
    }

    /// Adds a new connection.
    pub fn add(&self, info: Arc<ClientInfo>) {
        self.by_id.lock().insert(info.id, info);
        self.count.fetch_add(1, Relaxed);
    }

    /// Removes a closed connection.
    pub fn remove(&self, id: u64) {
        let removed = self.by_id.lock().remove(&id);
        if let Some(info) = removed {
            self.count.fetch_sub(1, Relaxed);
            self.move_to_rank(&info, 0);
        }
        self.remove_monitor(id);
    }

    /// Number of connections.
    pub fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// All connections, oldest first.
    pub fn list(&self) -> Vec<Arc<ClientInfo>> {
        self.by_id.lock().values().cloned().collect()
    }

    /// One connection.
    pub fn find(&self, id: u64) -> Option<Arc<ClientInfo>> {
        self.by_id.lock().get(&id).cloned()
    }

    /// Makes a connection monitor every command.
    pub fn add_monitor(&self, monitor: Monitor) {
        let mut monitors = self.monitors.lock();
        if !monitors.iter().any(|present| present.client == monitor.client) {
            monitors.push(monitor);
        }
        self.monitor_count.store(monitors.len(), Relaxed);
    }

    /// Ends a connection's monitoring.
    pub fn remove_monitor(&self, id: u64) {
        if self.has_monitors() {
            let mut monitors = self.monitors.lock();
            monitors.retain(|present| present.client != id);
            self.monitor_count.store(monitors.len(), Relaxed);
        }
    }

    /// Whether any connection monitors.
    #[inline]
    pub fn has_monitors(&self) -> bool {
        self.monitor_count.load(Relaxed) != 0
    }

    /// All monitoring connections.
    pub fn monitors(&self) -> Vec<Monitor> {
        self.monitors.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(clients: &Clients, bytes: usize) -> Arc<ClientInfo> {
        let info = ClientInfo { id: clients.next_id(), ..ClientInfo::default() };
        info.counted_bytes.store(bytes, Relaxed);
        let info = Arc::new(info);
        clients.add(Arc::clone(&info));
        clients.rank(&info, bytes);
        info
    }

    #[test]
    fn ranks_grow_with_size() {
        let sizes = [0, 16_383, 16_384, 20_480, 1 << 20, 5 << 18, 1 << 40, usize::MAX];
        let ranks: Vec<u8> = sizes.iter().map(|&size| rank_of(size)).collect();
        assert!(ranks.is_sorted(), "{ranks:?}");
        assert_eq!(ranks.iter().filter(|&&rank| rank == 0).count(), 2);
        assert_ne!(ranks[4], ranks[5]);
    }

    #[test]
    fn the_largest_goes_first_and_nobody_who_is_exempt() {
        let clients = Clients::default();
        let sizes = [100, 30_000, 1_000_000, 50_000, 5_000_000, 2_000];
        let all: Vec<_> = sizes.iter().map(|&size| client(&clients, size)).collect();
        all[4].no_evict.store(true, Relaxed);
        clients.rank(&all[4], sizes[4]);
        // One that has shrunk, and one that has left.
        clients.rank(&all[3], 100);
        all[3].counted_bytes.store(100, Relaxed);
        clients.remove(all[1].id);
        let mut order = Vec::new();
        while let Some(info) = clients.take_largest() {
            info.killed.store(true, Relaxed);
            order.push(info.id);
        }
        assert_eq!(order, [all[2].id, all[5].id, all[0].id, all[3].id]);
    }

    #[test]
    fn all_small_connections_are_found_bit_by_bit() {
        let clients = Clients::default();
        let all: Vec<_> = (0..1000).map(|_| client(&clients, 1000)).collect();
        all.iter().skip(1).for_each(|info| info.no_evict.store(true, Relaxed));
        all[700].no_evict.store(false, Relaxed);
        let found: Vec<u64> = (0..32)
            .filter_map(|_| {
                let info = clients.take_largest()?;
                info.killed.store(true, Relaxed);
                Some(info.id)
            })
            .collect();
        assert_eq!(found, [all[0].id, all[700].id]);
    }
}
