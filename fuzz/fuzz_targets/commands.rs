//! Any bytes as requests to a node without sockets.
#![no_main]

#[path = "../../crates/commands/tests/check/mod.rs"]
mod check;
#[path = "../../crates/commands/tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
