//! Spaces as plain data: tuples of MessagePack, their format, indexes and statements.
//!
//! The reference is Tarantool 2.11's memtx, error codes and messages included.
//!
//! **Architecture invariant:** no lock, thread, clock, socket, file or log in here: the layers
//! above put a space behind a lock, and log what a statement returns. A statement that returns an
//! error has changed nothing.

pub mod as_text;
mod bitset;
mod bound_fields;
mod collation;
mod compare;
mod decimal;
mod definition;
mod entry;
mod error;
mod field_type;
pub mod fields;
mod foreign_key;
mod foreign_key_check;
mod format;
mod format_check;
mod functional;
mod hash_table;
mod hint_window;
mod index;
mod index_build;
mod iterator_type;
mod key;
mod key_part;
mod left_behind;
mod loading;
mod looked;
mod multikey;
mod path;
pub mod prefetch;
mod rtree;
mod select;
mod sequence;
mod space;
mod statement;
mod text;
mod tree;
mod tuple;
mod tuple_check;
mod tuple_walk;
mod update;

#[cfg(test)]
mod tests;

pub use bound_fields::BoundFields;
pub use collation::{Collation, Unicode};
pub use compare::values as compare_values;
pub use decimal::Decimal;
pub use definition::{IndexDef, IndexKind, SpaceDef, check_identifier};
pub use error::{BoxError, ErrorCode};
pub use field_type::{FieldType, extension};
pub use foreign_key::{ForeignKey, KeyAction};
pub use foreign_key_check::{Following, is_restricted};
pub use format::{Field, Format, Rules};
pub use format_check::{FormatCheck, Live};
pub use functional::{
    FunctionMaker, KeyFunction, Names, function_of_index, make_function, set_function_maker,
};
pub use index::{Index, Sought};
pub use index_build::IndexBuild;
pub use iterator_type::IteratorType;
pub use key::{Key, KeyDef};
pub use key_part::Part;
pub use looked::Looked;
pub use path::{Path, Step};
pub use rtree::Distance;
pub use select::{Counting, Selected, Selection};
pub use sequence::{Asked, SequenceDef, SpaceSequence, sequence_data, sequence_value};
pub use space::Space;
pub use statement::{OwnedStatement, Statement, Written};
pub use text::{extension_text, number_text, of as value_text, whole as whole_text};
pub use tuple::Tuple;
pub use tuple_check::TupleCheck;
pub use update::update_tuple;
