//! Crash rounds on the real binary: load from several connections, `kill -9`, restart, check.
//!
//! ```text
//! lane 0 --pipelines--> +-------+        after the restart, of each lane:
//! lane 1 -------------> | ladon | kill   its keys are as after its first p operations,
//! counter ------------> +-------+  -9    acknowledged <= p <= sent
//! ```
//!
//! A [`Lane`] is a connection with keys of its own and a sequence of operations that its seed
//! fixes, so its whole state is known after any number of them. As the log has one order, what a
//! crash leaves of a lane must be the state after *some* number of operations: at least those that
//! were acknowledged, at most those that were sent, and never half of one. Counters that all
//! connections share must never fall below what anybody saw.

mod client;
mod lane;
mod model;
mod operation;
mod process;
mod queue;
mod rounds;
mod shared;

pub use client::Client;
pub use lane::Lane;
pub use process::{Launch, Server, ladon_check};
pub use rounds::{GATES, Plan, Summary, run};
