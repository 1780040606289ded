//! Settings of a data directory's log.

use crate::planted::Planted;
use ladon_record::Lsn;

/// How the log lays out its files and its memory.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// A segment file is closed before it would grow beyond this size. A record never spans two
    /// segments, so a larger record gets a segment of its own.
    pub segment_bytes: u64,
    /// This node's number, written into every frame. A directory keeps the number that it was
    /// created with, and refuses to open under another.
    pub node_id: u16,
    /// With more appended but unwritten bytes than this, [`crate::Log::is_backlogged`] returns
    /// true, and requests that write wait. The largest `ladon_record::LargeRecord` among them does
    /// not count.
    pub backlog_bytes_max: u64,
    /// Records are collected in memory in chunks of this size; a longer record gets its own chunk.
    pub chunk_bytes: usize,
    /// Under the gate `fsync`, the file is extended by this many zeros beyond its records, on the
    /// disk. A sync that finds its blocks allocated changes no file system metadata and takes about
    /// half the time (`docs/decisions/log.md`). Zero turns this off.
    pub zero_ahead_bytes: u64,
    /// Most bytes to reserve for a full disk: see `reserve.rs`. Zero for none.
    pub reserve_bytes: u64,
    /// Recovery continues although the log is missing or damaged after this position, and discards
    /// what came after it. If the log ends anywhere else, recovery stops as usual.
    pub accept_loss_after: Option<Lsn>,
    /// Opens a directory although it is [unfinished](crate::unfinished()), to begin anew there.
    pub may_be_unfinished: bool,
    /// Testing only: a bug that the tests must notice.
    pub planted: Planted,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions {
            segment_bytes: 256 << 20,
            node_id: 0,
            backlog_bytes_max: 64 << 20,
            chunk_bytes: 1 << 20,
            zero_ahead_bytes: 256 << 10,
            reserve_bytes: 0,
            accept_loss_after: None,
            may_be_unfinished: false,
            planted: Planted::Nothing,
        }
    }
}
