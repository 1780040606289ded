//! Integration tests of RDB.

mod check;
mod common;
mod corpus;
mod damaged;
mod legacy;
mod packs;
mod random_values;
mod real_redis;
mod recorded;
