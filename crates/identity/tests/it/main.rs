//! All integration tests of this crate in one binary: linking is most of what they cost.

mod acl_files;
mod check;
mod common;
mod corpus;
mod denials;
mod every_user;
mod rules;
mod selectors;
mod users;
