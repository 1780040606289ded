//! The limits of each type's forms, which `CONFIG SET` changes at any time.

use super::list::limits::LARGE_BYTES;
use std::sync::atomic::{AtomicI64, AtomicUsize};

/// Sizes up to which collections stay packed; Redis' settings of the same names.
#[derive(Debug)]
pub struct Limits {
    /// `set-max-intset-entries`
    pub set_intset_entries: AtomicUsize,
    /// `set-max-listpack-entries`
    pub set_listpack_entries: AtomicUsize,
    /// `set-max-listpack-value`, bytes
    pub set_listpack_value: AtomicUsize,
    /// `hash-max-listpack-entries`
    pub hash_listpack_entries: AtomicUsize,
    /// `hash-max-listpack-value`, bytes
    pub hash_listpack_value: AtomicUsize,
    /// `list-max-listpack-size`
    pub list_size: AtomicI64,
    /// `zset-max-listpack-entries`
    pub zset_listpack_entries: AtomicUsize,
    /// `zset-max-listpack-value`, bytes
    pub zset_listpack_value: AtomicUsize,
    /// `DEBUG QUICKLIST-PACKED-THRESHOLD`, bytes
    pub list_large: AtomicUsize,
    /// `list-compress-depth`
    pub list_depth: AtomicUsize,
    /// `stream-node-max-bytes`
    pub stream_node_bytes: AtomicUsize,
    /// `stream-node-max-entries`
    pub stream_node_entries: AtomicUsize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            set_intset_entries: AtomicUsize::new(512),
            set_listpack_entries: AtomicUsize::new(128),
            set_listpack_value: AtomicUsize::new(64),
            hash_listpack_entries: AtomicUsize::new(512),
            hash_listpack_value: AtomicUsize::new(64),
            list_size: AtomicI64::new(-2),
            zset_listpack_entries: AtomicUsize::new(128),
            zset_listpack_value: AtomicUsize::new(64),
            list_large: AtomicUsize::new(LARGE_BYTES),
            list_depth: AtomicUsize::new(0),
            stream_node_bytes: AtomicUsize::new(4096),
            stream_node_entries: AtomicUsize::new(100),
        }
    }
}
