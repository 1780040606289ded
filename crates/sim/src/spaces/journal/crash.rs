//! What a crash may have left.

use super::alone::shown_alone;
use super::{Journal, Operation, Reply};
use crate::spaces::contents::{State, code};
use crate::spaces::request::Request;

impl Journal {
    /// Whether a crash may have left this.
    pub(crate) fn explains(&mut self, found: &State) -> bool {
        let firm = |it: &&Operation| it.end.is_some() && !it.may_be_lost;
        let ran = self.operations.iter().filter(firm).filter_map(|it| it.ran.as_ref());
        let at_least = ran.filter_map(|ran| ran.changed).max().unwrap_or(0);
        let kept = (at_least..self.states.len())
            .rev()
            .find(|&kept| self.states[kept] == *found && self.holds(kept, found));
        let Some(kept) = kept else { return false };
        for operation in &self.operations {
            if let (Request::Commit, Some(changed)) =
                (&operation.request, operation.ran.as_ref().and_then(|ran| ran.changed))
            {
                self.counted.lost += u64::from(changed > kept);
                self.counted.kept_unanswered +=
                    u64::from(changed <= kept && operation.end.is_none());
            }
        }
        true
    }

    /// Whether what clients were firmly shown is true without the changes behind `kept`.
    fn holds(&self, kept: usize, found: &State) -> bool {
        let alone = self.operations.iter().filter(|it| it.is_firm()).all(|operation| {
            let Some(ran) = &operation.ran else { return false };
            if let Some(met) = ran.met {
                // What a definition does not fit may have been there all the time.
                let is_met_here = || shown_alone(operation, found) == Some(ran.made.clone());
                return met <= kept || is_met_here();
            }
            ran.position <= kept
                || ran.is_refused
                || operation.had_rights(ran, found)
                    && (ran.is_in_transaction
                        || ran.made == Reply::Error(code::ACCESS_DENIED)
                        || shown_alone(operation, found).is_none_or(|reply| reply == ran.made))
        });
        let transactions = self.ended.iter().chain(self.open.values());
        alone && transactions.into_iter().all(|it| it.holds(kept, found, &self.operations))
    }
}
