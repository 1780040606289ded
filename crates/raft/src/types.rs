//! The types of a group, which openraft is generic over.

use crate::entry::{Cut, Entry, Member, Payload};
use openraft::impls::{InlineBatch, LogId, OneshotResponder, leader_id_std};
use openraft::vote::RaftLeaderId;
use openraft::{AsyncRuntime, Config, OptionalSend, RaftTypeConfig, SnapshotPolicy};
use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// A member's number in its group. Never used twice: a node that lost its log is a new member.
pub type MemberId = u64;

/// What openraft is generic over, for a group that runs on the runtime `RT`.
///
/// One leader a term (`leader_id_std`), so that a term alone names who wrote an entry.
pub struct Group<RT>(PhantomData<fn() -> RT>);

impl<RT> fmt::Debug for Group<RT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Group")
    }
}

impl<RT> Clone for Group<RT> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<RT> Copy for Group<RT> {}

impl<RT> Default for Group<RT> {
    fn default() -> Self {
        Group(PhantomData)
    }
}

impl<RT> PartialEq for Group<RT> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<RT> Eq for Group<RT> {}

impl<RT> PartialOrd for Group<RT> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<RT> Ord for Group<RT> {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

/// Who leads, or would like to, and in which term.
pub type LeaderId = leader_id_std::LeaderId<u64, MemberId>;

/// A vote, given or asked for.
pub type Vote = openraft::Vote<LeaderId>;

/// The term that an entry was written in, and so its leader.
pub type Reign = <LeaderId as RaftLeaderId>::Committed;

/// Term and index of an entry.
pub type EntryId = LogId<Reign>;

impl<RT: AsyncRuntime> RaftTypeConfig for Group<RT> {
    type D = Cut;
    type R = ();
    type NodeId = MemberId;
    type Node = Member;
    type Term = u64;
    type LeaderId = LeaderId;
    type Vote = Vote;
    type Payload = Payload;
    type Entry = Entry;
    type AsyncRuntime = RT;
    type Responder<T>
        = OneshotResponder<Self, T>
    where
        T: OptionalSend + 'static;
    type Batch<T>
        = InlineBatch<T>
    where
        T: OptionalSend + 'static;
    type ErrorSource = openraft::AnyError;
}

/// How long a follower elects no other leader after the last word of its own: a leader whose word most
/// members have heard may answer for the group so long.
pub fn lease(failover: Duration) -> Duration {
    failover
}

/// How every group runs. Not openraft's defaults: a candidate asks first whether it would be elected;
/// a leader that restarts does not act on a `committed` that is not proven; a log that went back is
/// never accepted; and snapshots are not made by a policy of the library's. A leader is given up
/// between one and two `failover` after its last word.
pub fn group_config(failover: Duration) -> Config {
    let failover_ms = (failover.as_millis() as u64).max(6);
    Config {
        heartbeat_interval: failover_ms / 6,
        election_timeout_min: failover_ms / 2,
        election_timeout_max: failover_ms,
        enable_pre_vote: Some(true),
        enable_leader_restore: Some(false),
        allow_log_reversion: Some(false),
        snapshot_policy: SnapshotPolicy::Never,
        ..Config::default()
    }
}
