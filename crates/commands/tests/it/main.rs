//! All integration tests of this crate in one binary: linking is most of what they cost.

mod bitmaps;
mod check;
mod check_values;
mod common;
mod connection;
mod corpus;
mod eviction;
mod generated_document;
mod generic;
mod geo;
mod harness;
mod hashes;
mod hyperloglogs;
mod key_positions;
mod lists;
mod lookups;
mod model;
mod module_graph;
mod scan_guarantee;
mod server;
mod sets;
mod sorted_sets;
mod sorting;
mod streams;
mod strings;
mod transactions;
