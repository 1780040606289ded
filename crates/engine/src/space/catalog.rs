//! The catalog of spaces, and each space's cell.

use super::error::no_such_space;
use super::foreign_keys::Links;
use super::function::index_function;
use super::open_transactions::{OpenTransactions, TransactionLimits};
use super::stillness::{DefinitionTurn, Stillness};
use crate::noting::Noting;
use crate::watch::{WatchFlag, Watched};
use arc_swap::{ArcSwap, Guard};
use ladon_platform::lock_order::{self, Place};
use ladon_record::{Lsn, SpaceId};
use ladon_space::{
    BoxError, ErrorCode, IndexDef, SequenceDef, Sought, Space, SpaceDef, SpaceSequence, fields,
};
use ladon_system_spaces as system;
use parking_lot::{ArcMutexGuard, Mutex, MutexGuard, RawMutex};
use smallvec::SmallVec;
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, OnceLock};

/// The schema's version of a new node, as of a new Tarantool. To connectors, 0 means that they do
/// not know it: some then wait for another one.
const FIRST_VERSION: u64 = 78;

/// All spaces of a node. The system spaces come into being at the first look.
pub struct Spaces {
    /// Unlike that of all others in this process.
    number: u64,
    /// Of the hashes of hash indexes.
    hash_seed: u64,
    held: OnceLock<Held>,
    /// Bytes of the tuples and their indexes, and of definitions that are being prepared.
    bytes: Arc<AtomicI64>,
    pub(crate) transactions: Arc<OpenTransactions>,
    /// What somebody above made of the users and their rights, and of which version.
    cached: Mutex<Option<(u64, Arc<dyn Any + Send + Sync>)>>,
    /// Some space is mounted: most nodes never look further.
    has_mounts: AtomicBool,
    /// Testing only: recovery loses the tuples of a space whose primary key changes in the log,
    /// which the simulator must notice.
    pub lost_tuples_canary: AtomicBool,
    /// Testing only: recovery leaves out what the log says of revocations, which the simulator must
    /// notice.
    pub lost_revokes_canary: AtomicBool,
}

struct Held {
    catalog: ArcSwap<Catalog>,
    /// The catalog's version, so that who keeps a catalog sees that it has changed.
    version: AtomicU64,
    changing: Mutex<()>,
    /// Counts changes of users and privileges.
    access_version: AtomicU64,
    /// The version of users and privileges at which the user of a number was dropped at last.
    dropped_users: Mutex<HashMap<u32, u64>>,
    /// Whether there are such ones.
    has_dropped_users: AtomicBool,
}

/// The spaces at one moment.
#[derive(Clone, Default)]
pub struct Catalog {
    /// Counts changes of definitions: what IPROTO calls the schema's version.
    pub version: u64,
    /// The LSN of the last change of a definition: what shows the version, or what is defined,
    /// depends on it. Zero if it is from before the start.
    pub changed: Lsn,
    by_id: BTreeMap<SpaceId, SpaceCell>,
    by_name: HashMap<Box<str>, SpaceId>,
    owners: HashMap<SpaceId, u32>,
    sequences: BTreeMap<u32, SequenceDef>,
    /// By space, the sequence that fills in a field.
    fillers: BTreeMap<SpaceId, SpaceSequence>,
    /// Foreign keys between spaces.
    pub(super) links: Links,
    /// By prefix; none is a prefix of another.
    mounts: Vec<Mount>,
}

/// A space whose tuples are also hashes, under keys with a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// What their keys begin with.
    pub prefix: Box<[u8]>,
    /// The space's number.
    pub space: SpaceId,
    /// The space's name.
    pub name: Box<str>,
}

/// A space behind its lock.
#[derive(Clone)]
pub struct SpaceCell {
    id: SpaceId,
    stillness: Arc<Stillness>,
    /// What [`Content::has_triggers`] is, for those who have not locked it.
    has_triggers: Arc<AtomicBool>,
    content: Arc<Mutex<Content>>,
}

