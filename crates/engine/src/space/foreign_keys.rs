//! Foreign keys between spaces: which spaces a write of one locks as well, and what is checked.
//!
//! A write of a space with a foreign key reads the space that the key names; a tuple of that space
//! leaves only if no key names it. So who writes one of the two locks both, in the order of their
//! numbers, as every transaction does.

use ladon_record::SpaceId;
use ladon_space::{BoxError, Selected, Space, SpaceDef, Written};
use std::collections::{BTreeMap, BTreeSet};

/// Which spaces are bound to one another.
#[derive(Clone, Default)]
pub(super) struct Links {
    /// By space: those that its foreign keys name.
    parents: BTreeMap<SpaceId, BTreeSet<SpaceId>>,
    /// By space: itself and all that a write of it locks as well, in order.
    linked: BTreeMap<SpaceId, Vec<SpaceId>>,
}

impl Links {
    /// Notes the foreign keys of a space; none once it is dropped.
    pub(super) fn set(&mut self, id: SpaceId, def: Option<&SpaceDef>) {
        let keys = def.map_or(&[][..], |def| &def.foreign_keys[..]);
        if keys.is_empty() && self.parents.remove(&id).is_none() {
            return;
        }
        if !keys.is_empty() {
            self.parents.insert(id, keys.iter().map(|key| key.parent(id)).collect());
        }
        let mut linked: BTreeMap<SpaceId, BTreeSet<SpaceId>> = BTreeMap::new();
        for (child, parents) in &self.parents {
            for parent in parents {
                for (one, other) in [(child, parent), (parent, child)] {
                    linked.entry(*one).or_default().extend([*one, *other]);
                }
            }
        }
        self.linked = linked.into_iter().map(|(id, all)| (id, all.into_iter().collect())).collect();
    }

    /// The space and all that a write of it locks as well, in order, if there are others or it
    /// names tuples of its own.
    pub(super) fn of(&self, id: SpaceId) -> Option<&[SpaceId]> {
        self.linked.get(&id).map(Vec::as_slice)
    }

    /// Whether the foreign key of another space names it.
    pub(super) fn is_named(&self, id: SpaceId) -> bool {
        self.parents.iter().any(|(child, parents)| *child != id && parents.contains(&id))
    }
}

/// Checks the foreign keys of a space that was written, and those that name it: those of `linked`,
/// which are the spaces that are bound to it. `looked` gets what was read in which space.
///
/// # Errors
/// Tarantool's.
pub(crate) fn check_written<'s>(
    linked: &[SpaceId],
    id: SpaceId,
    written: &Written,
    space: impl Fn(SpaceId) -> Option<&'s Space>,
    mut looked: impl FnMut(SpaceId, Selected),
) -> Result<(), BoxError> {
    let Some(own) = space(id) else { return Ok(()) };
    for key in &own.def().foreign_keys {
        let none = || key.refused(&own.def().name, "its space is gone");
        let of = key.parent(id);
        let selected = key.check_child(own.def(), space(of).ok_or_else(none)?, written)?;
        selected.into_iter().for_each(|selected| looked(of, selected));
    }
    for child in linked.iter().filter_map(|id| space(*id)) {
        let of = child.def().id;
        for key in child.def().foreign_keys.iter().filter(|key| key.parent(of) == id) {
            let selected = key.check_parent(child, own, written)?;
            selected.into_iter().for_each(|selected| looked(of, selected));
        }
    }
    Ok(())
}
