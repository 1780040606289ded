//! A disk in memory that loses, tears and refuses writes as real ones do, from a seed.
//!
//! A process sees its writes at once, and loses them in a power cut unless they were synced:
//!
//! - every unsynced write survives completely, in part or not at all, independently for each of its
//!   sectors, in any order; the file's length likewise;
//! - every name that was created, renamed or removed since the directory's last sync survives or
//!   not, each independently;
//! - after a failed sync the writes stay visible, are never synced again unless they are repeated,
//!   and a power cut may lose them, as with Linux' file systems;
//! - a full disk takes a part of the write and refuses the rest.
//!
//! [`SimDisk::power_cut`] ends the machine, [`SimDisk::kill`] only the process: both close every
//! handle and release every lock. [`SimDisk::cut_power_after`] cuts the power in the middle of the
//! code under test.

mod disk;
mod faults;
mod inode;

pub use disk::SimDisk;
pub use faults::Fault;
