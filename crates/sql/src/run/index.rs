//! Reading an index between bounds.

use super::{Env, Run, Seen, Slot, see_field};
use crate::error::Error;
use crate::tree::IndexAccess;
use crate::value::{INTEGER_MAX, INTEGER_MIN, Value, parse_number};
use ladon_msgpack::write;
use ladon_space::fields::Fields;
use ladon_space::{Collation, FieldType, IteratorType, Selection, Space, Tuple};

/// What a value is to a part of an index.
pub(super) enum KeyPart {
    Exact(Value),
    /// No tuple has it, or can be compared with it.
    Never,
    /// The index does not help.
    Unusable,
}

/// Which side of an integer a fraction is taken to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Exact,
    Below,
    Above,
}

/// A value as a key of a part of this type.
pub(super) fn key_part(value: &Value, kind: FieldType, side: Side) -> KeyPart {
    use FieldType::{Boolean, Decimal, Double, Integer, Number, String, Unsigned, Varbinary};
    match (value, kind) {
        (Value::Null, _) => KeyPart::Never,
        (Value::Str(_), String) | (Value::Bool(_), Boolean) | (Value::Bin(_), Varbinary) => {
            KeyPart::Exact(value.clone())
        }
        (Value::Int(_) | Value::Double(_), Number) => KeyPart::Exact(value.clone()),
        (Value::Int(number), Integer) => KeyPart::Exact(Value::Int(*number)),
        (Value::Int(number), Unsigned) if *number >= 0 => KeyPart::Exact(Value::Int(*number)),
        (Value::Int(_), Unsigned) if side == Side::Exact => KeyPart::Never,
        (Value::Double(number), Double) => KeyPart::Exact(Value::Double(*number)),
        (Value::Int(number), Double) => {
            let double = *number as f64;
            let is_exact = double as i128 == *number;
            if is_exact { KeyPart::Exact(Value::Double(double)) } else { KeyPart::Unusable }
        }
        (Value::Double(number), Integer | Unsigned) => {
            let least = if kind == Unsigned { 0.0 } else { INTEGER_MIN as f64 };
            let moved = match side {
                Side::Exact if number.fract() != 0.0 => return KeyPart::Never,
                Side::Above => number.ceil(),
                _ => number.floor(),
            };
            match moved >= least && moved < INTEGER_MAX as f64 {
                true => KeyPart::Exact(Value::Int(moved as i128)),
                false if side == Side::Exact => KeyPart::Never,
                false => KeyPart::Unusable,
            }
        }
        (Value::Raw(_), _) => raw_part(value, kind, side),
        (Value::Int(number), Decimal) => {
            KeyPart::Exact(Value::of_decimal(ladon_space::Decimal::of_integer(*number)))
        }
        (Value::Double(number), Decimal) => match ladon_space::Decimal::of_double(*number) {
            Some(decimal) if decimal.compare_double(*number).is_eq() => {
                KeyPart::Exact(Value::of_decimal(decimal))
            }
            _ => KeyPart::Unusable,
        },
        (Value::Str(text), Integer | Unsigned | Number | Double | Decimal) => {
            match parse_number(text) {
                Some(number) => key_part(&number, kind, side),
                None if side == Side::Exact => KeyPart::Never,
                None => KeyPart::Unusable,
            }
        }
        _ => KeyPart::Unusable,
    }
}

/// As [`key_part`], of a decimal, a UUID or a date.
fn raw_part(value: &Value, kind: FieldType, side: Side) -> KeyPart {
    use FieldType::{Double, Integer, Number, Unsigned};
    match (value.kind(), kind) {
        (Some(own), _) if own == kind => KeyPart::Exact(value.clone()),
        (Some(FieldType::Decimal), Number) => KeyPart::Exact(value.clone()),
        (Some(FieldType::Decimal), Integer | Unsigned | Double) => {
            match (crate::convert::exactly(value, kind), side) {
                (Some(value), _) => KeyPart::Exact(value),
                (None, Side::Exact) => KeyPart::Never,
                (None, _) => KeyPart::Unusable,
            }
        }
        _ => KeyPart::Unusable,
    }
}

/// What a value becomes as a part of a key.
enum Packed {
    /// It was appended.
    Exact,
    Never,
    Unusable,
}

/// Appends a value as a part of a key of this type.
#[inline]
fn pack_part(value: Seen<'_>, kind: FieldType, key: &mut Vec<u8>) -> Packed {
    use FieldType::{Integer, Number, String, Unsigned};
    match (&value, kind) {
        (Seen::Null, _) => Packed::Never,
        (Seen::Str(_), String) | (Seen::Int(_), Integer | Number) => {
            value.pack(key);
            Packed::Exact
        }
        (Seen::Int(number), Unsigned) if *number >= 0 => {
            value.pack(key);
            Packed::Exact
        }
        _ => match key_part(&value.into_value(), kind, Side::Exact) {
            KeyPart::Exact(value) => {
                value.pack(key);
                Packed::Exact
            }
            KeyPart::Never => Packed::Never,
            KeyPart::Unusable => Packed::Unusable,
        },
    }
}

/// What an access finds.
pub(super) enum Reached<'s> {
    Nothing,
    One(Option<&'s Tuple>),
    Bounded(Box<Bounded<'s>>),
    /// The index does not help with these values.
    Unusable,
}

/// The tuples of an index, as long as they are within bounds.
pub(super) struct Bounded<'s> {
    selection: Selection<'s>,
    /// Fields that are to be equal, with their collations; none, if the selection sees to that.
    equal: Vec<(u32, Value, u32)>,
    /// The field, its bound, its collation, and whether tuples end above or below it.
    end: Option<(u32, Value, u32, bool)>,
}

