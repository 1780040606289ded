//! The oracle: is there an order of the operations that explains everything?
//!
//! The search of Wing and Gong ("Testing and Verifying Concurrent Objects", 1993) with Lowe's
//! memory of (operations done, data) pairs seen before. Operations are tried in the order in which
//! they were sent, which is nearly the order in which they ran, so a correct run is explained
//! almost without searching.
//!
//! Before any search, the order in which the node reports to have run them is tried (`witness.rs`).
//! It is only a hint: it has to explain everything as any other order has to, and if it does not,
//! the search decides. But it explains every correct run in one pass, and so leaves nothing
//! undecided.

use crate::history::Operation;
use crate::oracle_commands::State;
use crate::witness;
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Positions that one search may visit; with more it gives up undecided.
const POSITIONS_MAX: usize = 5_000;

/// Searches are repeated with more and more unanswered operations allowed to have happened: after
/// most crashes few have, and allowing many multiplies the orders that lead nowhere.
const UNSEEN_ALLOWED: [usize; 8] = [0, 1, 2, 3, 5, 8, 16, usize::MAX];

/// The oracle's verdict on a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Some order explains everything.
    Explained,
    /// No order does.
    Unexplained,
    /// The search grew too large to decide.
    Undecided,
}

/// Whether the operations, starting from `before`, can have led to `after`. `order`: positions of
/// operations in the order in which the node ran them, as far as known.
pub(crate) fn judge(
    operations: &[Operation],
    order: &[usize],
    before: &State,
    after: &State,
) -> Verdict {
    if witness::explains(operations, order, before, after) {
        return Verdict::Explained;
    }
    let operations: Vec<&Operation> = operations.iter().filter(|op| !op.was_refused()).collect();
    let mut gave_up = false;
    for unseen_allowed in UNSEEN_ALLOWED {
        let mut search = Search {
            done: vec![false; operations.len()],
            open: operations.iter().filter(|op| op.is_firm()).count(),
            operations: operations.clone(),
            after,
            seen: HashSet::new(),
            unseen_allowed,
            gave_up: false,
        };
        if search.run(before.clone(), 0) {
            return Verdict::Explained;
        }
        gave_up = search.gave_up;
    }
    if gave_up { Verdict::Undecided } else { Verdict::Unexplained }
}

struct Search<'a> {
    operations: Vec<&'a Operation>,
    done: Vec<bool>,
    /// Operations with a reply that holds, which are still to be placed.
    open: usize,
    after: &'a State,
    seen: HashSet<u64>,
    /// How many operations without such a reply may still be placed.
    unseen_allowed: usize,
    gave_up: bool,
}

