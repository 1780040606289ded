//! A Raft group whose log is Ladon's own: openraft decides who leads, what is committed and who
//! belongs; this crate stores and carries bytes for it ([why](../../docs/decisions/raft.md)).
//!
//! A Raft entry is an *extent* of the log: all bytes behind the entry before, up to and including
//! the frame that names the entry. A leader's records are in its log before an entry covers them;
//! proposing an entry only says "up to here", and costs the same for one record as for a million.
//!
//! ```text
//!  ---[changes][changes][mark][entry 7][changes][entry 8][changes] ...  the log
//!     '------ entry 7 ---------------''---- entry 8 ----''- no entry's yet
//! ```
//!
//! | to | use |
//! |---|---|
//! | name the types of a group | [`Group`] |
//! | give openraft a log | [`Storage`] over an [`ExtentLog`] |
//!
//! **Architecture invariant:** nothing home-made decides here: no vote, term, quorum or order is
//! computed outside of openraft. No sockets, threads or clock; generic over the runtime, so that
//! the simulator can run the library itself.

mod entry;
mod storage;
mod types;

pub use entry::{Cut, Entry, Extent, Member, Payload};
pub use storage::{ExtentLog, OnDurable, Storage, StoredEntry};
pub use types::{EntryId, Group, LeaderId, MemberId, Reign, Vote};
