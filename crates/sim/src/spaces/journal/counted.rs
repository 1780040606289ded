//! What the report says of a life's requests.

/// For the report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) ran: u64,
    pub(crate) committed: u64,
    pub(crate) conflicts: u64,
    pub(crate) timed_out: u64,
    pub(crate) long: u64,
    pub(crate) definitions: u64,
    pub(crate) prepared: u64,
    pub(crate) misfits: u64,
    pub(crate) definition_slices: u64,
    pub(crate) kept_unanswered: u64,
    pub(crate) lost: u64,
    pub(crate) slices: u64,
    pub(crate) waits_for_commits: u64,
    pub(crate) overtakings: u64,
    pub(crate) denied: u64,
    pub(crate) granted: u64,
    pub(crate) sql: u64,
    pub(crate) sql_slices: u64,
    pub(crate) calls: u64,
    pub(crate) calls_failed: u64,
    pub(crate) calls_left: u64,
    pub(crate) calls_of_two_spaces: u64,
}

impl Counted {
    pub(crate) fn add_to(self, report: &mut crate::run::Report) {
        report.space_requests += self.ran;
        report.transactions_committed += self.committed;
        report.conflicts += self.conflicts;
        report.transactions_timed_out += self.timed_out;
        report.long_selections += self.long;
        report.definitions_changed += self.definitions;
        report.definitions_prepared += self.prepared;
        report.definitions_misfit += self.misfits;
        report.definition_slices += self.definition_slices;
        report.commits_kept_unanswered += self.kept_unanswered;
        report.commits_lost += self.lost;
        report.commit_slices += self.slices;
        report.waits_for_commits += self.waits_for_commits;
        report.requests_overtaken += self.overtakings;
        report.accesses_denied += self.denied;
        report.rights_changed += self.granted;
        report.sql_statements += self.sql;
        report.sql_slices += self.sql_slices;
        report.calls += self.calls;
        report.calls_failed += self.calls_failed;
        report.calls_left += self.calls_left;
        report.calls_of_two_spaces += self.calls_of_two_spaces;
    }
}
