//! What Ladon asks of the outside world, as traits, so that the simulator can replace it.
//!
//! **Architecture invariant:** everything that touches time or files goes through [`Clock`] and
//! [`Disk`]; nothing above this crate calls `std::time` or `std::fs` for data.

pub mod calendar;
pub mod clock;
pub mod disk;
pub mod linux;
pub mod lock_order;
pub mod open_files;
mod page_cache;
pub mod pages;
pub mod priority;
pub mod process;
pub mod seldom;

pub use clock::{Clock, SystemClock};
pub use disk::{Disk, DiskFile, DiskLock};
pub use linux::SystemDisk;
pub use open_files::allow_open_files;
pub use process::{Process, ProcessFacts, SystemProcess, Unused};
pub use seldom::Seldom;
