//! Settings of a data directory's log.

use crate::planted::Planted;
use ladon_model::Lsn;

/// How the log lays out its files and its memory.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// A segment file is closed before it would grow beyond this many bytes. A record never spans
    /// two segments, so a larger record gets a larger segment of its own.
    pub segment_bytes: u64,
    /// This node's number, written into every frame. A directory keeps the number that it was
    /// created with and refuses to open under another.
    pub node_id: u16,
    /// Above this many bytes of appended but unwritten records [`crate::Log::is_backlogged`] says
    /// so, and the server stops reading requests for a while.
    pub backlog_bytes_max: u64,
    /// Up to this many bytes of large records (`ladon_model::LargeRecord`) do not count there.
    pub large_bytes_max: u64,
    /// Records are collected in memory in pieces of this many bytes; a longer record gets its own.
    pub chunk_bytes: usize,
    /// Under the gate `fsync`, the file is kept this much longer than its records, with zeros on the
    /// disk: a sync that finds its blocks there needs no change to the file system's own records and
    /// takes about half the time (`docs/decisions/log.md`). Zero turns that off.
    pub zero_ahead_bytes: u64,
    /// Bytes that are held back for the day when the disk is full, at most: see `reserve.rs`. Zero
    /// for none.
    pub reserve_bytes: u64,
    /// Recovery goes on although the log is missing or damaged after this position, and gives up
    /// what came after it. It stops as ever where the log ends anywhere else.
    pub accept_loss_after: Option<Lsn>,
    /// Testing only: a bug that the tests must notice.
    pub planted: Planted,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions {
            segment_bytes: 256 << 20,
            node_id: 0,
            backlog_bytes_max: 64 << 20,
            large_bytes_max: 512 << 20,
            chunk_bytes: 1 << 20,
            zero_ahead_bytes: 256 << 10,
            reserve_bytes: 0,
            accept_loss_after: None,
            planted: Planted::Nothing,
        }
    }
}
