//! SQL over spaces: a text to a plan, a plan to rows, or to changes that a caller writes.
//!
//! ```text
//! text -> lexer, parser -> ast -> bind: names, types; plan: indexes, joins -> tree -> run -> rows
//!                                                                                  -> changes
//! ```
//!
//! The dialect is Tarantool 2.6's. **Architecture invariant:** no lock, thread, clock, socket or log:
//! who calls gives the tables ([`Catalog`]), the spaces ([`Spaces`]), how much may be done
//! ([`Budget`]), and writes what [`Changes`] and [`Definition`] say. No text makes it panic, and
//! depth, numbers of parts, steps and memory are bounded.

mod aggregate;
mod ast;
mod bind;
mod budget;
mod catalog;
mod changes;
mod checks;
mod compat;
mod constraints;
mod convert;
mod decimals;
mod define;
mod define_trigger;
mod definition;
mod error;
mod explain;
mod extensions;
mod functions;
mod lexer;
mod operators;
mod parser;
mod plan;
mod prepared;
mod printf;
mod programs;
mod run;
mod stepwise;
mod tree;
mod triggers;
mod value;
mod view_tables;

pub use catalog::{Catalog, Column, Index, IndexPart, Table, Trigger, triggers_of, view_of};
pub use changes::{Changes, Done, Stop, Writer, told_of_duplicate};
pub use checks::{check_definition, tuple_checks};
pub use compat::compat_document;
pub use definition::{Definition, Definitions, Schema};
pub use error::{Error, Then};
pub use prepared::{Action, Definable, OutputColumn, Prepared, Session, is_interrupted, prepare};
pub use run::{Budget, Spaces};
pub use stepwise::{Stepping, Turn};
pub use value::Value;
