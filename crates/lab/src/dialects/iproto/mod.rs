//! Tarantool's binary protocol, IPROTO. Replies may arrive out of order: the tag is IPROTO's
//! `sync`.
//!
//! The spaces are those of [`crate::systems::tarantool`]'s program: `kv` (key, value), `counters`
//! (key, number), `sets` (number from a sequence, set, member), `rows` (id, group, value) and
//! `tuples` (id, value). Keys, values and members are sent as strings, which Tarantool takes as
//! bytes.
//!
//! An update of a counter that is not there does nothing. So before an addition goes an UPSERT of
//! zero, until one has been answered: several connections may add first. The UPSERT's reply is cut
//! out together with the next one on the connection.
//!
//! A set has the form of the published test: rows with a number from a sequence as the primary key
//! and a non-unique index over the set's name. So an existing member is never detected, and works
//! must add each member once.

pub mod msgpack;
pub mod reply;
pub mod request;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;

use self::msgpack::Reader;
use self::reply::Reply;
use self::request::Iterator;
use super::{Dialect, Framed, Malformed, Refused};
use crate::operation::{Answer, Operation, OperationKind};

/// Numbers of the spaces and indexes that the program makes.
pub mod spaces {
    /// Key, value; primary key: a tree where it is to be scanned.
    pub const KV: u64 = 512;
    /// Key, number.
    pub const COUNTERS: u64 = 513;
    /// Number, set, member.
    pub const SETS: u64 = 514;
    /// Index of [`SETS`] over the set.
    pub const SETS_BY_SET: u64 = 1;
    /// Id, group, value.
    pub const ROWS: u64 = 515;
    /// Index of [`ROWS`] over the group.
    pub const ROWS_BY_GROUP: u64 = 1;
    /// Id, value.
    pub const TUPLES: u64 = 517;
}

/// Functions that are called by name.
pub mod functions {
    /// A method of a space, which no program makes.
    pub const SELECT: &str = "box.space.kv:select";
    /// `set_many({key, value, key, value, ...})`: one transaction.
    pub const SET_MANY: &str = "lab_set_many";
}

/// No limit that a work could reach.
const ALL: u64 = u32::MAX as u64;

/// In the tag of a request whose reply belongs to the next one.
const IS_BEFORE: u64 = 1 << 62;

/// The dialect.
#[derive(Clone, Debug, Default)]
pub struct Iproto {
    /// User name and password to log in with.
    login: Option<(String, String)>,
    /// Counters that are there, as an answer has said.
    counters: RefCell<HashSet<Vec<u8>>>,
}

impl Iproto {
    /// As `guest`, without login.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With `AUTH` on each connection.
    #[must_use]
    pub fn with_login(user: String, password: String) -> Self {
        Self { login: Some((user, password)), ..Self::default() }
    }

    /// UPDATE of a counter, and before it what makes the counter if that is not known to be there.
    fn add(&self, tag: u64, key: &[u8], by: i64, out: &mut Vec<u8>) {
        let add = |by: i64, out: &mut Vec<u8>| {
            msgpack::write_array(1, out);
            msgpack::write_array(3, out);
            msgpack::write_text(b"+", out);
            msgpack::write_unsigned(1, out);
            msgpack::write_integer(by, out);
        };
        if !self.counters.borrow().contains(key) {
            let zero = |out: &mut Vec<u8>| {
                msgpack::write_array(2, out);
                msgpack::write_text(key, out);
                msgpack::write_unsigned(0, out);
            };
            request::upsert(tag | IS_BEFORE, spaces::COUNTERS, out, zero, |out| add(0, out));
        }
        let key = |out: &mut Vec<u8>| texts(&[key], out);
        request::update(tag, spaces::COUNTERS, out, key, |out| add(by, out));
    }
}

impl Dialect for Iproto {
    fn can(&self, _: OperationKind) -> Result<(), String> {
        Ok(())
    }

    fn greeting_bytes(&self) -> usize {
        reply::GREETING_BYTES
    }

