//! The node's trackers: the table of what they have read, the prefixes that they follow, and how
//! an invalidation finds them.

use super::batch::{Batch, ForTrackers};
use super::numbers::{self, Numbers};
use super::prefix_tree::PrefixTree;
use super::sweep::Sweep;
use super::table::{Part, Table, Tracked};
use crate::message::Message;
use crate::pubsub::registry::PubSub;
use ladon_engine::{CopyEvent, CopyEvents, Keyspace};
use ladon_record::Lsn;
use ladon_settings::Settings;
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes of keys that weigh as much as one delivery.
const BYTES_PER_WEIGHT: usize = 1024;

/// How many followers of a prefix each thread has.
pub(super) type Followers = SmallVec<[(u16, u32); 2]>;

/// The trackers of a node.
pub struct Tracking {
    pubsub: Arc<PubSub>,
    settings: Arc<Settings>,
    pub(super) table: Table,
    /// Prefixes that clients in broadcasting mode follow.
    pub(super) prefixes: RwLock<PrefixTree<Followers>>,
    prefix_count: AtomicUsize,
    /// Clients with tracking on, by thread.
    on: Mutex<Box<[usize]>>,
    clients: AtomicUsize,
    /// Clients that have turned tracking on at any time: the table may name them.
    users: Mutex<usize>,
    pub(super) numbers: Mutex<Numbers>,
    /// Numbers that are to be swept, or being swept.
    pub(super) departed: AtomicUsize,
    pub(super) sweep: Mutex<Sweep>,
    /// What a flush removed from the table.
    garbage: Mutex<Vec<Part>>,
    has_garbage: AtomicUsize,
}

/// The weights of a batch, by thread.
#[derive(Default)]
struct Receivers(SmallVec<[(u16, usize); 4]>);

impl Receivers {
    fn add(&mut self, thread: usize, weight: usize) {
        match self.0.iter_mut().find(|(other, _)| usize::from(*other) == thread) {
            Some((_, sum)) => *sum += weight,
            None => self.0.push((thread as u16, weight)),
        }
    }
}

impl Tracking {
    /// Without trackers.
    pub(crate) fn new(pubsub: Arc<PubSub>, settings: Arc<Settings>) -> Tracking {
        let threads = pubsub.threads();
        Tracking {
            settings,
            pubsub,
            table: Table::new(),
            prefixes: RwLock::default(),
            prefix_count: AtomicUsize::new(0),
            on: Mutex::new(vec![0; threads].into()),
            clients: AtomicUsize::new(0),
            users: Mutex::new(0),
            numbers: Mutex::new(Numbers::new(threads)),
            departed: AtomicUsize::new(0),
            sweep: Mutex::default(),
            garbage: Mutex::default(),
            has_garbage: AtomicUsize::new(0),
        }
    }

    /// Number of clients with tracking on.
    #[inline]
    pub fn clients(&self) -> usize {
        self.clients.load(Relaxed)
    }

    /// Number of tracked keys.
    pub fn keys(&self) -> usize {
        self.table.keys()
    }

    /// Number of pairs of a tracked key and a client.
    pub fn items(&self) -> usize {
        self.table.items()
    }

    /// Number of distinct prefixes.
    #[inline]
    pub fn prefixes(&self) -> usize {
        self.prefix_count.load(Relaxed)
    }

    /// Memory of the table.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }

    fn threads(&self) -> usize {
        self.pubsub.threads()
    }

    /// A client turns tracking on for the first time. What it reads later is followed by an
    /// invalidation: who changes that takes a lock that the client held later than this.
    pub(super) fn begins(&self, keyspace: &Keyspace) {
        let mut users = self.users.lock();
        *users += 1;
        keyspace.collect_changes(true);
    }

    /// The data was exchanged for this.
    pub(crate) fn goes_on_with(&self, keyspace: &Keyspace) {
        let users = self.users.lock();
        keyspace.collect_changes(*users != 0);
    }

