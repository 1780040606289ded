//! A command as data: its facts, its flags, its place in the table.

pub mod accessed;
pub mod args;
pub mod command_id;
pub mod error;
pub mod flags;
pub mod secrets;
pub mod spec;
pub mod table;
