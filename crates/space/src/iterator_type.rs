//! Iterators: which tuples a key selects.

use crate::error::BoxError;

/// Which tuples a key selects, and in which direction. The numbers are those of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are Tarantool's")]
pub enum IteratorType {
    Eq = 0,
    Req = 1,
    All = 2,
    Lt = 3,
    Le = 4,
    Ge = 5,
    Gt = 6,
    BitsAllSet = 7,
    BitsAnySet = 8,
    BitsAllNotSet = 9,
    Overlaps = 10,
    Neighbor = 11,
}

impl IteratorType {
    /// The iterator with this number in the protocol.
    ///
    /// # Errors
    /// `ILLEGAL_PARAMS`, if there is none.
    pub fn of_number(number: u64) -> Result<IteratorType, BoxError> {
        use IteratorType::{
            All, BitsAllNotSet, BitsAllSet, BitsAnySet, Eq, Ge, Gt, Le, Lt, Neighbor, Overlaps, Req,
        };
        const ALL: [IteratorType; 12] = [
            Eq,
            Req,
            All,
            Lt,
            Le,
            Ge,
            Gt,
            BitsAllSet,
            BitsAnySet,
            BitsAllNotSet,
            Overlaps,
            Neighbor,
        ];
        let found = usize::try_from(number).ok().and_then(|number| ALL.get(number));
        found.copied().ok_or_else(|| BoxError::illegal("Invalid iterator type"))
    }

    pub(crate) fn is_reverse(self) -> bool {
        matches!(self, IteratorType::Req | IteratorType::Lt | IteratorType::Le)
    }
}
