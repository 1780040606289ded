//! What tests, the simulator and the crash rounds share: free ports, random numbers, a reference
//! implementation of commands, packed fuzz corpora, and which file of a crate imports which.
//!
//! **Architecture invariant:** `lab` and `conformance` take ports from here and nothing else, so
//! that a mistake in this crate cannot hide one in what they judge
//! (`crates/ladon/tests/it/architecture_names_every_crate.rs`).

pub mod corpus;
pub mod module_graph;
mod ports;
mod random;
pub mod reference;

pub use ports::Ports;
pub use random::Random;
