//! The keyspace: partitions, each behind its lock, and the data shared by all of them.
//!
//! Locks are taken in index order, only by [`Locks`]. No code here waits for anything else while it
//! holds one.

use crate::access::AccessRules;
use crate::compaction::Compaction;
use crate::events::{CopySink, EventClass, EventSink, Wanted};
use crate::libraries::Libraries;
use crate::locked::{Locked, PartitionSet};
use crate::lookahead::Lookahead;
use crate::object::Object;
use crate::partition::{Database, PARTITION_BITS, PARTITIONS, Partition, partition_of};
use crate::partition_lock::{PartitionGuard, PartitionLock};
use crate::prefetch::prefetch;
use crate::prefetch_target::{Ahead, PartAhead};
use crate::space::Spaces;
use crate::table::LocalHash;
use crate::table::bucket::BucketHint;
use crate::table::prefetch::{Root, RootPtr};
use crate::tx::{Scratch, Tx};
use crate::types::Limits;
use crate::types::collection::Env;
use crossbeam_epoch::Guard;
use ladon_record::{DbId, KeyHash, KeyHasher};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU16, AtomicU64, Ordering::Relaxed,
};

/// What a keyspace is created from.
#[derive(Clone, Copy, Debug)]
pub struct KeyspaceOptions {
    /// The data directory's hash seed.
    pub hash_seed: u64,
    /// Number of databases that `SELECT` reaches.
    pub databases: u16,
}

/// All data of a node.
pub struct Keyspace {
    hasher: KeyHasher,
    /// Before `hints`, in which its tables publish their directories.
    cells: Box<[PartitionLock]>,
    /// For prefetching without the lock: all partitions of each database in a row, to fit the
    /// caches. Not a `Box`, which would claim unique access: the tables hold pointers into it.
    hints: Arc<[Hint]>,
    /// What `SELECT n` means, see `Tx::swap`; changes only while all partitions are locked.
    select: Box<[AtomicU16]>,
    limits: Limits,
    access_rules: AccessRules,
    used_bytes: AtomicI64,
    /// For each partition, a time before which nothing in it expires; contiguous, so that a check
    /// of all of them is short. Written under the partition's lock.
    next_due: Box<[AtomicU64]>,
    /// What has expired is hidden, and another node says when it goes; changes only while all
    /// partitions are locked.
    is_follower: AtomicBool,
    /// Some element of a value has, or had, a time: most nodes never look further.
    has_element_times: AtomicBool,
    /// The last number that was given to a version of a string.
    last_cas: AtomicU64,
    pub(crate) compaction: Compaction,
    pub(crate) events: Wanted,
    pub(crate) libraries: Libraries,
    /// The spaces.
    pub spaces: Spaces,
}

/// Address of a database's part of a partition.
#[derive(Default)]
struct Hint {
    root: Root,
    /// Only ever prefetched.
    database: AtomicPtr<Database>,
}

#[inline]
fn local_of(hash: KeyHash) -> LocalHash {
    hash.0 << PARTITION_BITS
}

impl Keyspace {
    /// A number that no version of a string has had, before a restart neither: clients may remember
    /// those.
    pub(crate) fn next_cas(&self, now_ms: u64) -> u64 {
        /// More versions in a millisecond than that are not asked for.
        const PER_MS_BITS: u32 = 20;
        if self.last_cas.load(Relaxed) == 0 {
            self.last_cas.fetch_max(now_ms << PER_MS_BITS, Relaxed);
        }
        self.last_cas.fetch_add(1, Relaxed) + 1
    }

