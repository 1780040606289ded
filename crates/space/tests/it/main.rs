//! Integration tests of the spaces.

mod check;
mod corpus;
