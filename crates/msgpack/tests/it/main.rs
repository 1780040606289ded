//! Integration tests of MessagePack.

mod check;
mod corpus;
