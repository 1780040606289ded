//! The spaces of a round, and the requests that make and remove them.

use super::request::{Check, Request, key, kind};
use super::value::Value;
use super::values::{INDEXED, TYPES};
use crate::random::rng::Rng;

/// The numbers of the first space; the others follow.
pub const FIRST_ID: u64 = 600;
/// The most spaces of a round.
pub const SPACES_MAX: usize = 2;
/// The most indexes of a space, those made in the middle of a round included.
pub const INDEXES_MAX: usize = 5;
const SPACE: u64 = 280;
const INDEX: u64 = 288;
const TRUNCATE: u64 = 330;
const OWNER: u64 = 1;

/// A field of a format.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: &'static str,
    /// Whether it may be nil.
    pub nullable: bool,
    /// What its values are: its type, or which arrays.
    pub content: &'static str,
}

/// An index, as it was asked for.
#[derive(Clone, Debug)]
pub struct Index {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: &'static str,
    /// Whether the first part is each element of an array.
    pub is_multikey: bool,
    /// Whether its order is not defined.
    pub is_unordered: bool,
    /// Whether it is unique.
    pub unique: bool,
    /// The fields' numbers and the parts' types.
    pub parts: Vec<(usize, &'static str)>,
}

/// A space, as it was asked for.
#[derive(Clone, Debug)]
pub struct Space {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its fields, whether its format names them or not.
    pub fields: Vec<Field>,
    /// Whether its definition has the format.
    pub has_format: bool,
    /// Its indexes.
    pub indexes: Vec<Index>,
}

impl Index {
    /// How many fields each of its tuples has, at least.
    pub fn width(&self) -> usize {
        self.parts.iter().map(|(number, _)| number + 1).max().unwrap_or(1)
    }
}

/// What the arrays of a field are.
const ARRAYS: [&str; 5] = ["array", "numbers", "numbers", "box", "box"];
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

impl Space {
    /// A space with this place among the round's.
    pub fn random(rng: &mut Rng, place: usize) -> Space {
        let count = 2 + rng.below(NAMES.len() - 1);
        let mut fields: Vec<Field> = Vec::new();
        for (number, name) in NAMES[..count].iter().enumerate() {
            let kind = match () {
                () if number == 0 && rng.percent(60) => "unsigned",
                () if number > 0 && rng.percent(15) => "array",
                () => *rng.pick(&TYPES),
            };
            let content = if kind == "array" { *rng.pick(&ARRAYS) } else { kind };
            // 2.11 lets an array with indexed elements be nil, 2.6 does not.
            let nullable = number > 0 && rng.percent(40) && content == kind;
            fields.push(Field { name, kind, nullable, content });
        }
        let has_format = rng.percent(70);
        let id = FIRST_ID + place as u64;
        let mut space =
            Space { id, name: format!("s{place}"), fields, has_format, indexes: vec![] };
        for number in 0..1 + rng.below(INDEXES_MAX - 1) {
            let index = space.random_index(rng, number as u64);
            space.indexes.push(index);
        }
        space
    }

    /// An index over an array or over bits, if it has a field for one.
    fn other_index(&self, rng: &mut Rng, id: u64) -> Option<Index> {
        let number = rng.below(self.fields.len());
        let (kind, part) = match self.fields[number].content {
            "numbers" => ("tree", *rng.pick(&["unsigned", "integer", "scalar", "number"])),
            "box" => ("rtree", "array"),
            part @ ("unsigned" | "string") => ("bitset", part),
            _ => return None,
        };
        let is_multikey = kind == "tree";
        let mut parts = vec![(number, part)];
        if is_multikey && rng.percent(40) {
            parts.push((0, self.fields[0].kind));
        }
        let unique = if is_multikey { rng.percent(50) } else { rng.percent(3) };
        let name = format!("i{id}");
        Some(Index { id, name, kind, is_multikey, is_unordered: !is_multikey, unique, parts })
    }

    /// An index that it may have.
    pub fn random_index(&self, rng: &mut Rng, id: u64) -> Index {
        if id > 0
            && rng.percent(40)
            && let Some(index) = self.other_index(rng, id)
        {
            return index;
        }
        let is_first = id == 0;
        let is_hash = rng.percent(25);
        let part_count = *rng.pick(&[1, 1, 1, 2, 2, 3]);
        let mut parts = Vec::new();
        for _ in 0..part_count {
            let number =
                if is_first && parts.is_empty() { 0 } else { rng.below(self.fields.len()) };
            let kind = self.fields[number].kind;
            let kind = match () {
                () if rng.percent(3) => *rng.pick(&TYPES),
                () if !TYPES[..INDEXED].contains(&kind) && rng.percent(85) => "scalar",
                () => kind,
            };
            // The same part twice is an error, which is enough to see now and then.
            if parts.iter().all(|(field, _)| *field != number) || rng.percent(5) {
                parts.push((number, kind));
            }
        }
        let unique = if is_first || is_hash { !rng.percent(2) } else { rng.percent(40) };
        // 2.6 hashes a decimal otherwise than the integer or the decimal that it equals.
        let is_mixed =
            parts.iter().any(|(_, kind)| matches!(*kind, "number" | "scalar" | "decimal"));
        let is_hash = is_hash && !is_mixed;
        let (name, kind) = (format!("i{id}"), if is_hash { "hash" } else { "tree" });
        Index { id, name, kind, is_multikey: false, is_unordered: is_hash, unique, parts }
    }

    /// How many fields each of its tuples has, at least.
    pub fn width_min(&self) -> usize {
        self.indexes.iter().find(|index| index.id == 0).map_or(1, Index::width)
    }

