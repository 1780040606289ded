//! The order in which the node ran the operations, as an explanation of what was seen.
//!
//! ```text
//! ran       SET a 1   GET a   INCR n   SET a 2   GET n        after the crash: a = 1, n = 1
//! answered    yes      yes     no        no       no
//! kept      <------- up to here -----> | lost
//! ```
//! The log keeps a prefix of the changes. So there must be a cut such that the operations before it
//! lead to the data that was found, and no operation after it that changed data was answered at a
//! gate that promises to keep it. A call that had to wait is placed where it was served.

use crate::history::Operation;
use crate::oracle_commands::State;

/// Whether the operations, run in `order` (positions, none twice) on `before` and cut short by a
/// crash somewhere, explain every reply and `after`.
pub(crate) fn explains(
    operations: &[Operation],
    order: &[usize],
    before: &State,
    after: &State,
) -> bool {
    let ran = order.iter().map(|&at| &operations[at]).filter(|op| !op.was_refused());
    let ran: Vec<&Operation> = ran.collect();
    let answered = |operation: &&Operation| operation.end.is_some() && !operation.was_refused();
    let all_answered = operations.iter().filter(answered).count();
    if ran.iter().copied().filter(answered).count() != all_answered || !respects_time(&ran) {
        return false;
    }
    let mut state = before.clone();
    let mut cuts = Vec::new();
    for (at, operation) in ran.iter().enumerate() {
        if state == *after {
            cuts.push(at);
        }
        // Whatever is lost later, the replies were made from this.
        if !operation.apply(&mut state) {
            return false;
        }
    }
    state == *after || cuts.into_iter().rev().any(|cut| nothing_seen_is_lost(&ran[cut..], after))
}

/// An operation that was answered before another was sent must have run before it.
fn respects_time(ran: &[&Operation]) -> bool {
    let mut latest_begin = 0;
    ran.iter().all(|operation| {
        latest_begin = latest_begin.max(operation.begin);
        operation.end.as_ref().is_none_or(|(end, _)| *end >= latest_begin)
    })
}

/// Whether all answers of the operations after a cut hold without what was lost, except those that
/// promised nothing.
fn nothing_seen_is_lost(behind: &[&Operation], kept: &State) -> bool {
    behind.iter().filter(|operation| operation.is_firm()).all(|operation| {
        let mut state = kept.clone();
        operation.apply(&mut state) && state == *kept
    })
}
