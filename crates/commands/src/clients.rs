//! All connections of the node: what others may know of them (`CLIENT LIST`) and ask of them
//! (`CLIENT KILL`), and the way to reach the IO thread that owns one.

use crate::aside::Computed;
use crate::blocking::{Answer, Unserved};
use crate::session::Session;
use crate::table::CommandId;
use ladon_engine::{Claim, WatchFlag};
use ladon_model::Lsn;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::Relaxed,
};

/// What other threads may see of a connection; written by its own thread.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "CLIENT LIST's fields")]
pub struct ClientInfo {
    pub id: u64,
    pub thread: usize,
    /// Its place in its thread.
    pub slot: u32,
    pub fd: i32,
    pub addr: String,
    pub laddr: String,
    /// It came through a unix socket.
    pub unix: bool,
    pub created_ms: u64,
    pub name: Mutex<Vec<u8>>,
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
    /// Bytes that the buffer of replies has room for, and the most it ever held.
    pub output_capacity: AtomicUsize,
    pub output_peak: AtomicUsize,
    /// Replies of earlier batches have not left yet.
    pub writing: AtomicBool,
    pub argv_bytes: AtomicUsize,
    pub multi_bytes: AtomicUsize,
    pub blocked: AtomicBool,
    /// A pause has held its request back, which has not run since; set and cleared with ordering, so
    /// that whoever sees it cleared sees what the request waits for.
    pub postponed: AtomicBool,
    /// It waits for a key or for the log, and not for ever.
    pub times_out: AtomicBool,
    /// What a wait of its is ended by; one that is taken is over.
    pub claim: Mutex<Option<Arc<Claim>>>,
    pub monitor: AtomicBool,
    pub no_evict: AtomicBool,
    pub no_touch: AtomicBool,
    /// Its part of [`Clients::bytes`].
    pub counted_bytes: AtomicUsize,
    /// Somebody wants it gone; its thread closes it at its next turn.
    pub killed: AtomicBool,
    /// Its last reply is made; it is closed once that has left.
    pub leaving: AtomicBool,
}

impl ClientInfo {
    /// The same connection at another place, where nothing of it is under way.
    pub fn moved(&self, thread: usize, slot: u32) -> ClientInfo {
        ClientInfo {
            id: self.id,
            thread,
            slot,
            fd: self.fd,
            addr: self.addr.clone(),
            laddr: self.laddr.clone(),
            unix: self.unix,
            created_ms: self.created_ms,
            name: Mutex::new(self.name.lock().clone()),
            lib_name: Mutex::new(self.lib_name.lock().clone()),
            lib_ver: Mutex::new(self.lib_ver.lock().clone()),
            last_active_ms: self.last_active_ms.load(Relaxed).into(),
            db: self.db.load(Relaxed).into(),
            resp: self.resp.load(Relaxed).into(),
            command: self.command.load(Relaxed).into(),
            multi: self.multi.load(Relaxed).into(),
            monitor: self.monitor.load(Relaxed).into(),
            no_evict: self.no_evict.load(Relaxed).into(),
            no_touch: self.no_touch.load(Relaxed).into(),
            ..ClientInfo::default()
        }
    }

    /// It is gone as far as others can see: being closed, if not closed yet.
    pub fn is_gone(&self) -> bool {
        self.killed.load(Relaxed) || self.leaving.load(Relaxed)
    }

    /// Remembers the last command.
    #[inline]
    pub fn set_command(&self, id: CommandId) {
        self.command.store(id.0 + 1, Relaxed);
    }

    /// What the connection takes: its buffers, its queued commands and what keeps them.
    pub fn bytes(&self) -> usize {
        let load = |field: &AtomicUsize| field.load(Relaxed);
        size_of::<Session>()
            + size_of::<ClientInfo>()
            + load(&self.query_capacity).max(load(&self.query_bytes))
            + load(&self.output_bytes)
            + load(&self.argv_bytes)
            + load(&self.multi_bytes)
    }

