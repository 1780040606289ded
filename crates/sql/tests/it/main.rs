//! Statements on spaces in memory.

mod garbled;
mod generated_document;
mod memory;
mod statements;
