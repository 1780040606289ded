//! Reading an index from a key on, in one direction: iterators, offset, limit and position.

use crate::bitset::BitSearch;
use crate::definition::IndexKind;
use crate::entry::Entry;
use crate::error::{BoxError, ErrorCode};
use crate::functional::Made;
use crate::index::{Index, Store};
use crate::iterator_type::IteratorType;
use crate::key::Key;
use crate::looked::{Found, LOOKED_AT_ONCE, Looked};
use crate::rtree::bounds;
use crate::rtree::{Neighbors, Search};
use crate::space::Space;
use crate::tree::{Item, Tree, partition_point};
use crate::tuple::Tuple;
use smallvec::SmallVec;
use std::cmp::Ordering;

/// What is selected of a space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The index's number.
    pub index: u32,
    /// Which tuples, from the key on.
    pub iterator: IteratorType,
    /// A MessagePack array: a key, or its first parts.
    pub key: SmallVec<[u8; 32]>,
    /// How many of them are left out at the beginning.
    pub offset: u64,
    /// How many there are at most.
    pub limit: u64,
    /// The position behind which they begin; [`Index::position_of`] made it.
    pub after: Option<Vec<u8>>,
}

impl Selected {
    /// Selects.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn of<'a>(&self, space: &'a Space) -> Result<Selection<'a>, BoxError> {
        let Selected { index, iterator, key, offset, limit, after } = self;
        space.select(*index, *iterator, key, *offset, *limit, after.as_deref())
    }
}

impl Space {
    /// Selects tuples by an index; `after` is a position that [`Index::position_of`] returned.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn select(
        &self,
        index: u32,
        iterator: IteratorType,
        key: &[u8],
        offset: u64,
        limit: u64,
        after: Option<&[u8]>,
    ) -> Result<Selection<'_>, BoxError> {
        let index = self.require_index(index)?;
        let mut selection = index.select(&self.def.name, iterator, key, (offset, limit), after)?;
        selection.entries_of = index.made.as_ref().zip(self.indexes.first());
        selection.index = Some(index);
        Ok(selection)
    }

    /// How many tuples [`Space::select`] would find.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn count(&self, index: u32, iterator: IteratorType, key: &[u8]) -> Result<u64, BoxError> {
        self.require_index(index)?.count(&self.def.name, iterator, key)
    }

    /// As [`Space::count`], for a caller that counts one by one by itself.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn begin_count(
        &self,
        index: u32,
        iterator: IteratorType,
        key: &[u8],
    ) -> Result<Counting<'_>, BoxError> {
        self.require_index(index)?.begin_count(&self.def.name, iterator, key)
    }

    /// The first tuple of an index, of those with a key if it is not empty: `index:min()`.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn min(&self, index: u32, key: &[u8]) -> Result<Option<Tuple>, BoxError> {
        self.require_index(index)?.check_ordered(&self.def.name, "min()")?;
        let is_empty = Key::parse(key)?.count() == 0;
        let iterator = if is_empty { IteratorType::Ge } else { IteratorType::Eq };
        Ok(self.select(index, iterator, key, 0, 1, None)?.next().cloned())
    }

    /// The last tuple of an index, of those with a key if it is not empty: `index:max()`.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn max(&self, index: u32, key: &[u8]) -> Result<Option<Tuple>, BoxError> {
        self.require_index(index)?.check_ordered(&self.def.name, "max()")?;
        let is_empty = Key::parse(key)?.count() == 0;
        let iterator = if is_empty { IteratorType::Le } else { IteratorType::Req };
        Ok(self.select(index, iterator, key, 0, 1, None)?.next().cloned())
    }

    /// For checkpoints: visits up to `count` tuples after a primary key (`None`: from the first),
    /// in the order of the primary index, as long as `visit` says to go on. Returns the key to go
    /// on after; `None` at the end.
    pub fn save_range(
        &self,
        after: Option<&[u8]>,
        count: usize,
        visit: &mut dyn FnMut(&Tuple) -> bool,
    ) -> Option<Vec<u8>> {
        let primary = self.indexes.first()?;
        let mut last = None;
        let mut visited = 0;
        let mut goes_on = true;
        for tuple in primary.select_after(after).take(count) {
            visited += 1;
            last = Some(tuple);
            goes_on = visit(tuple);
            if !goes_on {
                break;
            }
        }
        last.filter(|_| visited == count || !goes_on)
            .map(|tuple| primary.key.extract(tuple.bytes(), 0, false))
    }
}