    fn hello(&mut self, greeting: &[u8], out: &mut Vec<u8>) -> Result<usize, Malformed> {
        let salt = reply::salt(greeting)?;
        let Some((user, password)) = &self.login else { return Ok(0) };
        request::auth(0, user, password, &salt, out);
        Ok(1)
    }

    fn check_hello(&self, _: usize, frame: &[u8]) -> Result<(), Refused> {
        parse(frame)?.went_well()
    }

    #[inline]
    fn encode(&mut self, tag: u64, operation: &Operation, out: &mut Vec<u8>) {
        match operation {
            Operation::Ping => request::Request::Ping.write(tag, out),
            Operation::Set { key, value } => {
                request::of_tuple(request::REPLACE, tag, spaces::KV, out, |out| {
                    texts(&[key, value], out);
                });
            }
            Operation::Get { key } => {
                request::select(tag, spaces::KV, 0, Iterator::Equal, 1, out, |out| {
                    texts(&[key], out);
                });
            }
            Operation::Delete { key } => {
                request::delete(tag, spaces::KV, out, |out| texts(&[key], out));
            }
            Operation::GetByCall { key } => {
                request::call(tag, functions::SELECT, out, |out| {
                    msgpack::write_array(1, out);
                    texts(&[key], out);
                });
            }
            Operation::Add { key, by } => self.add(tag, key, *by, out),
            Operation::AddMember { set, member } => {
                request::of_tuple(request::INSERT, tag, spaces::SETS, out, |out| {
                    msgpack::write_array(3, out);
                    msgpack::Value::Nil.write(out);
                    msgpack::write_text(set, out);
                    msgpack::write_text(member, out);
                });
            }
            Operation::Members { set } => {
                let index = spaces::SETS_BY_SET;
                request::select(tag, spaces::SETS, index, Iterator::Equal, ALL, out, |out| {
                    texts(&[set], out);
                });
            }
            Operation::SetMany { pairs } => {
                request::call(tag, functions::SET_MANY, out, |out| all_in_one(pairs, out));
            }
            Operation::InsertRow { id, group, value } => {
                request::of_tuple(request::INSERT, tag, spaces::ROWS, out, |out| {
                    msgpack::write_array(3, out);
                    msgpack::write_unsigned(*id, out);
                    msgpack::write_unsigned(*group, out);
                    msgpack::write_text(value, out);
                });
            }
            Operation::InsertTuple { id, value } => {
                request::of_tuple(request::INSERT, tag, spaces::TUPLES, out, |out| {
                    msgpack::write_array(2, out);
                    msgpack::write_unsigned(*id, out);
                    msgpack::write_text(value, out);
                });
            }
            Operation::FindByGroup { group } => {
                let index = spaces::ROWS_BY_GROUP;
                request::select(tag, spaces::ROWS, index, Iterator::Equal, ALL, out, |out| {
                    msgpack::write_array(1, out);
                    msgpack::write_unsigned(*group, out);
                });
            }
            Operation::ScanFrom { key, count } => {
                let (up, count) = (Iterator::GreaterOrEqual, *count as u64);
                request::select(tag, spaces::KV, 0, up, count, out, |out| texts(&[key], out));
            }
        }
    }

    fn tags_replies(&self) -> bool {
        true
    }

    #[inline]
    fn frame(&self, _: Option<&Operation>, bytes: &[u8]) -> Result<Framed, Malformed> {
        let mut before = 0;
        loop {
            let framed = match bytes.get(before..) {
                None | Some([]) => Framed::Incomplete,
                Some(rest) => reply::frame(rest)?,
            };
            match framed {
                Framed::Frame { length, tag: Some(tag) } if tag & IS_BEFORE != 0 => {
                    before += length
                }
                Framed::Frame { length, tag } => {
                    return Ok(Framed::Frame { length: before + length, tag });
                }
                Framed::Incomplete => return Ok(Framed::Incomplete),
            }
        }
    }

