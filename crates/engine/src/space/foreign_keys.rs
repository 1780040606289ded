//! Foreign keys between spaces: which spaces a write of one locks as well, and what is checked.
//!
//! A write of a space with a foreign key reads the space that the key names; a tuple of that space
//! leaves only if no key names it. So who writes one of the two locks both, in the order of their
//! numbers, as every transaction does. Where a key has an action, a write of the parent may write the
//! child, so what that one locks is locked as well.

use ladon_record::SpaceId;
use ladon_space::{BoxError, ErrorCode, Following, KeyAction, Selected, Space, SpaceDef, Written};
use std::collections::{BTreeMap, BTreeSet};

/// Which spaces are bound to one another.
#[derive(Clone, Default)]
pub(super) struct Links {
    /// By space: those that its foreign keys name.
    parents: BTreeMap<SpaceId, BTreeSet<SpaceId>>,
    /// By space: those whose writes may write it, by the actions of its keys.
    masters: BTreeMap<SpaceId, BTreeSet<SpaceId>>,
    /// By space: those whose tuples its keys do not let go without a word: the action of a deletion
    /// is another one than `no_action`.
    watched: BTreeMap<SpaceId, BTreeSet<SpaceId>>,
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
        self.masters.remove(&id);
        self.watched.remove(&id);
        if !keys.is_empty() {
            self.parents.insert(id, keys.iter().map(|key| key.parent(id)).collect());
            let acting = keys.iter().filter(|key| key.acts()).map(|key| key.parent(id));
            self.masters.insert(id, acting.collect());
            let watching = keys.iter().filter(|key| key.on_delete() != KeyAction::NoAction);
            self.watched.insert(id, watching.map(|key| key.parent(id)).collect());
        }
        let mut linked: BTreeMap<SpaceId, BTreeSet<SpaceId>> = BTreeMap::new();
        for (child, parents) in &self.parents {
            for parent in parents {
                for (one, other) in [(child, parent), (parent, child)] {
                    linked.entry(*one).or_default().extend([*one, *other]);
                }
            }
        }
        let all = linked.keys().map(|id| (*id, self.closure(*id, &linked).into_iter().collect()));
        self.linked = all.collect();
    }

    /// All that a write of a space locks, with what it writes by actions.
    fn closure(
        &self,
        id: SpaceId,
        linked: &BTreeMap<SpaceId, BTreeSet<SpaceId>>,
    ) -> BTreeSet<SpaceId> {
        let (mut all, mut written, mut next) = (BTreeSet::new(), BTreeSet::new(), vec![id]);
        while let Some(id) = next.pop() {
            if !written.insert(id) {
                continue;
            }
            all.extend(linked.get(&id).into_iter().flatten());
            let of_id = self.masters.iter().filter(|(_, masters)| masters.contains(&id));
            next.extend(of_id.map(|(child, _)| *child));
        }
        all
    }

    /// The space and all that a write of it locks as well, in order, if there are others or it
    /// names tuples of its own.
    pub(super) fn of(&self, id: SpaceId) -> Option<&[SpaceId]> {
        self.linked.get(&id).map(Vec::as_slice)
    }

    /// Whether a foreign key names it, of its own tuples as well.
    pub(super) fn is_named_at_all(&self, id: SpaceId) -> bool {
        self.parents.values().any(|parents| parents.contains(&id))
    }

    /// Whether a foreign key does something if one of its tuples is deleted.
    pub(super) fn is_watched(&self, id: SpaceId) -> bool {
        self.watched.values().any(|parents| parents.contains(&id))
    }

    /// Whether the foreign key of another space names it.
    pub(super) fn is_named(&self, id: SpaceId) -> bool {
        self.parents.iter().any(|(child, parents)| *child != id && parents.contains(&id))
    }
}

/// How many tuples the actions of foreign keys may change because of one statement.
pub(crate) const FOLLOWED_MAX: usize = 10_000;
/// How deep the actions of foreign keys may follow each other.
pub(crate) const DEPTH_MAX: usize = 30;

/// The error of actions that go on and on.
pub(crate) fn too_deep(space: &Space) -> BoxError {
    let name = &space.def().name;
    let message = format!("actions of foreign keys to '{name}' are limited to {DEPTH_MAX} levels");
    BoxError::new(ErrorCode::FOREIGN_KEY_INTEGRITY, message)
}

/// What one key's action does in a space, and what was read for that.
pub(crate) struct Followed {
    pub(crate) child: SpaceId,
    pub(crate) changes: Vec<Following>,
    pub(crate) read: Selected,
}

/// What the actions of keys, which name the tuples of a space that was written, do to other tuples;
/// `left` of them at most.
///
/// # Errors
/// Tarantool's, and one of more tuples.
pub(crate) fn followed<'s>(
    linked: &[SpaceId],
    id: SpaceId,
    written: &Written,
    space: impl Fn(SpaceId) -> Option<&'s Space>,
    left: usize,
) -> Result<Vec<Followed>, BoxError> {
    let mut all = Vec::new();
    let Some(own) = space(id).filter(|_| written.old.is_some()) else { return Ok(all) };
    for child in linked.iter().filter_map(|id| space(*id)) {
        let of = child.def().id;
        for key in child.def().foreign_keys.iter().filter(|key| key.parent(of) == id) {
            let found = key.followed(child, own, written, left)?;
            all.extend(found.map(|(changes, read)| Followed { child: of, changes, read }));
        }
    }
    Ok(all)
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
