//! The elements of one value, one after the other.
//!
//! ```text
//! list, set := count, string...
//! zset      := count, (string, score)...
//!              score := f64 | length u8, decimal | 253: nan | 254: inf | 255: -inf
//! hash      := count, (field, value)...
//! hash with expiry of Redis  := [least expiry i64], count, (expiry, field, value)...
//!              expiry := 0 (none) | milliseconds since the least expiry, plus 1
//! hash with expiry of Valkey := count, (field, value, expiry i64 or -1)...
//! quicklist := count, ziplist...
//! quicklist 2 := count, (1, element | 2, listpack)...
//! listpack with expiry := [least expiry i64], listpack of field, value, expiry or 0
//! ```
//!
//! Source: `rdb.c` and `quicklist.h` of Redis 7.4; `rdb.c` of Valkey 9.0 for its hashes.

use std::io::Read;

use crate::encoding::Encoding;
use crate::error::Fault;
use crate::packed::{Form, Item, Packed};
use crate::source::Source;
use crate::stream::StreamElements;
use crate::text::{Text, read_length, read_string};
use crate::value::{Element, Field};

/// How a hash says when its fields expire.
#[derive(Clone, Copy)]
pub(crate) enum FieldExpiry {
    None,
    /// Milliseconds since 1970.
    Absolute,
    /// Milliseconds since this, plus 1.
    Since(u64),
    /// Behind the value.
    Valkey,
}

/// What the elements of a packed collection are.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    List,
    Set,
    SortedSet,
    Hash,
    HashWithExpiry,
}

/// A value that is being read.
pub(crate) enum Elements {
    String(Text),
    Plain { left: u64, is_set: bool },
    Scored { left: u64, is_decimal: bool },
    Fields { left: u64, expiry: FieldExpiry },
    Quicklist { nodes_left: u64, is_second: bool, node: Option<Packed> },
    Packed { packed: Packed, kind: Kind },
    Stream(Box<StreamElements>),
}

impl Elements {
    /// Begins with what stands behind a key.
    pub(crate) fn open<R: Read>(
        encoding: Encoding,
        source: &mut Source<R>,
    ) -> Result<Elements, Fault> {
        Ok(match encoding {
            Encoding::String => Elements::String(Text::open(source)?),
            Encoding::List => Elements::Plain { left: read_length(source)?, is_set: false },
            Encoding::Set => Elements::Plain { left: read_length(source)?, is_set: true },
            Encoding::SortedSetDecimal => {
                Elements::Scored { left: read_length(source)?, is_decimal: true }
            }
            Encoding::SortedSet => {
                Elements::Scored { left: read_length(source)?, is_decimal: false }
            }
            Encoding::Hash => Self::fields(FieldExpiry::None, source)?,
            Encoding::HashMetadataPreGa => Self::fields(FieldExpiry::Absolute, source)?,
            Encoding::HashValkey => Self::fields(FieldExpiry::Valkey, source)?,
            Encoding::HashMetadata => {
                let least = source.i64_le()? as u64;
                Self::fields(FieldExpiry::Since(least), source)?
            }
            Encoding::HashZipmap => Self::packed(Form::Zipmap, Kind::Hash, source)?,
            Encoding::ListZiplist => Self::packed(Form::Ziplist, Kind::List, source)?,
            Encoding::SetIntset => Self::packed(Form::Intset, Kind::Set, source)?,
            Encoding::SortedSetZiplist => Self::packed(Form::Ziplist, Kind::SortedSet, source)?,
            Encoding::HashZiplist => Self::packed(Form::Ziplist, Kind::Hash, source)?,
            Encoding::HashListpack => Self::packed(Form::Listpack, Kind::Hash, source)?,
            Encoding::SortedSetListpack => Self::packed(Form::Listpack, Kind::SortedSet, source)?,
            Encoding::SetListpack => Self::packed(Form::Listpack, Kind::Set, source)?,
            Encoding::HashListpackExPreGa => {
                Self::packed(Form::Listpack, Kind::HashWithExpiry, source)?
            }
            Encoding::HashListpackEx => {
                // The least expiry, which the listpack has too.
                source.i64_le()?;
                Self::packed(Form::Listpack, Kind::HashWithExpiry, source)?
            }
            Encoding::ListQuicklist => Self::quicklist(false, source)?,
            Encoding::ListQuicklist2 => Self::quicklist(true, source)?,
            Encoding::Stream1 => Self::stream(1, source)?,
            Encoding::Stream2 => Self::stream(2, source)?,
            Encoding::Stream3 => Self::stream(3, source)?,
        })
    }

    fn fields<R: Read>(expiry: FieldExpiry, source: &mut Source<R>) -> Result<Elements, Fault> {
        Ok(Elements::Fields { left: read_length(source)?, expiry })
    }

    fn packed<R: Read>(form: Form, kind: Kind, source: &mut Source<R>) -> Result<Elements, Fault> {
        Ok(Elements::Packed { packed: Packed::open(form, source)?, kind })
    }

    fn quicklist<R: Read>(is_second: bool, source: &mut Source<R>) -> Result<Elements, Fault> {
        Ok(Elements::Quicklist { nodes_left: read_length(source)?, is_second, node: None })
    }

    fn stream<R: Read>(version: u8, source: &mut Source<R>) -> Result<Elements, Fault> {
        Ok(Elements::Stream(Box::new(StreamElements::open(version, source)?)))
    }

