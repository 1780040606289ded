//! Sequences: how they count, and which field of a space they fill in.
//!
//! Source: Tarantool's documentation, `box.schema.sequence`, and the checks of its `alter.cc` and
//! `sequence.c`.

use crate::definition::IndexDef;
use crate::error::{BoxError, ErrorCode};
use crate::field_type::FieldType;
use crate::fields::{Fields, field};
use ladon_msgpack::{Value, read, read_array, skip, write};

/// `ER_CREATE_SEQUENCE`.
const CREATE_SEQUENCE: ErrorCode = ErrorCode(142);
/// `ER_SEQUENCE_OVERFLOW`.
const SEQUENCE_OVERFLOW: ErrorCode = ErrorCode(147);
/// `ER_MODIFY_INDEX`.
const MODIFY_INDEX: ErrorCode = ErrorCode(14);

/// A sequence as a tuple of `_sequence` defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceDef {
    /// Its number.
    pub id: u32,
    /// The number of its owner, a user.
    pub owner: u32,
    /// Its name.
    pub name: String,
    /// What is added for the next number; not 0.
    pub step: i64,
    /// The lowest number.
    pub min: i64,
    /// The highest number.
    pub max: i64,
    /// The first number.
    pub start: i64,
    /// Whether it begins again behind its last number.
    pub cycles: bool,
}

/// Which sequence fills in which field of a space: a tuple of `_space_sequence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceSequence {
    /// The space's number.
    pub space: u32,
    /// The sequence's number.
    pub sequence: u32,
    /// The sequence was made with the index, and needs no rights of its own.
    pub is_generated: bool,
    /// The field's number, from 0.
    pub field: u32,
}

/// What a tuple that is written asks of its space's sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing: the field is missing, or no whole number.
    Nothing,
    /// The next number, in the place of nil.
    Next,
    /// That it goes on behind this number.
    GoOnAfter(i64),
}

impl SequenceDef {
    /// Reads a tuple that fits the format of `_sequence`.
    ///
    /// # Errors
    /// `CREATE_SEQUENCE`, if the numbers contradict each other.
    pub fn from_tuple(tuple: &[u8]) -> Result<SequenceDef, BoxError> {
        let mut fields = Fields::of(tuple);
        let mut next = || fields.next().and_then(|mut bytes| read(&mut bytes).ok());
        let (id, owner) = (number(next()), number(next()));
        let name = match next() {
            Some(Value::Str(name)) => String::from_utf8_lossy(name).into_owned(),
            _ => String::new(),
        };
        let [step, min, max, start, _cache] = std::array::from_fn(|_| number(next()));
        let cycles = matches!(next(), Some(Value::Bool(true)));
        let (id, owner) = (u32::try_from(id), u32::try_from(owner));
        let refused = |why: &str| {
            let message = format!("Failed to create sequence '{name}': {why}");
            Err(BoxError::new(CREATE_SEQUENCE, message))
        };
        let (Ok(id), Ok(owner)) = (id, owner) else { return refused("the number is too large") };
        if name.is_empty() {
            return refused("the name is no string");
        }
        if step == 0 {
            return refused("step option must be non-zero");
        }
        if min > max {
            return refused("max must be greater than or equal to min");
        }
        if start < min || start > max {
            return refused("start must be between min and max");
        }
        Ok(SequenceDef { id, owner, name, step, min, max, start, cycles })
    }

    /// The number after `current`; the first one, if there was none.
    ///
    /// # Errors
    /// `SEQUENCE_OVERFLOW`, if that was the last one.
    pub fn next(&self, current: Option<i64>) -> Result<i64, BoxError> {
        let Some(current) = current else { return Ok(self.start) };
        // A number from outside of the range was set by hand, or the range has changed.
        let is_before = if self.step > 0 { current < self.min } else { current > self.max };
        let (first, next) = match self.step > 0 {
            true => (self.min, current.checked_add(self.step).filter(|next| *next <= self.max)),
            false => (self.max, current.checked_add(self.step).filter(|next| *next >= self.min)),
        };
        match next {
            _ if is_before => Ok(first),
            Some(next) => Ok(next),
            None if self.cycles => Ok(first),
            None => {
                let message = format!("Sequence '{}' has overflowed", self.name);
                Err(BoxError::new(SEQUENCE_OVERFLOW, message))
            }
        }
    }

    /// The number to go on after, once somebody has written `seen`; `None` if nothing changes.
    pub fn after(&self, current: Option<i64>, seen: i64) -> Option<i64> {
        let is_news = match current {
            None => true,
            Some(current) if self.step > 0 => seen > current,
            Some(current) => seen < current,
        };
        is_news.then_some(seen)
    }
}

impl SpaceSequence {
    /// Reads a tuple that fits the format of `_space_sequence`.
    ///
    /// # Errors
    /// `UNSUPPORTED`, if it names a path inside of the field.
    pub fn from_tuple(tuple: &[u8]) -> Result<SpaceSequence, BoxError> {
        let mut fields = Fields::of(tuple);
        let mut next = || fields.next().and_then(|mut bytes| read(&mut bytes).ok());
        let numbers = [number(next()), number(next())];
        let is_generated = matches!(next(), Some(Value::Bool(true)));
        let field = number(next());
        if !matches!(next(), None | Some(Value::Str(b""))) {
            let message = "Ladon does not support sequences for a path inside of a field";
            return Err(BoxError::new(ErrorCode::UNSUPPORTED, message));
        }
        let [space, sequence] = numbers.map(u32::try_from);
        match (space, sequence, u32::try_from(field)) {
            (Ok(space), Ok(sequence), Ok(field)) => {
                Ok(SpaceSequence { space, sequence, is_generated, field })
            }
            _ => Err(BoxError::new(ErrorCode::ILLEGAL_PARAMS, "the number is too large")),
        }
    }

