//! A disk in memory that loses, tears and refuses as real ones do, from a seed.
//!
//! What a process wrote is visible to it at once, and lost in a power cut unless it was synced:
//!
//! - every unsynced write survives whole, in part or not at all, each sector of it for itself, in
//!   any order; the file's length likewise;
//! - every name that was created, renamed or removed since the directory's last sync is there or not,
//!   each for itself;
//! - after a failed sync the writes stay visible, are never synced again unless they are repeated,
//!   and a power cut may take them: so do Linux' file systems;
//! - a full disk takes a part of the write and refuses the rest.
//!
//! [`SimDisk::power_cut`] is the machine's end, [`SimDisk::kill`] only the process's: both close
//! every handle and release every lock. [`SimDisk::cut_power_after`] lets the power fail in the
//! middle of the code under test.

mod disk;
mod faults;
mod inode;

pub use disk::SimDisk;
pub use faults::Fault;