    /// As [`ClientInfo::bytes`], without room that was made and not used yet.
    pub fn bytes_in_use(&self) -> usize {
        let (query, room) = (self.query_bytes.load(Relaxed), self.query_capacity.load(Relaxed));
        self.bytes().saturating_sub(room.saturating_sub(query))
    }

    /// The last command.
    pub fn last_command(&self) -> Option<CommandId> {
        self.command.load(Relaxed).checked_sub(1).map(CommandId)
    }
}

/// A message to an IO thread.
#[derive(Debug)]
pub enum Message {
    /// Bytes for one of its connections, outside the order of replies (`MONITOR`).
    Deliver {
        /// The connection.
        client: u64,
        /// The connection's place in the thread.
        slot: u32,
        /// What to send.
        bytes: Arc<[u8]>,
        /// They may leave when the receiver's gate has passed this.
        depends: Lsn,
    },
    /// A connection that waited was served.
    Answer(Answer),
    /// A connection's wait is to end; its claim is taken already.
    Unblock {
        /// The connection.
        client: u64,
        /// The connection's place in the thread.
        slot: u32,
        /// With which reply.
        how: Unserved,
    },
    /// The job of one of its connections' requests is done.
    Computed {
        /// The connection.
        client: u64,
        /// The connection's place in the thread.
        slot: u32,
        /// What came of it.
        computed: Computed,
    },
    /// Look for connections that were killed.
    Kill,
    /// The pause of clients changed.
    Pause,
}

/// The way to an IO thread.
pub struct ThreadHandle {
    inbox: Mutex<Vec<Message>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl ThreadHandle {
    /// A thread that `wake` wakes.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> ThreadHandle {
        ThreadHandle { inbox: Mutex::default(), wake: Box::new(wake) }
    }

    /// Leaves a message and wakes the thread.
    pub fn send(&self, message: Message) {
        self.leave(message);
        self.wake();
    }

    /// Leaves a message for the thread's next turn, which comes with the next tick at the latest.
    pub fn leave(&self, message: Message) {
        self.inbox.lock().push(message);
    }

    /// Wakes the thread, or keeps it from sleeping.
    pub fn wake(&self) {
        (self.wake)();
    }

    /// Takes all messages.
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut self.inbox.lock())
    }
}

/// A connection that sees every command.
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
    /// What all connections take together, while `maxmemory-clients` is set.
    pub bytes: AtomicU64,
}

impl Clients {
    /// An identifier never given before.
    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed) + 1
    }

    /// Gives none of the identifiers that the other has given.
    pub fn continue_after(&self, other: &Clients) {
        self.next_id.fetch_max(other.next_id.load(Relaxed), Relaxed);
    }

    /// A connection came.
    pub fn add(&self, info: Arc<ClientInfo>) {
        self.by_id.lock().insert(info.id, info);
        self.count.fetch_add(1, Relaxed);
    }

    /// A connection went.
    pub fn remove(&self, id: u64) {
        if self.by_id.lock().remove(&id).is_some() {
            self.count.fetch_sub(1, Relaxed);
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

    /// The connection wants to see every command.
    pub fn add_monitor(&self, monitor: Monitor) {
        let mut monitors = self.monitors.lock();
        if !monitors.iter().any(|present| present.client == monitor.client) {
            monitors.push(monitor);
        }
        self.monitor_count.store(monitors.len(), Relaxed);
    }

    /// The connection no longer wants to.
    pub fn remove_monitor(&self, id: u64) {
        if self.has_monitors() {
            let mut monitors = self.monitors.lock();
            monitors.retain(|present| present.client != id);
            self.monitor_count.store(monitors.len(), Relaxed);
        }
    }

    /// Whether anybody monitors.
    #[inline]
    pub fn has_monitors(&self) -> bool {
        self.monitor_count.load(Relaxed) != 0
    }

    /// Everybody who monitors.
    pub fn monitors(&self) -> Vec<Monitor> {
        self.monitors.lock().clone()
    }
}
