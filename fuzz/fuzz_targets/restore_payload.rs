//! Any bytes as a payload of RESTORE.
#![no_main]

#[path = "../../crates/commands/tests/it/check_values/mod.rs"]
mod check_values;
#[path = "../../crates/commands/tests/it/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_values::restore_payload(data));
