//! A definition of a space that demands more of tuples than the one before: they are checked a few
//! at a time, in a copy of the space, while that goes on changing.

use crate::definition::SpaceDef;
use crate::error::BoxError;
use crate::format::Rules;
use crate::space::Space;
use crate::statement::Written;
use crate::tuple_walk::TupleWalk;

/// The definition, and how far the check has come.
pub struct FormatCheck {
    walk: TupleWalk,
    def: SpaceDef,
    /// What the definition and the indexes of the beginning demand. What other indexes demand, the
    /// tuples meet anyway.
    rules: Rules,
}

impl FormatCheck {
    /// Begins to check whether a space's tuples are as the tuple of `_space` demands. `None` if
    /// they are because of the definition that there is.
    ///
    /// # Errors
    /// Tarantool's, as far as the definition shows them.
    pub fn begin(space: &Space, tuple: &[u8]) -> Result<Option<FormatCheck>, BoxError> {
        let def = SpaceDef::from_tuple(tuple)?;
        let rules = space.planned_rules(&def)?;
        if rules.are_met_by(&space.rules) {
            return Ok(None);
        }
        Ok(Some(FormatCheck { walk: TupleWalk::of(space), def, rules }))
    }

    /// Checks more of the tuples that there were at the beginning: as many as short ones would be
    /// `work`, one at least. Returns whether none are left.
    ///
    /// # Errors
    /// Tarantool's, if a tuple is not as it has to be.
    pub fn go_on(&mut self, work: usize) -> Result<bool, BoxError> {
        let FormatCheck { walk, rules, .. } = self;
        walk.go_on(work, |_, tuple| rules.check(tuple.bytes()))
    }

    /// Checks what was written since the beginning.
    ///
    /// # Errors
    /// Tarantool's, if the new tuple is not as it has to be.
    pub fn follow(&mut self, written: &Written) -> Result<(), BoxError> {
        written.new.iter().try_for_each(|new| self.rules.check(new.bytes()))
    }

    /// What the space will be.
    pub fn def(&self) -> &SpaceDef {
        &self.def
    }

    /// The space as it was at the beginning.
    pub(crate) fn into_space(self) -> Space {
        self.walk.space
    }
}
