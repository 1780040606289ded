//! The table of value types: how each is written to the log and read back.
//!
//! A new type has its own files here, which implement [`Collection`], one [`ValueKind`] and one row
//! in the table of types (`object.rs`).
//!
//! [`Collection`]: collection::Collection

mod buffer;
pub mod collection;
pub mod dump_value;
pub(crate) mod element_prefetch;
pub mod hash;
pub(crate) mod integer;
mod limits;
pub mod list;
pub mod long_string;
pub mod set;
pub mod sorted_set;
pub mod stream;
pub mod string;
pub(crate) mod string_op;

use crate::object::Object;
pub use crate::table::Position;
use crate::table::entry::{ValueInit, ValueRef};
use collection::Env;
use ladon_record::ValueKind;
pub use limits::Limits;
use std::sync::atomic::Ordering::Relaxed;

impl Limits {
    /// Those of lists.
    pub fn of_lists(&self) -> list::ListLimits {
        list::ListLimits::of_setting(self.list_size.load(Relaxed))
            .with_large(self.list_large.load(Relaxed))
            .with_depth(self.list_depth.load(Relaxed))
    }

    /// Those of sets.
    pub fn of_sets(&self) -> set::SetLimits {
        set::SetLimits {
            intset_entries: self.set_intset_entries.load(Relaxed),
            listpack_entries: self.set_listpack_entries.load(Relaxed),
            listpack_value: self.set_listpack_value.load(Relaxed),
        }
    }

    /// Those of hashes.
    pub fn of_hashes(&self) -> hash::HashLimits {
        hash::HashLimits {
            listpack_entries: self.hash_listpack_entries.load(Relaxed),
            listpack_value: self.hash_listpack_value.load(Relaxed),
        }
    }

    /// Those of streams.
    #[inline]
    pub fn of_streams(&self) -> stream::StreamLimits {
        stream::StreamLimits {
            node_bytes: self.stream_node_bytes.load(Relaxed),
            node_entries: self.stream_node_entries.load(Relaxed),
        }
    }

    /// Those of sorted sets.
    pub fn of_sorted_sets(&self) -> sorted_set::SortedSetLimits {
        sorted_set::SortedSetLimits {
            entries: self.zset_listpack_entries.load(Relaxed),
            value: self.zset_listpack_value.load(Relaxed),
        }
    }
}

/// The type that clients see.
pub fn kind_of(value: ValueRef<'_>) -> ValueKind {
    match value {
        ValueRef::Bytes { .. } | ValueRef::Int(_) => ValueKind::String,
        ValueRef::Object(object) => object.kind(),
    }
}

/// What `OBJECT ENCODING` answers.
pub fn encoding_of(value: ValueRef<'_>) -> &'static str {
    match value {
        ValueRef::Int(_) => "int",
        // Redis keeps up to 44 bytes in one allocation with the object's head.
        ValueRef::Bytes { bytes, grown: false } if bytes.len() <= 44 => "embstr",
        ValueRef::Bytes { .. } => "raw",
        ValueRef::Object(object) => object.encoding(),
    }
}

/// Appends the body of a `Put` change.
pub fn encode_body(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Bytes { bytes, .. } => out.extend_from_slice(bytes),
        ValueRef::Int(int) => integer::write_int(int, out),
        ValueRef::Object(object) => object.encode(out),
    }
}

/// Reads the body of a `Put` change and hands the value over; `None` if it is malformed.
pub(crate) fn decode_body<R>(
    kind: ValueKind,
    body: &[u8],
    env: Env<'_>,
    then: impl FnOnce(ValueInit<'_>) -> R,
) -> Option<R> {
    if kind == ValueKind::String {
        return Some(then(string::init(body, string::Form::Shortest)));
    }
    let object = Object::decode(kind, body, env)?;
    Some(then(ValueInit::Object(Box::new(object))))
}
