//! The search for an order.

use crate::events::{Event, Events};
use crate::{Call, Operation, Refusal, Verdict};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Which operations are tried: those of known outcome first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Known,
    Unknown,
}

/// An operation that was placed, and what is needed to try another one in its stead.
struct Placed<S> {
    operation: usize,
    before: S,
    turn: Turn,
}

pub(crate) struct Search<'a, C: Call> {
    operations: &'a [Operation<C>],
    events: Events,
    state: C::State,
    placed: Vec<Placed<C::State>>,
    /// Operations of known outcome that are still to be placed.
    open: usize,
    known: usize,
    /// Sum of what stands for each placed operation, which does not depend on their order.
    done: u128,
    seen: HashSet<(u128, u64)>,
    positions_max: usize,
    furthest: Option<Refusal<C::State>>,
}

/// What stands for an operation in a sum: different ones have different sums but with a chance of
/// 2^-128.
fn mark(operation: usize) -> u128 {
    let half = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, operation).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(1) << 64 | half(2)
}

impl<'a, C: Call> Search<'a, C> {
    pub(crate) fn new(
        initial: &C::State,
        operations: &'a [Operation<C>],
        positions_max: usize,
    ) -> Search<'a, C> {
        let known = operations.iter().filter(|operation| operation.ended.is_some()).count();
        Search {
            operations,
            events: Events::new(operations),
            state: initial.clone(),
            placed: Vec::new(),
            open: known,
            known,
            done: 0,
            seen: HashSet::new(),
            positions_max,
            furthest: None,
        }
    }

    pub(crate) fn run(mut self) -> Verdict<C::State> {
        let (mut at, mut turn) = (self.events.first(), Turn::Known);
        while self.open > 0 {
            if self.seen.len() > self.positions_max {
                return Verdict::Undecided;
            }
            match self.events.get(at) {
                Some(Event { operation, is_end: false }) => {
                    if self.place(operation, turn) {
                        (at, turn) = (self.events.first(), Turn::Known);
                    } else {
                        at = self.events.next(at);
                    }
                }
                // Behind the first end, nothing can come before that end's operation.
                _ if turn == Turn::Known => {
                    self.note_end(at);
                    (at, turn) = (self.events.first(), Turn::Unknown);
                }
                _ => match self.take_back() {
                    Some(next) => (at, turn) = next,
                    None => return self.refused(),
                },
            }
        }
        Verdict::Linearizable
    }

    /// Lets the operation be next, if it may be.
    fn place(&mut self, operation: usize, turn: Turn) -> bool {
        let Operation { call, ended, .. } = &self.operations[operation];
        if ended.is_some() != (turn == Turn::Known) {
            return false;
        }
        let mut next = self.state.clone();
        let answer = call.run(&mut next);
        let is_so = match ended {
            Some((_, seen)) => answer == *seen,
            // One that changes nothing need not have happened.
            None => next != self.state,
        };
        if !is_so {
            return false;
        }
        let done = self.done ^ mark(operation);
        let mut hasher = DefaultHasher::new();
        next.hash(&mut hasher);
        if !self.seen.insert((done, hasher.finish())) {
            return false;
        }
        self.done = done;
        self.open -= usize::from(turn == Turn::Known);
        self.events.take(operation);
        let before = std::mem::replace(&mut self.state, next);
        self.placed.push(Placed { operation, before, turn });
        true
    }

    /// Takes the last operation back; returns where to go on. `None`: there is none.
    fn take_back(&mut self) -> Option<(usize, Turn)> {
        let Placed { operation, before, turn } = self.placed.pop()?;
        self.events.put_back(operation);
        self.state = before;
        self.done ^= mark(operation);
        self.open += usize::from(turn == Turn::Known);
        Some((self.events.next(self.events.begin_of(operation)), turn))
    }

    /// Notes how far this order came.
    fn note_end(&mut self, at: usize) {
        let explained = self.known - self.open;
        if self.furthest.as_ref().is_some_and(|furthest| furthest.explained.0 >= explained) {
            return;
        }
        if let Some(Event { operation, .. }) = self.events.get(at) {
            let (explained, state) = ((explained, self.known), self.state.clone());
            self.furthest = Some(Refusal { explained, stuck: operation, state });
        }
    }

    fn refused(self) -> Verdict<C::State> {
        // Where an operation is open, its end was met.
        self.furthest.map_or(Verdict::Undecided, Verdict::Refused)
    }
}