    /// A client that has ever turned tracking on has left.
    pub(super) fn ends(&self, keyspace: &Keyspace) {
        let mut users = self.users.lock();
        *users -= 1;
        keyspace.collect_changes(*users != 0);
    }

    /// A client of this thread turned tracking on.
    pub(super) fn count_on(&self, thread: usize) {
        self.on.lock()[thread] += 1;
        self.clients.fetch_add(1, Relaxed);
    }

    /// A client of this thread turned tracking off.
    pub(super) fn count_off(&self, thread: usize) {
        self.on.lock()[thread] -= 1;
        self.clients.fetch_sub(1, Relaxed);
    }

    /// A client whose reads were noted has left.
    pub(super) fn departs(&self, number: u32) {
        self.numbers.lock().departed.push(number);
        self.departed.fetch_add(1, Relaxed);
    }

    /// Adds a follower of a prefix. Returns the number of messages that were left for its thread
    /// before: it gets the later ones.
    pub(super) fn follow(&self, prefix: &[u8], thread: usize) -> u64 {
        let mut prefixes = self.prefixes.write();
        let followers = prefixes.get_or_default(prefix);
        if followers.is_empty() {
            self.prefix_count.fetch_add(1, Relaxed);
        }
        match followers.iter_mut().find(|(other, _)| usize::from(*other) == thread) {
            Some((_, count)) => *count += 1,
            None => followers.push((thread as u16, 1)),
        }
        self.pubsub.published(thread)
    }

    /// Removes a follower of a prefix.
    pub(super) fn unfollow(&self, prefix: &[u8], thread: usize) {
        let mut prefixes = self.prefixes.write();
        let Some(followers) = prefixes.get_mut(prefix) else { return };
        let at = followers.iter().position(|(other, _)| usize::from(*other) == thread);
        let at = at.expect("it follows the prefix");
        followers[at].1 -= 1;
        if followers[at].1 == 0 {
            followers.swap_remove(at);
        }
        if followers.is_empty() {
            prefixes.remove(prefix);
            self.prefix_count.fetch_sub(1, Relaxed);
        }
    }

    /// Number of messages that were left for a thread so far.
    pub(super) fn messages_to(&self, thread: usize) -> u64 {
        self.pubsub.published(thread)
    }

    /// At most about so many keys are tracked.
    fn keys_max(&self) -> usize {
        match self.settings.tracking_table_max_keys() {
            0 => usize::MAX,
            keys => keys,
        }
    }

    /// Does a step of what is left to do between requests: tells clients to forget keys beyond the
    /// limit, and forgets clients that have left. Returns whether there is more to do.
    #[inline]
    pub fn tidy(&self) -> bool {
        let evicts = self.keys() != 0 && self.evict();
        let sweeps = self.departed.load(Relaxed) != 0 && self.sweep();
        evicts || sweeps
    }

    /// Returns whether there are still too many keys.
    #[cold]
    fn evict(&self) -> bool {
        /// So that a step is short.
        const KEYS_PER_STEP: usize = 256;
        let keys_max = self.keys_max();
        if self.keys() <= keys_max {
            return false;
        }
        let mut evicted = Vec::new();
        self.table.evict(keys_max, KEYS_PER_STEP, |tracked| evicted.push(tracked));
        self.leave_evicted(evicted.into_iter());
        self.keys() > keys_max
    }

    /// The messages depend on nothing: the keys did not change.
    fn leave_evicted(&self, evicted: impl Iterator<Item = Tracked>) {
        let mut leaving = Leaving::new(self, Lsn::ZERO);
        leaving.is_change = false;
        for Tracked { key, readers, .. } in evicted {
            leaving.key(&key, 0, Some(readers));
        }
        leaving.leave();
    }