    fn answer(&self, operation: &Operation, frame: &[u8]) -> Result<Answer, Refused> {
        if matches!(operation, Operation::Ping) {
            return parse(frame)?.went_well().map(|()| Answer::Done);
        }
        let (count, reader) = parse(frame)?.data()?;
        let said = || other(operation, frame);
        match operation {
            Operation::Ping => Ok(Answer::Done),
            Operation::Set { .. }
            | Operation::AddMember { .. }
            | Operation::InsertRow { .. }
            | Operation::InsertTuple { .. }
                if !is_echo(operation, count, reader) =>
            {
                Err(said())
            }
            Operation::Set { .. } | Operation::InsertRow { .. } | Operation::InsertTuple { .. } => {
                Ok(Answer::Done)
            }
            Operation::AddMember { .. } => Ok(Answer::Existed(false)),
            Operation::SetMany { .. } if count == 0 => Ok(Answer::Done),
            Operation::SetMany { .. } => Err(said()),
            Operation::Get { .. } => {
                Ok(Answer::Value(one(count, reader).map_err(|()| said())?.map(<[u8]>::to_vec)))
            }
            Operation::GetByCall { .. } => {
                let value = one_called(count, reader).map_err(|()| said())?;
                Ok(Answer::Value(value.map(<[u8]>::to_vec)))
            }
            Operation::Delete { .. } if count <= 1 => Ok(Answer::Existed(count == 1)),
            Operation::Delete { .. } => Err(said()),
            Operation::Add { key, .. } => {
                let value = counter(count, reader).ok_or_else(said)?;
                if !self.counters.borrow().contains(key) {
                    self.counters.borrow_mut().insert(key.clone());
                }
                Ok(Answer::Integer(value))
            }
            Operation::Members { .. } => {
                let members = tuples(count, reader, |tuple| Some(tuple.nth_bytes(2)?.to_vec()));
                members.map(Answer::Members).ok_or_else(said)
            }
            Operation::ScanFrom { .. } => {
                let values = tuples(count, reader, |tuple| Some(tuple.nth_bytes(1)?.to_vec()));
                values.map(Answer::Members).ok_or_else(said)
            }
            Operation::FindByGroup { group } => {
                let rows = tuples(count, reader, |tuple| {
                    let id = tuple.reader.unsigned()?;
                    let found = tuple.reader.unsigned()?;
                    (found == *group).then_some(())?;
                    Some((id, tuple.reader.bytes()?.to_vec()))
                });
                rows.map(Answer::Rows).ok_or_else(said)
            }
        }
    }

    #[inline]
    fn is_right(&self, operation: &Operation, expected: &Answer, frame: &[u8]) -> bool {
        let data = || parse(frame)?.data();
        match (operation, expected) {
            (Operation::Set { .. }, Answer::Done) => {
                data().is_ok_and(|(count, reader)| is_echo(operation, count, reader))
            }
            (Operation::Get { .. }, Answer::Value(value)) => {
                data().is_ok_and(|(count, reader)| one(count, reader) == Ok(value.as_deref()))
            }
            _ => self
                .answer(operation, frame)
                .is_ok_and(|answer| answer.means_the_same(expected, operation)),
        }
    }

    #[inline]
    fn value<'a>(
        &self,
        operation: &Operation,
        frame: &'a [u8],
    ) -> Result<Option<Cow<'a, [u8]>>, Refused> {
        let (count, reader) = parse(frame)?.data()?;
        let value = match operation {
            Operation::GetByCall { .. } => one_called(count, reader),
            _ => one(count, reader),
        };
        Ok(value.map_err(|()| other(operation, frame))?.map(Cow::Borrowed))
    }
}

/// The reply at the end of a frame; those before it went well.
fn parse(mut frame: &[u8]) -> Result<Reply<'_>, Refused> {
    let malformed = |malformed: Malformed| Refused(malformed.to_string());
    loop {
        let reply = Reply::parse(frame).map_err(malformed)?;
        if reply.sync & IS_BEFORE == 0 {
            return Ok(reply);
        }
        let Framed::Frame { length, .. } = reply::frame(frame).map_err(malformed)? else {
            return Err(Refused("a reply that ends too soon".to_owned()));
        };
        reply.went_well()?;
        frame = &frame[length..];
    }
}