    /// An empty keyspace.
    pub fn new(options: KeyspaceOptions) -> Keyspace {
        let databases = usize::from(options.databases);
        let hints: Arc<[Hint]> = (0..databases * PARTITIONS).map(|_| Hint::default()).collect();
        let cells = (0..PARTITIONS).map(|index| {
            let of_databases = || hints.iter().skip(index).step_by(PARTITIONS);
            // SAFETY: the hints live as long as the keyspace.
            let roots = of_databases().map(|hint| unsafe { RootPtr::new(&hint.root) });
            let mut partition = Partition::new(roots);
            for (hint, database) in of_databases().zip(&mut partition.dbs) {
                hint.database.store(database, Relaxed);
            }
            PartitionLock::new(partition)
        });
        Keyspace {
            hasher: KeyHasher::new(options.hash_seed),
            cells: cells.collect(),
            hints,
            select: (0..options.databases).map(AtomicU16::new).collect(),
            limits: Limits::default(),
            access_rules: AccessRules::default(),
            used_bytes: AtomicI64::new(0),
            next_due: (0..PARTITIONS).map(|_| AtomicU64::new(u64::MAX)).collect(),
            is_follower: AtomicBool::new(false),
            has_element_times: AtomicBool::new(false),
            last_cas: AtomicU64::new(0),
            compaction: Compaction::default(),
            events: Wanted::default(),
            libraries: Libraries::default(),
            spaces: Spaces::new(options.hash_seed),
        }
    }