    /// Notes what clients have read in a transaction, and leaves messages for those whose copies it
    /// made invalid; called while it holds its locks.
    fn follow_copies(&self, events: &CopyEvents<'_>, depends: Lsn) {
        let mut leaving = Leaving::new(self, depends);
        for event in events.iter() {
            match event {
                CopyEvent::Made { key, reader } => {
                    let most = self.keys_max();
                    if let Some(evicted) = self.table.insert(key.hash, key.bytes, reader, most) {
                        self.leave_evicted([evicted].into_iter());
                    }
                }
                CopyEvent::Invalid { key, by_server } => {
                    let readers = self.table.take(key.hash, key.bytes);
                    let origin = if by_server { 0 } else { events.origin };
                    leaving.key(key.bytes, origin, readers);
                }
                CopyEvent::AllInvalid => {
                    leaving.leave();
                    self.invalidate_all(depends);
                }
            }
        }
        leaving.leave();
    }

    fn invalidate_all(&self, depends: Lsn) {
        let removed = self.table.clear();
        if !removed.is_empty() {
            self.garbage.lock().extend(removed);
            self.has_garbage.store(1, Relaxed);
        }
        let batch = Arc::new(Batch::all(depends));
        // Who turns tracking on later gets no message that is left now.
        let on = self.on.lock();
        for (thread, &weight) in on.iter().enumerate().filter(|&(_, &count)| count != 0) {
            let message = ForTrackers { batch: Arc::clone(&batch), weight };
            self.pubsub.leave(thread, Message::Invalidate(message), weight);
        }
    }

    /// What flushes have removed, to be dropped where nobody waits.
    #[inline]
    pub fn take_garbage(&self) -> Option<impl Send + 'static + use<>> {
        if self.has_garbage.load(Relaxed) == 0 {
            return None;
        }
        let mut garbage = self.garbage.lock();
        self.has_garbage.store(0, Relaxed);
        Some(std::mem::take(&mut *garbage))
    }
}

/// Messages in the making.
struct Leaving<'a> {
    tracking: &'a Tracking,
    batch: Batch,
    receivers: Receivers,
    /// The keys changed, and are not only forgotten.
    is_change: bool,
}

impl Leaving<'_> {
    fn new(tracking: &Tracking, depends: Lsn) -> Leaving<'_> {
        let (batch, receivers) = (Batch::new(depends), Receivers::default());
        Leaving { tracking, batch, receivers, is_change: true }
    }

    fn key(&mut self, key: &[u8], origin: u64, readers: Option<super::tracker_set::TrackerSet>) {
        let Leaving { tracking, receivers, .. } = self;
        let threads = tracking.threads();
        if let Some(readers) = &readers {
            readers.iter().for_each(|number| receivers.add(numbers::place(number, threads).0, 1));
        }
        let mut is_followed = false;
        if self.is_change && tracking.prefixes() != 0 {
            tracking.prefixes.read().for_each_prefix_of(key, |_, followers| {
                is_followed = true;
                for &(thread, count) in followers {
                    receivers.add(usize::from(thread), count as usize);
                }
            });
        }
        if readers.is_none() && !is_followed {
            return;
        }
        self.batch.push(key, origin, readers, is_followed);
        if self.batch.is_full() {
            self.leave();
        }
    }

    /// Leaves what was gathered.
    fn leave(&mut self) {
        if self.batch.keys.is_empty() {
            return;
        }
        let next = Batch::new(self.batch.depends);
        let batch = Arc::new(std::mem::replace(&mut self.batch, next));
        let bytes_weight = batch.bytes() / BYTES_PER_WEIGHT;
        for (thread, weight) in std::mem::take(&mut self.receivers).0 {
            let weight = weight + bytes_weight;
            let message = ForTrackers { batch: Arc::clone(&batch), weight };
            self.tracking.pubsub.leave(usize::from(thread), Message::Invalidate(message), weight);
        }
    }
}

/// Passes what every transaction does to copies of values to the trackers.
pub(crate) fn follow(keyspace: &Keyspace, tracking: &Arc<Tracking>) {
    let tracking = Arc::clone(tracking);
    keyspace.deliver_copy_events(Box::new(move |events, depends| {
        tracking.follow_copies(events, depends);
    }));
}
