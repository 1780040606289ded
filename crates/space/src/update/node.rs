//! A value that is being updated: as it was, new, or changed somewhere inside.
//!
//! ```text
//! Slot ── Old, Set, Made, Float                 a whole value
//!      └─ Inside ── Bar                         one operation, somewhere inside
//!                ├─ Array, Map ── Slot...       operations on several of its values
//!                └─ Route ── Array, Map         the same, behind steps that all of them share
//! ```
//!
//! The first operation inside of a value makes a bar, which parses nothing but what its path
//! passes. The second one branches: where the paths part, the array or map is taken apart. What was
//! not touched stays a slice of the old tuple, and is copied once, at the end.

use super::array::Array;
use super::bar::{Bar, Effect};
use super::lexer::{Lexer, Token};
use super::map::Map;
use super::operation::Operation;
use super::walk::{Walk, step};
use super::{arithmetic, walk};
use crate::error::BoxError;
use crate::field_type::{FieldType, peek};
use crate::format::Rule;
use ladon_msgpack::{Value, write};

/// A place of a value.
pub(super) enum Slot<'a> {
    /// As it was, or as another operation has inserted it.
    Old(&'a [u8]),
    /// A value in the place of another in a map; no operation may compute with it.
    Set(&'a [u8]),
    /// What an operation computed; no other may compute with it.
    Made(Vec<u8>),
    /// The same, of a float: whether it is written as a double depends on where it ends up.
    Float(f32),
    /// Something inside has changed.
    Inside(Box<Node<'a>>),
}

/// A value with something changed inside.
#[allow(clippy::large_enum_variant, reason = "there are few, each in a box")]
pub(super) enum Node<'a> {
    Array(Array<'a>),
    Map(Map<'a>),
    Bar(Bar<'a>),
    Route(Route<'a>),
}

/// An array or map somewhere inside of a value, of which nothing else has changed.
pub(super) struct Route<'a> {
    data: &'a [u8],
    /// The steps to the array or map.
    path: &'a [u8],
    /// Where in the data it is.
    at: usize,
    length: usize,
    hop: Box<Node<'a>>,
}

impl<'a> Slot<'a> {
    /// Does an operation on something inside; `path` leads there from here.
    pub(super) fn enter(
        &mut self,
        operation: &Operation<'a>,
        path: Lexer<'a>,
        walk: &mut Walk,
    ) -> Result<(), BoxError> {
        match self {
            Slot::Old(bytes) => {
                let bar = Bar::locate(operation, path, bytes, walk)?;
                *self = Slot::Inside(Box::new(Node::Bar(bar)));
                Ok(())
            }
            Slot::Set(_) | Slot::Made(_) | Slot::Float(_) => {
                // Tarantool reads the path's next step before it looks at the value.
                let mut path = path;
                path.next().map_err(|place| operation.bad_path(place))?;
                Err(operation.double())
            }
            Slot::Inside(node) => node.act(operation, path, walk),
        }
    }

    /// Computes the value anew.
    pub(super) fn compute(&mut self, operation: &Operation<'a>) -> Result<(), BoxError> {
        let Slot::Old(old) = self else { return Err(operation.double()) };
        *self = arithmetic::compute(operation, old)?;
        Ok(())
    }

    /// Appends the value; `rule` is what the space says of its place.
    pub(super) fn write(&self, out: &mut Vec<u8>, rule: Option<&Rule>) {
        match self {
            Slot::Old(value) | Slot::Set(value) => out.extend_from_slice(value),
            Slot::Made(value) => out.extend_from_slice(value),
            Slot::Float(value) => write_float(out, *value, rule),
            Slot::Inside(node) => node.write(out, rule),
        }
    }
}

/// A value of type double takes no floats.
pub(super) fn write_float(out: &mut Vec<u8>, value: f32, rule: Option<&Rule>) {
    match rule.map(Rule::kind) {
        Some(FieldType::Double) => write::double(out, f64::from(value)),
        _ => write::float(out, value),
    }
}

impl<'a> Node<'a> {
    /// Does an operation on something inside.
    fn act(
        &mut self,
        operation: &Operation<'a>,
        mut path: Lexer<'a>,
        walk: &mut Walk,
    ) -> Result<(), BoxError> {
        if let Node::Bar(_) | Node::Route(_) = self {
            return self.branch(operation, path, walk);
        }
        let token = path.next().map_err(|place| operation.bad_path(place))?;
        match (self, token) {
            (_, Token::End) => Err(operation.no_field()),
            (Node::Array(_), Token::Key(_) | Token::Each) => {
                Err(operation.error("can't update an array by a non-numeric index"))
            }
            (Node::Map(_), Token::Index(_) | Token::Each) => {
                Err(operation.error("can't update a map by not a string key"))
            }
            (node, token) => node.act_at(operation, token, path, walk),
        }
    }

    /// The same, of an array or map: the first step was read.
    fn act_at(
        &mut self,
        operation: &Operation<'a>,
        token: Token<'a>,
        path: Lexer<'a>,
        walk: &mut Walk,
    ) -> Result<(), BoxError> {
        match (self, token) {
            (Node::Array(array), Token::Index(index)) => {
                array.act_at(operation, i64::from(index), path, walk)
            }
            (Node::Map(map), Token::Key(key)) => map.act_at(operation, key, path, walk),
            _ => Err(operation.no_field()),
        }
    }

    /// Does an operation beside those that a bar or route has: takes apart the array or map where
    /// the paths part.
    fn branch(
        &mut self,
        operation: &Operation<'a>,
        mut path: Lexer<'a>,
        walk: &mut Walk,
    ) -> Result<(), BoxError> {
        let (data, old_path) = match self {
            Node::Bar(bar) => (bar.data(), bar.path()),
            Node::Route(route) => (route.data, route.path),
            Node::Array(_) | Node::Map(_) => return self.act(operation, path, walk),
        };
        let mut old = Lexer::of(old_path);
        let mut parent = data;
        let (shared, old_token, token) = loop {
            let (shared, before) = (old.offset(), path);
            let old_token = old.next().unwrap_or(Token::End);
            if let (Token::End, Node::Route(route)) = (old_token, &mut *self) {
                return route.hop.act(operation, before, walk);
            }
            let token = path.next().map_err(|place| operation.bad_path(place))?;
            if old_token == Token::End {
                return Err(operation.double());
            }
            if old_token != token {
                break (shared, old_token, token);
            }
            // What the bar has inserted is not there.
            let Some(next) = step(parent, token, walk) else { break (shared, old_token, token) };
            parent = next.value;
        };
        match (peek(parent), token, old_token) {
            (Some(Value::Array(_)), Token::Index(_), Token::Index(_))
            | (Some(Value::Map(_)), Token::Key(_), Token::Key(_)) => {}
            (Some(Value::Array(_)), ..) => {
                return Err(operation.error("can not update array by non-integer index"));
            }
            (Some(Value::Map(_)), ..) => {
                return Err(operation.error("can not update map by non-string key"));
            }
            _ => return Err(operation.no_field()),
        }
        let at = data.len() - parent.len();
        let value = walk::whole(parent, walk);
        let child = self.take_child(at, parent, old_token, old.rest(), walk);
        let mut hop = Node::of(value, old_token, child, walk);
        let result = hop.act_at(operation, token, path, walk);
        *self = match shared {
            0 => hop,
            _ => {
                let (path, hop) = (&old_path[..shared], Box::new(hop));
                Node::Route(Route { data, path, at, length: value.len(), hop })
            }
        };
        result
    }

    /// The array or map at the front of `value`, with the operations of a child under one of its
    /// places.
    fn of(value: &'a [u8], token: Token<'a>, child: Child<'a>, walk: &mut Walk) -> Node<'a> {
        walk.pass(value.len());
        let (child, again) = match child {
            Child::Slot(slot) => (Some(slot), None),
            Child::Again(operation) => (None, Some(operation)),
        };
        let mut node = match token {
            Token::Index(index) => {
                let mut array = Array::of(value, false);
                if let Some(child) = child {
                    array.put(u64::from(index), child);
                }
                Node::Array(array)
            }
            Token::Key(key) => Node::Map(Map::of(value, child.map(|child| (key, child)))),
            Token::Each | Token::End => Node::Map(Map::of(value, None)),
        };
        if let Some(operation) = again {
            // It was done before, so it can be done.
            let done = node.act_at(&operation, token, Lexer::of(b""), walk);
            debug_assert!(done.is_ok(), "{done:?}");
        }
        node
    }

    /// The operations of a bar or route as those of a place inside of the array or map at `at`.
    fn take_child(
        &mut self,
        at: usize,
        parent: &'a [u8],
        token: Token<'a>,
        path: &'a [u8],
        walk: &mut Walk,
    ) -> Child<'a> {
        let place = |walk: &mut Walk| {
            let from = step(parent, token, walk).map_or(&[][..], |step| step.value);
            (at + parent.len() - from.len(), walk::whole(from, walk))
        };
        // What is here meanwhile is never seen.
        match std::mem::replace(self, Node::Map(Map::of(&[0x80], None))) {
            Node::Bar(bar) if path.is_empty() => match bar.into_effect() {
                (_, Effect::Set(value)) => Child::Slot(Slot::Set(value)),
                (_, Effect::Made(value)) => Child::Slot(Slot::Made(value)),
                (_, Effect::Float(value)) => Child::Slot(Slot::Float(value)),
                (operation, Effect::Insert { .. } | Effect::Delete { .. }) => {
                    Child::Again(operation)
                }
            },
            Node::Bar(bar) => {
                let (at, value) = place(walk);
                Child::inside(Node::Bar(bar.moved(at, value, path)))
            }
            Node::Route(route) if path.is_empty() => Child::Slot(Slot::Inside(route.hop)),
            Node::Route(route) => {
                let (at, data) = place(walk);
                Child::inside(Node::Route(Route { data, path, at: route.at - at, ..route }))
            }
            node => Child::inside(node),
        }
    }

    fn write(&self, out: &mut Vec<u8>, rule: Option<&Rule>) {
        match self {
            Node::Array(array) => array.write(out, |at| rule?.of_element(at)),
            Node::Map(map) => map.write(out, rule),
            Node::Bar(bar) => bar.write(out, rule),
            Node::Route(route) => {
                out.extend_from_slice(&route.data[..route.at]);
                route.hop.write(out, rule_at(rule, route.path));
                out.extend_from_slice(&route.data[route.at + route.length..]);
            }
        }
    }
}

/// What was done to a value that becomes a place of an array or map.
enum Child<'a> {
    Slot(Slot<'a>),
    /// An operation that changes the array or map itself, and has to be done there.
    Again(Operation<'a>),
}

impl<'a> Child<'a> {
    fn inside(node: Node<'a>) -> Child<'a> {
        Child::Slot(Slot::Inside(Box::new(node)))
    }
}

/// The rule of what a path leads to from a value with this rule.
pub(super) fn rule_at<'r>(mut rule: Option<&'r Rule>, path: &[u8]) -> Option<&'r Rule> {
    let mut path = Lexer::of(path);
    loop {
        rule = match path.next() {
            Ok(Token::Index(index)) => rule?.of_element(index),
            Ok(Token::Key(key)) => rule?.of_key(key),
            Ok(Token::Each) | Err(_) => return None,
            Ok(Token::End) => return rule,
        }
    }
}
