//! Any bytes as what a member of a group keeps: its entries, its vote, what is committed.
#![no_main]

#[path = "../../crates/raft/tests/it/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
