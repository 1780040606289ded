//! Nodes over loopback.

mod answers;
mod common;
