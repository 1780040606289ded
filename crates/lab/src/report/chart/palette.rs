//! Which colour and pattern a system has: the same in every chart of every report.
//!
//! The eight colours are Okabe and Ito's ("Color Universal Design", 2008), which people with any
//! common colour blindness tell apart; from the ninth system on they return with a hatch (a bar) or
//! a dash (a line).

use super::backend::Paint;

/// How many colours there are; the style sheet defines `--s0` to `--s7`.
pub const COLOURS: u8 = 8;

/// Systems with a place of their own: colour, pattern.
const KNOWN: [(&str, u8, u8); 13] = [
    ("ladon", 5, 0),
    ("redis", 6, 0),
    ("valkey", 2, 0),
    ("tarantool", 7, 0),
    ("memcached", 3, 0),
    ("hazelcast", 1, 0),
    ("dragonfly", 4, 0),
    ("keydb", 0, 0),
    ("redis8", 6, 1),
    ("pogocache", 3, 1),
    ("leveldb", 1, 1),
    ("aerospike", 7, 1),
    ("voltdb", 0, 1),
];

/// Colour and pattern of a system; one that is not known (an attached server, say) gets one by its
/// name.
#[must_use]
pub fn paint(system: &str) -> Paint {
    // `ladon#2` is a second program of the same system.
    let (name, second) = system.split_once('#').map_or((system, 0), |(name, _)| (name, 1));
    if let Some((_, colour, pattern)) = KNOWN.iter().find(|(known, ..)| *known == name) {
        return Paint::System(*colour, *pattern ^ second);
    }
    let sum = system.bytes().fold(0u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
    Paint::System([2, 4, 5][usize::from(sum) % 3], 1)
}

/// Shapes of the marks on lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Triangle,
    /// ◆
    Diamond,
    /// ▼
    Wedge,
}

impl Mark {
    /// The mark of the line of this index.
    #[must_use]
    pub const fn of(index: usize) -> Self {
        match index % 5 {
            0 => Self::Circle,
            1 => Self::Square,
            2 => Self::Triangle,
            3 => Self::Diamond,
            _ => Self::Wedge,
        }
    }

    /// Its corners around the origin; none of a circle.
    #[must_use]
    pub const fn corners(self) -> &'static [(i32, i32)] {
        match self {
            Self::Circle => &[],
            Self::Square => &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
            Self::Triangle => &[(0, -5), (5, 4), (-5, 4)],
            Self::Diamond => &[(0, -6), (5, 0), (0, 6), (-5, 0)],
            Self::Wedge => &[(-5, -4), (5, -4), (0, 5)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_known_systems_look_alike() {
        for (index, (name, colour, pattern)) in KNOWN.iter().enumerate() {
            assert!(*colour < COLOURS);
            assert!(
                KNOWN[..index].iter().all(|(_, c, p)| (c, p) != (colour, pattern)),
                "{name} looks like another"
            );
        }
        assert!(matches!(paint("somebody's cloud"), Paint::System(_, 1)));
        assert_eq!(paint("ladon#2"), Paint::System(5, 1));
    }
}
