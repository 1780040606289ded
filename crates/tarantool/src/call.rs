//! `CALL "box.space.NAME:METHOD"`: the methods that load tests and applications call by name. They
//! are found and run without Lua, with the argument forms that Lua takes.
//!
//! ```text
//! box.space.NAME:METHOD(args...)               the primary index
//! box.space.NAME.index.INDEX:METHOD(args...)
//! ```

use ladon_msgpack::{Error, Value, read, read_array, read_map, read_str, take, write};
use ladon_space::IteratorType;

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
}

impl Method {
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
            _ => return None,
        })
    }

    /// Whether the method of a space is one of its primary index.
    pub(crate) fn needs_primary(self) -> bool {
        matches!(self, Method::Select | Method::Get | Method::Update | Method::Delete)
    }

    /// Whether an index has the method too.
    fn is_of_index(self) -> bool {
        !matches!(self, Method::Insert | Method::Replace | Method::Upsert | Method::Len)
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
        let rest = name.strip_prefix("box.space.")?;
        let (object, method) = rest.rsplit_once(':')?;
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
    count: u32,
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(tuple: &'a [u8]) -> Result<Arguments<'a>, Error> {
        let mut rest = tuple;
        let count = read_array(&mut rest)?;
        Ok(Arguments { rest, count })
    }

    /// The next argument; `None` if it is not there or nil.
    pub(crate) fn next(&mut self) -> Result<Option<&'a [u8]>, Error> {
        if self.count == 0 {
            return Ok(None);
        }
        self.count -= 1;
        let argument = take(&mut self.rest)?;
        Ok((argument != [0xc0]).then_some(argument))
    }
}

