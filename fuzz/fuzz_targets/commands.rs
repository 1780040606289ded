//! Any bytes as requests to a node without sockets.
#![no_main]

#[path = "../../crates/commands/tests/it/check/mod.rs"]
mod check;
#[path = "../../crates/commands/tests/it/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
