//! A definition of a space that demands more of tuples than the one before, a format or foreign keys:
//! they are checked a few at a time, in a copy of the space, while that goes on changing.
//!
//! Foreign keys are looked up in the spaces that there are at the moment of the slice. So a tuple of
//! the copy may name one that left later than the tuple did: what seems to fail is looked at again,
//! as it is now. What leaves after a tuple was checked is followed
//! ([`FormatCheck::follow_parent`]).

use crate::definition::SpaceDef;
use crate::error::BoxError;
use crate::foreign_key::ForeignKey;
use crate::format::Rules;
use crate::key::Key;
use crate::space::Space;
use crate::statement::Written;
use crate::tuple::Tuple;
use crate::tuple_walk::TupleWalk;
use std::sync::Arc;

/// A space of this number, as it is now: the one that is checked, and those that its new foreign
/// keys name.
pub type Live<'f, 's> = &'f dyn Fn(u32) -> Option<&'s Space>;

/// The definition, and how far the check has come.
pub struct FormatCheck {
    walk: TupleWalk,
    demands: Demands,
}

struct Demands {
    def: SpaceDef,
    /// What the definition and the indexes of the beginning demand. What other indexes demand, the
    /// tuples meet anyway.
    rules: Rules,
    /// The foreign keys that the definition before does not have.
    keys: Vec<ForeignKey>,
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
        let old = space.def();
        let is_new =
            |key: &&ForeignKey| !(old.foreign_keys.contains(key) && key.is_kept(old, &def));
        let keys: Vec<ForeignKey> = def.foreign_keys.iter().filter(is_new).cloned().collect();
        if rules.are_met_by(&space.rules) && keys.is_empty() {
            return Ok(None);
        }
        Ok(Some(FormatCheck { walk: TupleWalk::of(space), demands: Demands { def, rules, keys } }))
    }

    /// Checks more of the tuples that there were at the beginning: as many as short ones would be
    /// `work`, one at least. Returns whether none are left.
    ///
    /// # Errors
    /// Tarantool's, if a tuple is not as it has to be.
    pub fn go_on(&mut self, work: usize, live: Live<'_, '_>) -> Result<bool, BoxError> {
        let FormatCheck { walk, demands } = self;
        let work = work / (1 + demands.keys.len());
        walk.go_on(work, |_, tuples| tuples.iter().try_for_each(|tuple| demands.check(tuple, live)))
    }

    /// Checks what was written since the beginning.
    ///
    /// # Errors
    /// Tarantool's, if the new tuple is not as it has to be.
    pub fn follow(&mut self, written: &Written, live: Live<'_, '_>) -> Result<(), BoxError> {
        written.new.iter().try_for_each(|new| self.demands.check(new, live))
    }

    /// Checks what was written since the beginning in a space that new foreign keys name. Returns
    /// whether that could be found out: if not, the check has to begin again.
    ///
    /// # Errors
    /// Tarantool's, if a tuple names one that has left.
    pub fn follow_parent(
        &self,
        parent: u32,
        written: &Written,
        live: Live<'_, '_>,
    ) -> Result<bool, BoxError> {
        let Demands { def, keys, .. } = &self.demands;
        let (Some(child), Some(space)) = (live(def.id), live(parent)) else { return Ok(false) };
        let mut of_parent = keys.iter().filter(|key| key.parent(def.id) == parent);
        of_parent.try_fold(true, |is_known, key| {
            Ok(key.check_left(def, child, space, written)? && is_known)
        })
    }

    /// The foreign keys that the definition before does not have.
    pub fn new_keys(&self) -> &[ForeignKey] {
        &self.demands.keys
    }

    /// What the space will be.
    pub fn def(&self) -> &SpaceDef {
        &self.demands.def
    }

    /// The space as it was at the beginning.
    pub(crate) fn into_space(self) -> Space {
        self.walk.space
    }
}

impl Space {
    /// As [`Space::alter`], with a definition whose demands the tuples are known to meet. Returns
    /// what is left, which may take long to drop.
    ///
    /// # Errors
    /// As [`Space::alter`], if other indexes that came meanwhile do not go with it.
    pub fn adopt_format(&mut self, check: FormatCheck) -> Result<Space, BoxError> {
        let rules = self.planned_rules(check.def())?;
        (self.def, self.rules) = (check.def().clone(), Arc::new(rules));
        Ok(check.into_space())
    }
}

impl Demands {
    fn check(&self, tuple: &Tuple, live: Live<'_, '_>) -> Result<(), BoxError> {
        self.rules.check(tuple.bytes())?;
        self.keys.iter().try_for_each(|key| self.check_key(key, tuple, live))
    }

    fn check_key(
        &self,
        key: &ForeignKey,
        tuple: &Tuple,
        live: Live<'_, '_>,
    ) -> Result<(), BoxError> {
        let id = self.def.id;
        // Who has locked them has seen that they are there.
        let (Some(child), Some(parent)) = (live(id), live(key.parent(id))) else { return Ok(()) };
        let failed = match key.check_there(&self.def, parent, tuple) {
            Ok(()) => return Ok(()),
            Err(failed) => failed,
        };
        let primary = child.primary_key_of_own(tuple);
        match child.require_index(0)?.find_key(&Key::parse(&primary)?) {
            None => Ok(()),
            Some((_, now)) if now.is_same(tuple) => Err(failed),
            Some((_, now)) => key.check_there(&self.def, parent, now),
        }
    }
}
