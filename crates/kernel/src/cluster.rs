//! What requests see of the node's cluster, and what operators ask of it.

use ladon_record::Lsn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// Tells a cluster from all others; zeros: none.
pub type ClusterId = [u8; 16];

/// A node of a cluster, as commands see it.
pub trait Cluster: Send + Sync {
    /// How things stand; cheap, but not for every request.
    fn view(&self) -> View;

    /// The orders under way at this node.
    fn orders(&self) -> &Orders;

    /// Does what an operator asks; it may take seconds. Returns what to tell him.
    ///
    /// # Errors
    /// Why it was not done.
    fn order(&self, order: Order) -> Result<String, String>;
}

/// Counts a node's orders under way: each keeps a thread while it waits for other nodes.
#[derive(Clone, Debug, Default)]
pub struct Orders(Arc<AtomicUsize>);

impl Orders {
    /// So many operators are not at work at once.
    pub const MOST: usize = 8;

    /// One more is under way until what this returns is dropped; `None` if there are too many.
    pub fn begin(&self) -> Option<OrderUnderWay> {
        let may = |count: usize| (count < Orders::MOST).then_some(count + 1);
        self.0.fetch_update(SeqCst, SeqCst, may).ok().map(|_| OrderUnderWay(Arc::clone(&self.0)))
    }
}

/// See [`Orders::begin`].
#[derive(Debug)]
pub struct OrderUnderWay(Arc<AtomicUsize>);

impl Drop for OrderUnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// What a member is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemberKind {
    /// It has the data, and votes once it has caught up.
    #[default]
    Voter,
    /// It has the data, and never votes, however much it has.
    Replica,
    /// It votes and keeps the log, and has no data.
    Witness,
}

/// What an operator asks of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Be the first member of a new cluster.
    Create {
        /// The cluster's id.
        cluster: ClusterId,
    },
    /// Belong to a cluster as this member, which its leader adds then.
    Join {
        /// The cluster's id.
        cluster: ClusterId,
        /// The number that the leader has given.
        member: u64,
        /// It keeps the log, and has no data.
        is_witness: bool,
    },
    /// Give the number for a member that will be added.
    Number,
    /// Add a member, which learns at first.
    Add {
        /// Its number.
        member: u64,
        /// Where other members reach it.
        address: String,
        /// Where clients reach it.
        client: String,
        /// What it is to be.
        kind: MemberKind,
    },
    /// A member belongs no more.
    Remove {
        /// Its number.
        member: u64,
    },
    /// Let another member lead.
    Lead {
        /// Which one; `None`: the one that has most of the log.
        member: Option<u64>,
    },
}

/// How a node sees its cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The cluster, as hexadecimal digits; empty if the node belongs to none.
    pub cluster: String,
    /// This node's number; 0 if it is no member.
    pub member: u64,
    /// Where the other members reach this node.
    pub address: String,
    /// Where clients reach it.
    pub client: String,
    /// The present term.
    pub term: u64,
    /// Who leads, as far as this node knows.
    pub leader: Option<u64>,
    /// All members.
    pub members: Vec<MemberView>,
    /// Up to where the log has changes, or entries of the group.
    pub end: Lsn,
    /// Up to where the log is committed.
    pub committed: Lsn,
    /// Up to where the data of this node has it.
    pub applied: Lsn,
    /// How long ago a leader's word came; only followers have it.
    pub heard_leader: Option<Duration>,
    /// How often this node had to read its data anew, because another leader's log did not have the
    /// end of its own.
    pub rewinds: u64,
    /// Bytes of log that were taken back so.
    pub taken_back_bytes: u64,
    /// Why the node takes part no more, if it does not.
    pub stopped: Option<String>,
}

/// A member, as another one sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberView {
    /// Its number.
    pub id: u64,
    /// Where other members reach it.
    pub address: String,
    /// Where clients reach it.
    pub client: String,
    /// Whether it votes; the others learn.
    pub votes: bool,
    /// What it is, whether or not it votes by now.
    pub kind: MemberKind,
    /// Up to where it has the log on its disk; only the leader knows.
    pub has: Option<Lsn>,
    /// How long ago it was last heard of; only the leader knows.
    pub silent: Option<Duration>,
}

impl MemberView {
    /// Whether it has the data, or will once it has caught up.
    pub fn has_data(&self) -> bool {
        self.kind != MemberKind::Witness
    }
}

impl View {
    /// The member that leads, if clients have anything of it: a witness may lead until another member
    /// has its log.
    pub fn leading(&self) -> Option<&MemberView> {
        let leads = |member: &&MemberView| Some(member.id) == self.leader && member.has_data();
        self.members.iter().find(leads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_under_way_are_bounded() {
        let orders = Orders::default();
        let mut all: Vec<_> = (0..Orders::MOST).map(|_| orders.begin()).collect();
        assert!(all.iter().all(Option::is_some));
        assert!(orders.begin().is_none());
        all.pop();
        assert!(orders.begin().is_some());
    }
}
