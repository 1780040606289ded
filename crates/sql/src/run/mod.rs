//! Runs bound queries. Rows are places in tuples: a field is read when an expression needs it.
//!
//! ```text
//! steps of a join -> filter -> group -> result -> distinct -> sort -> limit
//! ```
//!
//! A query reads copies of spaces, which are there before it begins. It may run on any thread, looks
//! at its [`Budget`] at every step, and ends when that is used up.

mod core;
mod expression;
mod group;
mod index;
mod join;
mod keep;
mod query;
mod scan;
mod seen;
mod write_rows;

pub use crate::budget::Budget;
pub(crate) use crate::budget::is_interrupted;

use crate::functions::Around;
use crate::value::Value;
use keep::Kept;
use ladon_space::{Space, Tuple};
pub(crate) use seen::Seen;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// A row of a result.
pub(crate) type Row = Arc<[Value]>;

/// The spaces that a statement reads: copies, or locked ones.
#[derive(Clone, Default)]
pub struct Spaces<'s>(SmallVec<[&'s Space; 4]>);

impl<'s> Spaces<'s> {
    /// These spaces.
    pub fn of(spaces: impl IntoIterator<Item = &'s Space>) -> Spaces<'s> {
        Spaces(spaces.into_iter().collect())
    }

    pub(crate) fn get(&self, id: u32) -> Option<&'s Space> {
        self.0.iter().find(|space| space.def().id == id).copied()
    }
}

/// What a table of a join shows at the moment.
#[derive(Clone)]
pub(crate) enum Slot<'s> {
    /// Nulls.
    Nothing,
    Tuple(&'s Tuple),
    /// A tuple that its space may not have any more.
    Own(Tuple),
    Row(Row),
}

impl Slot<'_> {
    /// The tuple, if it is one.
    #[inline]
    pub(crate) fn tuple(&self) -> Option<&Tuple> {
        match self {
            Slot::Tuple(tuple) => Some(tuple),
            Slot::Own(tuple) => Some(tuple),
            Slot::Nothing | Slot::Row(_) => None,
        }
    }

    #[inline]
    fn see(&self, number: u32) -> Seen<'_> {
        match self {
            Slot::Nothing => Seen::Null,
            Slot::Row(row) => row.get(number as usize).map_or(Seen::Null, Seen::of),
            Slot::Tuple(tuple) => see_field(tuple, number),
            Slot::Own(tuple) => see_field(tuple, number),
        }
    }
}

#[inline]
fn see_field(tuple: &Tuple, number: u32) -> Seen<'_> {
    ladon_space::fields::from_field(tuple.bytes(), number).map_or(Seen::Null, Seen::unpack)
}

/// What expressions see.
#[derive(Clone, Copy)]
pub(crate) struct Env<'e> {
    pub(crate) slots: &'e [Slot<'e>],
    pub(crate) aggregates: &'e [Value],
    /// What the query around sees.
    pub(crate) outer: Option<&'e Env<'e>>,
}

impl Env<'_> {
    pub(crate) const NOTHING: Env<'static> = Env { slots: &[], aggregates: &[], outer: None };
}

/// A statement that is running.
pub(crate) struct Run<'r> {
    pub(crate) spaces: Spaces<'r>,
    pub(crate) parameters: &'r [Value],
    pub(crate) around: Around,
    pub(crate) random: Cell<u64>,
    pub(crate) budget: &'r Budget,
    kept: RefCell<Vec<Kept<'r>>>,
    /// A key's bytes, for the next one as well.
    key: Cell<Vec<u8>>,
}

impl<'r> Run<'r> {
    pub(crate) fn new(
        spaces: Spaces<'r>,
        parameters: &'r [Value],
        around: Around,
        budget: &'r Budget,
        places: usize,
    ) -> Run<'r> {
        let kept = RefCell::new((0..places).map(|_| Kept::Nothing).collect());
        let random = Cell::new(around.random | 1);
        Run { spaces, parameters, around, random, budget, kept, key: Cell::default() }
    }
}
