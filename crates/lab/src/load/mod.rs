//! The load generator: one thread, many connections, pipelines of fixed depth, every reply checked.
//!
//! ```text
//!   Driver -- asks for a batch --> Workload -- key and value bytes --> Data
//!     |  one write per batch           ^ one right reply per request
//!     v                                |
//!   server -- replies ------> compared byte for byte
//! ```
//!
//! A connection sends its next batch when the last one is answered in full (a closed loop) or, if
//! it is paced, at fixed times.

pub mod data;
pub mod driver;
pub mod fairness;
pub mod fan_out;
pub mod handover;
pub mod impolite;
pub mod io_threads;
pub mod keys;
pub mod large;
pub mod plain;
pub mod polite;
pub mod question;
pub mod random;
pub mod sample;
pub mod sql;
pub mod stall;
pub mod stream;
pub mod template;
pub mod trace;
pub mod types;
pub mod words;
pub mod workload;
