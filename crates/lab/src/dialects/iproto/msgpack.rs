//! MessagePack, as much as IPROTO needs: writing without intermediate values, reading with bounds.
//!
//! **Invariant:** no byte string makes [`Reader`] or [`Value`] panic or allocate in proportion to a
//! number that was merely announced.
//!
//! Written here because `rmp` 0.8.15 and `rmpv` 1.3.1, the usual crates (last released in December
//! 2025), declare `looking-for-maintainer` in their manifests; `msgpacker` 0.7.2 has no value type.
//!
//! Source: the MessagePack specification, formats.

/// One value of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `nil`
    Nil,
    /// A truth value.
    Bool(bool),
    /// An integer below zero.
    Negative(i64),
    /// Any other integer.
    Unsigned(u64),
    /// A floating-point number of either width.
    Float(f64),
    /// A string. Its bytes, as the format owes no UTF-8.
    Text(Vec<u8>),
    /// Binary data.
    Binary(Vec<u8>),
    /// Values in order.
    Array(Vec<Self>),
    /// Keys and values, in order.
    Map(Vec<(Self, Self)>),
    /// A type of the application's own: its number and its bytes.
    Extension(i8, Vec<u8>),
}

impl Value {
    /// A text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(text.as_bytes().to_vec())
    }

    /// The text, if it is one and readable.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The items, if it is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Appends the shortest form.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nil => out.push(0xc0),
            Self::Bool(value) => out.push(if *value { 0xc3 } else { 0xc2 }),
            Self::Negative(value) => write_integer(*value, out),
            Self::Unsigned(value) => write_unsigned(*value, out),
            Self::Float(value) => {
                out.push(0xcb);
                out.extend_from_slice(&value.to_be_bytes());
            }
            Self::Text(bytes) => write_text(bytes, out),
            Self::Binary(bytes) => write_sized(bytes.len(), [0xc4, 0xc5, 0xc6], out, bytes),
            Self::Array(items) => {
                write_array(items.len(), out);
                items.iter().for_each(|item| item.write(out));
            }
            Self::Map(items) => {
                write_map(items.len(), out);
                for (key, value) in items {
                    key.write(out);
                    value.write(out);
                }
            }
            Self::Extension(kind, bytes) => {
                // The sized form is right for every length.
                let kind = kind.to_be_bytes()[0];
                match u8::try_from(bytes.len()) {
                    Ok(length) => out.extend_from_slice(&[0xc7, length, kind]),
                    Err(_) => {
                        out.push(0xc9);
                        out.extend_from_slice(&length_32(bytes.len()));
                        out.push(kind);
                    }
                }
                out.extend_from_slice(bytes);
            }
        }
    }
}

