//! Any bytes as a stream of requests, of replies and as numbers.
#![no_main]

#[path = "../../crates/resp/tests/it/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
