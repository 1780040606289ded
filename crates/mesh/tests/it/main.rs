//! Nodes over loopback.

mod answers;
mod bounds;
mod common;
mod raw;
mod refusals;
