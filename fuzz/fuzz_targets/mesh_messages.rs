//! Any bytes as what comes over a link between two nodes, on either side, and as an identity.
#![no_main]

#[path = "../../crates/mesh/tests/it/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