impl<'s> Iterator for Bounded<'s> {
    type Item = Slot<'s>;

    #[inline]
    fn next(&mut self) -> Option<Slot<'s>> {
        let tuple = self.selection.next()?;
        let is_equal = |(field, value, collation): &(u32, Value, u32)| {
            see_field(tuple, *field).order(value, *collation).is_eq()
        };
        let is_within = self.equal.iter().all(is_equal)
            && self.end.as_ref().is_none_or(|(field, bound, collation, is_above)| {
                let found = see_field(tuple, *field).order(bound, *collation);
                if *is_above { found.is_le() } else { found.is_ge() }
            });
        is_within.then_some(Slot::Tuple(tuple))
    }
}

fn packed(values: &[Value]) -> Vec<u8> {
    let mut key = Vec::with_capacity(values.len() * 10 + 1);
    write::array(&mut key, values.len() as u32);
    values.iter().for_each(|value| value.pack(&mut key));
    key
}

impl<'r> Run<'r> {
    /// The tuples that an access finds.
    pub(super) fn bounded(
        &self,
        space: &'r Space,
        access: &IndexAccess,
        env: &Env<'_>,
    ) -> Result<Reached<'r>, Error> {
        let mut key = self.key.take();
        key.clear();
        let reached = self.reach(space, access, env, &mut key);
        self.key.set(key);
        reached
    }

    fn reach(
        &self,
        space: &'r Space,
        access: &IndexAccess,
        env: &Env<'_>,
        key: &mut Vec<u8>,
    ) -> Result<Reached<'r>, Error> {
        let begins = access.low.is_some() || access.high.is_some();
        write::array(key, access.equal.len() as u32);
        for (ex, kind) in &access.equal {
            match pack_part(self.see(ex, env)?, *kind, key) {
                Packed::Exact => {}
                Packed::Never => return Ok(Reached::Nothing),
                Packed::Unusable => return Ok(Reached::Unusable),
            }
        }
        if access.is_unique && !begins {
            return Ok(Reached::One(space.find(access.index, key)?));
        }
        if !begins {
            let iterator = match (access.equal.is_empty(), access.is_reverse) {
                (false, false) => IteratorType::Eq,
                (false, true) => IteratorType::Req,
                (true, false) => IteratorType::Ge,
                (true, true) => IteratorType::Le,
            };
            let selection = space.select(access.index, iterator, key, 0, u64::MAX, None)?;
            return Ok(Reached::Bounded(Box::new(Bounded { selection, equal: vec![], end: None })));
        }
        self.between(space, access, env, key)
    }

    /// The tuples between bounds that follow equal parts, whose key is packed already.
    fn between(
        &self,
        space: &'r Space,
        access: &IndexAccess,
        env: &Env<'_>,
        key: &[u8],
    ) -> Result<Reached<'r>, Error> {
        let [low, high] = [(&access.low, Side::Below), (&access.high, Side::Above)];
        let (Some(low), Some(high)) = (self.bound(low, env)?, self.bound(high, env)?) else {
            return Ok(Reached::Nothing);
        };
        let index = space.require_index(access.index)?;
        let parts = &index.def().parts;
        let collation = |at: usize| match parts[at].collation {
            Collation::Unicode(unicode) => unicode.id(),
            _ => 0,
        };
        let values = Fields::of(key).map(Value::unpack);
        let equal: Vec<(u32, Value, u32)> =
            values.enumerate().map(|(at, value)| (parts[at].field, value, collation(at))).collect();
        let at = equal.len();
        let (begin, end) = if access.is_reverse { (high, low) } else { (low, high) };
        let iterator = match (&begin, access.is_reverse) {
            (None, false) if at > 0 => IteratorType::Eq,
            (None, true) if at > 0 => IteratorType::Req,
            (_, false) => IteratorType::Ge,
            (_, true) => IteratorType::Le,
        };
        let end = end.map(|bound| (parts[at].field, bound, collation(at), !access.is_reverse));
        let values: Vec<Value> = equal.iter().map(|part| part.1.clone()).chain(begin).collect();
        let limit = if access.is_unique { 1 } else { u64::MAX };
        let selection = space.select(access.index, iterator, &packed(&values), 0, limit, None)?;
        Ok(Reached::Bounded(Box::new(Bounded { selection, equal, end })))
    }

    /// A bound as a key; the outer `None`: there is nothing within it.
    fn bound(
        &self,
        (bound, side): (&Option<(crate::tree::Ex, bool, FieldType)>, Side),
        env: &Env<'_>,
    ) -> Result<Option<Option<Value>>, Error> {
        let Some((ex, _, kind)) = bound else { return Ok(Some(None)) };
        Ok(match key_part(&self.eval(ex, env)?, *kind, side) {
            KeyPart::Exact(value) => Some(Some(value)),
            KeyPart::Never => None,
            // Every tuple is looked at then.
            KeyPart::Unusable => Some(None),
        })
    }

    /// The tuples with this value in the first part of an index.
    pub(super) fn keyed(
        &self,
        space: &'r Space,
        index: u32,
        value: &Value,
    ) -> Result<Selection<'r>, Error> {
        let key = packed(std::slice::from_ref(value));
        space.select(index, IteratorType::Eq, &key, 0, u64::MAX, None)
    }
}