impl Search<'_> {
    /// `first`: all operations before it are done.
    fn run(&mut self, state: State, mut first: usize) -> bool {
        if self.open == 0 && state == *self.after {
            return true;
        }
        let mut hasher = DefaultHasher::new();
        self.done.hash(&mut hasher);
        state.hash(&mut hasher);
        if self.seen.len() >= POSITIONS_MAX {
            self.gave_up = true;
            return false;
        }
        if !self.seen.insert(hasher.finish()) {
            return false;
        }
        while first < self.done.len() && self.done[first] {
            first += 1;
        }
        // An operation sent after the first reply that is still to be placed cannot precede it.
        let horizon = (first..self.operations.len())
            .filter(|&at| !self.done[at] && self.operations[at].is_firm())
            .filter_map(|at| self.operations[at].end.as_ref().map(|(end, _)| *end))
            .min()
            .unwrap_or(u64::MAX);
        // First the answered operations, in the order in which they were sent; unanswered ones only
        // if that does not explain enough. In the opposite order, the requests that piled up behind
        // a dead disk would be tried in every order.
        for answered in [true, false] {
            if !answered && self.unseen_allowed == 0 {
                break;
            }
            let latest_begin = self.latest_begin();
            for at in first..self.operations.len() {
                let operation = self.operations[at];
                if self.done[at] || operation.is_firm() != answered {
                    continue;
                }
                if operation.begin > horizon {
                    break;
                }
                // An action of the node itself came before whatever was sent later.
                if operation.by_itself.is_some_and(|step| step < latest_begin) {
                    continue;
                }
                let mut next = state.clone();
                if !operation.apply(&mut next) {
                    continue;
                }
                if !self.holds_without_lost(operation, &state, next != state) {
                    continue;
                }
                // An unanswered operation that changed nothing need not have happened.
                if !answered && next == state {
                    continue;
                }
                self.done[at] = true;
                self.unseen_allowed -= usize::from(!answered);
                self.open -= usize::from(answered);
                if self.run(next, first) {
                    return true;
                }
                self.done[at] = false;
                self.unseen_allowed += usize::from(!answered);
                self.open += usize::from(answered);
            }
        }
        false
    }

    /// Whether an operation may be next without the node's own earlier actions that are not placed:
    /// a crash has taken those back, so it took back all later changes as well, and the reply was
    /// made with them.
    fn holds_without_lost(&self, operation: &Operation, state: &State, changes: bool) -> bool {
        let lost = self.operations.iter().zip(&self.done).filter(|(earlier, done)| {
            !**done && earlier.by_itself.is_some_and(|step| step < operation.begin)
        });
        let mut with_lost = state.clone();
        for (earlier, _) in lost {
            if changes {
                return false;
            }
            earlier.apply(&mut with_lost);
        }
        operation.apply(&mut with_lost)
    }

    /// When the latest of the operations that are done was sent.
    fn latest_begin(&self) -> u64 {
        let done = self.operations.iter().zip(&self.done).filter(|(_, done)| **done);
        done.map(|(operation, _)| operation.begin).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle_commands::{Call, Datum};
    use ladon_resp::client::Value;

    /// By search, and by the given order, which is the right one in these tests.
    fn explains(operations: &[Operation], before: &State, after: &State) -> bool {
        let explained = judge(operations, &[], before, after) == Verdict::Explained;
        let order: Vec<usize> = (0..operations.len()).collect();
        assert_eq!(witness::explains(operations, &order, before, after), explained);
        explained
    }

    fn call(text: &str) -> Call {
        text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    fn operation(text: &str, begin: u64, end: Option<(u64, Value)>) -> Operation {
        Operation { end, ..Operation::new(vec![call(text)], begin) }
    }

    fn ok(at: u64) -> Option<(u64, Value)> {
        Some((at, Value::Simple(b"OK".to_vec())))
    }

    fn state(key: &str, value: &str) -> State {
        let keys = [(key.into(), Datum::Text(value.into()))].into();
        State { keys, ..State::new() }
    }

    #[test]
    fn a_lost_acknowledged_write_is_noticed() {
        let history = [operation("SET a 1", 0, ok(1))];
        assert!(explains(&history, &State::new(), &state("a", "1")));
        assert!(!explains(&history, &State::new(), &State::new()));
    }

    #[test]
    fn an_acknowledged_write_that_promised_nothing_may_be_lost() {
        let shown = Some((3, Value::Bulk(b"1".to_vec())));
        let mut history = [operation("SET a 1", 0, ok(1)), operation("GET a", 2, shown)];
        history[0].may_be_lost = true;
        assert!(explains(&history, &State::new(), &state("a", "1")));
        assert!(!explains(&history, &State::new(), &State::new()), "who read it was promised it");
        history[1].may_be_lost = true;
        assert!(explains(&history, &State::new(), &State::new()));
    }

    #[test]
    fn an_unacknowledged_write_may_be_there_or_not() {
        let history = [operation("SET a 1", 0, None)];
        assert!(explains(&history, &State::new(), &state("a", "1")));
        assert!(explains(&history, &State::new(), &State::new()));
    }

    #[test]
    fn a_value_that_was_shown_must_not_be_taken_back() {
        let shown = Some((3, Value::Bulk(b"1".to_vec())));
        let history = [operation("SET a 1", 0, None), operation("GET a", 2, shown)];
        assert!(explains(&history, &State::new(), &state("a", "1")));
        assert!(!explains(&history, &State::new(), &State::new()));
    }

    #[test]
    fn half_a_transaction_is_noticed() {
        let calls = vec![call("SET a 1"), call("SET b 1")];
        let history = [Operation { atomic: true, ..Operation::new(calls, 0) }];
        assert!(!explains(&history, &State::new(), &state("a", "1")));
    }

    #[test]
    fn what_was_evicted_may_be_gone_and_nothing_else() {
        let history = [
            operation("SET a 1", 0, ok(1)),
            operation("SET b 1", 0, ok(1)),
            Operation::eviction(b"a", 2),
        ];
        assert!(explains(&history, &State::new(), &state("b", "1")));
        // It was not safe yet.
        let mut both = state("a", "1");
        both.keys.extend(state("b", "1").keys);
        assert!(explains(&history, &State::new(), &both));
        assert!(!explains(&history, &State::new(), &state("a", "1")));
        assert!(!explains(&history, &State::new(), &State::new()));
    }

    #[test]
    fn an_eviction_before_a_change_that_is_kept_is_kept() {
        let history = [
            operation("SET a 1", 0, ok(1)),
            Operation::eviction(b"a", 2),
            operation("SET b 1", 3, None),
        ];
        assert!(explains(&history, &State::new(), &state("a", "1")));
        assert!(explains(&history, &State::new(), &state("b", "1")));
        let mut both = state("a", "1");
        both.keys.extend(state("b", "1").keys);
        assert!(!explains(&history, &State::new(), &both));
    }

    #[test]
    fn what_an_eviction_took_is_not_shown() {
        let shown = Some((4, Value::Bulk(b"1".to_vec())));
        let history = [
            operation("SET a 1", 0, ok(1)),
            Operation::eviction(b"a", 2),
            operation("GET a", 3, shown),
        ];
        assert!(!explains(&history, &State::new(), &state("a", "1")));
        assert!(!explains(&history, &State::new(), &State::new()));
    }

    #[test]
    fn what_came_after_an_eviction_is_not_taken_by_it() {
        let history = [
            operation("SET a 1", 0, ok(1)),
            Operation::eviction(b"a", 2),
            operation("SET a 2", 3, ok(4)),
        ];
        assert!(explains(&history, &State::new(), &state("a", "2")));
        assert!(!explains(&history, &State::new(), &State::new()));
    }

    #[test]
    fn an_eviction_that_was_shown_is_for_good() {
        let none = Some((4, Value::Null));
        let history = [
            operation("SET a 1", 0, ok(1)),
            Operation::eviction(b"a", 2),
            operation("GET a", 3, none),
        ];
        assert!(explains(&history, &State::new(), &State::new()));
        assert!(!explains(&history, &State::new(), &state("a", "1")));
    }

    #[test]
    fn real_time_is_respected() {
        let none = Some((3, Value::Null));
        let history = [operation("SET a 1", 0, ok(1)), operation("GET a", 2, none)];
        assert!(!explains(&history, &State::new(), &state("a", "1")));
    }

    #[test]
    fn an_order_against_real_time_is_no_witness() {
        let none = Some((3, Value::Null));
        let history = [operation("SET a 1", 0, ok(1)), operation("GET a", 2, none)];
        assert!(!witness::explains(&history, &[1, 0], &State::new(), &state("a", "1")));
    }

    #[test]
    fn an_order_without_what_was_answered_is_no_witness() {
        let history = [operation("SET a 1", 0, ok(1)), operation("SET b 1", 0, None)];
        assert!(!witness::explains(&history, &[1], &State::new(), &state("b", "1")));
    }
}
