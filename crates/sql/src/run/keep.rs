//! What a statement keeps while it runs, and the bytes by which values are equal.

use super::{Row, Run};
use crate::convert::to_numeric;
use crate::tree::Comparison;
use crate::value::Value;
use ladon_space::Collation;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::OnceLock;

/// The values of a list by their bytes, and whether null is one of them.
pub(crate) type ValueSet = Rc<(HashSet<Vec<u8>>, bool)>;

/// Rows by what they are joined by: rows of one hash are a list, in their order. Rows that are not
/// equal may share a hash; the condition of the join tells them apart.
#[derive(Default)]
pub(crate) struct RowHash<'r> {
    /// The first and the last row of each hash.
    ends: HashMap<u64, (u32, u32), BuildHasherDefault<Hashed>>,
    /// Each row, and the place of the next one of its hash.
    rows: Vec<(super::Slot<'r>, Option<NonZeroU32>)>,
}

impl<'r> RowHash<'r> {
    /// Bytes of memory that a row takes.
    pub(super) const ROW_BYTES: usize = 96;

    pub(super) fn add(&mut self, key: &[u8], row: super::Slot<'r>) {
        let Ok(place) = u32::try_from(self.rows.len()) else { return };
        self.rows.push((row, None));
        let ends = self.ends.entry(hash_of(key));
        let (_, last) = ends.or_insert((place, place));
        if *last != place {
            self.rows[*last as usize].1 = NonZeroU32::new(place);
            *last = place;
        }
    }

    /// The place of the first row with a key.
    pub(super) fn first(&self, key: &[u8]) -> Option<u32> {
        self.ends.get(&hash_of(key)).map(|(first, _)| *first)
    }

    /// A row, and the place of the next one.
    pub(super) fn row(&self, place: u32) -> Option<(super::Slot<'r>, Option<u32>)> {
        let (row, next) = self.rows.get(place as usize)?;
        Some((row.clone(), next.map(NonZeroU32::get)))
    }
}

/// The hash of some bytes, which nobody outside of this process can foresee.
#[inline]
fn hash_of(bytes: &[u8]) -> u64 {
    static SECRETS: OnceLock<RapidSecrets> = OnceLock::new();
    // Anything random will do; the standard library has it from the system.
    let secrets = SECRETS.get_or_init(|| RapidSecrets::seed(RandomState::new().hash_one(0)));
    rapidhash_v3_seeded(bytes, secrets)
}

/// Hashes keys that are bytes.
#[derive(Default)]
pub(crate) struct HashedBytes(u64);

impl Hasher for HashedBytes {
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = self.0.rotate_left(1) ^ hash_of(bytes);
    }

    /// The length, which the hash of the bytes depends on anyhow.
    #[inline]
    fn write_usize(&mut self, _: usize) {}
}

/// What is kept by bytes.
pub(crate) type ByBytes<V> = HashMap<Vec<u8>, V, BuildHasherDefault<HashedBytes>>;

/// The hash of what is a hash.
#[derive(Default)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let fold = |hash: u64, byte: &u8| hash.rotate_left(8) ^ u64::from(*byte);
        self.0 = bytes.iter().fold(self.0, fold);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// The values of one place.
#[derive(Clone)]
pub(crate) enum Kept<'r> {
    Nothing,
    /// A query's rows, or those of a recursive query's last round.
    Rows(Rc<Vec<Row>>),
    /// The values of a list, and whether null is one of them.
    Set(ValueSet),
    /// Rows by what they are joined by.
    Hash(Rc<RowHash<'r>>),
}

impl<'r> Run<'r> {
    pub(super) fn kept(&self, place: usize) -> Kept<'r> {
        self.kept.borrow().get(place).cloned().unwrap_or(Kept::Nothing)
    }

    pub(super) fn keep(&self, place: usize, kept: Kept<'r>) {
        if let Some(at) = self.kept.borrow_mut().get_mut(place) {
            *at = kept;
        }
    }
}

/// Appends bytes that are equal where values are: numbers by their value, texts by their collation.
pub(crate) fn canonical(value: &Value, collation: u32, out: &mut Vec<u8>) {
    match value {
        Value::Double(number) if number.fract() == 0.0 && number.abs() < i64::MAX as f64 => {
            Value::Int(*number as i128).pack(out);
        }
        Value::Str(text) if collation != 0 => match Collation::of_id(collation.into()) {
            Some(Collation::Unicode(unicode)) => {
                let key = unicode.sort_key(text);
                ladon_msgpack::write::str(out, &key);
            }
            _ => value.pack(out),
        },
        Value::Raw(_) => match value.decimal() {
            Some(decimal) => crate::decimals::canonical(decimal).pack(out),
            None => crate::extensions::canonical(value).pack(out),
        },
        other => other.pack(out),
    }
}

/// The bytes of a row.
pub(crate) fn canonical_row(row: &[Value], collations: &[u32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(row.len() * 9);
    for (at, value) in row.iter().enumerate() {
        canonical(value, collations.get(at).copied().unwrap_or(0), &mut out);
    }
    out
}

/// As a comparison with numbers takes a value: a text that is a number is one.
pub(crate) fn as_compared(value: &Value, how: Comparison) -> Value {
    match value {
        Value::Str(_) if how.is_numeric => to_numeric(value).unwrap_or_else(|_| value.clone()),
        other => other.clone(),
    }
}