/// The selected tuples.
pub struct Selection<'a> {
    source: Source<'a>,
    /// How many are still to be left out at the beginning.
    skipped: u64,
    left: u64,
    /// The hint of the last tuple's key.
    hint: u64,
    /// Of a functional index: what resolves its entries, with the primary index,
    entries_of: Option<(&'a Made, &'a Index)>,
    index: Option<&'a Index>,
    /// and the last entry and its tuple.
    last: Option<(&'a Tuple, &'a Tuple)>,
}

/// A count.
pub enum Counting<'a> {
    /// It takes little time, and is done.
    Counted(u64),
    /// These have to be counted, which are those that [`Index::select`] selects as well.
    OneByOne(Selection<'a>),
}

enum Source<'a> {
    One(Option<Found<'a>>),
    /// The ranks from `next` to `end`, by runs.
    Forward {
        tree: &'a Tree<Entry>,
        next: u64,
        end: u64,
        run: std::slice::Iter<'a, Entry>,
    },
    /// The ranks below `end`, down to `begin`.
    Backward {
        tree: &'a Tree<Entry>,
        begin: u64,
        end: u64,
        run: std::slice::Iter<'a, Entry>,
    },
    /// A segment's tuples, sorted, the last ones first; and where the next segment begins.
    Hash {
        index: &'a Index,
        segment: Vec<(u64, &'a Tuple)>,
        next: Option<u64>,
    },
    Bits(Box<BitSearch<'a>>),
    Boxes(Box<Search<'a>>),
    Neighbors(Box<Neighbors<'a>>),
}

/// So many tuples ahead of the one that is selected, memory is being fetched.
const FETCHED_AHEAD: usize = 8;

/// The entries, the first of whose tuples are being fetched.
fn fetched(run: &[Entry]) -> std::slice::Iter<'_, Entry> {
    run.iter().take(FETCHED_AHEAD).for_each(Item::fetch_all);
    run.iter()
}

/// The selected ranks of a tree.
struct Ranks<'a> {
    begin: u64,
    end: u64,
    /// They are read from the end on.
    is_reverse: bool,
    /// What follows `begin` in its leaf; none if that was not looked at.
    run: &'a [Entry],
}

impl<'a> Source<'a> {
    #[inline]
    fn look(&mut self) -> Looked<'a> {
        let found = match self {
            Source::One(found) => found.take(),
            Source::Forward { tree, next, end, run } => {
                if *next >= *end {
                    return Looked::AtAll;
                }
                if run.len() == 0 {
                    *run = fetched(tree.run_from(*next));
                }
                *next += 1;
                if let Some(ahead) = run.as_slice().get(FETCHED_AHEAD) {
                    ahead.fetch_all();
                }
                run.next().map(|entry| (entry.hint, &entry.tuple))
            }
            Source::Backward { tree, begin, end, run } => {
                if *end <= *begin {
                    return Looked::AtAll;
                }
                *end -= 1;
                if run.len() == 0 {
                    *run = tree.run_to(*end).iter();
                }
                run.next_back().map(|entry| (entry.hint, &entry.tuple))
            }
            Source::Hash { index, segment, next } => match (segment.pop(), *next) {
                (Some((_, tuple)), _) => Some((0, tuple)),
                (None, None) => None,
                (None, Some(from)) => {
                    *segment = index.sorted_segment(from, next);
                    return Looked::AtSome;
                }
            },
            Source::Bits(search) => return search.look(),
            Source::Boxes(search) => return search.look(),
            Source::Neighbors(search) => return search.look(),
        };
        found.map_or(Looked::AtAll, Looked::Found)
    }
}

impl<'a> Iterator for Selection<'a> {
    type Item = &'a Tuple;

    #[inline]
    fn next(&mut self) -> Option<&'a Tuple> {
        Looked::until_found(|| self.look()).map(|(_, tuple)| tuple)
    }
}

