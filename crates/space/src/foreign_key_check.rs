//! Foreign keys' demands on tuples: that there is the one that is named, and that one which is
//! named stays.
//!
//! A key is checked after a statement, and the statement is taken back if the check fails. The
//! check judges what was there before the statement, as Tarantool does: a new tuple does not
//! satisfy its own foreign key. The actions of keys come before the check: what they change names
//! nothing that has left.
//!
//! Source: Tarantool's `tuple_constraint_fkey.c` for what is checked when.

use crate::compare;
use crate::definition::{IndexKind, SpaceDef};
use crate::error::BoxError;
use crate::fields;
use crate::foreign_key::{ForeignKey, KeyAction};
use crate::index::Index;
use crate::iterator_type::IteratorType;
use crate::key::Key;
use crate::key_part::Part;
use crate::select::Selected;
use crate::space::Space;
use crate::statement::{Statement, Written};
use crate::tuple::Tuple;
use ladon_msgpack::write;

/// A key that a parent does not have any more.
struct Left<'s> {
    /// The child's, over the fields that name it.
    index: &'s Index,
    key: Vec<u8>,
    local: Vec<u32>,
    values: Vec<&'s [u8]>,
}

/// What a key whose action is `restrict` says, which Tarantool has not.
const RESTRICTED: &str = "tuple is referenced, and deletions are restricted";

/// Whether an error is that of a deleted tuple that a key names whose action is `restrict`.
pub fn is_restricted(error: &BoxError) -> bool {
    error.message.ends_with(RESTRICTED)
}

/// What a foreign key's action does to one tuple.
pub struct Following {
    /// Its primary key.
    key: Vec<u8>,
    /// What is set; nothing of one that leaves.
    operations: Option<Vec<u8>>,
}

impl Following {
    /// The statement that does it.
    pub fn statement(&self) -> Statement<'_> {
        match &self.operations {
            None => Statement::Delete { index: 0, key: &self.key },
            Some(operations) => {
                Statement::Update { index: 0, key: &self.key, operations, index_base: 0 }
            }
        }
    }
}

/// Operations of an update that set these fields.
fn assignments(fields: &[u32], values: &[&[u8]]) -> Vec<u8> {
    let mut operations = Vec::new();
    write::array(&mut operations, fields.len() as u32);
    for (field, value) in fields.iter().zip(values) {
        write::array(&mut operations, 3);
        write::str(&mut operations, b"=");
        write::uint(&mut operations, (*field).into());
        operations.extend_from_slice(value);
    }
    operations
}

