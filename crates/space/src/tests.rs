//! Spaces against a plain model, and Tarantool's replies as data.

mod bitset;
mod defaults;
mod definitions;
mod index_creation;
mod keys;
mod loading;
mod model;
mod multikey;
mod rtree;
mod strings;
mod update_paths;
mod updates;

use crate::{BoxError, IndexDef, Space, SpaceDef};
use ladon_msgpack::write;

/// A value of a test, ordered as an index orders.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Val {
    Nil,
    Uint(u64),
    Int(i64),
    /// A double, in halves.
    Halves(i64),
    Str(String),
    Array(Vec<Val>),
    Map(Vec<(String, Val)>),
}

impl From<u64> for Val {
    fn from(value: u64) -> Val {
        Val::Uint(value)
    }
}

impl From<&str> for Val {
    fn from(value: &str) -> Val {
        Val::Str(value.to_owned())
    }
}

impl Val {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Val::Nil => write::nil(out),
            Val::Uint(value) => write::uint(out, *value),
            Val::Int(value) => write::int(out, *value),
            Val::Halves(value) => write::double(out, *value as f64 / 2.0),
            Val::Str(value) if value == "true" => write::bool(out, true),
            Val::Str(value) if value == "false" => write::bool(out, false),
            Val::Str(value) => write::str(out, value.as_bytes()),
            Val::Array(values) => {
                write::array(out, values.len() as u32);
                values.iter().for_each(|value| value.write(out));
            }
            Val::Map(pairs) => {
                write::map(out, pairs.len() as u32);
                for (name, value) in pairs {
                    write::str(out, name.as_bytes());
                    value.write(out);
                }
            }
        }
    }
}

/// A MessagePack array.
pub(super) fn array(values: &[Val]) -> Vec<u8> {
    let mut out = Vec::new();
    Val::Array(values.to_vec()).write(&mut out);
    out
}

pub(super) fn map(pairs: &[(&str, Val)]) -> Val {
    Val::Map(pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

/// A field of a format.
pub(super) fn field(name: &str, kind: &str, is_nullable: bool) -> Val {
    let is_nullable = is_nullable.to_string();
    map(&[
        ("name", name.into()),
        ("type", kind.into()),
        ("is_nullable", is_nullable.as_str().into()),
    ])
}

pub(super) fn space_def(format: Vec<Val>) -> Result<SpaceDef, BoxError> {
    SpaceDef::from_tuple(&array(&[
        512.into(),
        1.into(),
        "s".into(),
        "memtx".into(),
        0.into(),
        map(&[]),
        Val::Array(format),
    ]))
}

pub(super) fn index_def(
    space: &SpaceDef,
    id: u64,
    kind: &str,
    unique: bool,
    parts: Vec<Val>,
) -> Result<IndexDef, BoxError> {
    let unique = unique.to_string();
    let tuple = array(&[
        512.into(),
        id.into(),
        format!("i{id}").as_str().into(),
        kind.into(),
        map(&[("unique", unique.as_str().into())]),
        Val::Array(parts),
    ]);
    IndexDef::from_tuple(&tuple, space)
}

/// A part as an array.
pub(super) fn part(field: u64, kind: &str) -> Val {
    Val::Array(vec![field.into(), kind.into()])
}

/// A space of this format, with a primary key of its first field.
pub(super) fn new_space(format: Vec<Val>) -> Space {
    let mut space = Space::new(space_def(format).expect("a definition"));
    create(&mut space, 0, "tree", true, vec![part(0, "unsigned")]).expect("an index");
    space
}

/// Makes an index of a space.
pub(super) fn create(
    space: &mut Space,
    id: u64,
    kind: &str,
    unique: bool,
    parts: Vec<Val>,
) -> Result<(), BoxError> {
    let def = index_def(space.def(), id, kind, unique, parts)?;
    space.create_index(def)
}

/// An array of numbers.
pub(super) fn numbers(values: &[u64]) -> Val {
    Val::Array(values.iter().map(|value| (*value).into()).collect())
}
