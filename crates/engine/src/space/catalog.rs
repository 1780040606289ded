//! The catalog of spaces, and each space's cell.

use super::error::no_such_space;
use arc_swap::{ArcSwap, Guard};
use ladon_model::{Lsn, SpaceId};
use ladon_platform::lock_order::{self, Place};
use ladon_space::{
    BoxError, ErrorCode, IndexDef, SequenceDef, Space, SpaceDef, SpaceSequence, fields,
};
use ladon_system_spaces as system;
use parking_lot::{Mutex, MutexGuard};
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// The schema's version of a new node, as of a new Tarantool. To connectors, 0 means that they do not
/// know it: some then wait for another one.
const FIRST_VERSION: u64 = 78;

/// All spaces of a node. The system spaces come into being at the first look.
pub struct Spaces {
    /// Of the hashes of hash indexes.
    hash_seed: u64,
    held: OnceLock<Held>,
    /// Bytes of the tuples and their indexes, and of what open transactions hold.
    bytes: Arc<AtomicI64>,
    /// What somebody above made of the users and their rights, and of which version.
    cached: Mutex<Option<(u64, Arc<dyn Any + Send + Sync>)>>,
}

struct Held {
    catalog: ArcSwap<Catalog>,
    changing: Mutex<()>,
    /// Counts changes of users and privileges.
    access_version: AtomicU64,
}

/// The spaces at one moment.
#[derive(Clone, Default)]
pub struct Catalog {
    /// Counts changes of definitions: what IPROTO calls the schema's version.
    pub version: u64,
    by_id: BTreeMap<SpaceId, Arc<SpaceCell>>,
    by_name: HashMap<Box<str>, SpaceId>,
    sequences: BTreeMap<u32, SequenceDef>,
    /// By space, the sequence that fills in a field.
    fillers: BTreeMap<SpaceId, SpaceSequence>,
}

/// A space behind its lock.
pub struct SpaceCell {
    id: SpaceId,
    content: Mutex<Content>,
}

pub(crate) struct Content {
    pub(crate) space: Space,
    /// The LSN of the last change.
    pub(crate) changed: Lsn,
    /// Counts changes, those of temporary spaces among them, and those that were taken back.
    pub(crate) version: u64,
    /// It is in the catalog no more.
    pub(crate) gone: bool,
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

/// The catalog's lock.
pub(crate) struct Changing<'a> {
    _guard: MutexGuard<'a, ()>,
    _held: lock_order::Held,
}

impl SpaceCell {
    pub(crate) fn new(space: Space) -> SpaceCell {
        let id = space.def().id;
        let content = Content { space, changed: Lsn::ZERO, version: 0, gone: false };
        SpaceCell { id, content: Mutex::new(content) }
    }

    /// The space's number.
    pub fn id(&self) -> SpaceId {
        self.id
    }

    fn is_locked(&self) -> bool {
        self.content.is_locked()
    }

    pub(crate) fn lock(&self) -> SpaceGuard<'_> {
        let place = Place::space(self.id);
        lock_order::check(place);
        let content = self.content.lock();
        SpaceGuard { content, _held: lock_order::taken(place) }
    }
}

impl Catalog {
    /// The space of this number.
    #[inline]
    pub fn get(&self, id: SpaceId) -> Option<&SpaceCell> {
        self.by_id.get(&id).map(|cell| &**cell)
    }

    /// The number of the space of this name.
    pub fn named(&self, name: &str) -> Option<SpaceId> {
        self.by_name.get(name).copied()
    }

    /// All spaces, by number.
    pub fn cells(&self) -> impl Iterator<Item = &SpaceCell> {
        self.by_id.values().map(|cell| &**cell)
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

    pub(crate) fn add(&mut self, space: Space) {
        self.by_name.insert(space.def().name.as_str().into(), space.def().id);
        self.by_id.insert(space.def().id, Arc::new(SpaceCell::new(space)));
    }

    pub(crate) fn rename(&mut self, id: SpaceId, before: &str, now: &str) {
        if self.by_name.get(before) == Some(&id) {
            self.by_name.remove(before);
        }
        self.by_name.insert(now.into(), id);
    }

    pub(crate) fn remove(&mut self, id: SpaceId, name: &str) {
        self.by_id.remove(&id);
        if self.by_name.get(name) == Some(&id) {
            self.by_name.remove(name);
        }
    }
}

impl Spaces {
    pub(crate) fn new(hash_seed: u64) -> Spaces {
        Spaces { hash_seed, held: OnceLock::new(), bytes: Arc::default(), cached: Mutex::default() }
    }

    /// An empty space.
    pub(super) fn new_space(&self, def: SpaceDef) -> Space {
        let mut space = Space::new(def);
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
                catalog: ArcSwap::from_pointee(catalog),
                changing: Mutex::new(()),
                access_version: AtomicU64::new(0),
            }
        })
    }

    /// Whether anybody has looked at the spaces so far. Otherwise they are as in a new node.
    pub(crate) fn are_in_use(&self) -> bool {
        self.held.get().is_some()
    }

    /// The spaces at this moment.
    #[inline]
    pub fn catalog(&self) -> Guard<Arc<Catalog>> {
        self.held().catalog.load()
    }

    /// Whether somebody has locked this space at the moment.
    #[inline]
    pub fn is_locked(&self, id: SpaceId) -> bool {
        self.catalog().get(id).is_some_and(SpaceCell::is_locked)
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

    pub(crate) fn count_access_change(&self) {
        self.held().access_version.fetch_add(1, Relaxed);
    }

    pub(crate) fn lock_catalog(&self) -> Changing<'_> {
        lock_order::check(Place::CATALOG);
        let guard = self.held().changing.lock();
        Changing { _guard: guard, _held: lock_order::taken(Place::CATALOG) }
    }

    /// Replaces the catalog by a changed copy.
    pub(crate) fn change_catalog(&self, _: &Changing<'_>, change: impl FnOnce(&mut Catalog)) {
        let mut next = Catalog::clone(&self.held().catalog.load());
        change(&mut next);
        next.version += 1;
        self.held().catalog.store(Arc::new(next));
    }

    /// The counter of bytes, for what is freed elsewhere.
    pub(crate) fn bytes_counter(&self) -> Arc<AtomicI64> {
        Arc::clone(&self.bytes)
    }

    /// Bytes of the tuples and their indexes, and of what open transactions hold.
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
pub(crate) fn described_space(tuple: &[u8]) -> Result<SpaceId, BoxError> {
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
    let cell = catalog.get(id).ok_or_else(|| no_such_space(id))?;
    let mut held = cell.lock();
    let def = IndexDef::from_tuple(tuple, held.space.def())?;
    held.space.create_index(def)
}