/// Appends an unsigned integer in its shortest form.
#[inline]
pub fn write_unsigned(value: u64, out: &mut Vec<u8>) {
    if value < 0x80 {
        out.push(value as u8);
    } else if let Ok(value) = u8::try_from(value) {
        out.extend_from_slice(&[0xcc, value]);
    } else if let Ok(value) = u16::try_from(value) {
        out.push(0xcd);
        out.extend_from_slice(&value.to_be_bytes());
    } else if let Ok(value) = u32::try_from(value) {
        out.push(0xce);
        out.extend_from_slice(&value.to_be_bytes());
    } else {
        out.push(0xcf);
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends an integer; below zero always in the widest form, which is right for all.
#[inline]
pub fn write_integer(value: i64, out: &mut Vec<u8>) {
    if let Ok(value) = u64::try_from(value) {
        return write_unsigned(value, out);
    }
    out.push(0xd3);
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends a string of bytes.
#[inline]
pub fn write_text(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.len() < 32 {
        out.push(0xa0 | bytes.len() as u8);
        out.extend_from_slice(bytes);
    } else {
        write_sized(bytes.len(), [0xd9, 0xda, 0xdb], out, bytes);
    }
}

/// Appends the head of an array of `length` items.
#[inline]
pub fn write_array(length: usize, out: &mut Vec<u8>) {
    write_head(length, 0x90, [0xdc, 0xdd], out);
}

/// Appends the head of a map of `length` pairs.
#[inline]
pub fn write_map(length: usize, out: &mut Vec<u8>) {
    write_head(length, 0x80, [0xde, 0xdf], out);
}

fn write_head(length: usize, short: u8, [middle, long]: [u8; 2], out: &mut Vec<u8>) {
    if length < 16 {
        out.push(short | length as u8);
    } else if let Ok(length) = u16::try_from(length) {
        out.push(middle);
        out.extend_from_slice(&length.to_be_bytes());
    } else {
        out.push(long);
        out.extend_from_slice(&length_32(length));
    }
}

fn write_sized(length: usize, heads: [u8; 3], out: &mut Vec<u8>, bytes: &[u8]) {
    if let Ok(length) = u8::try_from(length) {
        out.extend_from_slice(&[heads[0], length]);
    } else if let Ok(length) = u16::try_from(length) {
        out.push(heads[1]);
        out.extend_from_slice(&length.to_be_bytes());
    } else {
        out.push(heads[2]);
        out.extend_from_slice(&length_32(length));
    }
    out.extend_from_slice(bytes);
}

/// The format knows no longer ones, and the lab makes none.
fn length_32(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("the lab's requests are shorter than 4 GiB").to_be_bytes()
}

/// Reads values off the front of bytes. `None` from any method: the bytes are not that, or end.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

/// Deeper than anything that Tarantool answers to the lab.
const DEPTH_MAX: usize = 32;

impl<'a> Reader<'a> {
    /// At the front of `bytes`.
    #[must_use]
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What is not read yet.
    #[must_use]
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// An unsigned integer of any width.
    #[inline]
    pub fn unsigned(&mut self) -> Option<u64> {
        let before = self.rest;
        let value = match self.byte()? {
            small @ 0..0x80 => Some(u64::from(small)),
            head @ 0xcc..=0xcf => self.number(1 << (head - 0xcc)),
            _ => None,
        };
        if value.is_none() {
            self.rest = before;
        }
        value
    }

    /// An integer of any width and sign that fits.
    #[inline]
    pub fn integer(&mut self) -> Option<i64> {
        match *self.rest.first()? {
            small @ 0xe0..=0xff => {
                self.byte()?;
                Some(i64::from(small.cast_signed()))
            }
            head @ 0xd0..=0xd3 => {
                self.byte()?;
                let bytes = 1 << (head - 0xd0);
                let unused = 64 - 8 * bytes as u32;
                Some(((self.number(bytes)? << unused).cast_signed()) >> unused)
            }
            _ => i64::try_from(self.unsigned()?).ok(),
        }
    }

    /// A string or binary: its bytes.
    #[inline]
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = match self.byte()? {
            short @ 0xa0..0xc0 => u64::from(short & 0x1f),
            head @ 0xc4..=0xc6 => self.number(1 << (head - 0xc4))?,
            head @ 0xd9..=0xdb => self.number(1 << (head - 0xd9))?,
            _ => return None,
        };
        self.take(length)
    }

    /// The head of an array: how many items follow, if the rest can hold them at all.
    #[inline]
    pub fn array(&mut self) -> Option<usize> {
        let length = match self.byte()? {
            short @ 0x90..0xa0 => u64::from(short & 0x0f),
            0xdc => self.number(2)?,
            0xdd => self.number(4)?,
            _ => return None,
        };
        usize::try_from(length).ok().filter(|length| *length <= self.rest.len())
    }

    /// The head of a map: how many pairs follow, if the rest can hold them at all.
    #[inline]
    pub fn map(&mut self) -> Option<usize> {
        let length = match self.byte()? {
            short @ 0x80..0x90 => u64::from(short & 0x0f),
            0xde => self.number(2)?,
            0xdf => self.number(4)?,
            _ => return None,
        };
        usize::try_from(length).ok().filter(|length| *length <= self.rest.len() / 2)
    }

    /// Leaves out one value of any kind.
    #[inline]
    pub fn skip(&mut self) -> Option<()> {
        // Values still to leave out; each takes at least a byte, so the rest bounds the loop.
        let mut left = 1u64;
        while left > 0 {
            left -= 1;
            match self.byte()? {
                0..0x80 | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => {}
                map @ 0x80..0x90 => left = left.checked_add(2 * u64::from(map & 0x0f))?,
                array @ 0x90..0xa0 => left = left.checked_add(u64::from(array & 0x0f))?,
                text @ 0xa0..0xc0 => {
                    self.take(u64::from(text & 0x1f))?;
                }
                0xc1 => return None,
                head @ (0xc4..=0xc6 | 0xd9..=0xdb) => {
                    let width = 1 << (if head < 0xd0 { head - 0xc4 } else { head - 0xd9 });
                    let length = self.number(width)?;
                    self.take(length)?;
                }
                head @ 0xc7..=0xc9 => {
                    let length = self.number(1 << (head - 0xc7))?;
                    self.take(length.checked_add(1)?)?;
                }
                0xca => {
                    self.take(4)?;
                }
                0xcb => {
                    self.take(8)?;
                }
                head @ 0xcc..=0xcf => {
                    self.take(1 << (head - 0xcc))?;
                }
                head @ 0xd0..=0xd3 => {
                    self.take(1 << (head - 0xd0))?;
                }
                head @ 0xd4..=0xd8 => {
                    self.take(1 + (1 << (head - 0xd4)))?;
                }
                0xdc => left = left.checked_add(self.number(2)?)?,
                0xdd => left = left.checked_add(self.number(4)?)?,
                0xde => left = left.checked_add(2 * self.number(2)?)?,
                0xdf => left = left.checked_add(2 * self.number(4)?)?,
            }
        }
        Some(())
    }

    /// One value of any kind.
    pub fn value(&mut self) -> Option<Value> {
        self.value_at(0)
    }

    fn value_at(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        Some(match *self.rest.first()? {
            0..0x80 | 0xcc..=0xcf => Value::Unsigned(self.unsigned()?),
            0xd0..=0xd3 | 0xe0..=0xff => match self.integer()? {
                negative @ ..0 => Value::Negative(negative),
                other => Value::Unsigned(other.cast_unsigned()),
            },
            0x80..0x90 | 0xde | 0xdf => {
                let pairs = self.map()?;
                let mut pair = || Some((self.value_at(depth + 1)?, self.value_at(depth + 1)?));
                Value::Map((0..pairs).map(|_| pair()).collect::<Option<_>>()?)
            }
            0x90..0xa0 | 0xdc | 0xdd => {
                let items = self.array()?;
                Value::Array((0..items).map(|_| self.value_at(depth + 1)).collect::<Option<_>>()?)
            }
            0xa0..0xc0 | 0xd9..=0xdb => Value::Text(self.bytes()?.to_vec()),
            0xc4..=0xc6 => Value::Binary(self.bytes()?.to_vec()),
            0xc0 => self.constant(Value::Nil)?,
            0xc2 => self.constant(Value::Bool(false))?,
            0xc3 => self.constant(Value::Bool(true))?,
            0xca => {
                self.byte()?;
                Value::Float(f64::from(f32::from_bits(u32::try_from(self.number(4)?).ok()?)))
            }
            0xcb => {
                self.byte()?;
                Value::Float(f64::from_bits(self.number(8)?))
            }
            head @ 0xc7..=0xc9 => {
                self.byte()?;
                let length = self.number(1 << (head - 0xc7))?;
                self.extension(length)?
            }
            head @ 0xd4..=0xd8 => {
                self.byte()?;
                self.extension(1 << (head - 0xd4))?
            }
            0xc1 => return None,
        })
    }

    fn constant(&mut self, value: Value) -> Option<Value> {
        self.byte()?;
        Some(value)
    }

    fn extension(&mut self, length: u64) -> Option<Value> {
        let kind = self.byte()?.cast_signed();
        Some(Value::Extension(kind, self.take(length)?.to_vec()))
    }

    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    #[inline]
    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    /// A big-endian number of `bytes` bytes.
    #[inline]
    fn number(&mut self, bytes: u64) -> Option<u64> {
        Some(self.take(bytes)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Nil),
            any::<bool>().prop_map(Value::Bool),
            any::<u64>().prop_map(Value::Unsigned),
            (0u64..70_000).prop_map(Value::Unsigned),
            (i64::MIN..0).prop_map(Value::Negative),
            (-300i64..0).prop_map(Value::Negative),
            (-1e9..1e9).prop_map(Value::Float),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Text),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Binary),
            (any::<i8>(), prop::collection::vec(any::<u8>(), 0..300))
                .prop_map(|(kind, bytes)| Value::Extension(kind, bytes)),
        ];
        leaf.prop_recursive(4, 64, 20, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..20).prop_map(Value::Array),
                prop::collection::vec((inner.clone(), inner), 0..20).prop_map(Value::Map),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_left_out(value in any_value()) {
            let mut bytes = Vec::new();
            value.write(&mut bytes);
            for end in 0..bytes.len() {
                prop_assert!(Reader::new(&bytes[..end]).value().is_none());
                prop_assert!(Reader::new(&bytes[..end]).skip().is_none());
            }
            bytes.push(0x55);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.value(), Some(value));
            prop_assert_eq!(reader.rest(), &[0x55]);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.skip(), Some(()));
            prop_assert_eq!(reader.rest(), &[0x55]);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            // Reading a value and leaving it out agree, but for depth.
            let (mut read, mut skip) = (Reader::new(&bytes), Reader::new(&bytes));
            if read.value().is_some() {
                prop_assert_eq!(skip.skip(), Some(()));
                prop_assert_eq!(read.rest(), skip.rest());
            }
            let _ = (Reader::new(&bytes).unsigned(), Reader::new(&bytes).integer());
            let _ = (Reader::new(&bytes).bytes(), Reader::new(&bytes).array());
            let _ = Reader::new(&bytes).map();
        }
    }

    #[test]
    fn depth_and_announced_numbers_are_bounded() {
        assert!(Reader::new(&[0x91; 100_000]).value().is_none());
        assert!(Reader::new(&[0xdd, 0xff, 0xff, 0xff, 0xff]).value().is_none());
        assert!(Reader::new(&[0xdf, 0xff, 0xff, 0xff, 0xff]).skip().is_none());
    }

    #[test]
    fn narrow_negative_numbers() {
        for (bytes, number) in
            [(vec![0xff], -1), (vec![0xd0, 0x80], -128), (vec![0xd1, 0xff, 0x00], -256)]
        {
            assert_eq!(Reader::new(&bytes).integer(), Some(number));
        }
    }
}
