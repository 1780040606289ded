//! Crash rounds on the real binary: load from several connections, `kill -9`, restart, check.
//!
//! ```text
//! lane 0 --pipelines--> +-------+        after the restart, of each lane:
//! lane 1 -------------> | ladon | kill   its keys are as after its first p operations,
//! counter ------------> +-------+  -9    acknowledged <= p <= sent
//! ```
//!
//! A [`Lane`] is a connection with its own keys and a sequence of operations derived from its seed,
//! so its whole state is known after any number of them. Because the log has one order, a crash
//! must leave a lane in the state after *some* number of operations: at least those that were
//! acknowledged, at most those that were sent, and never half of one. A counter that all connections
//! share, over RESP, memcached's protocol and HTTP, must never fall below a value that any client saw. A [`Bank`] in two spaces keeps its sum,
//! and every transfer that was acknowledged, while the definitions of its space change.
//!
//! [`cluster`] does the same to clusters, whose clients work on the same keys.

mod bank;
mod client;
pub mod cluster;
mod definitions;
mod iproto;
mod lane;
mod lane_data;
mod operation;
mod process;
mod queue;
mod rounds;
mod shared;
mod voices;

pub use bank::Bank;
pub use client::Client;
pub use iproto::IprotoClient;
pub use lane::Lane;
pub use process::{Launch, Server, ladon_check};
pub use rounds::{GATES, Plan, Summary, run};
pub use shared::SharedCounter;
pub use voices::{Counting, HttpClient, MemcachedClient};
