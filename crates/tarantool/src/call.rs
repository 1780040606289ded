//! `CALL "box.space.NAME:METHOD"`: the methods that load tests and applications call by name. They
//! are found and run without Lua, with the argument forms that Lua takes.
//!
//! ```text
//! box.space.NAME:METHOD(args...)               the primary index
//! box.space.NAME.index.INDEX:METHOD(args...)
//! ```

use crate::error;
use crate::lua_value::LuaValue;
use ladon_msgpack::{Error, Value, read, read_array, take, write};
use ladon_space::{BoxError, ErrorCode, IteratorType, extension_text};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A method of a space or of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Select,
    Get,
    Insert,
    Replace,
    Update,
    Upsert,
    Delete,
    Count,
    Len,
    Min,
    Max,
    Random,
    Bsize,
    Pairs,
}

impl Method {
    /// Whether it changes nothing.
    pub(crate) fn is_read(self) -> bool {
        use Method::{Delete, Insert, Replace, Update, Upsert};
        !matches!(self, Insert | Replace | Update | Upsert | Delete)
    }

    fn named(name: &str) -> Option<Method> {
        Some(match name {
            "select" => Method::Select,
            "get" => Method::Get,
            "insert" => Method::Insert,
            "replace" | "put" => Method::Replace,
            "update" => Method::Update,
            "upsert" => Method::Upsert,
            "delete" => Method::Delete,
            "count" => Method::Count,
            "len" => Method::Len,
            "min" => Method::Min,
            "max" => Method::Max,
            "random" => Method::Random,
            "bsize" => Method::Bsize,
            "pairs" => Method::Pairs,
            _ => return None,
        })
    }

    /// Its name, which is one of several for some.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Method::Select => "select",
            Method::Get => "get",
            Method::Insert => "insert",
            Method::Replace => "replace",
            Method::Update => "update",
            Method::Upsert => "upsert",
            Method::Delete => "delete",
            Method::Count => "count",
            Method::Len => "len",
            Method::Min => "min",
            Method::Max => "max",
            Method::Random => "random",
            Method::Bsize => "bsize",
            Method::Pairs => "pairs",
        }
    }

    /// Whether the method of a space is one of its primary index.
    pub(crate) fn needs_primary(self) -> bool {
        matches!(self, Method::Select | Method::Get | Method::Update | Method::Delete)
    }

    /// Whether an index has the method too.
    fn is_of_index(self) -> bool {
        !matches!(self, Method::Insert | Method::Replace | Method::Upsert)
    }

    /// Whether a space has the method, not only an index.
    fn is_of_space(self) -> bool {
        !matches!(self, Method::Min | Method::Max | Method::Random)
    }
}

/// A function's name that names a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    pub(crate) space: &'a str,
    pub(crate) index: Option<&'a str>,
    pub(crate) method: Method,
}

impl<'a> Target<'a> {
    /// Reads a function's name; `None` if it names no method.
    pub(crate) fn parse(name: &'a str) -> Option<Target<'a>> {
        Target::before(':', name)
    }

    /// Reads a function's name with a dot in place of the colon, by which a method gets no object.
    pub(crate) fn without_object(name: &'a str) -> Option<Target<'a>> {
        Target::before('.', name)
    }

    fn before(separator: char, name: &'a str) -> Option<Target<'a>> {
        let rest = name.strip_prefix("box.space.")?;
        let (object, method) = rest.rsplit_once(separator)?;
        let method = Method::named(method)?;
        let (space, index) = match object.split_once(".index.") {
            Some((space, index)) => (space, Some(index)),
            None => (object, None),
        };
        if !(if index.is_some() { method.is_of_index() } else { method.is_of_space() }) {
            return None;
        }
        Some(Target { space, index, method })
    }
}

/// The arguments of a call: the elements of a MessagePack array.
pub(crate) struct Arguments<'a> {
    rest: &'a [u8],
    /// As they were sent, if that is something else.
    sent: Option<&'a [u8]>,
    count: u32,
}

/// An argument.
#[derive(Clone, Copy)]
pub(crate) struct Argument<'a> {
    /// With its numbers as Lua passes them on.
    pub(crate) passed: &'a [u8],
    /// As it was sent, which is what Lua itself sees.
    pub(crate) sent: &'a [u8],
}

impl<'a> Arguments<'a> {
    /// The arguments `sent`, and what [`through_lua`] made of them.
    pub(crate) fn new(sent: &'a [u8], passed: Option<&'a [u8]>) -> Result<Arguments<'a>, Error> {
        let mut rest = passed.unwrap_or(sent);
        let count = read_array(&mut rest)?;
        let mut sent = passed.map(|_| sent);
        if let Some(sent) = &mut sent {
            read_array(sent)?;
        }
        Ok(Arguments { rest, sent, count })
    }

