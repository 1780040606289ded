//! What a run did, to see that the schedule is worth something.

macro_rules! counters {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// What a run of a cluster did.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct ClusterReport {
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        impl ClusterReport {
            /// Adds what another run did.
            pub fn add(&mut self, run: &ClusterReport) {
                $(self.$name += run.$name;)*
            }
        }
    };
}

counters! {
    /// Operations of clients.
    operations,
    /// Appends and reads that were answered at the gate quorum.
    quorum_answers,
    /// Reads of nodes that have only followed.
    follower_reads,
    /// The same at the gate quorum: the leader named its position.
    follower_quorum_reads,
    /// Waits that enough members have confirmed.
    waits_confirmed,
    /// Appends that a change of the leader has taken back.
    taken_back,
    /// Reigns: how often a node began to write.
    reigns,
    /// Nodes that read their data anew, because it had more than the group's.
    rewinds,
    /// Nodes that got another one's data.
    replacements,
    /// Killed processes.
    kills,
    /// Machines that lost their power.
    power_cuts,
    /// Processes that stood still.
    stops,
    /// Disks that were full for a while.
    full_disks,
    /// Cuts of the network.
    cuts,
    /// Checkpoints made.
    checkpoints,
    /// Disks that were lost, and whose node another one replaced.
    wipes,
    /// Leaders that were told to let another one lead.
    hand_overs,
}
