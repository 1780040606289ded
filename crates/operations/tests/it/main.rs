//! All integration tests of this crate in one binary: linking is most of what they cost. The port of
//! a real server is tested with the program (`crates/ladon/tests/it/operations.rs`).

mod check;
mod corpus;
