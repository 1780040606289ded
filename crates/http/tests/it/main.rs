//! All integration tests of this crate in one binary.

mod check;
mod corpus;
mod random;
