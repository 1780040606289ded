//! Groups of members in one process: openraft itself in virtual time, over Ladon's log on
//! simulated disks.

mod check;
mod corpus;
mod fixtures;
mod groups;
mod incoming;
mod world;