    /// Whether an index's order is not defined.
    pub fn check_of(&self, index: u64, is_whole: bool) -> Check {
        match self.indexes.iter().find(|it| it.id == index) {
            Some(index) if index.is_unordered && is_whole => Check::Unordered,
            Some(index) if index.is_unordered => Check::Count,
            _ => Check::Exact,
        }
    }

    /// What makes the space and its indexes.
    pub fn requests(&self, rng: &mut Rng) -> Vec<Request> {
        let mut requests = vec![self.define(rng, kind::INSERT)];
        requests.extend(self.indexes.iter().map(|index| self.define_index(rng, index)));
        requests
    }

    /// Inserts or replaces its definition.
    pub fn define(&self, rng: &mut Rng, request_type: u8) -> Request {
        let mut format = Vec::new();
        for field in &self.fields {
            let mut pairs =
                vec![("name", Value::text(field.name)), ("type", Value::text(field.kind))];
            if field.nullable {
                pairs.push(("is_nullable", Value::Bool(true)));
            }
            format.push(Value::named(&pairs));
        }
        if !self.has_format {
            format.clear();
        }
        let field_count = if rng.percent(5) { rng.below(7) as u64 } else { 0 };
        let tuple = vec![
            Value::int(self.id),
            Value::int(OWNER),
            Value::text(&self.name),
            Value::text(if rng.percent(1) { "mem" } else { "memtx" }),
            Value::int(field_count),
            Value::Map(Vec::new()),
            Value::Array(format),
        ];
        put(request_type, SPACE, tuple)
    }

    /// Inserts an index's definition.
    pub fn define_index(&self, rng: &mut Rng, index: &Index) -> Request {
        let as_maps = rng.percent(75);
        let parts = index.parts.iter().enumerate().map(|(at, (number, kind))| {
            let is_each = index.is_multikey && at == 0;
            let nullable = index.id > 0 && self.fields[*number].nullable && !rng.percent(10);
            let (number, kind) = (Value::int(*number as u64), Value::text(kind));
            if as_maps == rng.percent(1) && !index.is_multikey {
                return Value::Array(vec![number, kind]);
            }
            let mut pairs = vec![("field", number), ("type", kind)];
            if nullable && index.kind != "rtree" && index.kind != "bitset" {
                pairs.push(("is_nullable", Value::Bool(true)));
            }
            if is_each {
                pairs.push(("path", Value::text("[*]")));
            }
            Value::named(&pairs)
        });
        let parts = Value::Array(parts.collect());
        let mut options = vec![("unique", Value::Bool(index.unique))];
        if index.kind == "rtree" && rng.percent(30) {
            let distance = *rng.pick(&["euclid", "manhattan", "MANHATTAN", "far"]);
            options.push(("distance", Value::text(distance)));
        }
        if index.kind == "rtree" && rng.percent(10) {
            options.push(("dimension", Value::int(rng.below(23) as u64)));
        }
        let tuple = vec![
            Value::int(self.id),
            Value::int(index.id),
            Value::text(&index.name),
            Value::text(index.kind),
            Value::named(&options),
            parts,
        ];
        put(kind::INSERT, INDEX, tuple)
    }

    /// Empties it.
    pub fn truncate(&self) -> Request {
        let operation = vec![Value::text("+"), Value::int(1), Value::int(1)];
        let body = vec![
            (key::SPACE_ID, Value::int(TRUNCATE)),
            (key::TUPLE, Value::Array(vec![Value::int(self.id), Value::int(1)])),
            (key::OPS, Value::Array(vec![Value::Array(operation)])),
        ];
        Request::new(kind::UPSERT, body)
    }

    /// Reads all of an index.
    pub fn read_all(&self, index: u64) -> Request {
        const ALL: u64 = 2;
        let body = vec![
            (key::SPACE_ID, Value::int(self.id)),
            (key::INDEX_ID, Value::int(index)),
            (key::ITERATOR, Value::int(ALL)),
            (key::LIMIT, Value::int(u32::MAX)),
            (key::KEY, Value::Array(Vec::new())),
        ];
        Request { check: self.check_of(index, true), ..Request::new(kind::SELECT, body) }
    }
}

/// Reads the definitions of the round's spaces.
pub fn read_definitions() -> Vec<Request> {
    let of = |system, id| {
        let body = vec![
            (key::SPACE_ID, Value::int(system)),
            (key::LIMIT, Value::int(100u64)),
            (key::KEY, Value::Array(vec![Value::int(id)])),
        ];
        Request::new(kind::SELECT, body)
    };
    ids().flat_map(|id| [of(SPACE, id), of(INDEX, id)]).collect()
}

/// Removes an index.
pub fn drop_index(space: u64, index: u64) -> Request {
    delete(INDEX, vec![Value::int(space), Value::int(index)])
}

/// Removes whatever a round has left.
pub fn clean() -> Vec<Request> {
    let mut requests = Vec::new();
    for id in ids() {
        requests.extend((0..INDEXES_MAX as u64).rev().map(|index| drop_index(id, index)));
        requests.push(delete(TRUNCATE, vec![Value::int(id)]));
        requests.push(delete(SPACE, vec![Value::int(id)]));
    }
    requests
}

fn ids() -> impl Iterator<Item = u64> {
    FIRST_ID..FIRST_ID + SPACES_MAX as u64
}

pub(super) fn put(request_type: u8, space: u64, tuple: Vec<Value>) -> Request {
    let body = vec![(key::SPACE_ID, Value::int(space)), (key::TUPLE, Value::Array(tuple))];
    Request::new(request_type, body)
}

pub(super) fn delete(space: u64, key: Vec<Value>) -> Request {
    let body = vec![(key::SPACE_ID, Value::int(space)), (key::KEY, Value::Array(key))];
    Request::new(kind::DELETE, body)
}
