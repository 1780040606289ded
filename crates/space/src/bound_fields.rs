//! The fields of a space that foreign keys read, and whether a statement that ran twice is the same
//! to them.

use crate::definition::SpaceDef;
use crate::fields;
use crate::foreign_key::ForeignKey;
use crate::statement::Written;
use crate::tuple::Tuple;

/// Which fields foreign keys read of a tuple that leaves a space, and of one that comes.
#[derive(Clone, Debug, Default)]
pub struct BoundFields {
    of_old: Fields,
    of_new: Fields,
}

#[derive(Clone, Debug)]
enum Fields {
    These(Vec<u32>),
    /// A key names a field that the format does not have.
    All,
}

impl Default for Fields {
    fn default() -> Fields {
        Fields::These(Vec::new())
    }
}

impl BoundFields {
    /// Those of a space; `linked` are the definitions of the spaces that keys bind to it.
    pub fn of<'s>(own: &SpaceDef, linked: impl Iterator<Item = &'s SpaceDef>) -> BoundFields {
        let mut bound = BoundFields::default();
        for key in &own.foreign_keys {
            // A tuple that comes must name one.
            bound.of_new.add(key.local_fields(own));
            if key.parent(own.id) == own.id {
                // Whether a tuple names itself is asked of both.
                bound.of_old.add(key.local_fields(own));
            }
        }
        let keys = linked.flat_map(|child| child.foreign_keys.iter().map(move |key| (child, key)));
        let names_own = |(child, key): &(&SpaceDef, &ForeignKey)| key.parent(child.id) == own.id;
        for (_, key) in keys.filter(names_own) {
            // A tuple that leaves must be named by none, unless the one that comes has its key.
            bound.of_old.add(key.foreign_fields(own));
            bound.of_new.add(key.foreign_fields(own));
        }
        bound
    }

    /// Whether checks of the foreign keys read the same after both.
    pub fn are_alike(&self, before: &Written, now: &Written) -> bool {
        self.of_old.are_equal(before.old.as_ref(), now.old.as_ref())
            && self.of_new.are_equal(before.new.as_ref(), now.new.as_ref())
    }
}

impl Fields {
    fn add(&mut self, more: Option<Vec<u32>>) {
        match (&mut *self, more) {
            (Fields::These(fields), Some(more)) => fields.extend(more),
            _ => *self = Fields::All,
        }
    }

    fn are_equal(&self, before: Option<&Tuple>, now: Option<&Tuple>) -> bool {
        match (self, before, now) {
            // Nobody asks whether there was a tuple.
            (Fields::These(fields), ..) if fields.is_empty() => true,
            (Fields::These(of), Some(before), Some(now)) => of
                .iter()
                .all(|at| fields::field(before.bytes(), *at) == fields::field(now.bytes(), *at)),
            (_, before, now) => before == now,
        }
    }
}
