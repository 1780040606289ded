//! Statements on spaces in memory.

mod check_texts;
mod checks;
mod corpus;
mod garbled;
mod generated_document;
mod memory;
mod slices;
mod statements;
mod triggers;
mod types;
