//! Any bytes as a checkpoint file that recovery and verification find.
#![no_main]

#[path = "../../crates/log/tests/it/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::checkpoint::check(data));
