//! Any bytes as an RDB file, and as the body of a payload.
#![no_main]

#[path = "../../crates/rdb/tests/it/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::any_bytes(data));
