//! Any bytes as a pattern of Lua and a text, beside LuaJIT's own functions.
#![no_main]

#[path = "../../crates/lua/tests/it/check_patterns.rs"]
mod check_patterns;
#[path = "../../crates/lua/tests/it/host.rs"]
mod host;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_patterns::pattern(data));
