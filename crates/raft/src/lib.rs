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
//! | begin with what recovery found | [`Entries`], [`GroupState`], [`GroupLog`] |
//! | give openraft a log | [`Storage`] over an [`ExtentLog`] |
//! | give it the data | [`Machine`] with an [`Applier`] |
//! | let it talk to others | [`Network`] with a [`Transport`]; [`answer`] on the other side |
//! | make bytes of what they say | [`encode_request`], [`decode_request`], and the same for answers |
//!
//! **Architecture invariant:** nothing home-made decides here: no vote, term, quorum or order is
//! computed outside of openraft. No sockets, threads or clock; generic over the runtime, so that
//! the simulator can run the library itself.

mod entry;
mod frame;
mod group_log;
mod incoming;
mod index;
mod machine;
mod network;
mod planted;
mod seat;
mod state;
mod storage;
mod types;
mod wire;

pub use entry::{Cut, Entry, Extent, Member, Payload};
pub use frame::{BadEntry, decode_entry, encode_entry};
pub use group_log::{Entries, GroupLog, Writers};
pub use incoming::{DataFile, Incoming, RUNS_NAME, finish_incoming, has_incoming};
pub use index::Index;
pub use machine::{Applier, Machine, NewestCheckpoint};
pub use network::{Link, Network, Node, Request, Response, Transport, answer};
pub use openraft::{AsyncRuntime, Instant as RuntimeInstant};
pub use planted::Planted;
pub use seat::{Now, Seat, Seen};
pub use state::{ClusterId, GROUP_FORMAT, GroupState, MembersChange};
pub use storage::{ExtentLog, OnDurable, Storage, StoredEntry};
pub use types::{EntryId, Group, LeaderId, MemberId, Reign, Vote, group_config, lease};
pub use wire::{
    BadMessage, decode_request, decode_response, encode_request, encode_response, request_parts,
};