    /// The next argument; `None` if it is not there or nil.
    pub(crate) fn next(&mut self) -> Result<Option<Argument<'a>>, Error> {
        if self.count == 0 {
            return Ok(None);
        }
        self.count -= 1;
        let passed = take(&mut self.rest)?;
        let sent = self.sent.as_mut().map_or(Ok(passed), take)?;
        Ok((passed != [0xc0]).then_some(Argument { passed, sent }))
    }

    /// The next argument as Lua sees it; `None` if it is not there.
    pub(crate) fn next_or_null(&mut self) -> Result<Option<LuaValue<'a>>, Error> {
        let is_there = self.count > 0;
        let next = self.next()?.map_or(LuaValue::Null, |argument| LuaValue::of(argument.sent));
        Ok(is_there.then_some(next))
    }
}

/// The arguments with their numbers as Lua passes them on: whole ones as integers, others as
/// doubles. `None` if they are so already.
///
/// # Errors
/// If they have an extension that Lua cannot read.
pub(crate) fn through_lua(arguments: &[u8]) -> Result<Option<Vec<u8>>, BoxError> {
    let mut rest = arguments;
    let mut out: Option<Vec<u8>> = None;
    while !rest.is_empty() {
        let before = rest;
        let number = match read(&mut rest)? {
            Value::Float(number) => f64::from(number),
            Value::Double(number) if number.fract() == 0.0 => number,
            value => {
                if let Value::Ext(kind, bytes) = value {
                    check_extension(kind, bytes)?;
                }
                if let Some(out) = &mut out {
                    out.extend_from_slice(&before[..before.len() - rest.len()]);
                }
                continue;
            }
        };
        let out = out.get_or_insert_with(|| arguments[..arguments.len() - before.len()].to_vec());
        // 2 to the powers of 64 and 63: what is beyond is no integer of MessagePack.
        match number {
            0.0..18_446_744_073_709_551_616.0 if number.fract() == 0.0 => {
                write::uint(out, number as u64);
            }
            -9_223_372_036_854_775_808.0..0.0 if number.fract() == 0.0 => {
                write::int(out, number as i64);
            }
            _ => write::double(out, number),
        }
    }
    Ok(out)
}

fn check_extension(kind: i8, bytes: &[u8]) -> Result<(), BoxError> {
    const KNOWN: [i8; 4] = [1, 2, 4, 6];
    const UUID: i8 = 2;
    const ERROR: i8 = 3;
    // The variant of a UUID has these bits if it is one that is reserved.
    let is_reserved = kind == UUID && bytes.get(8).is_some_and(|byte| byte & 0xe0 == 0xe0);
    if extension_text(kind, bytes).is_some() && !is_reserved {
        return Ok(());
    }
    Err(error::of_lua(match kind {
        ERROR => "Can not parse an error from MsgPack".to_owned(),
        _ if KNOWN.contains(&kind) => "msgpack.decode: invalid MsgPack".to_owned(),
        // The spelling, and a negative number's text, are Tarantool's.
        _ => format!("Unsuported MsgPack extension type: {}", i32::from(kind) as u32),
    }))
}

