//! Counters that users increment and decrement again, each its own, or all the same one.
//!
//! A user's own counter has one right value. On a shared one, a reply reflects some of the
//! additions in progress and all that were answered before the request: a range. No counter ever
//! drops below zero, because a user only subtracts what it added.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use super::source::{Reply, Share, Traffic};
use crate::operation::{Answer, Operation};

/// What was added to and taken from counters so far, by user, where each has its own.
#[derive(Clone, Debug, Default)]
pub struct Totals(Vec<i64>);

/// The same of the counter of all users, whichever load thread they are on.
#[derive(Clone, Debug, Default)]
pub struct SharedTotal(Arc<Shared>);

/// Additions and subtractions that were sent, and of them those that were answered. Each is counted
/// before its request is sent, or after its reply came, so whatever order threads see them in, what
/// the store can have done lies between.
#[derive(Debug, Default)]
struct Shared {
    added: AtomicI64,
    taken: AtomicI64,
    added_surely: AtomicI64,
    taken_surely: AtomicI64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Request {
    by: i64,
    /// The value of a counter of one's own.
    value: i64,
    /// What was sure when it was sent.
    added_surely: i64,
    taken_surely: i64,
}

/// See the module.
pub struct Counters<'a> {
    space: &'static str,
    /// The one counter, where all users share it.
    one: Option<SharedTotal>,
    totals: &'a mut Totals,
    /// What each user added and has not taken away.
    holding: Vec<bool>,
    requests: Vec<Request>,
    share: Share,
}

impl<'a> Counters<'a> {
    /// `users` users, on the one counter or each on its own.
    #[must_use]
    pub fn new(
        space: &'static str,
        one: Option<SharedTotal>,
        totals: &'a mut Totals,
        users: usize,
        requests: usize,
        share: Share,
    ) -> Self {
        if totals.0.len() < users {
            totals.0.resize(users, 0);
        }
        // Where a stretch ended with something held, the next one begins by giving it back.
        let holding = totals.0.iter().map(|value| one.is_none() && *value > 0).collect();
        Self { space, one, totals, holding, requests: vec![Request::default(); requests], share }
    }
}

impl Shared {
    /// What the counter can have been when `request` was done.
    fn range(&self, request: &Request) -> (i64, i64) {
        (
            request.added_surely - self.taken.load(SeqCst),
            self.added.load(SeqCst) - request.taken_surely,
        )
    }
}

impl Traffic for Counters<'_> {
    fn next(&mut self, user: usize, request: usize, operation: &mut Operation) -> bool {
        use std::io::Write as _;
        let by = if self.holding[user] { -1 } else { 1 };
        self.holding[user] = by > 0;
        if !matches!(operation, Operation::Add { .. }) {
            *operation = Operation::Add { key: Vec::new(), by };
        }
        let Operation::Add { key, by: to_add } = operation else { return false };
        *to_add = by;
        key.clear();
        // Writing to a vector does not fail.
        let _ = match self.one {
            Some(_) => write!(key, "{}:all", self.space),
            None => write!(key, "{}:{}", self.space, self.share.user(user)),
        };
        let noted = match &self.one {
            Some(SharedTotal(shared)) => {
                let (added_surely, taken_surely) =
                    (shared.added_surely.load(SeqCst), shared.taken_surely.load(SeqCst));
                let count = if by > 0 { &shared.added } else { &shared.taken };
                count.fetch_add(1, SeqCst);
                Request { by, value: 0, added_surely, taken_surely }
            }
            None => {
                self.totals.0[user] += by;
                Request { by, value: self.totals.0[user], ..Request::default() }
            }
        };
        self.requests[request] = noted;
        true
    }

    fn judge(&mut self, reply: &Reply<'_>) -> bool {
        let noted = self.requests[reply.request];
        let Some(SharedTotal(shared)) = &self.one else {
            return reply.is(&Answer::Integer(noted.value));
        };
        let Ok(Answer::Integer(value)) = reply.answer() else { return false };
        let (low, high) = shared.range(&noted);
        if !(low..=high).contains(&value) {
            return false;
        }
        let count = if noted.by > 0 { &shared.added_surely } else { &shared.taken_surely };
        count.fetch_add(1, SeqCst);
        true
    }

    fn expected(&self, _: usize, request: usize, _: &Operation) -> String {
        let noted = self.requests[request];
        match &self.one {
            Some(SharedTotal(shared)) => {
                let (low, high) = shared.range(&noted);
                format!("a number from {low} to {high}")
            }
            None => noted.value.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::resp::Resp;

    fn frame(value: i64) -> Vec<u8> {
        format!(":{value}\r\n").into_bytes()
    }

    fn is_right(traffic: &mut impl Traffic, operation: &Operation, frame: &[u8]) -> bool {
        traffic.judge(&Reply::new((0, 0), operation, &Resp::new(), frame))
    }

    #[test]
    fn a_counter_of_ones_own_has_one_right_value() {
        let mut totals = Totals::default();
        let mut counters = Counters::new("c", None, &mut totals, 1, 1, Share::default());
        let mut operation = crate::traffic::source::blank();
        for right in [1, 0, 1, 0] {
            assert!(counters.next(0, 0, &mut operation));
            assert!(!is_right(&mut counters, &operation, &frame(right + 1)));
            assert!(is_right(&mut counters, &operation, &frame(right)));
        }
    }

    #[test]
    fn on_a_shared_counter_a_lost_addition_shows() {
        let mut totals = Totals::default();
        let mut counters =
            Counters::new("c", Some(SharedTotal::default()), &mut totals, 2, 2, Share::default());
        let mut operation = crate::traffic::source::blank();
        // Two additions under way: either may be first, but both counted is the most.
        counters.next(0, 0, &mut operation);
        counters.next(1, 1, &mut operation);
        assert!(!is_right(&mut counters, &operation, &frame(3)));
        assert!(is_right(&mut counters, &operation, &frame(2)));
        assert!(counters.judge(&Reply::new((1, 1), &operation, &Resp::new(), &frame(1))));
        // Both are answered, so what is taken away now leaves exactly one.
        counters.next(0, 0, &mut operation);
        assert!(!is_right(&mut counters, &operation, &frame(0)), "one was lost");
        assert!(is_right(&mut counters, &operation, &frame(1)));
    }

    #[test]
    fn what_was_held_at_the_end_of_a_stretch_is_given_back_first() {
        let mut totals = Totals::default();
        let mut operation = crate::traffic::source::blank();
        Counters::new("c", None, &mut totals, 1, 1, Share::default()).next(0, 0, &mut operation);
        Counters::new("c", None, &mut totals, 1, 1, Share::default()).next(0, 0, &mut operation);
        assert!(matches!(operation, Operation::Add { by: -1, .. }), "{operation:?}");
    }
}
