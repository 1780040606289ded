//! Any bytes of a client of HTTP, and any of the server.
#![no_main]

#[path = "../../crates/http/tests/it/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
