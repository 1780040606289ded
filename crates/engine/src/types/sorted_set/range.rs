//! Ranges of scores and of members, as predicates on a position in the order.

use std::ops::Bound;

/// Scores between two bounds, neither of them NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRange {
    /// Lower bound.
    pub min: Bound<f64>,
    /// Upper bound.
    pub max: Bound<f64>,
}

impl ScoreRange {
    /// Whether the score is too low.
    #[inline]
    pub fn is_below(&self, score: f64) -> bool {
        match self.min {
            Bound::Included(min) => score < min,
            Bound::Excluded(min) => score <= min,
            Bound::Unbounded => false,
        }
    }

    /// Whether the score is not too high.
    #[inline]
    pub fn is_up_to_end(&self, score: f64) -> bool {
        match self.max {
            Bound::Included(max) => score <= max,
            Bound::Excluded(max) => score < max,
            Bound::Unbounded => true,
        }
    }
}

/// One end of a range of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// Before every member (`-`).
    Lowest,
    /// After every member (`+`).
    Highest,
    /// `[member`
    Included(&'a [u8]),
    /// `(member`
    Excluded(&'a [u8]),
}

/// Members between two bounds, by their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexRange<'a> {
    /// Lower bound.
    pub min: LexBound<'a>,
    /// Upper bound.
    pub max: LexBound<'a>,
}

impl LexRange<'_> {
    /// Whether the member comes before the range.
    #[inline]
    pub fn is_below(&self, member: &[u8]) -> bool {
        match self.min {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Included(min) => member < min,
            LexBound::Excluded(min) => member <= min,
        }
    }

    /// Whether the member does not come after the range.
    #[inline]
    pub fn is_up_to_end(&self, member: &[u8]) -> bool {
        match self.max {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Included(max) => member <= max,
            LexBound::Excluded(max) => member < max,
        }
    }
}