pub(crate) struct Content {
    pub(crate) space: Space,
    /// The LSN of the last change.
    pub(crate) changed: Lsn,
    /// Counts changes, those of temporary spaces among them, and those that were taken back.
    pub(crate) version: u64,
    /// It is in the catalog no more.
    pub(crate) gone: bool,
    /// The version of the catalog in which a foreign key has bound it to another space at last: who
    /// changes it by an older one does not know all that it has to check.
    pub(crate) bound_at: u64,
    /// Of a mounted space, the watched keys.
    pub(crate) watched: Watched,
    /// Notes what an index that is being built has to follow.
    pub(crate) noting: Noting,
    /// A program has functions that are called when tuples change: nobody else changes them.
    pub(crate) has_triggers: bool,
}

/// A locked space.
pub(crate) struct SpaceGuard<'a> {
    content: MutexGuard<'a, Content>,
    /// Dropped after the lock.
    _held: lock_order::Held,
}

impl Deref for SpaceGuard<'_> {
    type Target = Content;

    fn deref(&self) -> &Content {
        &self.content
    }
}

impl DerefMut for SpaceGuard<'_> {
    fn deref_mut(&mut self) -> &mut Content {
        &mut self.content
    }
}

/// A locked space that its guard keeps.
pub(super) struct LongSpaceGuard {
    content: ArcMutexGuard<RawMutex, Content>,
    /// Dropped after the lock.
    _held: lock_order::Held,
}

impl Deref for LongSpaceGuard {
    type Target = Content;

    fn deref(&self) -> &Content {
        &self.content
    }
}

impl DerefMut for LongSpaceGuard {
    fn deref_mut(&mut self) -> &mut Content {
        &mut self.content
    }
}

/// The catalog's lock.
pub(crate) struct Changing<'a> {
    _guard: MutexGuard<'a, ()>,
    _held: lock_order::Held,
}

impl SpaceCell {
    pub(crate) fn new(space: Space) -> SpaceCell {
        let id = space.def().id;
        let watched = Watched::default();
        let (changed, version, gone, noting) = (Lsn::ZERO, 0, false, Noting::default());
        let content = Content {
            space,
            changed,
            version,
            gone,
            bound_at: 0,
            watched,
            noting,
            has_triggers: false,
        };
        let content = Arc::new(Mutex::new(content));
        SpaceCell { id, stillness: Arc::default(), has_triggers: Arc::default(), content }
    }

    /// Asks those who would change the space to wait a moment. Nothing depends on whether they do
    /// but how soon who asks succeeds.
    pub(crate) fn keep_still(&self, now_ms: u64) {
        self.stillness.hold_writers(now_ms);
    }

    pub(crate) fn end_stillness(&self) {
        self.stillness.release_writers();
    }

    /// Whether somebody has asked those who would change the space to wait.
    #[inline]
    pub fn is_kept_still(&self, now_ms: u64) -> bool {
        self.stillness.holds_writers(now_ms)
    }

    /// A place at the end of those who define something of the space that takes long.
    pub fn queue_definition(&self) -> DefinitionTurn {
        DefinitionTurn::queue(&self.stillness)
    }

    /// Asks those who would change a definition of the space to wait a moment, but for `owner`.
    /// Returns whether nobody else has.
    pub fn claim(&self, owner: u64, now_ms: u64) -> bool {
        self.stillness.claim(owner, now_ms)
    }

    /// Whether somebody other than `owner` has asked those who would change a definition to wait.
    pub fn is_claimed_beside(&self, owner: u64, now_ms: u64) -> bool {
        self.stillness.is_claimed_beside(owner, now_ms)
    }

    /// Those who wait for a claim of `owner`, if there is one, may go on.
    pub fn end_claim(&self, owner: u64) {
        self.stillness.end_claim(owner);
    }

    /// Whether a program has functions that are called when tuples change. Who writes is refused
    /// then, under the lock, unless it is the program, which calls them. From now on; transactions
    /// that are open find it at their commits.
    pub fn set_triggers(&self, has_triggers: bool) {
        let mut content = self.lock();
        if content.has_triggers != has_triggers {
            content.has_triggers = has_triggers;
            content.version += 1;
            self.has_triggers.store(has_triggers, Relaxed);
        }
    }

    /// As it was a moment ago.
    #[inline]
    pub fn has_triggers(&self) -> bool {
        self.has_triggers.load(Relaxed)
    }

    /// The space's number.
    pub fn id(&self) -> SpaceId {
        self.id
    }

    /// As [`Space::left_behind`], unless somebody holds the space.
    pub(crate) fn left_behind(&self) -> Option<u64> {
        self.content.try_lock().map(|content| content.space.left_behind())
    }

