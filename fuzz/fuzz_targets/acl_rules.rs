//! Any bytes as rules of a user or as a file of users.
#![no_main]

#[path = "../../crates/identity/tests/it/check/mod.rs"]
mod check;
#[path = "../../crates/identity/tests/it/common.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
