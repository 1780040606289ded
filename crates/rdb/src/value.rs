//! Values as plain data, whole or as the elements that a reader yields.

use crate::encoding::Encoding;

/// The id of a stream's entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Milliseconds.
    pub ms: u64,
    /// The number within them.
    pub seq: u64,
}

/// A field of a hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// When it expires, in milliseconds since 1970.
    pub expires_at_ms: Option<u64>,
}

/// An entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: StreamId,
    /// Names and values.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What a stream knows beside its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamState {
    /// How many entries there are.
    pub length: u64,
    /// The greatest id ever given.
    pub last_id: StreamId,
    /// What Redis 7.0 and newer keep.
    pub counters: Option<StreamCounters>,
}

/// What a stream knows beside its entries since Redis 7.0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounters {
    /// The id of the first entry that is there.
    pub first_id: StreamId,
    /// The greatest id that was deleted.
    pub max_deleted_id: StreamId,
    /// How many entries were ever added.
    pub entries_added: u64,
}

/// A consumer group without what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupHead {
    /// Its name.
    pub name: Vec<u8>,
    /// The last id that was delivered.
    pub last_id: StreamId,
    /// How many entries it has read, where that is known (Redis 7.0 and newer).
    pub entries_read: Option<u64>,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The entry's id.
    pub id: StreamId,
    /// When it was delivered last, in milliseconds since 1970.
    pub delivered_at_ms: i64,
    /// How many times it was delivered.
    pub deliveries: u64,
}

/// A consumer without its pending entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerHead {
    /// Its name.
    pub name: Vec<u8>,
    /// When it tried to read last, in milliseconds since 1970.
    pub seen_at_ms: i64,
    /// When it last got something (Redis 7.2 and newer); `None` if never, or not known.
    pub active_at_ms: Option<i64>,
}

/// A part of a value. The parts of one value are all of its type and stand in the file's order.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    /// The next bytes of a string. An empty string has none. The first part of a long one has room
    /// for the others, where these are known to be there.
    StringPart(Vec<u8>),
    /// The next element of a list.
    ListElement(Vec<u8>),
    /// A member of a set.
    SetMember(Vec<u8>),
    /// A member of a sorted set.
    Scored {
        /// The member.
        member: Vec<u8>,
        /// Its score, which is a number.
        score: f64,
    },
    /// A field of a hash.
    Field(Field),
    /// An entry of a stream; their ids grow.
    Entry(Entry),
    /// After a stream's entries; each stream has one.
    StreamState(StreamState),
    /// A group of a stream.
    Group(GroupHead),
    /// Pending in the group before.
    GroupPending(Pending),
    /// A consumer of the group before.
    Consumer(ConsumerHead),
    /// Pending for the consumer before, and in its group.
    ConsumerPending(StreamId),
}

/// A whole value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string.
    String(Vec<u8>),
    /// A list.
    List(Vec<Vec<u8>>),
    /// A set. Members are in the file's order, and nothing has compared them.
    Set(Vec<Vec<u8>>),
    /// A sorted set. Members are in the file's order, and nothing has compared them.
    SortedSet(Vec<(Vec<u8>, f64)>),
    /// A hash. Fields are in the file's order, and nothing has compared them.
    Hash(Vec<Field>),
    /// A stream.
    Stream(Stream),
}

/// A whole stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// Its entries.
    pub entries: Vec<Entry>,
    /// What else it knows.
    pub state: StreamState,
    /// Its groups.
    pub groups: Vec<Group>,
}

/// A whole consumer group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its own facts.
    pub head: GroupHead,
    /// What was delivered and not acknowledged, in the order of ids.
    pub pending: Vec<Pending>,
    /// Its consumers.
    pub consumers: Vec<Consumer>,
}

/// A whole consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Its own facts.
    pub head: ConsumerHead,
    /// Which of the group's pending entries it has.
    pub pending: Vec<StreamId>,
}

impl Value {
    /// The type, as `TYPE` calls it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::String(_) => "string",
            Value::List(_) => "list",
            Value::Set(_) => "set",
            Value::SortedSet(_) => "zset",
            Value::Hash(_) => "hash",
            Value::Stream(_) => "stream",
        }
    }

    /// The value that these elements, which a reader has yielded for this encoding, are.
    ///
    /// # Panics
    /// If an element is of another type, or out of order: no reader does that.
    pub fn of(encoding: Encoding, elements: impl IntoIterator<Item = Element>) -> Value {
        let mut value = Value::empty(encoding.type_name());
        elements.into_iter().for_each(|element| value.push(element));
        value
    }

    /// A value without elements of the type with that name.
    pub(crate) fn empty(type_name: &str) -> Value {
        match type_name {
            "string" => Value::String(Vec::new()),
            "list" => Value::List(Vec::new()),
            "set" => Value::Set(Vec::new()),
            "zset" => Value::SortedSet(Vec::new()),
            "hash" => Value::Hash(Vec::new()),
            _ => Value::Stream(Stream::default()),
        }
    }

    /// Whether a key with this value does not exist for Redis, which skips such keys: once, it
    /// wrote some.
    pub fn is_nothing(&self) -> bool {
        match self {
            Value::String(_) | Value::Stream(_) => false,
            Value::List(elements) | Value::Set(elements) => elements.is_empty(),
            Value::SortedSet(members) => members.is_empty(),
            Value::Hash(fields) => fields.is_empty(),
        }
    }

    /// Adds what a reader yields.
    ///
    /// # Panics
    /// If the element is of another type, or out of order: no reader does that.
    pub(crate) fn push(&mut self, element: Element) {
        match (self, element) {
            (Value::String(string), Element::StringPart(part)) => {
                if string.is_empty() {
                    *string = part;
                } else {
                    string.extend_from_slice(&part);
                }
            }
            (Value::List(list), Element::ListElement(element)) => list.push(element),
            (Value::Set(set), Element::SetMember(member)) => set.push(member),
            (Value::SortedSet(set), Element::Scored { member, score }) => set.push((member, score)),
            (Value::Hash(hash), Element::Field(field)) => hash.push(field),
            (Value::Stream(stream), element) => stream.push(element),
            (value, element) => panic!("{element:?} in a {}", value.type_name()),
        }
    }
}

impl Stream {
    fn push(&mut self, element: Element) {
        const ORDER: &str = "the reader's elements are in the file's order";
        match element {
            Element::Entry(entry) => self.entries.push(entry),
            Element::StreamState(state) => self.state = state,
            Element::Group(head) => {
                self.groups.push(Group { head, pending: Vec::new(), consumers: Vec::new() });
            }
            Element::GroupPending(pending) => {
                self.groups.last_mut().expect(ORDER).pending.push(pending);
            }
            Element::Consumer(head) => {
                let group = self.groups.last_mut().expect(ORDER);
                group.consumers.push(Consumer { head, pending: Vec::new() });
            }
            Element::ConsumerPending(id) => {
                let group = self.groups.last_mut().expect(ORDER);
                group.consumers.last_mut().expect(ORDER).pending.push(id);
            }
            other => panic!("{other:?} in a stream"),
        }
    }
}
