//! Integration tests of the spaces.

mod check;
mod check_paths;
mod corpus;