    /// Whether somebody has locked the space at the moment.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.content.is_locked()
    }

    /// Begins to fetch what finding these needs, unless somebody holds the space.
    pub fn fetch_ahead(&self, index: u32, sought: &[Sought<'_>]) {
        if let Some(content) = self.content.try_lock() {
            content.space.fetch_ahead(index, sought);
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> SpaceGuard<'_> {
        let place = Place::space(self.id);
        lock_order::check(place);
        let content = self.content.lock();
        SpaceGuard { content, _held: lock_order::taken(place) }
    }

    /// `None` if another thread holds the lock. This does not wait, so it may be out of order.
    fn try_lock(&self) -> Option<SpaceGuard<'_>> {
        let content = self.content.try_lock()?;
        Some(SpaceGuard { content, _held: lock_order::taken(Place::space(self.id)) })
    }

    /// As `lock`, for longer than the catalog is looked at.
    pub(super) fn lock_for_long(&self) -> LongSpaceGuard {
        let place = Place::space(self.id);
        lock_order::check(place);
        let content = self.content.lock_arc();
        LongSpaceGuard { content, _held: lock_order::taken(place) }
    }
}

impl Catalog {
    /// The space of this number.
    #[inline]
    pub fn get(&self, id: SpaceId) -> Option<&SpaceCell> {
        self.by_id.get(&id)
    }

