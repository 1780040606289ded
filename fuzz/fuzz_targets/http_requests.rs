//! Any bytes as what a client of the port for operations sends.
#![no_main]

#[path = "../../crates/operations/tests/it/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
