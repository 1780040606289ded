//! Clusters of whole nodes: one to five of them, on machines that stop, die, lose their power or their
//! disk, and a network that loses, delays and cuts, everything from one seed.
//!
//! ```text
//! clients --> Worker --> log --> SimDisk      a place: disk, clock, and the node's life
//!    ^          |  ^       |
//!    |        gate |     entries --> openraft (virtual time) --> net --> other places
//!  oracle          '-- Standing, Sitting: the server's own decisions (`ladon_server::group`)
//! ```
//!
//! **The oracle** (`oracle.rs`). At the gate `quorum`, lists are linearizable across all leaders, reads
//! included, and nothing that was shown is taken back. At laxer gates, a change of the leader may lose
//! the end of what it had, never a hole. A node that has only followed shows what is committed alone.
//! Nobody sees half a transaction. In the end, all members have the same data.

mod client;
mod faults;
mod net;
mod oracle;
mod place;
mod report;
mod settle;
mod world;

use crate::run::Trouble;
use ladon_server::group::{Amounts, Planted};
use ladon_testkit::Random;
pub use report::ClusterReport;

/// A bug that is put in on purpose, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterCanary {
    /// None.
    None,
    /// A leader answers for its group whether or not most members have heard it lately.
    LeaseIgnored,
    /// A member that has just started forgets what it may have promised a leader.
    LeaseForgotten,
    /// What is on the leader's disk counts as committed.
    EarlyQuorum,
    /// A checkpoint holds what is not committed.
    CheckpointAhead,
    /// A member whose data has more than the group's log goes on with it.
    RewindSkipped,
    /// A record is applied in parts, and clients read meanwhile.
    HalfRecord,
    /// `WAIT` counts a member that has not answered yet.
    EarlyCount,
    /// Whoever does not answer for the group replies as soon as its own disk has what it depends on.
    LaxFollower,
    /// `WAIT` counts a witness for a member that has the data.
    WitnessCounted,
    /// A witness votes for a candidate whose log lacks what its own has.
    WitnessElectsAnybody,
    /// A witness that leads sends its checkpoint, which is empty, to a member that is far behind.
    WitnessSendsNothing,
    /// A follower answers reads at the gate quorum without asking the leader.
    ReadIndexIgnored,
    /// A leader names its position to followers whether or not most members have heard it lately.
    ReadIndexUnleased,
}

impl ClusterCanary {
    /// All of them.
    pub const ALL: [ClusterCanary; 13] = [
        ClusterCanary::LeaseIgnored,
        ClusterCanary::LeaseForgotten,
        ClusterCanary::EarlyQuorum,
        ClusterCanary::CheckpointAhead,
        ClusterCanary::RewindSkipped,
        ClusterCanary::HalfRecord,
        ClusterCanary::EarlyCount,
        ClusterCanary::LaxFollower,
        ClusterCanary::WitnessCounted,
        ClusterCanary::WitnessElectsAnybody,
        ClusterCanary::WitnessSendsNothing,
        ClusterCanary::ReadIndexIgnored,
        ClusterCanary::ReadIndexUnleased,
    ];

    fn of_group(self) -> Planted {
        match self {
            ClusterCanary::None | ClusterCanary::CheckpointAhead | ClusterCanary::LaxFollower => {
                Planted::Nothing
            }
            ClusterCanary::LeaseIgnored => Planted::LeaseIgnored,
            ClusterCanary::LeaseForgotten => Planted::LeaseForgotten,
            ClusterCanary::EarlyQuorum => Planted::EarlyQuorum,
            ClusterCanary::RewindSkipped => Planted::RewindSkipped,
            ClusterCanary::HalfRecord => Planted::HalfRecord,
            ClusterCanary::EarlyCount => Planted::EarlyCount,
            ClusterCanary::WitnessCounted => Planted::WitnessCounted,
            ClusterCanary::WitnessElectsAnybody => Planted::WitnessElectsAnybody,
            ClusterCanary::WitnessSendsNothing => Planted::WitnessSendsNothing,
            ClusterCanary::ReadIndexIgnored => Planted::ReadIndexIgnored,
            ClusterCanary::ReadIndexUnleased => Planted::ReadIndexUnleased,
        }
    }
}

/// What a seed decides in advance.
#[derive(Clone, Debug)]
struct Plan {
    members: usize,
    /// The last of them has no data.
    has_witness: bool,
    workers: usize,
    clients: usize,
    steps: u64,
    failover_ms: u64,
    segment_bytes: u64,
    /// What is kept of the log for members that are behind, and what is proposed at once beside whatever is
    /// under way.
    amounts: Amounts,
    /// One message in so many is lost; zero: none.
    loss: u64,
    /// One message in so many is late; zero: none.
    late: u64,
    power_cuts: bool,
    /// The log writes and syncs in one of so many of its turns: what is in front of a vote is not on the
    /// disk for long.
    slow_disks: u64,
    disk_errors: bool,
    /// From when on a member restarts on whose promise not to vote a leader's lease hangs.
    forgets_from_us: u64,
    /// From when on the witness alone has what the leader has committed.
    strands_from_us: u64,
    /// A machine may be replaced by another one with an empty disk.
    wipes: bool,
}

impl Plan {
    fn new(random: &mut Random, seed: u64) -> Plan {
        let members = random.pick(&[3, 3, 3, 3, 3, 3, 3, 5, 2, 1]);
        let has_witness = members == 3 && random.chance(1, 3);
        let strands = has_witness && random.chance(1, 3);
        // Of numbers of its own: seeds without it go as they did before there was this.
        let mut of_disks = Random::stream(seed, 1);
        let mut of_entries = Random::stream(seed, 2);
        Plan {
            members,
            slow_disks: if of_disks.chance(1, 4) { of_disks.pick(&[4, 16]) } else { 1 },
            workers: random.pick(&[1, 1, 2]),
            clients: 3 + random.below(4) as usize,
            steps: if strands { 2_000 } else { 700 + random.below(1_300) },
            failover_ms: if strands { 50 } else { random.pick(&[50, 100, 100, 300]) },
            segment_bytes: random.pick(&[2_000, 8_000, 1 << 20]),
            amounts: Amounts {
                kept: random.pick(&[0, 1_000, 64 << 20]),
                entry: of_entries.pick(&[1, 200, 1 << 20, 1 << 20]),
            },
            loss: random.pick(&[0, 0, 50, 10]),
            late: random.pick(&[0, 30, 8]),
            power_cuts: random.chance(1, 2),
            disk_errors: random.chance(1, 5),
            forgets_from_us: match members == 3 && random.chance(1, 5) {
                true => 100_000 + random.below(600_000),
                false => u64::MAX,
            },
            wipes: members >= 3 && random.chance(1, 4),
            has_witness,
            strands_from_us: match strands {
                true => 50_000 + random.below(300_000),
                false => u64::MAX,
            },
        }
    }
}

/// Runs one seed to its end.
///
/// # Errors
/// The first thing that the oracle cannot explain.
pub fn run_cluster_seed(seed: u64, canary: ClusterCanary) -> Result<ClusterReport, Trouble> {
    let mut world = world::World::new(seed, canary);
    world.run().map_err(|what| Trouble { seed, what: world.explain(&what) })
}