    /// Locks a space.
    ///
    /// # Errors
    /// If there is no space of this number.
    #[inline]
    pub(super) fn lock(&self, id: SpaceId) -> Result<SpaceGuard<'_>, BoxError> {
        let none = || no_such_space(id);
        let guard = self.get(id).ok_or_else(none)?.lock();
        if guard.gone { Err(none()) } else { Ok(guard) }
    }

    /// The spaces whose locks a statement takes that changes these: those that foreign keys bind to them
    /// as well, in order.
    pub fn changed_with(&self, ids: &[SpaceId]) -> SmallVec<[SpaceId; 4]> {
        let linked = ids.iter().filter_map(|id| self.linked(*id)).flatten();
        let mut all: SmallVec<[SpaceId; 4]> = linked.chain(ids).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// As `changed_with`, of statements that put tuples: with that of the numbers, if a sequence gives
    /// some to one of the spaces.
    pub fn put_with(&self, ids: &[SpaceId]) -> SmallVec<[SpaceId; 4]> {
        let mut all = self.changed_with(ids);
        if all.iter().any(|&id| self.filler(id).is_some()) {
            all.push(system::SEQUENCE_DATA);
            all.sort_unstable();
            all.dedup();
        }
        all
    }

    /// As `lock`, without a wait: `None` if another thread holds the lock.
    pub(super) fn try_lock(&self, id: SpaceId) -> Result<Option<SpaceGuard<'_>>, BoxError> {
        let none = || no_such_space(id);
        let guard = self.get(id).ok_or_else(none)?.try_lock();
        if guard.as_ref().is_some_and(|guard| guard.gone) { Err(none()) } else { Ok(guard) }
    }

    /// Reads a space, if there is one of this number. Returns the LSN that a reply depends on as
    /// well, also one about an error.
    #[inline]
    pub fn read<T>(
        &self,
        id: SpaceId,
        read: impl FnOnce(&Space) -> Result<T, BoxError>,
    ) -> (Result<T, BoxError>, Lsn) {
        match self.lock(id) {
            Ok(guard) => (read(&guard.space), guard.changed),
            Err(error) => (Err(error), Lsn::ZERO),
        }
    }

    /// The number of the space of this name.
    pub fn named(&self, name: &str) -> Option<SpaceId> {
        self.by_name.get(name).copied()
    }

    /// The user that owns a space.
    pub fn owner(&self, id: SpaceId) -> Option<u32> {
        self.owners.get(&id).copied()
    }

    /// All spaces, by number.
    pub fn cells(&self) -> impl Iterator<Item = &SpaceCell> {
        self.by_id.values()
    }

    /// The sequence that fills in a field of a space.
    #[inline]
    pub fn filler(&self, space: SpaceId) -> Option<(SpaceSequence, &SequenceDef)> {
        let filler = self.fillers.get(&space)?;
        Some((*filler, self.sequences.get(&filler.sequence)?))
    }

    pub(super) fn sequence(&self, id: u32) -> Option<&SequenceDef> {
        self.sequences.get(&id)
    }

    pub(super) fn is_filler(&self, sequence: u32) -> bool {
        self.fillers.values().any(|filler| filler.sequence == sequence)
    }

    /// Whether a sequence was made with an index, and is that one's alone.
    pub(super) fn is_generated(&self, sequence: u32) -> bool {
        self.fillers.values().any(|filler| filler.sequence == sequence && filler.is_generated)
    }

    pub(super) fn set_sequence(&mut self, id: u32, def: Option<SequenceDef>) {
        match def {
            Some(def) => drop(self.sequences.insert(id, def)),
            None => drop(self.sequences.remove(&id)),
        }
    }

    pub(super) fn set_filler(&mut self, space: SpaceId, filler: Option<SpaceSequence>) {
        match filler {
            Some(filler) => drop(self.fillers.insert(space, filler)),
            None => drop(self.fillers.remove(&space)),
        }
    }

    /// Whether foreign keys name tuples of a space.
    pub fn names(&self, id: SpaceId) -> bool {
        self.links.is_named_at_all(id)
    }

    /// Whether foreign keys do something if one of its tuples is deleted: an action is not
    /// `no_action`.
    pub fn watches(&self, id: SpaceId) -> bool {
        self.links.is_watched(id)
    }

    /// The space and those that a write of it locks as well, in order, if there are foreign keys.
    #[inline]
    pub(crate) fn linked(&self, id: SpaceId) -> Option<&[SpaceId]> {
        self.links.of(id)
    }

    /// The mounted spaces, by prefix.
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// The mounted space that a key belongs to.
    pub fn mount_of(&self, key: &[u8]) -> Option<&Mount> {
        // No prefix begins another one, so the last one that is not behind the key is the only one.
        let after = self.mounts.partition_point(|mount| &*mount.prefix <= key);
        let mount = self.mounts.get(after.checked_sub(1)?)?;
        key.starts_with(&mount.prefix).then_some(mount)
    }

    /// The mount of another space that a prefix could not be told apart from.
    pub(super) fn overlapping(&self, id: SpaceId, prefix: &[u8]) -> Option<&Mount> {
        let overlaps = |of: &[u8]| of.starts_with(prefix) || prefix.starts_with(of);
        self.mounts.iter().find(|mount| mount.space != id && overlaps(&mount.prefix))
    }

    fn set_mount(&mut self, def: &SpaceDef) {
        self.mounts.retain(|mount| mount.space != def.id);
        if let Some(prefix) = &def.resp_prefix {
            let at = self.mounts.partition_point(|mount| mount.prefix < *prefix);
            self.mounts.insert(
                at,
                Mount { prefix: prefix.clone(), space: def.id, name: def.name.as_str().into() },
            );
        }
    }

    pub(crate) fn add(&mut self, space: Space) {
        self.links.set(space.def().id, Some(space.def()));
        self.set_mount(space.def());
        self.owners.insert(space.def().id, space.def().owner);
        self.by_name.insert(space.def().name.as_str().into(), space.def().id);
        self.by_id.insert(space.def().id, SpaceCell::new(space));
    }

    /// A space has got another definition.
    pub(crate) fn alter(&mut self, before: &SpaceDef, now: &SpaceDef) {
        if self.by_name.get(&*before.name) == Some(&now.id) {
            self.by_name.remove(&*before.name);
        }
        self.by_name.insert(now.name.as_str().into(), now.id);
        self.owners.insert(now.id, now.owner);
        self.set_mount(now);
    }

    pub(crate) fn remove(&mut self, def: &SpaceDef) {
        self.links.set(def.id, None);
        self.by_id.remove(&def.id);
        self.owners.remove(&def.id);
        self.mounts.retain(|mount| mount.space != def.id);
        if self.by_name.get(&*def.name) == Some(&def.id) {
            self.by_name.remove(&*def.name);
        }
    }
}

impl Spaces {
    pub(crate) fn new(hash_seed: u64) -> Spaces {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Spaces {
            number: NEXT.fetch_add(1, Relaxed),
            hash_seed,
            held: OnceLock::new(),
            bytes: Arc::default(),
            transactions: Arc::default(),
            cached: Mutex::default(),
            has_mounts: AtomicBool::new(false),
            lost_tuples_canary: AtomicBool::new(false),
            lost_revokes_canary: AtomicBool::new(false),
        }
    }

