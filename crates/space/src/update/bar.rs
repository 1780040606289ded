//! One operation somewhere inside of a value, which is not taken apart for it.

use super::arithmetic;
use super::lexer::{Lexer, Token};
use super::node::{Slot, rule_at, write_float};
use super::operation::{Action, Operation};
use super::walk::{self, Found, Walk, step};
use crate::error::BoxError;
use crate::field_type::peek;
use crate::format::Rule;
use ladon_msgpack::{self as msgpack, Value, write};

/// What the operation does at its place.
pub(super) enum Effect<'a> {
    /// A new element, or a new pair with this key.
    Insert {
        key: Option<&'a [u8]>,
        value: &'a [u8],
    },
    /// So many elements are gone, or a pair.
    Delete {
        count: u32,
    },
    Set(&'a [u8]),
    Made(Vec<u8>),
    Float(f32),
}

pub(super) struct Bar<'a> {
    /// The value that the path begins in.
    data: &'a [u8],
    path: &'a [u8],
    /// Where in the data the array or map is that the last step leads into.
    parent: usize,
    /// Where in the data the place is, and how many bytes it has.
    point: usize,
    length: usize,
    operation: Operation<'a>,
    effect: Effect<'a>,
}

/// How far a path leads.
enum Reached<'a> {
    /// To a value: the array or map with it, the last step, and what that found.
    Value(&'a [u8], Token<'a>, Found<'a>),
    /// To an array or map in which the last step finds nothing.
    Parent(&'a [u8], Token<'a>),
}

impl<'a> Bar<'a> {
    /// Does an operation inside of a value; `path` leads there from it.
    pub(super) fn locate(
        operation: &Operation<'a>,
        path: Lexer<'a>,
        data: &'a [u8],
        walk: &mut Walk,
    ) -> Result<Bar<'a>, BoxError> {
        let at = |from: &[u8]| data.len() - from.len();
        let bar = |parent, point, length, effect| Bar {
            data,
            path: path.rest(),
            parent: at(parent),
            point,
            length,
            operation: *operation,
            effect,
        };
        match (reach(operation, path, data, walk)?, &operation.action) {
            (Reached::Parent(parent, token), Action::Insert(value) | Action::Set(value)) => {
                let end = at(parent) + walk::whole(parent, walk).len();
                let key = new_place(operation, parent, token)?;
                Ok(bar(parent, end, 0, Effect::Insert { key, value }))
            }
            (Reached::Parent(..), _) => Err(operation.no_field()),
            (Reached::Value(parent, _, found), Action::Insert(value)) => {
                if matches!(peek(parent), Some(Value::Map(_))) {
                    return Err(operation.duplicate());
                }
                Ok(bar(parent, at(found.value), 0, Effect::Insert { key: None, value }))
            }
            (Reached::Value(parent, token, found), Action::Delete(count)) => {
                let (from, length, count) =
                    to_delete(operation, parent, token, &found, *count, walk)?;
                Ok(bar(parent, at(from), length, Effect::Delete { count }))
            }
            (Reached::Value(parent, _, found), action) => {
                let old = walk::whole(found.value, walk);
                let effect = match action {
                    Action::Set(value) => Effect::Set(value),
                    _ => match arithmetic::compute(operation, old)? {
                        Slot::Float(value) => Effect::Float(value),
                        Slot::Made(value) => Effect::Made(value),
                        Slot::Old(_) | Slot::Set(_) | Slot::Inside(_) => Effect::Set(old),
                    },
                };
                Ok(bar(parent, at(found.value), old.len(), effect))
            }
        }
    }

    pub(super) fn data(&self) -> &'a [u8] {
        self.data
    }

    pub(super) fn path(&self) -> &'a [u8] {
        self.path
    }

    pub(super) fn into_effect(self) -> (Operation<'a>, Effect<'a>) {
        (self.operation, self.effect)
    }

    /// The same as a bar of the value at `at`, from where `path` leads on.
    pub(super) fn moved(self, at: usize, data: &'a [u8], path: &'a [u8]) -> Bar<'a> {
        Bar { data, path, parent: self.parent - at, point: self.point - at, ..self }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, rule: Option<&Rule>) {
        let Bar { data, parent, point, length, .. } = *self;
        let behind = &data[point + length..];
        let (resized, key, value) = match &self.effect {
            Effect::Insert { key, value } => (Some(1), *key, *value),
            Effect::Delete { count } => (Some(-i64::from(*count)), None, &[][..]),
            Effect::Set(value) => (None, None, *value),
            Effect::Made(value) => (None, None, &value[..]),
            Effect::Float(value) => {
                out.extend_from_slice(&data[..point]);
                write_float(out, *value, rule_at(rule, self.path));
                out.extend_from_slice(behind);
                return;
            }
        };
        let Some(more) = resized else {
            out.extend_from_slice(&data[..point]);
            out.extend_from_slice(value);
            out.extend_from_slice(behind);
            return;
        };
        out.extend_from_slice(&data[..parent]);
        let mut inside = &data[parent..];
        match msgpack::read(&mut inside) {
            Ok(Value::Array(count)) => write::array(out, (i64::from(count) + more) as u32),
            Ok(Value::Map(count)) => write::map(out, (i64::from(count) + more) as u32),
            _ => {}
        }
        let inside = data.len() - inside.len();
        match key {
            // As in Tarantool, a new pair is the first.
            Some(key) => {
                write::str(out, key);
                out.extend_from_slice(value);
                out.extend_from_slice(&data[inside..]);
            }
            None => {
                out.extend_from_slice(&data[inside..point]);
                out.extend_from_slice(value);
                out.extend_from_slice(behind);
            }
        }
    }
}