/// A key as functions that read take it: a table of parts, or one part by itself. Of a table with
/// names, the parts are what stands under 1, 2 and so on.
pub(crate) fn key_of(argument: Option<Argument<'_>>) -> Result<Cow<'_, [u8]>, Error> {
    let Some(Argument { passed, .. }) = argument else { return Ok((&[0x90][..]).into()) };
    let mut rest = passed;
    let parts = match read(&mut rest)? {
        Value::Array(_) => return Ok(passed.into()),
        Value::Map(count) => numbered(rest, count)?,
        _ => vec![passed],
    };
    let mut key = Vec::with_capacity(passed.len() + 1);
    // A packet has no room for more.
    write::array(&mut key, parts.len() as u32);
    parts.iter().for_each(|part| key.extend_from_slice(part));
    Ok(key.into())
}

/// As [`key_of`], for functions that write: a table with names is refused.
pub(crate) fn key_to_write(argument: Option<Argument<'_>>) -> Result<Cow<'_, [u8]>, BoxError> {
    match argument.map(|argument| read(&mut { argument.passed })) {
        Some(Ok(Value::Map(_))) => Err(error::not_array()),
        _ => Ok(key_of(argument)?),
    }
}

/// The values of a map's pairs that stand under 1, 2 and so on.
fn numbered(mut pairs: &[u8], count: u32) -> Result<Vec<&[u8]>, Error> {
    let mut found = BTreeMap::new();
    for _ in 0..count {
        let name = LuaValue::of(take(&mut pairs)?);
        let value = take(&mut pairs)?;
        if let LuaValue::Number(number) = name
            && number >= 1.0
            && number.fract() == 0.0
        {
            found.insert(number as u64, value);
        }
    }
    let in_order = found.into_iter().zip(1..);
    Ok(in_order.take_while(|((number, _), at)| number == at).map(|((_, value), _)| value).collect())
}

/// What `select` and `count` take after the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options<'a> {
    pub(crate) iterator: Option<IteratorType>,
    pub(crate) offset: u32,
    pub(crate) limit: u32,
    pub(crate) after: Option<&'a [u8]>,
}

/// The values of a table's names that are options; the last one of each counts.
#[derive(Default)]
struct Named<'a> {
    iterator: Option<&'a [u8]>,
    offset: Option<&'a [u8]>,
    limit: Option<&'a [u8]>,
    after: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    /// Reads what `count` and `pairs` take: as [`Options::parse`], but only the iterator counts.
    pub(crate) fn iterator(
        argument: Option<Argument<'a>>,
    ) -> Result<Option<IteratorType>, BoxError> {
        let Some(Argument { sent, .. }) = argument else { return Ok(None) };
        match Named::of(sent)? {
            Some(named) => named.iterator.map_or(Ok(None), iterator_of),
            None => iterator_of(sent),
        }
    }

    /// Reads options: a table with `iterator`, `offset`, `limit`, `after`, or an iterator's name or
    /// number by itself.
    pub(crate) fn parse(argument: Option<Argument<'a>>) -> Result<Options<'a>, BoxError> {
        let mut options = Options { iterator: None, offset: 0, limit: u32::MAX, after: None };
        let Some(argument) = argument else { return Ok(options) };
        let Some(named) = Named::of(argument.sent)? else {
            options.iterator = iterator_of(argument.sent)?;
            return Ok(options);
        };
        // The arguments of the function that selects.
        const FUNCTION: &str = "box_select";
        const OFFSET: u32 = 4;
        const LIMIT: u32 = 5;
        let number = |value: Option<&[u8]>, otherwise, argument| match value.map(LuaValue::of) {
            None | Some(LuaValue::Null) => Ok(otherwise),
            Some(value) => value.to_u32(FUNCTION, argument),
        };
        // Names are looked up first; a number is judged by the function that selects.
        let iterator = match named.iterator.map_or(Ok(None), iterator_of) {
            Err(unknown) if unknown.code == ErrorCode::ITERATOR_TYPE => return Err(unknown),
            iterator => iterator,
        };
        options.offset = number(named.offset, options.offset, OFFSET)?;
        options.limit = number(named.limit, options.limit, LIMIT)?;
        options.iterator = iterator?;
        let is_after = named.after.is_some_and(|after| after != [0xc0]);
        options.after = Named::of(argument.passed)?.and_then(|it| it.after).filter(|_| is_after);
        Ok(options)
    }
}

impl<'a> Named<'a> {
    /// The options of a table; `None` if it is none.
    fn of(table: &'a [u8]) -> Result<Option<Named<'a>>, Error> {
        let mut rest = table;
        let mut named = Named::default();
        let count = match read(&mut rest)? {
            // A table without names: all is as if nothing was given.
            Value::Array(_) => return Ok(Some(named)),
            Value::Map(count) => count,
            _ => return Ok(None),
        };
        for _ in 0..count {
            let name = take(&mut rest)?;
            let value = take(&mut rest)?;
            let place = match read(&mut { name })? {
                Value::Str(b"iterator") => &mut named.iterator,
                Value::Str(b"offset") => &mut named.offset,
                Value::Str(b"limit") => &mut named.limit,
                Value::Str(b"after") => &mut named.after,
                // As in Tarantool, other names are passed over.
                _ => continue,
            };
            *place = Some(value);
        }
        Ok(Some(named))
    }
}

/// The iterator that a value names; `None` for false, which is as good as none.
fn iterator_of(value: &[u8]) -> Result<Option<IteratorType>, BoxError> {
    let value = LuaValue::of(value);
    let found = match &value {
        LuaValue::Bool(false) => return Ok(None),
        LuaValue::Text(name) => named(&name.to_ascii_uppercase()),
        LuaValue::Number(number) => {
            let is_any = (-1.0 < *number) && *number < f64::from(u8::MAX);
            let number = if is_any { *number as u64 } else { u64::MAX };
            return IteratorType::of_number(number).map(Some);
        }
        _ => None,
    };
    found.map(Some).ok_or_else(|| error::unknown_iterator(&value.shown()))
}

fn named(name: &[u8]) -> Option<IteratorType> {
    Some(match name {
        b"EQ" => IteratorType::Eq,
        b"REQ" => IteratorType::Req,
        b"ALL" => IteratorType::All,
        b"LT" => IteratorType::Lt,
        b"LE" => IteratorType::Le,
        b"GE" => IteratorType::Ge,
        b"GT" => IteratorType::Gt,
        b"BITS_ALL_SET" => IteratorType::BitsAllSet,
        b"BITS_ANY_SET" => IteratorType::BitsAnySet,
        b"BITS_ALL_NOT_SET" => IteratorType::BitsAllNotSet,
        b"OVERLAPS" => IteratorType::Overlaps,
        b"NEIGHBOR" => IteratorType::Neighbor,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_methods_are_read() {
        let target = Target::parse("box.space.users:select").unwrap();
        assert_eq!(target, Target { space: "users", index: None, method: Method::Select });
        let target = Target::parse("box.space.a.b.index.by:name:get").unwrap_or(Target {
            space: "",
            index: None,
            method: Method::Get,
        });
        assert_eq!((target.space, target.index), ("a.b", Some("by:name")));
        for name in ["box.space.users", "box.space.users:drop", "f", "box.space.a.index.i:insert"] {
            assert_eq!(Target::parse(name), None, "{name}");
        }
        let target = Target::without_object("box.space.a.b.index.i.get").unwrap();
        assert_eq!(target, Target { space: "a.b", index: Some("i"), method: Method::Get });
    }

    #[test]
    fn whole_numbers_are_integers_to_lua() {
        let double = |number: f64| {
            let mut bytes = vec![0x93, 0xa1, b'a'];
            write::double(&mut bytes, number);
            bytes.push(0xc0);
            bytes
        };
        let converted = |number: f64| through_lua(&double(number)).unwrap();
        assert_eq!(converted(1.0), Some(vec![0x93, 0xa1, b'a', 1, 0xc0]));
        assert_eq!(converted(-0.0), Some(vec![0x93, 0xa1, b'a', 0, 0xc0]));
        assert_eq!(converted(-2.0), Some(vec![0x93, 0xa1, b'a', 0xfe, 0xc0]));
        assert_eq!(converted(1.5), None);
        assert_eq!(converted(1e20), Some(double(1e20)));
        assert_eq!(converted(f64::INFINITY), None);
        assert_eq!(through_lua(&[0x91, 0xca, 0xc0, 0x40, 0, 0]), Ok(Some(vec![0x91, 0xfd])));
        let half = Some([&[0x91, 0xcb][..], &0.5f64.to_be_bytes()].concat());
        assert_eq!(through_lua(&[0x91, 0xca, 0x3f, 0, 0, 0]), Ok(half));
    }

    fn sent(value: &[u8]) -> Option<Argument<'_>> {
        Some(Argument { passed: value, sent: value })
    }

    fn packed(value: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        value(&mut bytes);
        bytes
    }

    #[test]
    fn a_key_may_be_one_part() {
        let key = |value| key_of(sent(value)).unwrap();
        assert_eq!(&*key(&[0x07]), [0x91, 0x07]);
        assert_eq!(&*key(&[0x92, 0x07, 0x08]), [0x92, 0x07, 0x08]);
        assert_eq!(&*key_of(None).unwrap(), [0x90]);
        // {}, {a = 7}, {[2] = 7}, {[2] = 8, [1] = 7, [4] = 9}
        assert_eq!(&*key(&[0x80]), [0x90]);
        assert_eq!(&*key(&[0x81, 0xa1, b'a', 7]), [0x90]);
        assert_eq!(&*key(&[0x81, 2, 7]), [0x90]);
        assert_eq!(&*key(&[0x83, 2, 8, 1, 7, 4, 9]), [0x92, 7, 8]);
        assert!(key_to_write(sent(&[0x80])).is_err());
        assert_eq!(&*key_to_write(sent(&[0x07])).unwrap(), [0x91, 0x07]);
    }

    #[test]
    fn extensions_are_those_that_lua_reads() {
        let refused = |bytes: &[u8]| through_lua(bytes).unwrap_err().message;
        assert_eq!(through_lua(&[0x91, 0xd5, 1, 0, 0x1c]), Ok(None));
        assert_eq!(refused(&[0x91, 0xd4, 5, 0]), "Unsuported MsgPack extension type: 5");
        assert_eq!(
            refused(&[0x91, 0xd4, 0xc3, 0]),
            "Unsuported MsgPack extension type: 4294967235"
        );
        assert_eq!(refused(&[0x91, 0xd4, 3, 0]), "Can not parse an error from MsgPack");
        assert_eq!(refused(&[0x91, 0xd4, 2, 0]), "msgpack.decode: invalid MsgPack");
        let uuid = |byte| [&[0x91, 0xd8, 2][..], &[0; 8], &[byte], &[0; 7]].concat();
        assert_eq!(through_lua(&uuid(0xc0)), Ok(None));
        assert_eq!(refused(&uuid(0xe0)), "msgpack.decode: invalid MsgPack");
    }

    #[test]
    fn an_iterator_is_a_name_or_a_number() {
        let iterator = |value: &[u8]| iterator_of(value).map_err(|error| error.message);
        let found = |value: &[u8]| iterator(value).unwrap();
        assert_eq!(found(&packed(|out| write::str(out, b"ge"))), Some(IteratorType::Ge));
        assert_eq!(found(&packed(|out| write::double(out, 2.5))), Some(IteratorType::All));
        assert_eq!(found(&packed(|out| write::double(out, -0.5))), Some(IteratorType::Eq));
        assert_eq!(found(&[0xc2]), None);
        let none = Err("Illegal parameters, Invalid iterator type".to_owned());
        for number in [&[12][..], &[0xff], &[0xcd, 1, 0]] {
            assert_eq!(iterator(number), none, "{number:?}");
        }
        for number in [1e20, -1e20, f64::NAN] {
            assert_eq!(iterator(&packed(|out| write::double(out, number))), none);
        }
        let unknown = |name: &str| Err(format!("Unknown iterator type '{name}'"));
        assert_eq!(iterator(&[0xc3]), unknown("true"));
        assert_eq!(iterator(&[0x90]), unknown("table"));
        assert_eq!(iterator(&[0xc0]), unknown("cdata<void *>: NULL"));
        let cut = Err("Unknown iterator type 'x".to_owned());
        assert_eq!(iterator(&[0xa3, b'x', 0, b'y']), cut);
        let large = packed(|out| write::uint(out, 100_000_000_000_000));
        assert_eq!(iterator(&large), unknown("100000000000000ULL"));
    }

    #[test]
    fn options_are_a_table_or_an_iterator() {
        let table = packed(|out| {
            write::map(out, 6);
            write::uint(out, 1);
            write::nil(out);
            write::str(out, b"iterator");
            write::str(out, b"ge");
            write::str(out, b"limit");
            write::uint(out, 10);
            write::str(out, b"fetch_pos");
            write::bool(out, true);
            write::str(out, b"limit");
            write::double(out, 2.5);
            write::str(out, b"offset");
            write::int(out, -1);
        });
        let options = Options::parse(sent(&table)).unwrap();
        assert_eq!(options.iterator, Some(IteratorType::Ge));
        assert_eq!((options.limit, options.offset), (2, u32::MAX));
        let name = packed(|out| write::str(out, b"LT"));
        assert_eq!(Options::parse(sent(&name)).unwrap().iterator, Some(IteratorType::Lt));
        let name = packed(|out| write::str(out, b"NEAR"));
        assert_eq!(Options::parse(sent(&name)), Err(error::unknown_iterator("NEAR")));
        let text = packed(|out| {
            write::map(out, 1);
            write::str(out, b"limit");
            write::str(out, b"1");
        });
        let refused = "bad argument #5 to 'box_select' (cannot convert 'string' to 'unsigned int')";
        assert_eq!(Options::parse(sent(&text)).unwrap_err().message, refused);
        // What only `select` looks at.
        assert_eq!(Options::iterator(sent(&text)), Ok(None));
    }
}