    /// An empty space.
    pub(super) fn new_space(&self, def: SpaceDef) -> Space {
        let check = ladon_sql::tuple_checks(&def);
        let mut space = Space::new(def);
        space.set_tuple_check(check);
        space.set_hash_seed(self.hash_seed);
        space
    }

    fn held(&self) -> &Held {
        self.held.get_or_init(|| {
            let mut catalog =
                bootstrap(self).expect("the system spaces' tuples fit their definitions");
            catalog.version = FIRST_VERSION;
            let bytes: usize = catalog.cells().map(|cell| cell.lock().space.bytes()).sum();
            self.bytes.fetch_add(bytes as i64, Relaxed);
            Held {
                version: AtomicU64::new(catalog.version),
                catalog: ArcSwap::from_pointee(catalog),
                changing: Mutex::new(()),
                access_version: AtomicU64::new(0),
                dropped_users: Mutex::default(),
                has_dropped_users: AtomicBool::new(false),
            }
        })
    }

    /// The spaces at this moment, to be kept.
    pub fn catalog_to_keep(&self) -> Arc<Catalog> {
        self.held().catalog.load_full()
    }

    /// A client watches a key of a mounted space no more. It may be that neither is there any more.
    pub fn unwatch(&self, space: SpaceId, key: &[u8], flag: &Arc<WatchFlag>) {
        if let Some(cell) = self.catalog().get(space) {
            cell.lock().watched.remove(key, flag);
        }
    }

    /// Whether anybody has looked at the spaces so far. Otherwise they are as in a new node.
    pub(crate) fn are_in_use(&self) -> bool {
        self.held.get().is_some()
    }

    /// Whether some space is mounted under a prefix of keys.
    #[inline(always)]
    pub fn has_mounts(&self) -> bool {
        self.has_mounts.load(Relaxed)
    }

    /// The spaces at this moment.
    #[inline]
    pub fn catalog(&self) -> Guard<Arc<Catalog>> {
        self.held().catalog.load()
    }

    /// A number that no others have in this process: what is known of definitions is known by it and
    /// their version.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The version of the catalog at this moment.
    #[inline]
    pub fn version(&self) -> u64 {
        self.held().version.load(Acquire)
    }

    /// Counts changes of users and privileges.
    #[inline]
    pub fn access_version(&self) -> u64 {
        self.held().access_version.load(Relaxed)
    }

    /// What was made of the users and their rights of this version, if it was.
    pub fn cached<T: Any + Send + Sync>(&self, version: u64) -> Option<Arc<T>> {
        let cached = self.cached.lock();
        let (_, made) = cached.as_ref().filter(|(of, _)| *of == version)?;
        Arc::clone(made).downcast().ok()
    }

    /// Keeps what was made of the users and their rights.
    pub fn cache<T: Any + Send + Sync>(&self, version: u64, made: Arc<T>) {
        *self.cached.lock() = Some((version, made));
    }

    /// Whether the user of this number was dropped after this version of users and privileges.
    pub fn was_dropped_since(&self, user: u32, version: u64) -> bool {
        self.held().dropped_users.lock().get(&user).is_some_and(|dropped| *dropped > version)
    }

    /// The version at which the last user of this number was dropped; 0 if none was.
    pub fn user_since(&self, user: u32) -> u64 {
        self.login_since(user, u64::MAX)
    }

    /// As [`Spaces::user_since`], for who has logged in at a version; 0 if that user was dropped since, which
    /// no user has who is there then.
    pub fn login_since(&self, user: u32, version: u64) -> u64 {
        let held = self.held();
        if !held.has_dropped_users.load(Acquire) {
            return 0;
        }
        let dropped = held.dropped_users.lock().get(&user).copied();
        dropped.filter(|dropped| *dropped <= version).unwrap_or(0)
    }

    /// Users or privileges have changed; perhaps a user was dropped.
    pub(crate) fn count_access_change(&self, dropped: Option<u32>) {
        let held = self.held();
        let mut users = held.dropped_users.lock();
        held.has_dropped_users.fetch_or(dropped.is_some(), Release);
        let version = held.access_version.fetch_add(1, Relaxed) + 1;
        users.extend(dropped.map(|user| (user, version)));
    }