    /// Checks that a primary index has the field, as a whole number.
    ///
    /// # Errors
    /// `MODIFY_INDEX`.
    pub fn check(&self, primary: &IndexDef, space: &str) -> Result<(), BoxError> {
        let why = match primary
            .parts
            .iter()
            .find(|part| part.field == self.field && part.path.is_empty())
        {
            None => "sequence field must be a part of the index",
            Some(part) if !matches!(part.kind, FieldType::Unsigned | FieldType::Integer) => {
                "sequence cannot be used with a non-integer key"
            }
            Some(_) => return Ok(()),
        };
        let name = &primary.name;
        let message = format!("Can't create or modify index '{name}' in space '{space}': {why}");
        Err(BoxError::new(MODIFY_INDEX, message))
    }

    /// What a tuple to be inserted, or to replace another, asks of the sequence.
    pub fn asked(&self, tuple: &[u8]) -> Asked {
        let Some(mut field) = field(tuple, self.field) else { return Asked::Nothing };
        match read(&mut field) {
            Ok(Value::Nil) => Asked::Next,
            Ok(Value::Int(number)) => Asked::GoOnAfter(number),
            Ok(Value::Uint(number)) => {
                i64::try_from(number).map_or(Asked::Nothing, Asked::GoOnAfter)
            }
            _ => Asked::Nothing,
        }
    }

    /// The tuple with a number in the field, which it has.
    pub fn filled(&self, tuple: &[u8], number: i64) -> Vec<u8> {
        let mut filled = Vec::with_capacity(tuple.len() + 8);
        let mut rest = tuple;
        let is_read =
            read_array(&mut rest).is_ok() && (0..self.field).all(|_| skip(&mut rest).is_ok()) && {
                filled.extend_from_slice(&tuple[..tuple.len() - rest.len()]);
                write::int(&mut filled, number);
                skip(&mut rest).is_ok()
            };
        debug_assert!(is_read, "the field was read before");
        filled.extend_from_slice(rest);
        filled
    }
}

/// A tuple of `_sequence_data`: the sequence, and its last number.
pub fn sequence_data(sequence: u32, value: i64) -> Vec<u8> {
    let mut tuple = Vec::with_capacity(16);
    write::array(&mut tuple, 2);
    write::uint(&mut tuple, sequence.into());
    write::int(&mut tuple, value);
    tuple
}

/// The number in a tuple of `_sequence_data`.
pub fn sequence_value(tuple: &[u8]) -> Option<i64> {
    let mut field = field(tuple, 1)?;
    match read(&mut field).ok()? {
        Value::Uint(value) => i64::try_from(value).ok(),
        Value::Int(value) => Some(value),
        _ => None,
    }
}

/// A whole number, the nearest one that fits; 0 for anything else, which the format refuses.
fn number(value: Option<Value<'_>>) -> i64 {
    match value {
        Some(Value::Int(number)) => number,
        Some(Value::Uint(number)) => i64::try_from(number).unwrap_or(i64::MAX),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(step: i64, range: (i64, i64), start: i64, cycles: bool) -> SequenceDef {
        let (min, max) = range;
        SequenceDef { id: 1, owner: 1, name: "q".into(), step, min, max, start, cycles }
    }

    #[test]
    fn counts_up_to_its_end() {
        let up = sequence(3, (1, 10), 4, false);
        assert_eq!(
            [None, Some(4), Some(-5), Some(7)].map(|it| up.next(it).ok()),
            [Some(4), Some(7), Some(1), Some(10)]
        );
        let end = up.next(Some(10)).expect_err("it has an end");
        assert_eq!((end.code, &*end.message), (SEQUENCE_OVERFLOW, "Sequence 'q' has overflowed"));
        assert_eq!(sequence(3, (1, 10), 4, true).next(Some(8)).ok(), Some(1));
        let largest = sequence(1, (1, i64::MAX), 1, false);
        assert!(largest.next(Some(i64::MAX)).is_err());
    }

    #[test]
    fn counts_down() {
        let down = sequence(-4, (-10, -1), -1, false);
        assert_eq!(
            [None, Some(-1), Some(5)].map(|it| down.next(it).ok()),
            [Some(-1), Some(-5), Some(-1)]
        );
        assert!(down.next(Some(-9)).is_err());
        assert_eq!(down.after(Some(-5), -7), Some(-7));
        assert_eq!(down.after(Some(-5), -3), None);
    }

    #[test]
    fn fills_in_the_number_only() {
        let of = SpaceSequence { space: 512, sequence: 1, is_generated: false, field: 1 };
        let tuple = [0x93, 0xa1, b'a', 0xc0, 0xc3];
        assert_eq!(of.asked(&tuple), Asked::Next);
        let filled = of.filled(&tuple, 300);
        assert_eq!(filled, [0x93, 0xa1, b'a', 0xcd, 1, 44, 0xc3]);
        assert_eq!(of.asked(&filled), Asked::GoOnAfter(300));
        assert_eq!(of.asked(&[0x91, 0xc0]), Asked::Nothing);
        assert_eq!(sequence_value(&sequence_data(7, -3)), Some(-3));
    }
}