/// Follows a path.
fn reach<'a>(
    operation: &Operation<'a>,
    mut path: Lexer<'a>,
    data: &'a [u8],
    walk: &mut Walk,
) -> Result<Reached<'a>, BoxError> {
    let bad = |place| operation.bad_path(place);
    let (mut last, mut value) = (None, data);
    loop {
        let token = path.next().map_err(bad)?;
        match token {
            Token::Each => return Err(bad(path.characters() - 1)),
            Token::End => {
                let (parent, token, found) = last.ok_or_else(|| operation.no_field())?;
                return Ok(Reached::Value(parent, token, found));
            }
            Token::Index(_) | Token::Key(_) => {}
        }
        let Some(found) = step(value, token, walk) else {
            let may_be_new = matches!(operation.action, Action::Insert(_) | Action::Set(_));
            if may_be_new && path.next().map_err(bad)? == Token::End {
                return Ok(Reached::Parent(value, token));
            }
            return Err(operation.no_field());
        };
        let parent = std::mem::replace(&mut value, found.value);
        last = Some((parent, token, found));
    }
}

/// Whether a value can be added where a step found none; the key, in a map.
fn new_place<'a>(
    operation: &Operation<'_>,
    parent: &[u8],
    token: Token<'a>,
) -> Result<Option<&'a [u8]>, BoxError> {
    match (peek(parent), token) {
        (Some(Value::Array(count)), Token::Index(index)) if index <= count => Ok(None),
        (Some(Value::Map(_)), Token::Key(key)) => Ok(Some(key)),
        (Some(Value::Array(_)), Token::Index(_)) => Err(operation.no_field()),
        (_, Token::Index(_)) => Err(operation.error("can not access by index a non-array field")),
        _ => Err(operation.error("can not access by key a non-map field")),
    }
}

/// What is deleted: from where on, how many bytes, and how many elements or pairs.
fn to_delete<'a>(
    operation: &Operation<'_>,
    parent: &[u8],
    token: Token<'_>,
    found: &Found<'a>,
    count: u32,
    walk: &mut Walk,
) -> Result<(&'a [u8], usize, u32), BoxError> {
    let (from, values, count) = match (peek(parent), token) {
        (Some(Value::Array(length)), Token::Index(index)) => {
            let count = count.min(length - index);
            (found.value, count, count)
        }
        _ if count != 1 => return Err(operation.delete_one()),
        _ => (found.key, 2, 1),
    };
    let mut rest = from;
    for _ in 0..values {
        walk::whole(rest, walk);
        msgpack::skip(&mut rest)?;
    }
    Ok((from, from.len() - rest.len(), count))
}
