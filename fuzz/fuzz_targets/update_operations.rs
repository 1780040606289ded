//! Any bytes as a tuple and update operations on it, by number, name and JSON path.
#![no_main]

#[path = "../../crates/space/tests/it/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::update_operations(data));
