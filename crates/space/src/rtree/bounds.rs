//! Boxes of a spatial index: for each dimension the lowest and the highest coordinate, one after
//! the other: `[low, high, low, high, ..]`.
//!
//! A tuple's box in the tree has one dimension more: a hash, in a range that is next to nothing.
//! Many tuples may have one box; without the hash, one of them would be found only by looking at
//! all.
//!
//! Coordinates may be infinite, and NaN as well. Which tuples an iterator selects is Tarantool's
//! comparison, word for word, so a NaN fits everything but `EQ`. A box around boxes has no NaN: it
//! reaches from one infinity to the other, so nothing in it is passed over.

use crate::error::{BoxError, ErrorCode};
use crate::field_type::{FieldType, peek};
use crate::iterator_type::IteratorType;
use crate::key::Key;
use ladon_msgpack::{self as msgpack, Value};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// Most dimensions that an index has.
pub(crate) const DIMENSIONS_MAX: u32 = 20;
/// Dimensions of an index that does not say how many.
pub(crate) const DIMENSIONS_DEFAULT: u32 = 2;

/// A box; two dimensions and the hash without an allocation.
pub(crate) type Bounds = SmallVec<[f64; 6]>;

/// How far a box is from a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distance {
    /// The root of the sum of squares.
    #[default]
    Euclid,
    /// The sum.
    Manhattan,
}

/// The box that a tuple's field is: an array of coordinates of a point, or of two corners.
///
/// # Errors
/// Tarantool's, if it is none.
pub(crate) fn of_field(mut field: &[u8], dimensions: u32) -> Result<Bounds, BoxError> {
    let count = msgpack::read_array(&mut field)?;
    read("Field", field, count, dimensions)
}

/// The box that a key is: an array in it, or its values themselves.
///
/// # Errors
/// Tarantool's, if it is none.
pub(crate) fn of_key(key: &Key<'_>, dimensions: u32) -> Result<Bounds, BoxError> {
    let (mut values, mut count) = (key.values(), key.count());
    if count != 1 && count != dimensions && count != dimensions * 2 {
        let most = dimensions * 2;
        let message = format!("Invalid key part count (expected [0..{most}], got {count})");
        return Err(BoxError::new(ErrorCode::KEY_PART_COUNT, message));
    }
    if count == 1 {
        if !matches!(peek(values), Some(Value::Array(_))) {
            return Err(BoxError::key_part_type(0, FieldType::Array));
        }
        count = msgpack::read_array(&mut values)?;
        check_count("Key", count, dimensions)?;
    }
    let is_array = key.count() == 1;
    let mut rest = values;
    for at in 0..count {
        let is_number = peek(rest).is_some_and(|value| FieldType::Number.accepts(&value));
        if !is_number {
            let part = if is_array { 0 } else { at as usize };
            return Err(BoxError::key_part_type(part, FieldType::Number));
        }
        msgpack::skip(&mut rest)?;
    }
    read("Key", values, count, dimensions)
}

fn check_count(what: &str, count: u32, dimensions: u32) -> Result<(), BoxError> {
    if count == dimensions || count == dimensions * 2 {
        return Ok(());
    }
    let message = format!(
        "RTree: {what} must be an array with {dimensions} (point) or {} (rectangle/box) numeric coordinates",
        dimensions * 2
    );
    Err(BoxError::new(ErrorCode::RTREE_RECT, message))
}

fn read(what: &str, mut rest: &[u8], count: u32, dimensions: u32) -> Result<Bounds, BoxError> {
    check_count(what, count, dimensions)?;
    let mut corners: Bounds = SmallVec::new();
    for at in 0..count {
        corners.push(coordinate(at, msgpack::read(&mut rest)?)?);
    }
    let dimensions = dimensions as usize;
    let upper = if corners.len() == dimensions { 0 } else { dimensions };
    let mut bounds = Bounds::new();
    for at in 0..dimensions {
        let (one, other) = (corners[at], corners[upper + at]);
        // Tarantool's order of what is not ordered: a NaN changes places as well.
        bounds.extend(if one <= other { [one, other] } else { [other, one] });
    }
    Ok(bounds)
}

/// A number that a double holds exactly.
fn coordinate(at: u32, value: Value<'_>) -> Result<f64, BoxError> {
    let exact = |number: i128| {
        let double = number as f64;
        (double as i128 == number).then_some(double)
    };
    let number = match value {
        Value::Uint(number) => exact(number.into()),
        Value::Int(number) => exact(number.into()),
        Value::Float(number) => Some(number.into()),
        Value::Double(number) => Some(number),
        _ => None,
    };
    number.ok_or_else(|| {
        let message = format!(
            "Tuple field {} type does not match one required by operation: expected number, got {}",
            at + 1,
            value.kind().name()
        );
        BoxError::new(ErrorCode::FIELD_TYPE, message)
    })
}