/// An array of strings.
#[inline]
fn texts(items: &[&[u8]], out: &mut Vec<u8>) {
    msgpack::write_array(items.len(), out);
    for item in items {
        msgpack::write_text(item, out);
    }
}

/// The only argument of a function: keys and values in turn.
fn all_in_one(pairs: &[(Vec<u8>, Vec<u8>)], out: &mut Vec<u8>) {
    msgpack::write_array(1, out);
    msgpack::write_array(2 * pairs.len(), out);
    for (key, value) in pairs {
        msgpack::write_text(key, out);
        msgpack::write_text(value, out);
    }
}

/// The value of the only tuple of `kv`, or none.
#[inline]
fn one(count: usize, mut reader: Reader<'_>) -> Result<Option<&[u8]>, ()> {
    match count {
        0 => Ok(None),
        1 => {
            let value = Tuple::next(&mut reader).and_then(|mut tuple| tuple.nth_bytes(1));
            value.map(Some).ok_or(())
        }
        _ => Err(()),
    }
}

/// As [`one`], of a call's only value: the tuples.
#[inline]
fn one_called(count: usize, mut reader: Reader<'_>) -> Result<Option<&[u8]>, ()> {
    if count != 1 {
        return Err(());
    }
    let tuples = reader.array().ok_or(())?;
    one(tuples, reader)
}

/// The number of the only tuple of `counters`.
fn counter(count: usize, mut reader: Reader<'_>) -> Option<i64> {
    (count == 1).then_some(())?;
    let mut fields = Tuple::next(&mut reader)?.reader;
    fields.skip()?;
    fields.integer()
}

/// Whether the server gave back the very tuple that it was sent; the number of a member is its own.
#[inline]
fn is_echo(operation: &Operation, count: usize, mut reader: Reader<'_>) -> bool {
    let mut echo = || {
        (count == 1).then_some(())?;
        let mut fields = Tuple::next(&mut reader)?.reader;
        Some(match operation {
            Operation::Set { key, value } => {
                fields.bytes()? == key.as_slice() && fields.bytes()? == value.as_slice()
            }
            Operation::AddMember { set, member } => {
                fields.skip()?;
                fields.bytes()? == set.as_slice() && fields.bytes()? == member.as_slice()
            }
            Operation::InsertRow { id, group, value } => {
                fields.unsigned()? == *id
                    && fields.unsigned()? == *group
                    && fields.bytes()? == value.as_slice()
            }
            Operation::InsertTuple { id, value } => {
                fields.unsigned()? == *id && fields.bytes()? == value.as_slice()
            }
            _ => false,
        })
    };
    echo() == Some(true)
}

/// One tuple, its fields ahead of `reader`.
struct Tuple<'a> {
    fields: usize,
    reader: Reader<'a>,
}

impl<'a> Tuple<'a> {
    /// The tuple at the front of `reader`, which goes on behind it.
    #[inline]
    fn next(reader: &mut Reader<'a>) -> Option<Self> {
        let mut inside = *reader;
        reader.skip()?;
        let fields = inside.array()?;
        Some(Self { fields, reader: inside })
    }

    #[inline]
    fn nth_bytes(&mut self, number: usize) -> Option<&'a [u8]> {
        (number < self.fields).then_some(())?;
        for _ in 0..number {
            self.reader.skip()?;
        }
        self.reader.bytes()
    }
}

