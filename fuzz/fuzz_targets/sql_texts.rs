//! Any bytes as a statement of SQL.
#![no_main]

#[path = "../../crates/sql/tests/it/check_texts/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::sql_texts(data));
