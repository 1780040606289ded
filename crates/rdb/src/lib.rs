//! Redis' RDB, versions 1 to 12, and Valkey 9's: bytes to plain values, plain values to bytes.
//!
//! ```text
//! file    --Reader--> Event (header, database, key, element, ..., end)
//! payload --payload::open, payload::read_value--> Value          (DUMP, RESTORE)
//! Value   --Writer--> file        Value --payload::make--> payload
//! ```
//!
//! Source: `src/rdb.h`, `rdb.c`, `listpack.c`, `ziplist.c`, `zipmap.c`, `intset.c` and `t_stream.c`
//! of Redis 7.4, for the formats alone; Valkey 9.0's `rdb.h` for its hashes whose fields expire.
//!
//! **Architecture invariant:** no engine, no commands, no files beyond [`std::io::Read`] and
//! [`std::io::Write`], and no `unsafe`. No bytes make a reader panic. Nothing is allocated in
//! proportion to a number that the bytes merely announce; beside one element (of a stream: one
//! entry and the field names of its node) a reader holds at most a few hundred KiB.
//!
//! What a reader does not compare: whether members, fields, groups or keys are there twice, and
//! whether consumers' pending entries are their group's. It would have to hold them all; who stores
//! them finds out anyway.

#![forbid(unsafe_code)]

mod dialect;
mod elements;
mod encoding;
mod error;
mod fragments;
mod packed;
pub mod payload;
mod reader;
mod skip;
mod source;
mod stream;
mod text;
mod value;
mod write;

pub use dialect::{Dialect, REDIS_VERSION_MAX, VALKEY_VERSION};
pub use encoding::Encoding;
pub use error::{Error, Fault};
pub use fragments::{FilePart, FileParts, Fragment};
pub use reader::{Event, Key, Reader};
pub use text::{put_length, take_string};
pub use value::{
    Consumer, ConsumerHead, Element, Entry, Field, Group, GroupHead, Pending, Stream,
    StreamCounters, StreamId, StreamState, Value,
};
pub use write::{Head, KeyFacts, NodeShare, Sink, ValueWriter, Version, Writer};
