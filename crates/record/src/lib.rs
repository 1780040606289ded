//! What the log records, and all others name: a change, its position in the log, and the key hash.
//!
//! **Architecture invariant:** this crate knows no table, no file, no socket and no protocol. It is
//! plain data and its byte encoding, so that log, replication and tools can carry changes without
//! knowing the engine.

pub mod change;
pub mod gate;
pub mod hash;
pub mod library;
pub mod lsn;
pub mod record;
pub mod varint;

pub use change::{Change, ChangeBuffer, ChangeError, ChangeMark, Changes, ValueKind};
pub use gate::Gate;
pub use hash::{KeyHash, KeyHasher};
pub use library::{FunctionFacts, LibraryBody};
pub use lsn::Lsn;
pub use record::{LargeRecord, Record, RecordPart};

/// Number of a database as the data knows it: stable under `SWAPDB`, which only changes which
/// number a client's `SELECT n` means.
pub type DbId = u16;

/// Number of a space.
pub type SpaceId = u32;

/// Milliseconds since the Unix epoch.
pub type UnixMillis = u64;