/// The arguments with their numbers as Lua passes them on: whole ones as integers, others as
/// doubles. `None` if they are so already.
pub(crate) fn lua_numbers(arguments: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let mut rest = arguments;
    let mut out: Option<Vec<u8>> = None;
    while !rest.is_empty() {
        let before = rest;
        let number = match read(&mut rest)? {
            Value::Float(number) => f64::from(number),
            Value::Double(number) if number.fract() == 0.0 => number,
            _ => {
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

/// A key as Lua takes it: a table of parts, or one part by itself.
pub(crate) fn key_of(argument: Option<&[u8]>) -> std::borrow::Cow<'_, [u8]> {
    match argument {
        None => (&[0x90][..]).into(),
        Some(argument) if is_array(argument) => argument.into(),
        // Clients whose tables are maps send an empty one for a key without parts.
        Some([0x80]) => (&[0x90][..]).into(),
        Some(part) => {
            let mut key = Vec::with_capacity(part.len() + 1);
            write::array(&mut key, 1);
            key.extend_from_slice(part);
            key.into()
        }
    }
}

fn is_array(mut value: &[u8]) -> bool {
    matches!(read(&mut value), Ok(Value::Array(_)))
}

/// What `select` and `count` take after the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options<'a> {
    pub(crate) iterator: Option<IteratorType>,
    pub(crate) offset: u64,
    pub(crate) limit: u64,
    pub(crate) after: Option<&'a [u8]>,
}

/// Why options are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OptionFault {
    /// The iterator has no such type; its name as it was given.
    Iterator(String),
    /// What Lua's message says.
    Illegal(String),
}

impl<'a> Options<'a> {
    /// Reads what `count` takes: as [`Options::parse`], but only the iterator counts.
    pub(crate) fn iterator(argument: Option<&[u8]>) -> Result<Option<IteratorType>, OptionFault> {
        let Some(mut rest) = argument else { return Ok(None) };
        let Ok(count @ 1..) = read_map(&mut rest) else {
            return Options::parse(argument).map(|options| options.iterator);
        };
        let illegal = |error: Error| OptionFault::Illegal(error.to_string());
        let mut found = None;
        for _ in 0..count {
            let name = read_str(&mut rest).map_err(illegal)?;
            let value = take(&mut rest).map_err(illegal)?;
            if name == b"iterator" && value != [0xc0] {
                found = Some(iterator_of(value)?);
            }
        }
        Ok(found)
    }

    /// Reads options: a table with `iterator`, `offset`, `limit`, `after`, or an iterator's name or
    /// number by itself.
    pub(crate) fn parse(argument: Option<&'a [u8]>) -> Result<Options<'a>, OptionFault> {
        let mut options =
            Options { iterator: None, offset: 0, limit: u64::from(u32::MAX), after: None };
        let Some(mut rest) = argument else { return Ok(options) };
        let illegal = |error: Error| OptionFault::Illegal(error.to_string());
        let head = rest;
        match read(&mut rest).map_err(illegal)? {
            Value::Map(_) => {}
            // A table without the names: all is as if nothing was given.
            Value::Array(_) => return Ok(options),
            _ => {
                options.iterator = Some(iterator_of(head)?);
                return Ok(options);
            }
        }
        let mut rest = head;
        for _ in 0..read_map(&mut rest).map_err(illegal)? {
            let name = read_str(&mut rest).map_err(illegal)?;
            let value = take(&mut rest).map_err(illegal)?;
            match name {
                b"iterator" => options.iterator = Some(iterator_of(value)?),
                _ if value == [0xc0] => {}
                b"offset" => options.offset = number_of(value, "offset")?,
                b"limit" => options.limit = number_of(value, "limit")?,
                b"after" => options.after = Some(value),
                // As in Tarantool, unknown options are passed over.
                _ => {}
            }
        }
        Ok(options)
    }
}

fn number_of(mut value: &[u8], name: &str) -> Result<u64, OptionFault> {
    match read(&mut value) {
        Ok(Value::Uint(number)) => Ok(number),
        Ok(Value::Double(number)) if number >= 0.0 => Ok(number as u64),
        _ => Err(OptionFault::Illegal(format!(
            "options parameter '{name}' should be of type number"
        ))),
    }
}

fn iterator_of(mut value: &[u8]) -> Result<IteratorType, OptionFault> {
    let found = match read(&mut value) {
        Ok(Value::Str(name)) => {
            let name = String::from_utf8_lossy(name).into_owned();
            return named(&name.to_ascii_uppercase()).ok_or(OptionFault::Iterator(name));
        }
        Ok(Value::Uint(number)) => IteratorType::of_number(number).ok(),
        Ok(Value::Int(_)) => None,
        Ok(Value::Bool(value)) => return Err(OptionFault::Iterator(value.to_string())),
        _ => return Err(OptionFault::Iterator("unknown".to_owned())),
    };
    let none = "Illegal parameters, Invalid iterator type";
    found.ok_or_else(|| OptionFault::Illegal(none.to_owned()))
}

fn named(name: &str) -> Option<IteratorType> {
    Some(match name {
        "EQ" => IteratorType::Eq,
        "REQ" => IteratorType::Req,
        "ALL" => IteratorType::All,
        "LT" => IteratorType::Lt,
        "LE" => IteratorType::Le,
        "GE" => IteratorType::Ge,
        "GT" => IteratorType::Gt,
        "BITS_ALL_SET" => IteratorType::BitsAllSet,
        "BITS_ANY_SET" => IteratorType::BitsAnySet,
        "BITS_ALL_NOT_SET" => IteratorType::BitsAllNotSet,
        "OVERLAPS" => IteratorType::Overlaps,
        "NEIGHBOR" => IteratorType::Neighbor,
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
    }

    #[test]
    fn whole_numbers_are_integers_to_lua() {
        let double = |number: f64| {
            let mut bytes = vec![0x93, 0xa1, b'a'];
            write::double(&mut bytes, number);
            bytes.push(0xc0);
            bytes
        };
        let converted = |number: f64| lua_numbers(&double(number)).unwrap();
        assert_eq!(converted(1.0), Some(vec![0x93, 0xa1, b'a', 1, 0xc0]));
        assert_eq!(converted(-0.0), Some(vec![0x93, 0xa1, b'a', 0, 0xc0]));
        assert_eq!(converted(-2.0), Some(vec![0x93, 0xa1, b'a', 0xfe, 0xc0]));
        assert_eq!(converted(1.5), None);
        assert_eq!(converted(1e20), Some(double(1e20)));
        assert_eq!(converted(f64::INFINITY), None);
        assert_eq!(lua_numbers(&[0x91, 0xca, 0xc0, 0x40, 0, 0]), Ok(Some(vec![0x91, 0xfd])));
        let half = Some([&[0x91, 0xcb][..], &0.5f64.to_be_bytes()].concat());
        assert_eq!(lua_numbers(&[0x91, 0xca, 0x3f, 0, 0, 0]), Ok(half));
    }

    #[test]
    fn a_key_may_be_one_part() {
        assert_eq!(&*key_of(Some(&[0x07])), [0x91, 0x07]);
        assert_eq!(&*key_of(Some(&[0x92, 0x07, 0x08])), [0x92, 0x07, 0x08]);
        assert_eq!(&*key_of(None), [0x90]);
    }

    #[test]
    fn options_are_a_table_or_an_iterator() {
        let none = OptionFault::Illegal("Illegal parameters, Invalid iterator type".to_owned());
        for number in [&[12][..], &[0xff], &[0xcd, 1, 0]] {
            assert_eq!(iterator_of(number), Err(none.clone()), "{number:?}");
        }
        let unknown = |name: &str| Err(OptionFault::Iterator(name.to_owned()));
        assert_eq!(iterator_of(&[0xc3]), unknown("true"));
        assert_eq!(iterator_of(&[0x90]), unknown("unknown"));
        assert_eq!(iterator_of(&[0xa1, b'x']), unknown("x"));
        let mut table = Vec::new();
        write::map(&mut table, 3);
        write::str(&mut table, b"iterator");
        write::str(&mut table, b"ge");
        write::str(&mut table, b"limit");
        write::uint(&mut table, 10);
        write::str(&mut table, b"fetch_pos");
        write::bool(&mut table, true);
        let options = Options::parse(Some(&table)).unwrap();
        assert_eq!((options.iterator, options.limit), (Some(IteratorType::Ge), 10));
        let mut name = Vec::new();
        write::str(&mut name, b"LT");
        assert_eq!(Options::parse(Some(&name)).unwrap().iterator, Some(IteratorType::Lt));
        name.clear();
        write::str(&mut name, b"NEAR");
        let fault = OptionFault::Iterator("NEAR".to_owned());
        assert_eq!(Options::parse(Some(&name)), Err(fault));
    }
}