/// Adds a tuple's hash to its box.
pub(crate) fn with_hash(mut bounds: Bounds, hash: u64) -> Bounds {
    /// So small that the hash decides only between boxes that are equal otherwise.
    const SCALE: f64 = 1e-280;
    let coordinate = (hash >> 32) as f64 * SCALE;
    bounds.extend([coordinate, coordinate]);
    bounds
}

/// Lows and highs, by dimension.
fn sides(bounds: &[f64]) -> impl Iterator<Item = (f64, f64)> + '_ {
    bounds.chunks_exact(2).map(|side| (side[0], side[1]))
}

/// Whether an iterator with this key selects a box.
pub(crate) fn selects(iterator: IteratorType, bounds: &[f64], key: &[f64]) -> bool {
    let mut both = sides(bounds).zip(sides(key));
    match iterator {
        IteratorType::Eq => bounds[..key.len()] == *key,
        IteratorType::Overlaps => !both.any(|(a, key)| a.0 > key.1 || a.1 < key.0),
        IteratorType::Le => !both.any(|(a, key)| a.0 < key.0 || a.1 > key.1),
        IteratorType::Lt => !both.any(|(a, key)| a.0 <= key.0 || a.1 >= key.1),
        IteratorType::Ge => !both.any(|(a, key)| key.0 < a.0 || key.1 > a.1),
        IteratorType::Gt => !both.any(|(a, key)| key.0 <= a.0 || key.1 >= a.1),
        _ => true,
    }
}

/// Whether there may be boxes that an iterator selects in a box around boxes.
pub(crate) fn may_hold(iterator: IteratorType, around: &[f64], key: &[f64]) -> bool {
    let mut both = sides(around).zip(sides(key));
    match iterator {
        IteratorType::Overlaps | IteratorType::Le | IteratorType::Lt => {
            !both.any(|(a, key)| a.0 > key.1 || a.1 < key.0)
        }
        IteratorType::Eq | IteratorType::Ge | IteratorType::Gt => {
            !both.any(|(a, key)| a.0 > key.0 || a.1 < key.1)
        }
        _ => true,
    }
}

/// How far a box, or the nearest one in it, may be from a key's lower corner. Never NaN.
pub(crate) fn distance(kind: Distance, bounds: &[f64], key: &[f64]) -> f64 {
    let far = |((low, high), (point, _)): ((f64, f64), (f64, f64))| {
        let by = if point < low {
            low - point
        } else if point > high {
            point - high
        } else {
            0.0
        };
        if kind == Distance::Euclid { by * by } else { by }
    };
    sides(bounds).zip(sides(key)).map(far).sum()
}

/// Replaces NaN by what holds everything.
pub(crate) fn around(bounds: &[f64]) -> Bounds {
    let of = |(low, high): (f64, f64)| match low.is_nan() || high.is_nan() {
        true => [f64::NEG_INFINITY, f64::INFINITY],
        false => [low, high],
    };
    sides(bounds).flat_map(of).collect()
}

/// Makes a box around boxes hold one more.
pub(crate) fn extend(around: &mut [f64], bounds: &[f64]) {
    for (around, bounds) in around.chunks_exact_mut(2).zip(bounds.chunks_exact(2)) {
        if bounds[0].is_nan() || bounds[1].is_nan() {
            around.copy_from_slice(&[f64::NEG_INFINITY, f64::INFINITY]);
            continue;
        }
        around[0] = around[0].min(bounds[0]);
        around[1] = around[1].max(bounds[1]);
    }
}

/// Whether a box around boxes holds this one.
pub(crate) fn holds(around: &[f64], bounds: &[f64]) -> bool {
    sides(around).zip(sides(&self::around(bounds))).all(|(a, b)| a.0 <= b.0 && a.1 >= b.1)
}

/// How long the sides of boxes are together: first what counts, then the hash's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Margin(f64, f64);

impl Margin {
    /// Of a box around boxes.
    pub(crate) fn of(around: &[f64]) -> Margin {
        let (coordinates, hash) = around.split_at(around.len() - 2);
        Margin(sides(coordinates).map(side).sum(), side((hash[0], hash[1])))
    }

    pub(crate) fn plus(self, other: Margin) -> Margin {
        Margin(self.0 + other.0, self.1 + other.1)
    }

    pub(crate) fn minus(self, other: Margin) -> Margin {
        Margin(self.0 - other.0, self.1 - other.1)
    }

    pub(crate) fn compare(self, other: Margin) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.total_cmp(&other.1))
    }
}

/// The side of a box around boxes. Never NaN, and finite.
pub(crate) fn side((low, high): (f64, f64)) -> f64 {
    // The sum of all sides of two boxes stays finite.
    const SIDE_MAX: f64 = f64::MAX / (4 * DIMENSIONS_MAX) as f64;
    if low == high { 0.0 } else { (high - low).min(SIDE_MAX) }
}
