//! Read replicas without a cluster: the log of one server, followed by another.
//!
//! | file | what |
//! |---|---|
//! | `runs.rs` | what the log is: who wrote which part of it |
//! | `replicas.rs` | the servers that follow this one |
//! | `following.rs` | whom this server follows, and the thread that does it |
//! | `failover.rs` | a replica takes over while both run |
//! | `link.rs` | one connection to that server: the first sync, then the log |
//! | `place.rs` | the data of this server, as a replica's or its own |
//! | `peer.rs` | how the other server is asked: over a connection |
//! | `log_wait.rs` | waiting for the log's positions |
//! | `simulated.rs` | all of it on simulated disks, from a seed |
//!
//! The replica asks, and the other server answers: so what a slow replica has not asked for takes no
//! memory anywhere. Only what is on the other server's disk is given, so no replica is ever ahead of a
//! server that lost its power.

mod failover;
mod following;
mod link;
mod log_wait;
mod peer;
mod place;
mod planted;
mod replicas;
mod runs;
#[cfg(test)]
mod simulated;

pub(crate) use following::{Ended, Following};
pub(crate) use place::FollowedData;
pub(crate) use replicas::ReadReplicas;
pub(crate) use runs::Runs;
