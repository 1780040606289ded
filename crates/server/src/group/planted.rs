//! Testing only: bugs that the simulator must notice.

/// A bug of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planted {
    /// None.
    #[default]
    Nothing,
    /// A leader answers for its group whether or not most members have heard it lately.
    LeaseIgnored,
    /// A member that has just started gives its vote at once, although it may have promised a leader
    /// not to.
    LeaseForgotten,
    /// What is on the leader's disk counts as committed.
    EarlyQuorum,
    /// A member whose data has more than the group's log goes on with it.
    RewindSkipped,
    /// A record is applied in parts, and clients read meanwhile.
    HalfRecord,
    /// `WAIT` counts a member that was sent something, and has not answered yet.
    EarlyCount,
    /// `WAIT` counts a witness for a member that has the data.
    WitnessCounted,
    /// A witness votes for a candidate whose log lacks what its own has.
    WitnessElectsAnybody,
    /// A follower answers reads at the gate `quorum` without asking the leader.
    ReadIndexIgnored,
    /// A leader names its position to followers whether or not most members have heard it lately.
    ReadIndexUnleased,
    /// A witness that leads sends its checkpoint, which is empty, to a member that is far behind.
    WitnessSendsNothing,
}

impl Planted {
    /// The part of it that is the log's.
    pub(super) fn in_log(self) -> ladon_raft::Planted {
        match self {
            Planted::WitnessSendsNothing => ladon_raft::Planted::WitnessSendsNothing,
            _ => ladon_raft::Planted::Nothing,
        }
    }
}
