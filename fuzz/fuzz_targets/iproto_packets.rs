//! Any bytes as packets of Tarantool's protocol: requests, replies and greetings.
#![no_main]

#[path = "../../crates/iproto/tests/it/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