fn tuples<T>(
    count: usize,
    mut reader: Reader<'_>,
    read: impl Fn(&mut Tuple<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    (0..count).map(|_| read(&mut Tuple::next(&mut reader)?)).collect()
}

fn other(operation: &Operation, frame: &[u8]) -> Refused {
    let start = &frame[..frame.len().min(80)];
    Refused(format!("answered `{}` with {}", operation.kind(), start.escape_ascii()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::msgpack::Value;
    use super::*;

    /// A reply as the server writes it.
    fn reply(code: u64, sync: u64, body: &[(Value, Value)]) -> Vec<u8> {
        let mut inside = Vec::new();
        let header = [
            (Value::Unsigned(0), Value::Unsigned(code)),
            (Value::Unsigned(1), Value::Unsigned(sync)),
            (Value::Unsigned(5), Value::Unsigned(80)),
        ];
        Value::Map(header.to_vec()).write(&mut inside);
        Value::Map(body.to_vec()).write(&mut inside);
        let mut out = vec![0xce];
        out.extend_from_slice(&u32::try_from(inside.len()).unwrap().to_be_bytes());
        out.extend(inside);
        out
    }

    fn data(tuples: &[Value]) -> Vec<u8> {
        reply(0, 7, &[(Value::Unsigned(0x30), Value::Array(tuples.to_vec()))])
    }

    fn get() -> Operation {
        Operation::Get { key: b"k".to_vec() }
    }

    fn all_operations() -> Vec<Operation> {
        let (key, value) = (b"k".to_vec(), b"v".to_vec());
        vec![
            Operation::Ping,
            Operation::Set { key: key.clone(), value: value.clone() },
            get(),
            Operation::Delete { key: key.clone() },
            Operation::GetByCall { key: key.clone() },
            Operation::Add { key: key.clone(), by: -1 },
            Operation::AddMember { set: key.clone(), member: value.clone() },
            Operation::Members { set: key.clone() },
            Operation::SetMany { pairs: vec![(key.clone(), value.clone())] },
            Operation::InsertRow { id: 1, group: 2, value: value.clone() },
            Operation::InsertTuple { id: 1, value },
            Operation::FindByGroup { group: 2 },
            Operation::ScanFrom { key, count: 3 },
        ]
    }

    #[test]
    fn replies_are_framed_at_every_length_and_carry_their_sync() {
        let reply = data(&[Value::Array(vec![Value::text("k"), Value::text("v")])]);
        let iproto = Iproto::new();
        for length in 0..reply.len() {
            assert_eq!(iproto.frame(None, &reply[..length]), Ok(Framed::Incomplete));
        }
        let longer = [&reply[..], b"more"].concat();
        let frame = Framed::Frame { length: reply.len(), tag: Some(7) };
        assert_eq!(iproto.frame(None, &longer), Ok(frame));
    }

    #[test]
    fn garbage_is_malformed() {
        let iproto = Iproto::new();
        for bad in [b"+OK\r\n".as_slice(), b"\xce\xff\xff\xff\xff", b"\xce\0\0\0\0", b"\x01\xc0"] {
            // `+` is a whole number of MessagePack: 43 bytes are awaited, then judged.
            let bad = [bad, &[b' '; 60]].concat();
            assert!(iproto.frame(None, &bad).is_err(), "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn a_value_an_absence_and_an_error_are_told_apart() {
        let iproto = Iproto::new();
        let there = data(&[Value::Array(vec![Value::text("k"), Value::text("v")])]);
        assert_eq!(iproto.answer(&get(), &there), Ok(Answer::Value(Some(b"v".to_vec()))));
        assert_eq!(iproto.answer(&get(), &data(&[])), Ok(Answer::Value(None)));
        let error = reply(0x8000 + 36, 7, &[(Value::Unsigned(0x31), Value::text("no such space"))]);
        assert_eq!(
            iproto.answer(&get(), &error).unwrap_err().to_string(),
            "error 36: no such space"
        );
        let two = data(&[Value::Array(vec![]), Value::Array(vec![])]);
        assert!(iproto.answer(&get(), &two).is_err());
    }

    #[test]
    fn a_counter_is_made_before_it_is_first_added_to() {
        let mut iproto = Iproto::new();
        let add = Operation::Add { key: b"k".to_vec(), by: 2 };
        let (mut first, mut second) = (Vec::new(), Vec::new());
        iproto.encode(7, &add, &mut first);
        iproto.encode(8, &add, &mut second);
        assert_eq!(first.len(), second.len(), "nothing is answered yet");
        let made = reply(0, 7 | IS_BEFORE, &[(Value::Unsigned(0x30), Value::Array(Vec::new()))]);
        let sum = data(&[Value::Array(vec![Value::text("k"), Value::Unsigned(2)])]);
        let both = [&made[..], &sum].concat();
        for length in 0..both.len() {
            assert_eq!(iproto.frame(None, &both[..length]), Ok(Framed::Incomplete), "{length}");
        }
        let frame = Framed::Frame { length: both.len(), tag: Some(7) };
        assert_eq!(iproto.frame(None, &[&both[..], b"more"].concat()), Ok(frame));
        assert_eq!(iproto.answer(&add, &both), Ok(Answer::Integer(2)));
        let mut third = Vec::new();
        iproto.encode(9, &add, &mut third);
        assert!(third.len() < first.len() && !third.is_empty());
        // No tuple: the counter is not there after all.
        let none = [&made[..], &data(&[])].concat();
        assert!(iproto.answer(&add, &none).is_err());
        // Its refusal is that of the addition.
        let text = Value::text("no room");
        let refused = reply(0x8000 + 2, 7 | IS_BEFORE, &[(Value::Unsigned(0x31), text)]);
        let error = iproto.answer(&add, &[&refused[..], &sum].concat()).unwrap_err();
        assert_eq!(error.to_string(), "error 2: no room");
    }

    #[test]
    fn a_called_selection_is_one_value() {
        let iproto = Iproto::new();
        let call = Operation::GetByCall { key: b"k".to_vec() };
        let tuple = Value::Array(vec![Value::text("k"), Value::text("v")]);
        let there = data(&[Value::Array(vec![tuple.clone()])]);
        assert_eq!(iproto.answer(&call, &there), Ok(Answer::Value(Some(b"v".to_vec()))));
        assert_eq!(iproto.value(&call, &there), Ok(Some(Cow::Borrowed(&b"v"[..]))));
        let none = data(&[Value::Array(Vec::new())]);
        assert_eq!(iproto.answer(&call, &none), Ok(Answer::Value(None)));
        for bad in [data(&[]), data(&[tuple]), data(&[Value::Array(vec![Value::Nil])])] {
            assert!(iproto.answer(&call, &bad).is_err(), "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn another_tuple_than_the_one_that_was_sent_is_wrong() {
        let iproto = Iproto::new();
        let set = Operation::Set { key: b"k".to_vec(), value: b"v".to_vec() };
        let echo = |value: &str| data(&[Value::Array(vec![Value::text("k"), Value::text(value)])]);
        assert!(iproto.is_right(&set, &Answer::Done, &echo("v")));
        assert!(!iproto.is_right(&set, &Answer::Done, &echo("w")));
        assert!(iproto.answer(&set, &echo("w")).is_err());
    }

    #[test]
    fn a_greeting_of_somebody_else_is_refused() {
        let mut iproto = Iproto::with_login("u".into(), "p".into());
        let mut out = Vec::new();
        assert!(iproto.hello(&[b'x'; 128], &mut out).is_err());
        assert!(iproto.hello(b"Tarantool ", &mut out).is_err());
        let mut greeting = [b' '; 128];
        greeting[..10].copy_from_slice(b"Tarantool ");
        greeting[64..108].copy_from_slice(b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
        assert_eq!(iproto.hello(&greeting, &mut out), Ok(1));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let iproto = Iproto::new();
            let _ = iproto.frame(None, &bytes);
            let _ = reply::salt(&bytes);
            for operation in all_operations() {
                let _ = iproto.answer(&operation, &bytes);
                let _ = iproto.value(&operation, &bytes);
            }
        }

        #[test]
        fn nor_does_a_broken_reply(at in 0usize..60, bit in 0u8..8) {
            let mut bytes = data(&[Value::Array(vec![Value::text("key"), Value::text("value")])]);
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            let iproto = Iproto::new();
            let _ = iproto.frame(None, &bytes);
            for operation in all_operations() {
                let _ = iproto.answer(&operation, &bytes);
            }
        }
    }
}