impl<'a> Selection<'a> {
    fn new(source: Source<'a>) -> Selection<'a> {
        let (entries_of, index, last) = (None, None, None);
        Selection { source, skipped: 0, left: u64::MAX, hint: 0, entries_of, index, last }
    }

    /// Goes on to the next tuple, as far as that takes little time.
    #[inline]
    pub fn look(&mut self) -> Looked<'a> {
        if self.left == 0 {
            return Looked::AtAll;
        }
        let mut looked = self.source.look();
        if self.skipped > 0 {
            looked = self.skip(looked);
        }
        if let Looked::Found((hint, entry)) = looked {
            self.hint = hint;
            if let Some((made, primary)) = self.entries_of {
                let Some(tuple) = primary.resolve_entry(made, entry) else { return Looked::AtSome };
                self.last = Some((entry, tuple));
                looked = Looked::Found((hint, tuple));
            }
            self.left -= 1;
        }
        looked
    }

    /// Leaves out what is to be left out, as far as that takes little time.
    #[cold]
    fn skip(&mut self, mut looked: Looked<'a>) -> Looked<'a> {
        for left in (0..LOOKED_AT_ONCE).rev() {
            let Looked::Found(_) = looked else { return looked };
            self.skipped -= 1;
            if left == 0 || self.skipped == 0 {
                return Looked::AtSome;
            }
            looked = self.source.look();
        }
        looked
    }

    /// Which of the last tuple's keys led to it, for [`Index::position_at`].
    pub fn hint(&self) -> u64 {
        match (self.index, self.last) {
            (Some(index), Some((entry, tuple))) => index.ordinal_of(tuple.bytes(), entry.bytes()),
            _ => self.hint,
        }
    }
}

impl Index {
    /// Selects tuples. `after` is a position that [`Index::position_of`] returned.
    ///
    /// # Errors
    /// Tarantool's, if the key or the position does not fit, or the index does not have the
    /// iterator.
    pub fn select(
        &self,
        space: &str,
        iterator: IteratorType,
        key: &[u8],
        (offset, limit): (u64, u64),
        after: Option<&[u8]>,
    ) -> Result<Selection<'_>, BoxError> {
        let key = Key::parse(key)?;
        self.check_iterator(space, iterator, &key)?;
        let mut selection = match &self.store {
            Store::Tree(tree) if self.def.kind == IndexKind::Tree => {
                self.select_tree(tree, iterator, &key, offset, after)?
            }
            _ if after.is_some() => return Err(self.def.no_feature(space, "pagination")),
            _ => {
                let mut selection = self.select_unordered(iterator, &key)?;
                selection.skipped = offset;
                selection
            }
        };
        selection.left = limit;
        Ok(selection)
    }

