//! A node's place in its cluster, as far as requests see it.
//!
//! Standalone nodes are [`Role::Alone`], unless they are read replicas of another server. In a cluster,
//! the thread that takes part in the elections sets it; what is committed does not depend on it, since
//! the log itself takes records of the group's leader only.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed, Ordering::SeqCst};

/// A node's place in its cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Role {
    /// There is no cluster, and the node is no replica.
    #[default]
    Alone = 0,
    /// It leads: its clients may read and write.
    Leads = 1,
    /// It follows the leader, or another server: its clients may read.
    Follows = 2,
    /// It led, and may not be heard by most others any more: nobody reads or writes.
    CutOff = 3,
    /// It is to become a member of a cluster.
    Outside = 4,
    /// It follows another server, does not hear it, and `replica-serve-stale-data` is off.
    Stale = 5,
    /// It votes in its cluster and keeps the log, and has no data: nobody reads or writes.
    Witness = 6,
}

impl Role {
    /// Its name in replies.
    pub fn name(self) -> &'static str {
        match self {
            Role::Alone => "alone",
            Role::Leads => "leader",
            Role::Follows => "follower",
            Role::CutOff => "cut-off",
            Role::Outside => "outside",
            Role::Stale => "stale",
            Role::Witness => "witness",
        }
    }

    /// Whether the node is a replica for clients of Redis' replication.
    pub fn is_replica(self) -> bool {
        matches!(self, Role::Follows | Role::Outside | Role::Stale | Role::Witness)
    }
}

/// The role in force.
#[derive(Debug, Default)]
pub struct RoleCell(AtomicU8);

impl RoleCell {
    /// The present role.
    #[inline]
    pub fn get(&self) -> Role {
        match self.0.load(Relaxed) {
            0 => Role::Alone,
            1 => Role::Leads,
            2 => Role::Follows,
            3 => Role::CutOff,
            4 => Role::Outside,
            5 => Role::Stale,
            _ => Role::Witness,
        }
    }

    /// Whether clients may read and write, as far as the role goes.
    #[inline]
    pub fn is_free(&self) -> bool {
        self.0.load(Relaxed) <= Role::Leads as u8
    }

    /// The node has this role from now on. Returns the one before.
    pub fn set(&self, role: Role) -> Role {
        let before = self.get();
        self.0.store(role as u8, SeqCst);
        before
    }
}
