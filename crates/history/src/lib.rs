//! Is a history of concurrent operations on one object linearizable?
//!
//! ```text
//! client 1  |--SET 1--|                |--GET: 2--|
//! client 2        |--SET 2-- ?                          no reply: it may have happened, at any
//! time      ------------------------------------------> time after it was sent, or never
//! ```
//! A history is linearizable (Herlihy and Wing 1990) if each operation can be given one moment
//! between its begin and its end at which it happened as a whole, so that every answer is the one
//! that a single machine would have given. Such histories are local: those of objects that have
//! nothing in common are judged apart.
//!
//! The search is that of Wing and Gong (1993), with Lowe's memory of what was tried before (2017), on
//! a linked list of begins and ends. An operation of unknown outcome has no end. It is placed only
//! where no operation with an answer can be, because placing it early would be a guess.
//!
//! **Invariant:** [`Verdict::Refused`] is only said after every order was tried; a search that takes
//! too long says [`Verdict::Undecided`].

mod events;
mod search;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::hash::Hash;

/// What can be asked of an object, and what a single machine would do.
pub trait Call: Debug {
    /// The object.
    type State: Clone + Debug + Eq + Hash;
    /// What the caller gets.
    type Answer: Debug + PartialEq;

    /// Does it, and answers.
    fn run(&self, state: &mut Self::State) -> Self::Answer;
}

/// A call as a client saw it. Times are of one clock, of any unit.
#[derive(Clone, Debug)]
pub struct Operation<C: Call> {
    /// What was asked.
    pub call: C,
    /// Just before it was sent.
    pub began: u64,
    /// Just after the answer came. `None`: its outcome is unknown.
    pub ended: Option<(u64, C::Answer)>,
}

/// Where no order goes on.
#[derive(Clone, Debug)]
pub struct Refusal<S> {
    /// How many operations with answers the longest order explains, of how many.
    pub explained: (usize, usize),
    /// The operation that has to come next and cannot, as its position in the history.
    pub stuck: usize,
    /// The object before it.
    pub state: S,
}

/// The judgement.
#[derive(Clone, Debug)]
pub enum Verdict<S> {
    /// Some order explains everything.
    Linearizable,
    /// No order does.
    Refused(Refusal<S>),
    /// The search grew too large.
    Undecided,
}

impl<S> Verdict<S> {
    /// Whether some order explains everything.
    pub fn is_linearizable(&self) -> bool {
        matches!(self, Verdict::Linearizable)
    }

    /// Whether it was proven that none does.
    pub fn is_refused(&self) -> bool {
        matches!(self, Verdict::Refused(_))
    }
}

/// Judges the operations on one object that was `initial` before them, trying at most
/// `positions_max` pairs of operations done and state.
pub fn judge<C: Call>(
    initial: &C::State,
    operations: &[Operation<C>],
    positions_max: usize,
) -> Verdict<C::State> {
    search::Search::new(initial, operations, positions_max).run()
}
