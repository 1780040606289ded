//! Any bytes as a run of changes and blocks that recovery applies.
#![no_main]

#[path = "../../crates/engine/tests/it/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