impl ForeignKey {
    /// Checks that there is the tuple that a written one names. Returns what it read of the parent.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn check_child(
        &self,
        child: &SpaceDef,
        parent: &Space,
        written: &Written,
    ) -> Result<Option<Selected>, BoxError> {
        let Some(new) = &written.new else { return Ok(None) };
        let Some(local) = self.local_fields(child) else {
            return Err(self.failed(child, "wrong local field name"));
        };
        let values = values_of(new.bytes(), &local);
        if values.iter().all(|value| is_nil(value)) {
            return Ok(None);
        }
        let foreign = self.foreign_fields(parent.def());
        let Some((index, order)) = foreign.and_then(|fields| index_over(parent, &fields, true))
        else {
            return Err(self.failed(child, "foreign index was not found"));
        };
        let bytes = key_of(&values, &order);
        let key = Key::parse(&bytes)?;
        if index.key.check_exact(&key).is_err() {
            return Err(self.failed(child, "wrong key type"));
        }
        // Of its own space, the tuple was not there before, unless in another form.
        let was_there = |found: &Tuple| {
            !found.is_same(new) || written.old.as_ref().is_some_and(|old| index.has_key(old, &key))
        };
        match index.find_key(&key) {
            Some((_, found)) if was_there(found) => Ok(Some(exactly(index, bytes))),
            _ => Err(self.failed(child, "foreign tuple was not found")),
        }
    }

    /// Checks that no tuple names one that was replaced or deleted. Returns what it read of the
    /// child.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn check_parent(
        &self,
        child: &Space,
        parent: &Space,
        written: &Written,
    ) -> Result<Option<Selected>, BoxError> {
        let Some(left) = self.left(child, parent, written)? else { return Ok(None) };
        let Left { index, key, local, values } = &left;
        let (everything, name) = ((0, u64::MAX), &child.def().name);
        let mut naming = index.select(name, IteratorType::Eq, key, everything, None)?;
        let is_new = |found: &Tuple| written.new.as_ref().is_some_and(|new| found.is_same(new));
        let old = written.old.as_ref().map(Tuple::bytes).unwrap_or_default();
        let names_itself = self.parent(child.def().id) == child.def().id
            && !self.action(written.new.is_some()).changes()
            && values_of(old, local)
                .iter()
                .zip(values)
                .all(|(local, foreign)| compare::values(local, foreign).is_eq());
        if names_itself || naming.any(|found| !is_new(found)) {
            let restricts = written.new.is_none() && self.on_delete() == KeyAction::Restrict;
            return Err(self.broken(if restricts { RESTRICTED } else { "tuple is referenced" }));
        }
        Ok(Some(exactly(index, left.key)))
    }

    /// What its action does to the tuples that named one which was replaced or deleted, `most` of
    /// them at most, and what it read of the child; `None` if it does nothing.
    ///
    /// # Errors
    /// Tarantool's, and one if there are more tuples.
    pub fn followed(
        &self,
        child: &Space,
        parent: &Space,
        written: &Written,
        most: usize,
    ) -> Result<Option<(Vec<Following>, Selected)>, BoxError> {
        let action = self.action(written.new.is_some());
        if !action.changes() {
            return Ok(None);
        }
        let Some(left) = self.left(child, parent, written)? else { return Ok(None) };
        let name = &child.def().name;
        let naming = left.index.select(name, IteratorType::Eq, &left.key, (0, u64::MAX), None)?;
        let operations = match (&written.new, action) {
            (None, KeyAction::Cascade) => None,
            (Some(new), KeyAction::Cascade) => {
                let foreign = self.foreign_fields(parent.def()).unwrap_or_default();
                Some(assignments(&left.local, &values_of(new.bytes(), &foreign)))
            }
            (_, KeyAction::SetDefault) => {
                Some(assignments(&left.local, &self.defaults(left.local.len())))
            }
            _ => Some(assignments(&left.local, &vec![&NIL[..]; left.local.len()])),
        };
        let mut all = Vec::new();
        for tuple in naming {
            if all.len() >= most {
                return Err(self.broken("its action would change too many tuples"));
            }
            let key = child.primary_key_of_own(tuple);
            all.push(Following { key, operations: operations.clone() });
        }
        Ok(Some((all, exactly(left.index, left.key))))
    }

    /// What left a parent; `None` if nothing can name it.
    fn left<'s>(
        &self,
        child: &'s Space,
        parent: &Space,
        written: &'s Written,
    ) -> Result<Option<Left<'s>>, BoxError> {
        let Some(old) = &written.old else { return Ok(None) };
        let Some(foreign) = self.foreign_fields(parent.def()) else {
            return Err(self.broken("wrong foreign field name"));
        };
        if let Some(new) = &written.new
            && let Some((index, _)) = index_over(parent, &foreign, true)
        {
            let is_same = index.key.extract(old.bytes(), 0, false);
            if index.has_key(new, &Key::parse(&is_same)?) {
                return Ok(None);
            }
        }
        let local = self.local_fields(child.def());
        let found = local.as_ref().and_then(|fields| index_over(child, fields, false));
        let (Some(local), Some((index, order))) = (local, found) else {
            return Err(self.broken("index was not found"));
        };
        let values = values_of(old.bytes(), &foreign);
        if values.iter().any(|value| is_nil(value)) {
            return Ok(None);
        }
        let key = key_of(&values, &order);
        if index.key.check_exact(&Key::parse(&key)?).is_err() {
            return Err(self.broken("wrong key type"));
        }
        Ok(Some(Left { index, key, local, values }))
    }

    /// Checks that a tuple of a space, with this definition, which was there before the key, names a
    /// tuple.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn check_there(
        &self,
        child: &SpaceDef,
        parent: &Space,
        tuple: &Tuple,
    ) -> Result<(), BoxError> {
        let there = Written { old: Some(tuple.clone()), new: Some(tuple.clone()) };
        self.check_child(child, parent, &there).map(drop)
    }

    /// Checks that no tuple of a space, which is to get the definition `def` with this key, names one
    /// that has left its parent. Returns whether that could be found out: only by an index over the
    /// key's fields that compares as the parent's does.
    ///
    /// # Errors
    /// Tarantool's of a tuple that names it.
    pub(crate) fn check_left(
        &self,
        def: &SpaceDef,
        child: &Space,
        parent: &Space,
        written: &Written,
    ) -> Result<bool, BoxError> {
        let Some(old) = &written.old else { return Ok(true) };
        let foreign = self.foreign_fields(parent.def());
        let local = self.local_fields(def);
        // Without one of them, every tuple that names anything was refused.
        let (Some(foreign), Some(local)) = (foreign, local) else { return Ok(true) };
        let Some((named, order)) = index_over(parent, &foreign, true) else { return Ok(true) };
        let values = values_of(old.bytes(), &foreign);
        if values.iter().all(|value| is_nil(value)) {
            return Ok(true);
        }
        let bytes = key_of(&values, &order);
        let key = Key::parse(&bytes)?;
        if named.key.check_exact(&key).is_err() || named.find_key(&key).is_some() {
            return Ok(true);
        }
        let Some((naming, order_there)) = index_over(child, &local, false) else {
            return Ok(false);
        };
        let part_of = |order: &[usize], at| order.iter().position(|of| *of == at);
        let compares_alike = (0..values.len()).all(|at| {
            let pair = part_of(&order, at).zip(part_of(&order_there, at));
            pair.is_some_and(|(of_named, of_naming)| {
                let part = &naming.key.own()[of_naming];
                part.collation == named.key.own()[of_named].collation && !part.exclude_null
            })
        });
        let bytes = key_of(&values, &order_there);
        if !compares_alike || naming.key.check_exact(&Key::parse(&bytes)?).is_err() {
            return Ok(false);
        }
        let first = (0, 1);
        let mut found = naming.select(&def.name, IteratorType::Eq, &bytes, first, None)?;
        found.next().map_or(Ok(true), |tuple| self.check_there(def, parent, tuple).map(|()| true))
    }
}

