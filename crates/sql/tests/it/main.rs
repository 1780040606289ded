//! Statements on spaces in memory.

mod garbled;
mod memory;
mod statements;
