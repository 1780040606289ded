//! The lab: Ladon beside the servers that it wants to stand in for, on one machine, in one run.
//!
//! ```text
//!   works/    one file per question ("what does a GET cost?"), each one subcommand
//!     |  uses
//!   systems/  find, start, pin and stop real servers     load/    pipelining client that checks
//!   measure/  CPU, memory, machine                       report/  medians, ratios, table, JSON
//! ```
//!
//! **Architecture invariant:** a figure is worth nothing if the answers were wrong, so every reply
//! is compared with the one right reply, byte for byte, and the first wrong one ends the run.
//!
//! **Architecture invariant:** the lab knows Ladon only as a program and its options, as it knows
//! the others; it links none of Ladon's crates, so nothing can be measured that a user cannot run.
#![forbid(unsafe_code)]

pub mod load;
pub mod measure;
pub mod report;
pub mod results;
pub mod systems;
pub mod works;
