//! Begins and ends of operations in the order of time, as a list from which operations can be taken
//! and put back.

use crate::{Call, Operation};

/// A begin or an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) operation: usize,
    pub(crate) is_end: bool,
}

/// The list. Positions are those of `events`; the one behind the last is the list's head and end.
pub(crate) struct Events {
    events: Vec<Event>,
    next: Vec<usize>,
    before: Vec<usize>,
    /// Of each operation: its begin, and its end if it is known.
    places: Vec<(usize, Option<usize>)>,
}

impl Events {
    pub(crate) fn new<C: Call>(operations: &[Operation<C>]) -> Events {
        let mut timed = Vec::new();
        for (operation, it) in operations.iter().enumerate() {
            // At one moment, begins come first: operations that touch are concurrent.
            timed.push((it.began, false, operation));
            if let Some((ended, _)) = it.ended {
                timed.push((ended.max(it.began), true, operation));
            }
        }
        timed.sort_unstable();
        let mut places = vec![(0, None); operations.len()];
        for (at, &(_, is_end, operation)) in timed.iter().enumerate() {
            match is_end {
                false => places[operation].0 = at,
                true => places[operation].1 = Some(at),
            }
        }
        let count = timed.len();
        let event = |(_, is_end, operation)| Event { operation, is_end };
        Events {
            events: timed.into_iter().map(event).collect(),
            next: (0..=count).map(|at| if at == count { 0 } else { at + 1 }).collect(),
            before: (0..=count).map(|at| if at == 0 { count } else { at - 1 }).collect(),
            places,
        }
    }

    /// The first position; that of the end if the list is empty.
    pub(crate) fn first(&self) -> usize {
        self.next[self.events.len()]
    }

    pub(crate) fn next(&self, at: usize) -> usize {
        self.next[at]
    }

    /// The event there; `None` at the list's end.
    pub(crate) fn get(&self, at: usize) -> Option<Event> {
        self.events.get(at).copied()
    }

    /// Where the operation begins.
    pub(crate) fn begin_of(&self, operation: usize) -> usize {
        self.places[operation].0
    }

    /// Takes an operation's events out.
    pub(crate) fn take(&mut self, operation: usize) {
        let (begin, end) = self.places[operation];
        self.unlink(begin);
        if let Some(end) = end {
            self.unlink(end);
        }
    }

    /// Puts the events of the operation back that was taken last.
    pub(crate) fn put_back(&mut self, operation: usize) {
        let (begin, end) = self.places[operation];
        if let Some(end) = end {
            self.link(end);
        }
        self.link(begin);
    }

    fn unlink(&mut self, at: usize) {
        let (before, next) = (self.before[at], self.next[at]);
        self.next[before] = next;
        self.before[next] = before;
    }

    fn link(&mut self, at: usize) {
        let (before, next) = (self.before[at], self.next[at]);
        self.next[before] = at;
        self.before[next] = at;
    }
}
