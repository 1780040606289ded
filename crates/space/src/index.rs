//! An index: tuples in the order of their keys (TREE, and BITSET, which selects otherwise), by the
//! hash of their keys (HASH), or by boxes (RTREE).

use crate::collation::Collation;
use crate::definition::{IndexDef, IndexKind};
use crate::entry::Entry;
use crate::error::BoxError;
use crate::functional::Made;
use crate::hash_table::SegmentedTable;
use crate::hint_window::Side;
use crate::key::{Key, KeyDef};
use crate::key_part::Part;
use crate::looked::Found;
use crate::rtree::Rtree;
use crate::rtree::bounds::{self, Bounds};
use crate::tree::{Path, Tree};
use crate::tuple::Tuple;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use smallvec::SmallVec;

/// Lengths at which a growing tree looks what its hints should show. All of them are short, because
/// the hints of all tuples change.
pub(crate) const REHINTED_AT: [u64; 4] = [64, 256, 1024, 4096];

/// With more strings on one side of most, their hints are not changed: that would take too long.
const SIDE_MAX: u64 = 4 * REHINTED_AT[3];

#[derive(Clone)]
pub(crate) enum Store {
    Tree(Tree<Entry>),
    Hash(SegmentedTable),
    Rtree(Rtree),
}

/// Where a tuple was found in an index, if the index can say it.
pub(crate) struct Place(Option<Path>);

