//! Any bytes as MessagePack.
#![no_main]

#[path = "../../crates/msgpack/tests/it/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::values(data));
