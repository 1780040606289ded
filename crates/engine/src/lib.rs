//! Ladon's keyspace: partitions, the table, value types, expiry and transactions.
//!
//! **Architecture invariant:** no sockets, no protocol, no files, no clock of its own. A [`Tx`]
//! holds the locks of the partitions it touches, changes them and collects the [`Change`]s. The
//! caller that commits it passes these to a log, and the partitions receive the LSN.
//!
//! [`Change`]: ladon_record::Change

mod access;
mod apply;
mod checkpoint_coverage;
mod compact;
mod compaction;
mod events;
mod evict;
mod expiry;
mod fill;
mod interactive;
mod item;
mod key;
mod keyspace;
mod libraries;
mod locked;
mod lookahead;
mod mounted_keys;
mod noting;
mod object;
mod partition;
mod partition_lock;
mod pieces;
mod prefetch;
mod prefetch_target;
mod preparation;
mod preparation_limits;
mod save;
mod saved_bytes;
mod space;
mod sync_primitives;
mod table;
mod tx;
pub mod types;
mod wait;
mod watch;

pub use access::{AccessNow, AccessRules, Tracking};
pub use apply::{ApplyError, Recovering, Replay};
pub use compact::{purge_memory, touch_memory_ahead};
pub use events::{
    ChangedNames, CopyEvent, CopyEvents, CopySink, Event, EventClass, EventSink, Subkeys,
};
pub use evict::{Choice, Evicted, EvictedKey, Evictor, Victims};
pub use fill::{FilledFacts, FilledValue, Filling};
pub use interactive::{Commit, CommitPace, Interactive, Stated};
pub use item::ItemHead;
pub use key::Key;
pub use keyspace::{Keyspace, KeyspaceOptions, Locks};
pub use libraries::{Library, LibraryCounts};
pub use locked::Grown;
pub use lookahead::Lookahead;
pub use object::{Object, Variant};
pub use partition::{PARTITIONS, partition_of};
pub use prefetch_target::{AccessedPart, Ahead, PartAhead};
pub use preparation::{Preparation, Progress};
pub use preparation_limits::PreparationLimits;
pub use save::{SaveCursor, SavedBlock};
pub use saved_bytes::SavedBytes;
pub use space::{
    ADMIN, AllRights, Catalog, DefinitionRights, DefinitionTurn, GUEST, Grant, MOUNTS_DATABASE,
    Mount, NewDefinition, ObjectKind, PUBLIC, Privilege, RightsObject, SUPER, SpaceCell, SpaceMark,
    SpaceTx, Spaces, TransactionLimits, UserDef, access_denied, conflict as transaction_conflict,
    defines, described_space, is_defined_with,
};
pub use table::entry::{EntryRef, ValueRef};
pub use tx::follow::Followed;
pub use tx::sorted_sets::Scores;
pub use tx::stored::{Misplaced, Stored};
pub use tx::streams::StreamEdit;
pub use tx::strings::{CountError, Written};
pub use tx::values::Look;
pub use tx::{CommitLimits, Garbage, Scratch, StringTooLong, Tx, TxCounters};
pub use types::Limits;
pub use types::collection::{Collection, Env, WrongType};
pub use wait::{Claim, Place, ReadyKey, Waiter};
pub use watch::WatchFlag;
