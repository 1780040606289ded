//! Keys: few of each type, so that requests meet each other's.

use super::small;
use crate::random::rng::Rng;

/// The types, by the first letter of the keys that hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `k1` ...
    String,
    /// `b1` ...
    Bits,
    /// `h1` ...
    Hash,
    /// `l1` ...
    List,
    /// `s1` ...
    Set,
    /// `z1` ...
    SortedSet,
    /// `p1` ...
    HyperLogLog,
    /// `g1` ...
    Geo,
    /// `x1` ...
    Stream,
}

const TYPES: [(Type, &str); 9] = [
    (Type::String, "k"),
    (Type::Bits, "b"),
    (Type::Hash, "h"),
    (Type::List, "l"),
    (Type::Set, "s"),
    (Type::SortedSet, "z"),
    (Type::HyperLogLog, "p"),
    (Type::Geo, "g"),
    (Type::Stream, "x"),
];

/// Three keys of each type, and now and then one of another.
pub(super) fn key(rng: &mut Rng, kind: Type) -> Vec<u8> {
    if rng.percent(7) {
        return any_key(rng);
    }
    let letter = TYPES.iter().find(|(it, _)| *it == kind).map_or("k", |(_, letter)| letter);
    format!("{letter}{}", 1 + rng.below(3)).into()
}

pub(super) fn any_key(rng: &mut Rng) -> Vec<u8> {
    match rng.below(20) {
        0 => Vec::new(),
        1 => b"\x00\r\n\xff key".to_vec(),
        2 => b"nokey".to_vec(),
        3 => format!("w_{}", small(rng)).into(),
        _ => format!("{}{}", rng.pick(&TYPES).1, 1 + rng.below(3)).into(),
    }
}
