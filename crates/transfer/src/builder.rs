//! A value of the engine out of elements.

use crate::stream_builder::StreamBuilder;
use ladon_engine::types::hash::HashValue;
use ladon_engine::types::list::ListValue;
use ladon_engine::types::set::SetValue;
use ladon_engine::types::sorted_set::SortedSet;
use ladon_engine::{Env, Object};
use ladon_rdb::{Element, Encoding};
use thiserror::Error;

/// Why elements are no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// Something is there twice that may be there once.
    #[error("{0} is there twice")]
    Twice(&'static str),
    /// Parts contradict each other.
    #[error("{0}")]
    Contradiction(&'static str),
}

/// A value that is complete.
#[derive(Debug)]
pub enum Built {
    /// A string.
    String(Vec<u8>),
    /// A value of another type.
    Object(Object),
}

impl Built {
    /// The value in the form that has its own allocation.
    pub fn into_object(self) -> Object {
        match self {
            Built::String(bytes) => Object::String(bytes.into()),
            Built::Object(object) => object,
        }
    }
}

/// A value that is being built.
pub struct Builder<'e> {
    env: Env<'e>,
    value: Partial,
}

enum Partial {
    String(Vec<u8>),
    List(ListValue),
    /// `None` before the first member, which decides the form.
    Set(Option<SetValue>),
    SortedSet(SortedSet),
    Hash(HashValue),
    Stream(Box<StreamBuilder>),
}

impl<'e> Builder<'e> {
    /// Begins a value that is encoded so.
    pub fn new(encoding: Encoding, env: Env<'e>) -> Builder<'e> {
        let value = match encoding.type_name() {
            "string" => Partial::String(Vec::new()),
            "list" => Partial::List(ListValue::new()),
            "set" => Partial::Set(None),
            "zset" => Partial::SortedSet(SortedSet::for_members(0, 0, env.limits.of_sorted_sets())),
            "hash" => Partial::Hash(HashValue::with_room(0, 0)),
            _ => Partial::Stream(Box::new(StreamBuilder::new(encoding, env))),
        };
        Builder { env, value }
    }

    /// Adds the next element.
    ///
    /// # Errors
    /// If it is there already, or contradicts those before.
    ///
    /// # Panics
    /// If it is of another type: no reader does that.
    pub fn push(&mut self, element: Element) -> Result<(), Refused> {
        let Builder { env: Env { hasher, limits }, value } = self;
        match (value, element) {
            (Partial::String(string), Element::StringPart(part)) => {
                if string.is_empty() {
                    *string = part;
                } else {
                    string.extend_from_slice(&part);
                }
            }
            (Partial::List(list), Element::ListElement(element)) => {
                list.append(limits.of_lists(), &element);
            }
            (Partial::Set(set), Element::SetMember(member)) => {
                let limits = limits.of_sets();
                let set = set.get_or_insert_with(|| SetValue::for_members(&member, 1, limits));
                if !set.add(hasher, limits, &member) {
                    return Err(Refused::Twice("a member of the set"));
                }
            }
            (Partial::SortedSet(set), Element::Scored { member, score }) => {
                let limits = limits.of_sorted_sets();
                let old = set.update(hasher, limits, &member, |old| old.is_none().then_some(score));
                if old.is_some() {
                    return Err(Refused::Twice("a member of the sorted set"));
                }
            }
            (Partial::Hash(hash), Element::Field(field)) => {
                // To the engine, zero is never; here it is a time that has long passed.
                let at = field.expires_at_ms.map_or(0, |at| at.max(1));
                if !hash.set(hasher, limits.of_hashes(), &field.name, &field.value, at) {
                    return Err(Refused::Twice("a field of the hash"));
                }
            }
            (Partial::Stream(stream), element) => stream.push(element)?,
            (_, element) => panic!("{element:?} in a value of another type"),
        }
        Ok(())
    }

    /// Ends the value; `None` if no key may hold it, because it has no elements.
    ///
    /// # Errors
    /// If parts are missing.
    pub fn finish(self) -> Result<Option<Built>, Refused> {
        /// Room that a string may keep, as a fraction of its length.
        const SLACK_DIVISOR: usize = 64;
        let object = match self.value {
            Partial::String(mut string) => {
                if string.capacity() - string.len() > string.len() / SLACK_DIVISOR {
                    string.shrink_to_fit();
                }
                return Ok(Some(Built::String(string)));
            }
            Partial::List(list) => Object::List(list),
            Partial::Set(None) => return Ok(None),
            Partial::Set(Some(mut set)) => {
                set.shrink_to_fit();
                Object::Set(set)
            }
            Partial::SortedSet(set) => Object::SortedSet(set),
            Partial::Hash(mut hash) => {
                hash.shrink_to_fit();
                Object::Hash(hash)
            }
            Partial::Stream(stream) => Object::Stream(stream.finish()?),
        };
        Ok((!object.is_empty()).then_some(Built::Object(object)))
    }
}