/// All tuples with a key, which has all parts of the index's.
fn exactly(index: &Index, key: Vec<u8>) -> Selected {
    let (index, iterator, key) = (index.def().id, IteratorType::Eq, key.into());
    Selected { index, iterator, key, offset: 0, limit: u64::MAX, after: None }
}

const NIL: [u8; 1] = [0xc0];

fn is_nil(value: &[u8]) -> bool {
    value == NIL
}

/// The values of fields; an absent one is nil.
fn values_of<'t>(tuple: &'t [u8], fields: &[u32]) -> Vec<&'t [u8]> {
    fields.iter().map(|field| fields::field(tuple, *field).unwrap_or(&NIL)).collect()
}

/// A key of values in the order of an index's parts.
fn key_of(values: &[&[u8]], order: &[usize]) -> Vec<u8> {
    let mut key = Vec::new();
    write::array(&mut key, order.len() as u32);
    order.iter().for_each(|at| key.extend_from_slice(values[*at]));
    key
}

/// The first index over just these fields, and which field each of its parts is.
fn index_over<'s>(
    space: &'s Space,
    fields: &[u32],
    is_unique: bool,
) -> Option<(&'s Index, Vec<usize>)> {
    space.indexes().find_map(|index| {
        let def = index.def();
        let is_fit = matches!(def.kind, IndexKind::Tree | IndexKind::Hash)
            && (def.is_unique || !is_unique)
            && def.field_parts().len() == fields.len()
            && def.field_parts().iter().all(|part| part.path.is_empty());
        let place = |part: &Part| fields.iter().position(|field| *field == part.field);
        let order: Option<Vec<usize>> = def.field_parts().iter().map(place).collect();
        let covers = |order: &Vec<usize>| (0..fields.len()).all(|at| order.contains(&at));
        Some((index, order.filter(|order| is_fit && covers(order))?))
    })
}
