//! The lab: Ladon beside the servers that it wants to replace, on one machine, in one run.
//!
//! ```text
//!   works/    what the published comparisons measured, as data       work.rs   what a work is
//!     |  given to
//!   run/      rounds, pinning, progress, the record of a run         run/own/  steps that are more than traffic
//!     |  uses
//!   systems/  find, start, pin and stop real servers                 load/     pipelining client that checks
//!   dialects/ operations <-> bytes of each protocol                  operation.rs, traffic/  what is asked
//!   measure/  CPU, memory, machine                                   results/  results.json, intervals
//!   report/   tables, charts, pages, comparisons of results.json
//! ```
//!
//! **Architecture invariant:** a figure is worthless if the replies were wrong. So every reply is
//! compared with the one right reply, byte for byte, and the first wrong one ends the run.
//!
//! **Architecture invariant:** the lab knows Ladon only as a program and its options, like the
//! other systems. It links none of Ladon's crates, so it measures only what a user can run.
#![forbid(unsafe_code)]

pub mod dialects;
pub mod doctor;
pub mod load;
pub mod measure;
pub mod operation;
pub mod report;
pub mod results;
pub mod run;
pub mod systems;
pub mod topology;
pub mod traffic;
pub mod work;
pub mod works;
