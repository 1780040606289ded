//! Groups of members in one process: openraft itself in virtual time, over Ladon's log on
//! simulated disks.

mod groups;
mod world;
