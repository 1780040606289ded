//! All integration tests of this crate in one binary: linking is most of what they cost.

mod check;
mod corpus;
mod errors;
mod recorded;
mod round_trip;