    /// Selects of an index that has no order; the key fits the iterator.
    fn select_unordered(
        &self,
        iterator: IteratorType,
        key: &Key<'_>,
    ) -> Result<Selection<'_>, BoxError> {
        Ok(match &self.store {
            Store::Tree(tree) => {
                let search = BitSearch::new(&self.key, tree, iterator, key);
                Selection::new(Source::Bits(Box::new(search)))
            }
            Store::Hash(_) => self.select_hash(iterator, key),
            Store::Rtree(tree) if key.count() == 0 => {
                Selection::new(Source::Boxes(Box::new(tree.tuples())))
            }
            Store::Rtree(tree) => {
                let key = bounds::of_key(key, self.def.dimensions())?;
                Selection::new(match iterator {
                    IteratorType::Neighbor => {
                        Source::Neighbors(Box::new(tree.neighbors(self.def.distance, key)))
                    }
                    _ => Source::Boxes(Box::new(tree.search(iterator, key))),
                })
            }
        })
    }

    /// How many tuples there are for a key.
    ///
    /// # Errors
    /// As [`Index::select`].
    pub fn count(&self, space: &str, iterator: IteratorType, key: &[u8]) -> Result<u64, BoxError> {
        Ok(match self.begin_count(space, iterator, key)? {
            Counting::Counted(count) => count,
            Counting::OneByOne(selection) => selection.count() as u64,
        })
    }

    /// As [`Index::count`], for a caller that counts one by one by itself.
    ///
    /// # Errors
    /// As [`Index::select`].
    pub fn begin_count(
        &self,
        space: &str,
        iterator: IteratorType,
        key: &[u8],
    ) -> Result<Counting<'_>, BoxError> {
        let key = Key::parse(key)?;
        self.check_iterator(space, iterator, &key)?;
        Ok(Counting::Counted(match &self.store {
            // It counts all, though a selection may begin with the key.
            Store::Tree(tree) if iterator == IteratorType::All => tree.len(),
            Store::Tree(tree) if self.def.kind == IndexKind::Tree => {
                let Ranks { begin, end, .. } = self.ranks(tree, iterator, &key);
                end - begin
            }
            Store::Hash(table) if key.count() == 0 => table.len(),
            Store::Rtree(tree) if iterator == IteratorType::All => tree.len(),
            _ => return Ok(Counting::OneByOne(self.select_unordered(iterator, &key)?)),
        }))
    }

    /// The position behind a tuple: its key with the primary key's parts.
    ///
    /// # Errors
    /// In a multikey index, where a tuple has many.
    pub fn position_of(&self, tuple: &[u8]) -> Result<Vec<u8>, BoxError> {
        if self.key.is_multikey() {
            return Err(BoxError::unsupported("Multikey index", "position by tuple"));
        }
        if let Some(made) = &self.made {
            return match made.function().is_multikey() {
                true => Err(BoxError::unsupported("Multikey index", "position by tuple")),
                false => Ok(self.made_position(tuple, 0)),
            };
        }
        Ok(self.key.extract(tuple, 0, true))
    }

    /// The position behind the tuple that a [`Selection`] found last; `hint` is its
    /// [`Selection::hint`].
    pub fn position_at(&self, tuple: &[u8], hint: u64) -> Vec<u8> {
        if self.is_functional() {
            return self.made_position(tuple, hint);
        }
        self.key.extract(tuple, hint, true)
    }

    /// Checks that the index has an order, which `what` needs.
    pub(crate) fn check_ordered(&self, space: &str, what: &str) -> Result<(), BoxError> {
        match self.def.kind {
            IndexKind::Tree => Ok(()),
            _ => Err(self.def.no_feature(space, what)),
        }
    }

    fn check_iterator(
        &self,
        space: &str,
        iterator: IteratorType,
        key: &Key<'_>,
    ) -> Result<(), BoxError> {
        use IteratorType::{
            All, BitsAllNotSet, BitsAllSet, BitsAnySet, Eq, Ge, Gt, Le, Lt, Neighbor, Overlaps, Req,
        };
        let kind = self.def.kind;
        let may_be_empty = match kind {
            IndexKind::Tree => true,
            IndexKind::Hash => matches!(iterator, All | Gt),
            IndexKind::Bitset | IndexKind::Rtree => iterator == All,
        };
        if key.count() > 0 || !may_be_empty {
            match kind {
                IndexKind::Rtree => drop(bounds::of_key(key, self.def.dimensions())?),
                _ => self.check_key(key)?,
            }
        }
        let is_supported = matches!(
            (kind, iterator),
            (IndexKind::Tree, Eq | All | Gt | Req | Lt | Le | Ge)
                | (IndexKind::Hash, Eq | All | Gt)
                | (IndexKind::Bitset, Eq | All | BitsAllSet | BitsAnySet | BitsAllNotSet)
                | (IndexKind::Rtree, Eq | All | Gt | Lt | Le | Ge | Overlaps | Neighbor)
        );
        match is_supported {
            true => Ok(()),
            false => Err(self.def.no_feature(space, "requested iterator type")),
        }
    }

    /// Checks the number of a key's values, and their types.
    fn check_key(&self, key: &Key<'_>) -> Result<(), BoxError> {
        let own = self.key.own().len() as u32;
        if key.count() > own {
            let message =
                format!("Invalid key part count (expected [0..{own}], got {})", key.count());
            return Err(BoxError::new(ErrorCode::KEY_PART_COUNT, message));
        }
        if self.def.kind != IndexKind::Tree && key.count() < own {
            let message = format!(
                "{} index  does not support selects via a partial key (expected {own} parts, \
                 got {}). Please Consider changing index type to TREE.",
                self.def.kind.name(),
                key.count()
            );
            return Err(BoxError::new(ErrorCode::PARTIAL_KEY, message));
        }
        self.key.check_key(key)
    }

    fn ranks<'a>(&self, tree: &'a Tree<Entry>, iterator: IteratorType, key: &Key<'_>) -> Ranks<'a> {
        let is_reverse = iterator.is_reverse();
        if key.count() == 0 {
            return Ranks { begin: 0, end: tree.len(), is_reverse, run: &[] };
        }
        let hint = self.key.hint_of_key(key);
        let against = |entry: &Entry| self.key.compare_key(entry.hint, &entry.tuple, hint, key);
        let lower = || tree.run_behind(self.key.alike(hint), |entry| against(entry).is_lt());
        let upper = || tree.run_behind(self.key.alike(hint), |entry| against(entry).is_le());
        let ((begin, run), end) = match iterator {
            IteratorType::Lt => ((0, &[][..]), lower().0),
            IteratorType::Le => ((0, &[][..]), upper().0),
            // With a key, ALL is GE.
            IteratorType::Ge | IteratorType::All => (lower(), tree.len()),
            IteratorType::Gt => (upper(), tree.len()),
            _ => {
                let (begin, run) = lower();
                // Most keys have few tuples.
                let equal =
                    partition_point(run, self.key.alike(hint), |entry| against(entry).is_le());
                let end = if equal < run.len() { begin + equal as u64 } else { upper().0 };
                ((begin, run), end)
            }
        };
        Ranks { begin, end, is_reverse, run }
    }

    fn select_tree<'a>(
        &'a self,
        tree: &'a Tree<Entry>,
        iterator: IteratorType,
        key: &Key<'_>,
        offset: u64,
        after: Option<&[u8]>,
    ) -> Result<Selection<'a>, BoxError> {
        let is_equal = matches!(iterator, IteratorType::Eq | IteratorType::Req);
        let is_whole = key.count() as usize == self.key.parts().len()
            || (self.key.is_exact() && key.count() as usize == self.key.own().len());
        if is_equal && is_whole && after.is_none() {
            let found = self.find_key(key).filter(|_| offset == 0);
            return Ok(Selection::new(Source::One(found)));
        }
        let Ranks { mut begin, mut end, is_reverse, run } = self.ranks(tree, iterator, key);
        let is_at_once = offset == 0 && after.is_none() && !is_reverse;
        if let Some(after) = after {
            let position = self.check_position(after)?;
            let hint = self.key.hint_of_key(&position);
            let against =
                |entry: &Entry| self.key.compare_key(entry.hint, &entry.tuple, hint, &position);
            if is_reverse {
                let rank = tree
                    .count_before(self.key.alike(hint), |entry| against(entry) == Ordering::Less);
                end = end.min(rank);
            } else {
                let rank = tree.count_before(self.key.alike(hint), |entry| {
                    against(entry) != Ordering::Greater
                });
                begin = begin.max(rank);
            }
        }
        let source = if is_reverse {
            Source::Backward { tree, begin, end: end.saturating_sub(offset), run: [].iter() }
        } else {
            let selected = usize::try_from(end.saturating_sub(begin)).unwrap_or(usize::MAX);
            let run = if is_at_once { &run[..run.len().min(selected)] } else { &[] };
            let run = fetched(run);
            Source::Forward { tree, next: begin.saturating_add(offset), end, run }
        };
        Ok(Selection::new(source))
    }

    fn check_position<'k>(&self, after: &'k [u8]) -> Result<Key<'k>, BoxError> {
        let invalid =
            || BoxError::new(ErrorCode::ITERATOR_POSITION, "Iterator position is invalid");
        let key = Key::parse(after).map_err(|_| invalid())?;
        if key.count() as usize != self.key.parts().len() || self.key.check_key(&key).is_err() {
            return Err(invalid());
        }
        Ok(key)
    }

    fn select_hash(&self, iterator: IteratorType, key: &Key<'_>) -> Selection<'_> {
        let source = match iterator {
            IteratorType::Eq => Source::One(self.find_key(key)),
            _ if key.count() == 0 || iterator == IteratorType::All => {
                Source::Hash { index: self, segment: Vec::new(), next: Some(0) }
            }
            // From the key on, wherever it would be.
            _ => self.hash_after(key),
        };
        Selection::new(source)
    }

    /// What follows a key in the order of a HASH index.
    fn hash_after(&self, key: &Key<'_>) -> Source<'_> {
        let hash = self.hash_of_key(key);
        let key_hint = self.key.hint_of_key(key);
        let mut next = None;
        let mut segment = self.sorted_segment(hash, &mut next);
        segment.retain(|(other, tuple)| {
            let hint = self.key.hint(tuple.bytes());
            let order = other.cmp(&hash);
            order.then_with(|| self.key.compare_key(hint, tuple, key_hint, key)).is_gt()
        });
        Source::Hash { index: self, segment, next }
    }

    /// The tuples of the segment that has this hash, the last one in order first.
    fn sorted_segment(&self, hash: u64, next: &mut Option<u64>) -> Vec<(u64, &Tuple)> {
        let Store::Hash(table) = &self.store else { return Vec::new() };
        let (tuples, following) = table.segment_of(hash);
        *next = following;
        let mut segment: Vec<_> =
            tuples.map(|tuple| (self.hash_of(tuple.bytes()), tuple)).collect();
        segment.sort_unstable_by(|a, b| {
            b.0.cmp(&a.0).then_with(|| {
                let hint = |tuple: &Tuple| self.key.hint(tuple.bytes());
                self.key.compare(hint(b.1), b.1, hint(a.1), a.1.bytes())
            })
        });
        segment
    }

    /// Selects what comes after a primary key, whichever the kind: for checkpoints.
    pub(crate) fn select_after(&self, after: Option<&[u8]>) -> Selection<'_> {
        let key = after.and_then(|after| Key::parse(after).ok());
        match (&self.store, key) {
            (Store::Hash(_), Some(key)) => Selection::new(self.hash_after(&key)),
            (Store::Hash(_), None) => {
                Selection::new(Source::Hash { index: self, segment: Vec::new(), next: Some(0) })
            }
            // No primary index is one.
            (Store::Rtree(tree), _) => Selection::new(Source::Boxes(Box::new(tree.tuples()))),
            (Store::Tree(tree), key) => {
                let next = key.map_or(0, |key| self.ranks(tree, IteratorType::Gt, &key).begin);
                Selection::new(Source::Forward { tree, next, end: tree.len(), run: [].iter() })
            }
        }
    }
}
