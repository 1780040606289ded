//! All integration tests of this crate in one binary: linking is most of what they cost.
//! With `--cfg loom` it is the model checker's run alone.

#[cfg(not(loom))]
mod advice;
#[cfg(not(loom))]
mod check;
mod common;
#[cfg(not(loom))]
mod corpus;
#[cfg(not(loom))]
mod crashes;
#[cfg(not(loom))]
mod damage;
#[cfg(not(loom))]
mod faults;
#[cfg(not(loom))]
mod fixtures;
#[cfg(not(loom))]
mod follow;
#[cfg(not(loom))]
mod log_end;
#[cfg(loom)]
mod loom;
#[cfg(not(loom))]
mod round_trip;
#[cfg(not(loom))]
mod threads;