    /// The next element; `None` at the value's end.
    pub(crate) fn next<R: Read>(
        &mut self,
        source: &mut Source<R>,
    ) -> Result<Option<Element>, Fault> {
        match self {
            Elements::String(text) => Ok(text.next_piece(source)?.map(Element::StringPart)),
            Elements::Plain { left, is_set } => {
                if !count_down(left) {
                    return Ok(None);
                }
                let string = read_string(source)?;
                let element =
                    if *is_set { Element::SetMember(string) } else { Element::ListElement(string) };
                Ok(Some(element))
            }
            Elements::Scored { left, is_decimal } => {
                if !count_down(left) {
                    return Ok(None);
                }
                let member = read_string(source)?;
                let score = if *is_decimal {
                    decimal_score(source)?
                } else {
                    f64::from_le_bytes(source.array()?)
                };
                scored(member, score).map(Some)
            }
            Elements::Fields { left, expiry } => {
                if !count_down(left) {
                    return Ok(None);
                }
                field(*expiry, source).map(|field| Some(Element::Field(field)))
            }
            Elements::Quicklist { nodes_left, is_second, node } => {
                let element = next_of_quicklist(nodes_left, *is_second, node, source)?;
                Ok(element.map(Element::ListElement))
            }
            Elements::Packed { packed, kind } => next_of_packed(packed, *kind, source),
            Elements::Stream(stream) => stream.next(source),
        }
    }
}

/// Whether there is one more.
pub(crate) fn count_down(left: &mut u64) -> bool {
    let is_one_more = *left > 0;
    *left = left.saturating_sub(1);
    is_one_more
}

fn scored(member: Vec<u8>, score: f64) -> Result<Element, Fault> {
    if score.is_nan() {
        return Err(Fault::Malformed("a score is not a number"));
    }
    Ok(Element::Scored { member, score })
}

fn decimal_score<R: Read>(source: &mut Source<R>) -> Result<f64, Fault> {
    match source.byte()? {
        255 => Ok(f64::NEG_INFINITY),
        254 => Ok(f64::INFINITY),
        253 => Ok(f64::NAN),
        length => {
            let mut text = Vec::new();
            source.append_to(&mut text, length.into())?;
            parse_score(&text)
        }
    }
}

fn parse_score(text: &[u8]) -> Result<f64, Fault> {
    let text = str::from_utf8(text).ok();
    let score = text.and_then(|text| text.parse().ok());
    score.ok_or(Fault::Malformed("a score is no decimal number"))
}

fn field<R: Read>(expiry: FieldExpiry, source: &mut Source<R>) -> Result<Field, Fault> {
    let before = match expiry {
        FieldExpiry::None | FieldExpiry::Valkey => 0,
        FieldExpiry::Absolute | FieldExpiry::Since(_) => read_length(source)?,
    };
    let name = read_string(source)?;
    let value = read_string(source)?;
    let expires_at_ms = match expiry {
        FieldExpiry::None => None,
        FieldExpiry::Absolute => (before != 0).then_some(before),
        FieldExpiry::Since(_) if before == 0 => None,
        FieldExpiry::Since(least) => match least.checked_add(before - 1) {
            Some(at) => Some(at),
            None => return Err(Fault::Malformed("a field's expiry is out of range")),
        },
        FieldExpiry::Valkey => match source.i64_le()? {
            -1 => None,
            at => Some(expiry_of(at)?),
        },
    };
    if expires_at_ms.is_some_and(|at| i64::try_from(at).is_err()) {
        return Err(Fault::Malformed("a field's expiry is out of range"));
    }
    Ok(Field { name, value, expires_at_ms })
}

fn expiry_of(number: i64) -> Result<u64, Fault> {
    u64::try_from(number).map_err(|_| Fault::Malformed("a field's expiry is out of range"))
}

fn next_of_quicklist<R: Read>(
    nodes_left: &mut u64,
    is_second: bool,
    node: &mut Option<Packed>,
    source: &mut Source<R>,
) -> Result<Option<Vec<u8>>, Fault> {
    const PLAIN: u64 = 1;
    const PACKED: u64 = 2;
    loop {
        if let Some(packed) = node {
            if let Some(item) = packed.next(source)? {
                return Ok(Some(item.into_bytes()));
            }
            *node = None;
        }
        if !count_down(nodes_left) {
            return Ok(None);
        }
        if is_second {
            match read_length(source)? {
                PLAIN => return read_string(source).map(Some),
                PACKED => *node = Some(Packed::open(Form::Listpack, source)?),
                _ => return Err(Fault::Malformed("a quicklist's node is of an unknown kind")),
            }
        } else {
            *node = Some(Packed::open(Form::Ziplist, source)?);
        }
    }
}

fn next_of_packed<R: Read>(
    packed: &mut Packed,
    kind: Kind,
    source: &mut Source<R>,
) -> Result<Option<Element>, Fault> {
    let Some(first) = packed.next(source)? else { return Ok(None) };
    let element = match kind {
        Kind::List => Element::ListElement(first.into_bytes()),
        Kind::Set => Element::SetMember(first.into_bytes()),
        Kind::SortedSet => {
            let score = match packed.expect(source)? {
                Item::Number(number) => number as f64,
                Item::Bytes(text) => parse_score(&text)?,
            };
            scored(first.into_bytes(), score)?
        }
        Kind::Hash => {
            let value = packed.expect(source)?.into_bytes();
            Element::Field(Field { name: first.into_bytes(), value, expires_at_ms: None })
        }
        Kind::HashWithExpiry => {
            let value = packed.expect(source)?.into_bytes();
            let at = expiry_of(packed.expect_number(source)?)?;
            let expires_at_ms = (at != 0).then_some(at);
            Element::Field(Field { name: first.into_bytes(), value, expires_at_ms })
        }
    };
    Ok(Some(element))
}
