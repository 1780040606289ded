//! What a run did, to see that the schedule is worth something.

macro_rules! counters {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// What a run did.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Report {
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        impl Report {
            /// Adds what another run did.
            pub fn add(&mut self, run: &Report) {
                $(self.$name += run.$name;)*
            }
        }
    };
}

counters! {
    /// Operations of clients.
    operations,
    /// Crashes, each followed by a recovery.
    crashes,
    /// Checkpoints begun.
    checkpoints,
    /// Keys evicted.
    evictions,
    /// Commands refused for want of memory.
    refusals,
    /// Replies sent directly to a waiting client.
    hand_overs,
    /// Changes that no gate promised to keep, and a wait did.
    waits_kept,
    /// Scripts that ran by their hashes.
    scripts_by_hash,
    /// Hashes whose script the node did not know.
    scripts_unknown,
    /// Waits without a group that ended with entries.
    entries_awaited,
    /// Entries whose id the node made.
    ids_made,
    /// Entries that producers have sent again.
    sent_again,
    /// Entries that streams had not added again, as they said at crashes.
    duplicates,
    /// How often the clock was set back.
    clock_steps,
    /// Loads of functions, and other changes of libraries, that were done.
    libraries_changed,
    /// Functions that ran.
    functions_run,
    /// Messages that subscribers got.
    messages,
    /// Turns after which somebody waited until messages are delivered.
    congested_turns,
    /// Crashes after which the oracle's search grew too large to decide.
    undecided,
    /// Requests on spaces that ran.
    space_requests,
    /// Transactions on spaces that were committed and had changed something.
    transactions_committed,
    /// Transactions on spaces that ended with a conflict.
    conflicts,
    /// Transactions on spaces whose time was over.
    transactions_timed_out,
    /// Commits of which a crash left everything, and whose client had no reply.
    commits_kept_unanswered,
    /// Commits of which a crash left nothing.
    commits_lost,
    /// Parts of commits after which something was left to do.
    commit_slices,
    /// How often a writer waited for a commit.
    waits_for_commits,
    /// Requests on spaces that ran before an earlier one of their connection.
    requests_overtaken,
    /// Selections whose replies were made in slices.
    long_selections,
    /// Changes of definitions of spaces.
    definitions_changed,
    /// Those of them that were prepared in slices, or had to wait.
    definitions_prepared,
    /// Those that a tuple did not fit that was there while they were prepared.
    definitions_misfit,
    /// Parts of definitions after which something was left to do.
    definition_slices,
    /// Requests on spaces that a user had no right to.
    accesses_denied,
    /// Grants and revocations of rights to spaces.
    rights_changed,
    /// Statements of SQL on spaces.
    sql_statements,
    /// Slices of statements of SQL in transactions, but for the last of each.
    sql_slices,
    /// Calls of functions.
    calls,
    /// Those that ended with an error of their own.
    calls_failed,
    /// Those that asked for what only a program has.
    calls_left,
    /// Those that changed more than one space.
    calls_of_two_spaces,
    /// Tables of HASH indexes that crashes found to be split, by their numbers of tuples.
    hashes_divided,
}
