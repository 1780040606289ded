//! Any bytes as a JSON path of an index, and a tuple that the index gets.
#![no_main]

#[path = "../../crates/space/tests/it/check_paths/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::json_paths(data));