/// What will be looked for soon, in MessagePack. Nobody has checked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought<'a> {
    /// A key of an index.
    Key(&'a [u8]),
    /// A tuple that will be written, or the one with its key.
    Tuple(&'a [u8]),
}

/// An index of a space. A clone is quickly made, and keeps the tuples as they were.
#[derive(Clone)]
pub struct Index {
    pub(crate) def: IndexDef,
    pub(crate) key: KeyDef,
    pub(crate) store: Store,
    /// Of a functional index, which has entries in place of tuples.
    pub(crate) made: Option<Made>,
    secrets: RapidSecrets,
    /// How many tuples were added whose strings come before most, and after them.
    added_beside: [u64; 2],
}

impl Index {
    /// An index without tuples; `primary` are the parts of the primary key, none for the primary
    /// index.
    pub(crate) fn new(def: IndexDef, primary: &[Part], seed: u64, made: Option<Made>) -> Index {
        let mut own = def.parts.clone();
        if def.kind == IndexKind::Bitset {
            // Bits are those of the bytes.
            own.iter_mut().for_each(|part| part.collation = Collation::None);
        }
        let in_entry = made.as_ref().map(|_| Made::parts_in_entry(&own, primary));
        let key = KeyDef::new(&own, in_entry.as_deref().unwrap_or(primary), def.is_unique);
        let store = Index::empty_store(&def);
        let secrets = RapidSecrets::seed(seed);
        Index { def, key, store, made, secrets, added_beside: [0; 2] }
    }

    fn empty_store(def: &IndexDef) -> Store {
        match def.kind {
            IndexKind::Tree | IndexKind::Bitset => Store::Tree(Tree::new()),
            IndexKind::Hash => Store::Hash(SegmentedTable::new()),
            IndexKind::Rtree => Store::Rtree(Rtree::new(def.dimensions())),
        }
    }

    /// Checks that a tuple has a box, if the index needs one.
    ///
    /// # Errors
    /// Tarantool's.
    #[inline]
    pub(crate) fn check_box(&self, tuple: &[u8]) -> Result<(), BoxError> {
        match self.def.kind {
            IndexKind::Rtree => self.box_of(tuple).map(|_| ()),
            _ => Ok(()),
        }
    }

    pub(crate) fn box_of(&self, tuple: &[u8]) -> Result<Bounds, BoxError> {
        let bounds = bounds::of_field(self.key.first_value(tuple), self.def.dimensions())?;
        Ok(bounds::with_hash(bounds, rapidhash_v3_seeded(tuple, &self.secrets)))
    }

    /// What the index was defined as.
    pub fn def(&self) -> &IndexDef {
        &self.def
    }

    /// The order of the index.
    pub fn key_def(&self) -> &KeyDef {
        &self.key
    }

    /// How many tuples it has.
    pub fn len(&self) -> u64 {
        match &self.store {
            Store::Tree(tree) => tree.len(),
            Store::Hash(table) => table.len(),
            Store::Rtree(tree) => tree.len(),
        }
    }

    /// Whether a tuple may have several keys.
    pub fn is_multikey(&self) -> bool {
        self.key.is_multikey()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory, without the tuples.
    pub fn bytes(&self) -> usize {
        let of_entries = self.made.as_ref().map_or(0, |made| made.bytes);
        of_entries
            + match &self.store {
                Store::Tree(tree) => tree.bytes(),
                Store::Hash(table) => table.bytes(),
                Store::Rtree(tree) => tree.bytes(),
            }
    }

    pub(crate) fn hash_of(&self, tuple: &[u8]) -> u64 {
        self.key.hash(&self.secrets, tuple)
    }

    pub(crate) fn hash_of_key(&self, key: &Key<'_>) -> u64 {
        self.key.hash_of_key(&self.secrets, key)
    }

    /// The tuple with a key, which has been checked to be whole, and the hint of the key.
    #[inline]
    pub(crate) fn find_key(&self, key: &Key<'_>) -> Option<Found<'_>> {
        match &self.store {
            Store::Tree(tree) => {
                let hint = self.key.hint_of_key(key);
                let against =
                    |entry: &Entry| self.key.compare_key(entry.hint, &entry.tuple, hint, key);
                tree.get(self.key.alike(hint), against).map(|entry| (entry.hint, &entry.tuple))
            }
            Store::Hash(table) => {
                let found = table.get(self.hash_of_key(key), |tuple| self.has_key(tuple, key));
                found.map(|tuple| (0, tuple))
            }
            // Nothing is found by a key: the index is not unique.
            Store::Rtree(_) => None,
        }
    }

    /// As [`Index::find_key`], with what a later [`Index::replace`] needs.
    #[inline]
    pub(crate) fn locate(&self, key: &Key<'_>) -> Option<(Place, &Tuple)> {
        let Store::Tree(tree) = &self.store else {
            return self.find_key(key).map(|(_, tuple)| (Place(None), tuple));
        };
        let hint = self.key.hint_of_key(key);
        let against = |entry: &Entry| self.key.compare_key(entry.hint, &entry.tuple, hint, key);
        let (path, entry) = tree.locate(self.key.alike(hint), against)?;
        Some((Place(Some(path)), &entry.tuple))
    }

    /// Puts a tuple with the same key into the place of one that was located in this index, which
    /// has not changed since and has one place for each tuple.
    pub(crate) fn replace(&mut self, place: &Place, tuple: &Tuple) {
        match (&mut self.store, place) {
            (Store::Tree(tree), Place(Some(path))) => {
                let entry = Entry { hint: self.key.hint(tuple.bytes()), tuple: tuple.clone() };
                tree.replace_at(path, entry);
            }
            _ => drop(self.put(tuple)),
        }
    }

    /// Takes out the tuple with a key, which has been checked to be whole, of an index that has one
    /// place for each tuple.
    pub(crate) fn take(&mut self, key: &Key<'_>) -> Option<Tuple> {
        let def = &self.key;
        let hint = def.hint_of_key(key);
        match &mut self.store {
            Store::Tree(tree) => {
                let against = |entry: &Entry| def.compare_key(entry.hint, &entry.tuple, hint, key);
                tree.remove(def.alike(hint), against).map(|entry| entry.tuple)
            }
            Store::Hash(table) => {
                let secrets = &self.secrets;
                let has_key = |tuple: &Tuple| {
                    def.compare_key(def.hint(tuple.bytes()), tuple, hint, key).is_eq()
                };
                table.remove(def.hash_of_key(secrets, key), has_key, |tuple| {
                    def.hash(secrets, tuple.bytes())
                })
            }
            Store::Rtree(_) => None,
        }
    }

    /// Begins to fetch what finding these needs.
    pub(crate) fn fetch_ahead(&self, sought: &[Sought<'_>]) {
        if self.is_functional() {
            return;
        }
        let tree = match &self.store {
            Store::Tree(tree) => tree,
            Store::Hash(table) => return self.fetch_hashed(table, sought),
            Store::Rtree(_) => return,
        };
        let hint = |sought: &Sought<'_>| match sought {
            Sought::Key(key) => Key::parse(key).ok().map(|key| self.key.hint_of_key(&key)),
            Sought::Tuple(tuple) => Some(self.key.hint(tuple)),
        };
        let hints: SmallVec<[u64; 64]> = sought.iter().filter_map(hint).collect();
        tree.fetch_paths(hints.len(), |number, entry| entry.hint <= hints[number]);
    }

    fn fetch_hashed(&self, table: &SegmentedTable, sought: &[Sought<'_>]) {
        let hash = |sought: &Sought<'_>| match sought {
            Sought::Key(key) => {
                let key = Key::parse(key).ok().filter(|key| self.key.check_exact(key).is_ok());
                key.map(|key| self.hash_of_key(&key))
            }
            Sought::Tuple(tuple) => Some(self.hash_of(tuple)),
        };
        table.fetch(&sought.iter().filter_map(hash).collect::<SmallVec<[u64; 64]>>());
    }

    pub(crate) fn has_key(&self, tuple: &Tuple, key: &Key<'_>) -> bool {
        let hint = self.key.hint(tuple.bytes());
        self.key.compare_key(hint, tuple, self.key.hint_of_key(key), key).is_eq()
    }

    fn is_same_key(&self, a: &Tuple, hint: u64, b: &[u8]) -> bool {
        self.key.compare(self.key.hint(a.bytes()), a, hint, b).is_eq()
    }

    /// The tuple that has this one's place, by its key with this hint: the same key, and in an
    /// index that is not unique the same primary key.
    #[inline]
    pub(crate) fn find(&self, tuple: &[u8], hint: u64) -> Option<&Tuple> {
        match &self.store {
            Store::Tree(tree) => {
                let against =
                    |entry: &Entry| self.key.compare(entry.hint, &entry.tuple, hint, tuple);
                tree.get(self.key.alike(hint), against).map(|entry| &entry.tuple)
            }
            Store::Hash(table) => {
                table.get(self.hash_of(tuple), |other| self.is_same_key(other, hint, tuple))
            }
            Store::Rtree(_) => None,
        }
    }

    /// Whether two tuples have one place, so that one can be put over the other.
    pub(crate) fn has_same_place(&self, old: &Tuple, new: &[u8]) -> bool {
        let key = &self.key;
        if key.is_multikey() || self.def.kind == IndexKind::Rtree || self.is_functional() {
            return false;
        }
        let hint = key.hint(new);
        key.includes(new, hint) && key.compare(key.hint(old.bytes()), old, hint, new).is_eq()
    }

    /// Puts a tuple in, into the place of the one that has its place, which returns. In a multikey
    /// index, a tuple takes many places, and only its own.
    pub(crate) fn put(&mut self, tuple: &Tuple) -> Option<Tuple> {
        if self.is_functional() { self.put_made(tuple) } else { self.put_entry(tuple) }
    }

    /// As [`Index::put`], of what stands in the index itself.
    pub(crate) fn put_entry(&mut self, tuple: &Tuple) -> Option<Tuple> {
        if self.def.kind == IndexKind::Rtree {
            self.put_box(tuple);
            return None;
        }
        let (key, bytes) = (&self.key, tuple.bytes());
        match &mut self.store {
            Store::Tree(tree) => {
                let (mut replaced, mut last_hint) = (None, 0);
                key.hints(bytes).for_each(|hint| {
                    let against =
                        |entry: &Entry| key.compare(entry.hint, &entry.tuple, hint, bytes);
                    let entry = Entry { hint, tuple: tuple.clone() };
                    // Equal elements take each other's places; another tuple is what was replaced.
                    if let Some(old) = tree.put(entry, key.alike(hint), against)
                        && replaced.as_ref().is_none_or(|it: &Tuple| it.is_same(tuple))
                    {
                        replaced = Some(old.tuple);
                    }
                    last_hint = hint;
                });
                if replaced.is_none() {
                    if REHINTED_AT.contains(&tree.len()) {
                        self.choose_hints();
                    } else if let Some(side) = key.side_of(last_hint) {
                        self.count_beside(side);
                    }
                }
                replaced
            }
            Store::Hash(table) => {
                let (secrets, hint) = (&self.secrets, key.hint(bytes));
                let is_equal = |other: &Tuple| {
                    key.compare(key.hint(other.bytes()), other, hint, bytes).is_eq()
                };
                table.put(key.hash(secrets, bytes), tuple.clone(), is_equal, |tuple| {
                    key.hash(secrets, tuple.bytes())
                })
            }
            Store::Rtree(_) => None,
        }
    }

    /// Has the hints of a tree show what tells its tuples apart.
    #[cold]
    pub(crate) fn choose_hints(&mut self) {
        let Store::Tree(tree) = &mut self.store else { return };
        let tuple = |rank| tree.at(rank).map(|entry| &entry.tuple);
        if self.key.choose_window(tree.len(), tuple) {
            let key = &self.key;
            let ranks = 0..tree.len();
            tree.change(ranks, &mut |entry| entry.hint = key.hint(entry.tuple.bytes()));
            self.added_beside = [0; 2];
        }
    }

    /// Counts a tuple whose string does not begin as most do, and now and then has the hints of
    /// such tuples show what tells them apart.
    fn count_beside(&mut self, side: Side) {
        let added = &mut self.added_beside[side as usize];
        *added += 1;
        if REHINTED_AT.contains(added) {
            self.choose_side_hints(side);
        }
    }

    #[cold]
    fn choose_side_hints(&mut self, side: Side) {
        let Store::Tree(tree) = &mut self.store else { return };
        let mut suited = self.key.clone();
        let tuple = |rank| tree.at(rank).map(|entry| &entry.tuple);
        let Some(ranks) = suited.choose_side(side, tree.len(), tuple) else { return };
        if ranks.end - ranks.start <= SIDE_MAX {
            self.key = suited;
            let key = &self.key;
            tree.change(ranks, &mut |entry| entry.hint = key.hint(entry.tuple.bytes()));
        }
    }

    fn put_box(&mut self, tuple: &Tuple) {
        // It was checked before.
        if let Ok(bounds) = self.box_of(tuple.bytes())
            && let Store::Rtree(tree) = &mut self.store
        {
            tree.insert(&bounds, tuple.clone());
        }
    }

    /// Takes out what has an entry's place, of a tree.
    pub(crate) fn take_entry(&mut self, entry: &[u8], hint: u64) -> Option<Tuple> {
        let key = &self.key;
        let Store::Tree(tree) = &mut self.store else { return None };
        let against = |other: &Entry| key.compare(other.hint, &other.tuple, hint, entry);
        tree.remove(key.alike(hint), against).map(|entry| entry.tuple)
    }

    /// Takes out the tuple that has this one's place, or each of its places.
    pub(crate) fn remove(&mut self, tuple: &[u8]) {
        if self.is_functional() {
            return self.remove_made(tuple);
        }
        if self.def.kind == IndexKind::Rtree {
            if let Ok(bounds) = self.box_of(tuple)
                && let Store::Rtree(tree) = &mut self.store
            {
                tree.remove(&bounds, tuple);
            }
            return;
        }
        let key = &self.key;
        match &mut self.store {
            Store::Tree(tree) => {
                key.hints(tuple).for_each(|hint| {
                    let against =
                        |entry: &Entry| key.compare(entry.hint, &entry.tuple, hint, tuple);
                    tree.remove(key.alike(hint), against);
                });
            }
            Store::Hash(table) => {
                let (secrets, hint) = (&self.secrets, key.hint(tuple));
                let is_equal = |other: &Tuple| {
                    key.compare(key.hint(other.bytes()), other, hint, tuple).is_eq()
                };
                table.remove(key.hash(secrets, tuple), is_equal, |tuple| {
                    key.hash(secrets, tuple.bytes())
                });
            }
            Store::Rtree(_) => {}
        }
    }

    /// Replaces everything by these tuples. If two have one place, returns them instead.
    ///
    /// # Errors
    /// The two tuples, the earlier one first.
    pub(crate) fn fill<'a>(
        &mut self,
        tuples: impl Iterator<Item = &'a Tuple>,
    ) -> Result<(), (Tuple, Tuple)> {
        if let IndexKind::Rtree = self.def.kind {
            let of = |tuple: &'a Tuple| Some((self.box_of(tuple.bytes()).ok()?, tuple.clone()));
            let entries: Vec<(Bounds, Tuple)> = tuples.filter_map(of).collect();
            self.store = Store::Rtree(Rtree::of(self.def.dimensions(), entries));
            return Ok(());
        }
        let key = &self.key;
        if let IndexKind::Hash = self.def.kind {
            let tuples: Vec<Tuple> = tuples.cloned().collect();
            self.clear();
            for tuple in tuples {
                if let Some(old) = self.put(&tuple) {
                    return Err((old, tuple));
                }
            }
            return Ok(());
        }
        let of = |tuple: &'a Tuple| {
            key.hints(tuple.bytes()).map(|hint| Entry { hint, tuple: tuple.clone() })
        };
        let mut entries: Vec<Entry> = tuples.flat_map(of).collect();
        let compare = |a: &Entry, b: &Entry| key.compare(a.hint, &a.tuple, b.hint, b.tuple.bytes());
        // Checkpoints bring the tuples of the primary index in order.
        if !entries.is_sorted_by(|a, b| compare(a, b).is_le()) {
            entries.sort_by(compare);
        }
        if key.is_multikey() {
            // Equal elements of a tuple have one place.
            entries.dedup_by(|b, a| a.tuple.is_same(&b.tuple) && compare(a, b).is_eq());
        }
        if let Some(two) = entries.windows(2).find(|two| compare(&two[0], &two[1]).is_eq()) {
            return Err((two[0].tuple.clone(), two[1].tuple.clone()));
        }
        let tuple = |rank: u64| entries.get(rank as usize).map(|entry| &entry.tuple);
        if self.key.choose_window(entries.len() as u64, tuple) {
            let key = &self.key;
            entries.iter_mut().for_each(|entry| entry.hint = key.hint(entry.tuple.bytes()));
        }
        self.added_beside = [0; 2];
        self.store = Store::Tree(Tree::of_sorted(entries));
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.store = Index::empty_store(&self.def);
        self.added_beside = [0; 2];
        if let Some(made) = &mut self.made {
            made.bytes = 0;
        }
    }

    /// All tuples: in order if it is a TREE.
    pub fn tuples(&self) -> Box<dyn Iterator<Item = &Tuple> + '_> {
        match &self.store {
            Store::Tree(tree) => {
                let mut rank = 0;
                let runs = std::iter::from_fn(move || {
                    let run = tree.run_from(rank);
                    rank += run.len() as u64;
                    (!run.is_empty()).then_some(run)
                });
                Box::new(runs.flatten().map(|entry| &entry.tuple))
            }
            Store::Hash(table) => Box::new(table.iter()),
            Store::Rtree(tree) => Box::new(tree.tuples()),
        }
    }

    /// Some tuple, chosen by a number that is random.
    ///
    /// # Errors
    /// Tarantool's, in a BITSET and an RTREE index.
    pub fn random(&self, space: &str, number: u64) -> Result<Option<&Tuple>, BoxError> {
        match &self.store {
            Store::Tree(tree) if self.def.kind == IndexKind::Tree => {
                let rank = number.checked_rem(tree.len());
                Ok(rank.and_then(|rank| tree.at(rank)).map(|entry| &entry.tuple))
            }
            Store::Hash(table) => Ok(table.random(number)),
            _ => Err(self.def.no_feature(space, "random()")),
        }
    }
}