    pub(crate) fn lock_catalog(&self) -> Changing<'_> {
        lock_order::check(Place::CATALOG);
        let guard = self.held().changing.lock();
        Changing { _guard: guard, _held: lock_order::taken(Place::CATALOG) }
    }

    /// Replaces the catalog by a changed copy; the change is in the log at `lsn`.
    pub(crate) fn change_catalog(
        &self,
        _: &Changing<'_>,
        lsn: Lsn,
        change: impl FnOnce(&mut Catalog),
    ) {
        let mut next = Catalog::clone(&self.held().catalog.load());
        change(&mut next);
        next.version += 1;
        next.changed = lsn;
        let has_mounts = !next.mounts.is_empty();
        let version = next.version;
        self.held().catalog.store(Arc::new(next));
        self.has_mounts.store(has_mounts, Relaxed);
        self.held().version.store(version, Release);
    }

    /// The counter of bytes, for what is freed elsewhere.
    pub(crate) fn bytes_counter(&self) -> Arc<AtomicI64> {
        Arc::clone(&self.bytes)
    }

    /// Bytes that open transactions hold: what they have written, and what spaces have left to their
    /// copies, as of the last [`Spaces::look_at_transactions`].
    pub fn transaction_bytes(&self) -> u64 {
        self.transactions.bytes()
    }

    /// Whether an open transaction was asked to end.
    #[inline]
    pub fn asks_transactions_to_end(&self) -> bool {
        self.transactions.asks_some_to_end()
    }

    /// Looks what spaces have left to open transactions, and asks those opened first to end while
    /// that is too much; returns how many.
    pub fn look_at_transactions(&self, limits: TransactionLimits) -> usize {
        self.transactions.look(limits)
    }

    /// Bytes of the tuples and their indexes, and of definitions that are being prepared.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed).max(0) as u64
    }

    pub(crate) fn add_bytes(&self, delta: i64) {
        if delta != 0 {
            self.bytes.fetch_add(delta, Relaxed);
        }
    }
}

/// System spaces of other engines, which have no tuples here.
const OF_OTHER_ENGINES: [SpaceId; 2] = [system::VINYL_DEFERRED_DELETE, system::SESSION_SETTINGS];

/// The system spaces of a new node.
fn bootstrap(spaces: &Spaces) -> Result<Catalog, BoxError> {
    let mut catalog = Catalog::default();
    let tuples = system::bootstrap();
    let is_of_another = |id| OF_OTHER_ENGINES.contains(&id);
    let of = |space| tuples.iter().filter(move |(of, _)| *of == space).map(|(_, tuple)| tuple);
    for tuple in of(system::SPACE) {
        if !is_of_another(described_space(tuple)?) {
            catalog.add(spaces.new_space(SpaceDef::from_tuple(tuple)?));
        }
    }
    for tuple in of(system::INDEX) {
        if !is_of_another(described_space(tuple)?) {
            define_index(&catalog, tuple)?;
        }
    }
    for (space, tuple) in &tuples {
        if let Some(cell) = catalog.get(*space) {
            cell.lock().space.insert(tuple)?;
        }
    }
    Ok(catalog)
}

/// The space that a tuple of `_space`, `_index` or `_truncate` is about: its first field.
///
/// # Errors
/// If that is no space's number.
pub fn described_space(tuple: &[u8]) -> Result<SpaceId, BoxError> {
    let mut field = fields::field(tuple, 0).unwrap_or_default();
    let number = ladon_msgpack::read_uint(&mut field).ok();
    let id = number.and_then(|number| SpaceId::try_from(number).ok());
    // The format of these spaces demands it.
    id.ok_or_else(|| {
        BoxError::new(ErrorCode::ILLEGAL_PARAMS, "the first field is no space's number")
    })
}

/// Creates the index that a tuple of `_index` describes.
pub(crate) fn define_index(catalog: &Catalog, tuple: &[u8]) -> Result<(), BoxError> {
    let id = described_space(tuple)?;
    let function = index_function(catalog, tuple)?;
    let cell = catalog.get(id).ok_or_else(|| no_such_space(id))?;
    let mut held = cell.lock();
    if let Some((id, function)) = function {
        held.space.set_function(id, function);
    }
    let def = IndexDef::from_tuple(tuple, held.space.def())?;
    held.space.create_index(def)
}