    /// The hash of a key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.hasher.hash(key)
    }

    /// The hasher of keys and members.
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// The context that values need.
    #[inline]
    pub fn env(&self) -> Env<'_> {
        Env { hasher: &self.hasher, limits: &self.limits }
    }

    /// Sizes up to which collections stay packed.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What access words measure.
    #[inline]
    pub fn access_rules(&self) -> &AccessRules {
        &self.access_rules
    }

    /// Number of databases that `SELECT` reaches.
    pub fn databases(&self) -> u16 {
        self.select.len() as u16
    }

    /// The database that `SELECT number` means now. Stable while any partition is locked.
    #[inline]
    pub fn select(&self, number: u16) -> DbId {
        self.select[usize::from(number)].load(Relaxed)
    }

    pub(crate) fn set_select(&self, number: u16, db: DbId) {
        self.select[usize::from(number)].store(db, Relaxed);
    }

    /// The number by which clients select a database. Stable while any partition is locked.
    pub(crate) fn number_of(&self, db: DbId) -> u16 {
        let number = (0..self.databases()).find(|&number| self.select(number) == db);
        number.expect("every database has a number")
    }

    /// From now on, this node's data changes as another one's log says (`Keyspace::follow`), or no
    /// longer. A follower removes nothing by itself: what has expired is hidden from readers, and
    /// nothing is evicted. Waits for all locks, so that no transaction sees both.
    pub fn set_follower(&self, is_follower: bool) {
        let _held = self.lock(Locks::All);
        self.is_follower.store(is_follower, Relaxed);
    }

    /// See `set_follower`. Stable while any partition is locked.
    #[inline]
    pub fn is_follower(&self) -> bool {
        self.is_follower.load(Relaxed)
    }

    /// From now on, transactions collect events of these classes.
    pub fn collect_events(&self, classes: EventClass) {
        self.events.set(classes);
    }

    /// Each committed transaction passes its events to `sink`.
    ///
    /// # Panics
    /// When called twice.
    pub fn deliver_events(&self, sink: EventSink) {
        self.events.deliver_to(sink);
    }

    /// From now on, transactions note which keys they change, or no longer. A transaction that
    /// begins to hold a lock after this takes notice.
    pub fn collect_changes(&self, wanted: bool) {
        self.events.set_changes(wanted);
    }

    /// Each committed transaction passes to `sink` what concerns copies of values.
    ///
    /// # Panics
    /// When called twice.
    pub fn deliver_copy_events(&self, sink: CopySink) {
        self.events.deliver_copies_to(sink);
    }

    /// Bytes of data, as of each thread's last batch.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Relaxed).max(0) as u64
    }

    /// Bytes of an empty keyspace; `used_bytes` does not include them.
    pub fn fixed_bytes(&self) -> u64 {
        let database = size_of::<Database>() + size_of::<Hint>();
        (self.cells.len() * (size_of::<PartitionLock>() + self.select.len() * database)) as u64
    }

    /// Adds a thread's share to `used_bytes`.
    pub fn add_used_bytes(&self, delta: i64) {
        if delta != 0 {
            self.used_bytes.fetch_add(delta, Relaxed);
        }
    }

    /// Nothing in this partition expires before this time (Unix milliseconds); `u64::MAX` if
    /// nothing expires. The key or element of that time may be gone.
    #[inline]
    pub fn next_due(&self, partition: usize) -> u64 {
        self.next_due[partition].load(Relaxed)
    }

    /// The flags of a function, without locks: of a library that may be taken back.
    pub fn peek_function_flags(&self, name: &[u8]) -> Option<u64> {
        let (library, at) = self.libraries.with_function(name)?;
        Some(library.body.functions[at].flags)
    }

    /// Whether an element of any value has, or once had, a time.
    #[inline]
    pub fn has_element_times(&self) -> bool {
        self.has_element_times.load(Relaxed)
    }

    /// As `note_expiry`, of an element of the key's value.
    #[inline]
    pub(crate) fn note_element_expiry(&self, hash: KeyHash, at: u64) {
        if at != 0 {
            if !self.has_element_times() {
                self.has_element_times.store(true, Relaxed);
            }
            self.note_expiry(hash, at);
        }
    }

    /// Notes that a key, or an element of its value, expires at `at` (0: never). The partition is
    /// locked.
    #[inline]
    pub(crate) fn note_expiry(&self, hash: KeyHash, at: u64) {
        let next = &self.next_due[partition_of(hash)];
        if at != 0 && at < next.load(Relaxed) {
            next.store(at, Relaxed);
        }
    }

    /// Sets when the next key or element in the locked partition expires.
    pub(crate) fn set_next_due(&self, partition: usize, at: u64) {
        self.next_due[partition].store(at, Relaxed);
    }

    /// Begins prefetching for the keys of a batch.
    pub fn lookahead(&self) -> Lookahead<'_> {
        Lookahead::new(self)
    }

    /// Prefetches the lock, the database and the bucket of a key in the database of this number.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, number: u16, hash: KeyHash, guard: &Guard) -> BucketHint {
        let index = partition_of(hash);
        let cell = (&raw const self.cells[index]).cast::<u8>();
        prefetch(cell);
        // After the lock, which is not necessarily first; one line too many does no harm.
        prefetch(cell.wrapping_add(Partition::changed_offset(hash) + size_of::<usize>()));
        let hint = &self.hints[usize::from(self.select(number)) * PARTITIONS + index];
        prefetch(hint.database.load(Relaxed));
        hint.root.prefetch_bucket(local_of(hash), guard)
    }

    /// Prefetches the header of a key's value, if the value is outside its entry.
    pub(crate) fn prefetch_value(&self, key: &Ahead) {
        self.look_ahead(key, |object| prefetch(object));
    }

    /// Prefetches what a key's value points to, as far as the command will access it. Returns the
    /// bucket that will then hold a member.
    pub(crate) fn prefetch_inside(&self, part: &PartAhead, guard: &Guard) -> BucketHint {
        let hint = self.look_ahead(&part.key, |object| object.prefetch(part.inside, guard));
        hint.unwrap_or(BucketHint::NONE)
    }

    /// Visits what is probably the key's value, unless the value is in its entry or another thread
    /// holds the lock.
    #[inline]
    fn look_ahead<R>(&self, key: &Ahead, look: impl FnOnce(&Object) -> R) -> Option<R> {
        let index = partition_of(key.hash);
        let partition = self.cells[index].try_lock(index)?;
        let table = &partition.dbs[usize::from(self.select(key.db))].table;
        let entry = table.likely(table.local(key.hash.0))?;
        entry.object().map(look)
    }

    /// Begins a transaction on the partitions that `locks` names, waiting for their locks.
    #[inline(always)]
    pub fn begin<'a>(&'a self, locks: Locks<'_>, scratch: &'a mut Scratch, now_ms: u64) -> Tx<'a> {
        Tx::new(self, self.lock(locks), scratch, now_ms)
    }

    /// As `begin`, unless `is_busy` says of a partition that another thread holds that this thread
    /// should not wait for it any longer. It is asked every few milliseconds.
    pub fn begin_or_busy<'a>(
        &'a self,
        locks: Locks<'_>,
        scratch: &'a mut Scratch,
        now_ms: u64,
        is_busy: impl Fn(usize) -> bool,
    ) -> Option<Tx<'a>> {
        let locked = self.lock_unless_busy(locks, is_busy)?;
        Some(Tx::new(self, locked, scratch, now_ms))
    }

    /// As `begin_or_busy` on the partition of one key, for requests: as quick as `begin` while
    /// nobody holds the lock.
    #[inline(always)]
    pub fn begin_one_or_busy<'a>(
        &'a self,
        hash: KeyHash,
        scratch: &'a mut Scratch,
        now_ms: u64,
        is_busy: impl Fn(usize) -> bool,
    ) -> Option<Tx<'a>> {
        let index = partition_of(hash);
        let guard = match self.cells[index].try_lock(index) {
            Some(guard) => guard,
            None => self.wait_for_one(index, is_busy)?,
        };
        Some(Tx::new(self, Locked::One(index as u16, guard), scratch, now_ms))
    }

    #[cold]
    fn wait_for_one(
        &self,
        index: usize,
        is_busy: impl Fn(usize) -> bool,
    ) -> Option<PartitionGuard<'_>> {
        self.cells[index].lock_unless_busy(index, &is_busy)
    }

    /// As `begin` on one partition; `None` if another thread holds it.
    pub(crate) fn try_begin<'a>(
        &'a self,
        partition: usize,
        scratch: &'a mut Scratch,
        now_ms: u64,
    ) -> Option<Tx<'a>> {
        let guard = self.cells[partition].try_lock(partition)?;
        Some(Tx::new(self, Locked::One(partition as u16, guard), scratch, now_ms))
    }

    pub(crate) fn lock_unless_busy(
        &self,
        locks: Locks<'_>,
        is_busy: impl Fn(usize) -> bool,
    ) -> Option<Locked<'_>> {
        let lock = |index: usize| self.cells[index].lock_unless_busy(index, &is_busy);
        Some(match locks {
            Locks::None => Locked::Many(Vec::new()),
            Locks::One(hash) => {
                let index = partition_of(hash);
                Locked::One(index as u16, lock(index)?)
            }
            Locks::Partition(index) => Locked::One(index as u16, lock(index)?),
            Locks::Keys(hashes) => {
                let guard = |index| Some((index as u16, lock(index)?));
                let guards: Option<_> = PartitionSet::of(hashes).into_iter().map(guard).collect();
                Locked::of_many(guards?)
            }
            Locks::All => Locked::All((0..PARTITIONS).map(lock).collect::<Option<_>>()?),
        })
    }

    /// The lock of a partition.
    pub(crate) fn cell(&self, partition: usize) -> &PartitionLock {
        &self.cells[partition]
    }

    /// A partition, unless another thread holds it.
    pub(crate) fn try_lock(&self, partition: usize) -> Option<PartitionGuard<'_>> {
        self.cells[partition].try_lock(partition)
    }

    #[inline(always)]
    pub(crate) fn lock(&self, locks: Locks<'_>) -> Locked<'_> {
        match locks {
            Locks::One(hash) => self.lock_one(partition_of(hash)),
            Locks::Partition(index) => self.lock_one(index),
            Locks::Keys(hashes) => self.lock_many(hashes),
            Locks::All => self.lock_all(),
            Locks::None => Locked::Many(Vec::new()),
        }
    }

    #[inline(never)]
    fn lock_all(&self) -> Locked<'_> {
        Locked::All(self.cells.iter().enumerate().map(|(index, cell)| cell.lock(index)).collect())
    }

    #[inline(never)]
    fn lock_many(&self, hashes: &[KeyHash]) -> Locked<'_> {
        let mut guards = Vec::with_capacity(hashes.len().min(PARTITIONS));
        for index in PartitionSet::of(hashes) {
            guards.push((index as u16, self.cells[index].lock(index)));
        }
        Locked::of_many(guards)
    }

    #[inline(always)]
    fn lock_one(&self, index: usize) -> Locked<'_> {
        Locked::One(index as u16, self.cells[index].lock(index))
    }
}

/// The partitions that a transaction needs.
#[derive(Clone, Copy, Debug)]
pub enum Locks<'a> {
    /// None: it only reads shared data.
    None,
    /// The partition of one key.
    One(KeyHash),
    /// The partitions of several keys, in any order and with repeats.
    Keys(&'a [KeyHash]),
    /// One partition by number.
    Partition(usize),
    /// All of them.
    All,
}
