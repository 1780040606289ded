//! An index that is built a few tuples at a time, from a copy of its space, while that goes on
//! changing.

use crate::definition::IndexDef;
use crate::error::BoxError;
use crate::format::Rules;
use crate::index::Index;
use crate::space::Space;
use crate::statement::Written;

/// The index, and how far it has come.
pub struct IndexBuild {
    /// The space as it was at the beginning.
    space: Space,
    index: Index,
    /// What the format and this index demand of tuples. Other indexes may come and go meanwhile.
    rules: Rules,
    /// The primary key of the last tuple that is in the index.
    after: Option<Vec<u8>>,
    is_copied: bool,
}

impl IndexBuild {
    /// Begins to build the index that a tuple of `_index` describes: a new one, or another order of
    /// one that is there. `None` if that has the order already, or is the primary index, of which
    /// the others have the parts.
    ///
    /// # Errors
    /// Tarantool's, as far as the definition shows them.
    pub fn begin(space: &Space, tuple: &[u8]) -> Result<Option<IndexBuild>, BoxError> {
        let def = space.new_index_def(tuple)?;
        if def.id == 0 || space.index(def.id).is_some_and(|old| old.def().has_same_order(&def)) {
            return Ok(None);
        }
        let (index, _) = space.planned_index(def)?;
        let rules = space.rules_with_only(index.def())?;
        let space = space.clone();
        Ok(Some(IndexBuild { space, index, rules, after: None, is_copied: false }))
    }

    /// Bytes of memory that the index takes.
    pub fn bytes(&self) -> usize {
        self.index.bytes()
    }

    /// Puts in so many more of the tuples that there were at the beginning. Returns whether none
    /// are left.
    ///
    /// # Errors
    /// Tarantool's, if a tuple does not fit the index. It can be built no more then.
    pub fn go_on(&mut self, tuples: usize) -> Result<bool, BoxError> {
        if self.is_copied {
            return Ok(true);
        }
        let IndexBuild { space, index, rules, after, is_copied } = self;
        let primary = space.require_index(0)?;
        let mut last = None;
        let mut selected = primary.select_after(after.as_deref());
        for tuple in selected.by_ref().take(tuples) {
            space.add_to(index, rules, tuple)?;
            last = Some(tuple);
        }
        *is_copied = last.is_none();
        if let Some(last) = last {
            *after = Some(space.primary_key_of_own(last));
        }
        Ok(*is_copied)
    }

    /// Follows a change of the space since the beginning, after all tuples are in.
    ///
    /// # Errors
    /// Tarantool's, if the new tuple does not fit the index. It can be built no more then.
    pub fn follow(&mut self, written: &Written) -> Result<(), BoxError> {
        let IndexBuild { space, index, rules, .. } = self;
        if let Some(old) = &written.old {
            index.remove(old.bytes());
        }
        match &written.new {
            Some(new) => space.add_to(index, rules, new),
            None => Ok(()),
        }
    }

    /// What the index will be.
    pub fn def(&self) -> &IndexDef {
        self.index.def()
    }

    /// The index, once it has followed all changes, and the space as it was at the beginning.
    pub(crate) fn into_parts(self) -> (Index, Space) {
        (self.index, self.space)
    }
}
