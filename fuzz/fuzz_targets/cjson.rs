//! Any bytes as JSON, within a script.
#![no_main]

#[path = "../../crates/lua/tests/it/check_libraries.rs"]
mod check_libraries;
#[path = "../../crates/lua/tests/it/host.rs"]
mod host;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_libraries::cjson(data));
