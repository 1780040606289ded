//! An index that is built a few tuples at a time, from a copy of its space, while that goes on
//! changing. With the primary index, all indexes are built: its parts order the others as well.

use crate::definition::IndexDef;
use crate::error::BoxError;
use crate::format::Rules;
use crate::index::{Index, Sought};
use crate::space::Space;
use crate::statement::Written;
use crate::tuple::Tuple;
use crate::tuple_walk::TupleWalk;
use smallvec::SmallVec;

/// The index, and how far it has come.
pub struct IndexBuild {
    walk: TupleWalk,
    index: Index,
    /// With the primary index, the secondary ones.
    others: Vec<Index>,
    /// What the format and this index demand of tuples. Other indexes may come and go meanwhile.
    rules: Rules,
}

impl IndexBuild {
    /// Begins to build the index that a tuple of `_index` describes: a new one, or another order of
    /// one that is there. `None` if that has the order already.
    ///
    /// # Errors
    /// Tarantool's, as far as the definition shows them.
    pub fn begin(space: &Space, tuple: &[u8]) -> Result<Option<IndexBuild>, BoxError> {
        let def = space.new_index_def(tuple)?;
        if space.index(def.id).is_some_and(|old| old.def().has_same_order(&def)) {
            return Ok(None);
        }
        let (index, _) = space.planned_index(def)?;
        let rules = space.rules_with_only(index.def())?;
        let others = if index.def.id == 0 { space.reordered_by(&index) } else { Vec::new() };
        Ok(Some(IndexBuild { walk: TupleWalk::of(space), index, others, rules }))
    }

    /// Bytes of memory that the indexes take.
    pub fn bytes(&self) -> usize {
        self.index.bytes() + self.others.iter().map(Index::bytes).sum::<usize>()
    }

    /// Puts in more of the tuples that there were at the beginning: as many as short ones would be
    /// `work` for one index, one at least. Returns whether none are left.
    ///
    /// # Errors
    /// Tarantool's, if a tuple does not fit the index. It can be built no more then.
    pub fn go_on(&mut self, work: usize) -> Result<bool, BoxError> {
        let IndexBuild { walk, index, others, rules } = self;
        let work = work.div_ceil(1 + others.len());
        walk.go_on(work, |space, tuples| {
            fetch_ahead(index, others, tuples);
            tuples.iter().try_for_each(|tuple| add(space, (index, others), rules, tuple))
        })
    }

    /// Follows a change of the space since the beginning, after all tuples are in.
    ///
    /// # Errors
    /// Tarantool's, if the new tuple does not fit the index. It can be built no more then.
    pub fn follow(&mut self, written: &Written) -> Result<(), BoxError> {
        let IndexBuild { walk, index, others, rules } = self;
        if let Some(old) = &written.old {
            index.remove(old.bytes());
            others.iter_mut().for_each(|other| other.remove(old.bytes()));
        }
        match &written.new {
            Some(new) => add(&walk.space, (index, others), rules, new),
            None => Ok(()),
        }
    }

    /// What the index will be.
    pub fn def(&self) -> &IndexDef {
        self.index.def()
    }

    /// The index, once it has followed all changes, those that were built with it, and the space as
    /// it was at the beginning.
    pub(crate) fn into_parts(self) -> (Index, Vec<Index>, Space) {
        (self.index, self.others, self.walk.space)
    }
}

impl Space {
    /// Checks that an index which was built beside the space goes with the other indexes that there
    /// are now.
    ///
    /// # Errors
    /// As [`Space::create_index`].
    pub fn check_adopted(&self, build: &IndexBuild) -> Result<(), BoxError> {
        self.planned_index(build.def().clone()).map(drop)
    }

    /// Adds an index that was built beside the space, has followed all of its changes, and was
    /// checked. It takes the place of the one with its number, if there is one. Returns what is
    /// left, which may take long to drop.
    ///
    /// # Errors
    /// As [`Space::check_adopted`].
    pub fn adopt_index(&mut self, build: IndexBuild) -> Result<Space, BoxError> {
        let rules = self.rules_with(&self.def, Some(build.def()))?;
        let (index, others, before) = build.into_parts();
        self.left_behind += self.indexes.iter().map(|index| index.bytes() as u64).sum::<u64>();
        if index.def.id == 0 {
            self.indexes.truncate(1);
            self.indexes.extend(others);
        }
        match self.indexes.binary_search_by_key(&index.def.id, |other| other.def.id) {
            Ok(at) => self.indexes[at] = index,
            Err(at) => self.indexes.insert(at, index),
        }
        self.set_rules(rules);
        Ok(before)
    }
}

/// Begins to fetch the places of tuples: each would wait for the memory of its own.
fn fetch_ahead(index: &Index, others: &[Index], tuples: &[&Tuple]) {
    let sought: SmallVec<[Sought<'_>; 32]> =
        tuples.iter().map(|tuple| Sought::Tuple(tuple.bytes())).collect();
    others.iter().chain([index]).for_each(|index| index.fetch_ahead(&sought));
}

fn add(
    space: &Space,
    (index, others): (&mut Index, &mut [Index]),
    rules: &Rules,
    tuple: &Tuple,
) -> Result<(), BoxError> {
    space.add_to(index, rules, tuple)?;
    others.iter_mut().try_for_each(|other| space.put_into(other, tuple))
}
