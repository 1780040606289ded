//! Counters that users add one to and take it away again, each its own, or all the same one.
//!
//! A user's own counter has one right value. On a shared one, an answer counts some of the additions
//! that were under way meanwhile and all that were answered before it was asked: a range. No counter
//! ever goes below zero, as a user only takes away what it added.

use super::Traffic;
use crate::dialects::Dialect;
use crate::operation::{Answer, Operation};

/// What was added to and taken from counters so far.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// By user, where each has its own.
    own: Vec<i64>,
    shared: Shared,
}

#[derive(Clone, Copy, Debug, Default)]
struct Shared {
    added: i64,
    taken: i64,
    added_surely: i64,
    taken_surely: i64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Request {
    by: i64,
    /// The value of a counter of one's own.
    value: i64,
    /// The lowest and the highest of what was sure when it was sent.
    added_surely: i64,
    taken_surely: i64,
}

/// See the module.
pub struct Counters<'a> {
    space: &'static str,
    one: bool,
    totals: &'a mut Totals,
    /// What each user added and has not taken away.
    holding: Vec<bool>,
    requests: Vec<Request>,
}

impl<'a> Counters<'a> {
    /// `users` users, on one counter or each on its own.
    #[must_use]
    pub fn new(
        space: &'static str,
        one: bool,
        totals: &'a mut Totals,
        users: usize,
        requests: usize,
    ) -> Self {
        if totals.own.len() < users {
            totals.own.resize(users, 0);
        }
        // Where a stretch ended with something held, the next one begins by giving it back.
        let holding = totals.own.iter().map(|value| !one && *value > 0).collect();
        Self { space, one, totals, holding, requests: vec![Request::default(); requests] }
    }

    fn range(&self, request: &Request) -> (i64, i64) {
        let shared = &self.totals.shared;
        (request.added_surely - shared.taken, shared.added - request.taken_surely)
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
            true => write!(key, "{}:all", self.space),
            false => write!(key, "{}:{user}", self.space),
        };
        let shared = &mut self.totals.shared;
        let mut noted = Request {
            by,
            value: 0,
            added_surely: shared.added_surely,
            taken_surely: shared.taken_surely,
        };
        if self.one {
            if by > 0 {
                shared.added += 1;
            } else {
                shared.taken += 1;
            }
        } else {
            self.totals.own[user] += by;
            noted.value = self.totals.own[user];
        }
        self.requests[request] = noted;
        true
    }

    fn judge(
        &mut self,
        _: usize,
        request: usize,
        operation: &Operation,
        dialect: &dyn Dialect,
        frame: &[u8],
    ) -> bool {
        let noted = self.requests[request];
        if !self.one {
            return dialect.is_right(operation, &Answer::Integer(noted.value), frame);
        }
        let Ok(Answer::Integer(value)) = dialect.answer(operation, frame) else { return false };
        let (low, high) = self.range(&noted);
        if !(low..=high).contains(&value) {
            return false;
        }
        let shared = &mut self.totals.shared;
        if noted.by > 0 {
            shared.added_surely += 1;
        } else {
            shared.taken_surely += 1;
        }
        true
    }

    fn expected(&self, _: usize, request: usize, _: &Operation) -> String {
        let noted = self.requests[request];
        if self.one {
            let (low, high) = self.range(&noted);
            format!("a number from {low} to {high}")
        } else {
            noted.value.to_string()
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

    #[test]
    fn a_counter_of_ones_own_has_one_right_value() {
        let mut totals = Totals::default();
        let mut counters = Counters::new("c", false, &mut totals, 1, 1);
        let mut operation = super::super::blank();
        for right in [1, 0, 1, 0] {
            assert!(counters.next(0, 0, &mut operation));
            assert!(!counters.judge(0, 0, &operation, &Resp::new(), &frame(right + 1)));
            assert!(counters.judge(0, 0, &operation, &Resp::new(), &frame(right)));
        }
    }

    #[test]
    fn on_a_shared_counter_a_lost_addition_shows() {
        let mut totals = Totals::default();
        let mut counters = Counters::new("c", true, &mut totals, 2, 2);
        let mut operation = super::super::blank();
        // Two additions under way: either may be first, but both counted is the most.
        counters.next(0, 0, &mut operation);
        counters.next(1, 1, &mut operation);
        assert!(!counters.judge(0, 0, &operation, &Resp::new(), &frame(3)));
        assert!(counters.judge(0, 0, &operation, &Resp::new(), &frame(2)));
        assert!(counters.judge(1, 1, &operation, &Resp::new(), &frame(1)));
        // Both are answered, so what is taken away now leaves exactly one.
        counters.next(0, 0, &mut operation);
        assert!(!counters.judge(0, 0, &operation, &Resp::new(), &frame(0)), "one was lost");
        assert!(counters.judge(0, 0, &operation, &Resp::new(), &frame(1)));
    }

    #[test]
    fn what_was_held_at_the_end_of_a_stretch_is_given_back_first() {
        let mut totals = Totals::default();
        let mut operation = super::super::blank();
        Counters::new("c", false, &mut totals, 1, 1).next(0, 0, &mut operation);
        Counters::new("c", false, &mut totals, 1, 1).next(0, 0, &mut operation);
        assert!(matches!(operation, Operation::Add { by: -1, .. }), "{operation:?}");
    }
}
