//! Nodes over loopback.

mod answers;
mod bounds;
mod check;
mod common;
mod corpus;
mod overtaking;
mod raw;
mod refusals;
mod tls;
