//! Any bytes as a stream of memcached's protocols, text and binary.
#![no_main]

#[path = "../../crates/memcache/tests/it/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
