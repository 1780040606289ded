//! Spaces: tuples with a definition and indexes, beside the partitions of the keyspace.
//!
//! ```text
//! catalog    by number and by name          read without a lock, replaced whole
//!   |
//!   +-- cell 280 _space    a lock over the tuples, their indexes, and the LSN of the last change
//!   +-- cell 288 _index
//!   +-- cell 512 users
//! ```
//!
//! A space is one lock domain: ranges and secondary uniqueness fit no hash partition. Definitions
//! are tuples of the system spaces; a change of one takes effect in the same transaction
//! (`definition.rs`).
//!
//! **Invariants:** a thread locks spaces in the order of their numbers, after the partitions, and
//! the catalog's lock before any of them. A cell that left the catalog is marked as gone under its
//! lock, so that who found it before sees that.

/// The number of the database whose keys the tuples of mounted spaces are.
pub const MOUNTS_DATABASE: u16 = 0;

mod catalog;
mod definition;
mod error;
mod follow;
mod foreign_keys;
mod function;
mod grant;
mod growing;
mod held_spaces;
mod mounted;
mod open_transactions;
mod permission;
mod recovery;
mod rights;
mod saving;
mod stillness;
mod table_definition;
mod transaction;
mod users;
mod write;

pub use catalog::{Catalog, Mount, SpaceCell, Spaces};
pub(crate) use definition::Prepared;
pub use definition::{defines, is_defined_with};
pub use error::conflict;
pub use growing::SpaceMark;
pub use open_transactions::TransactionLimits;
pub(crate) use open_transactions::{Holding, OpenTransactions};
pub use rights::{AllRights, DefinitionRights, ObjectKind, Privilege, RightsObject, access_denied};
pub use stillness::DefinitionTurn;
pub use table_definition::NewDefinition;
pub use transaction::SpaceTx;
pub use users::{ADMIN, GUEST, Grant, PUBLIC, SUPER, UserDef};

pub use catalog::described_space;
pub(crate) use catalog::{Content, SpaceGuard};
pub(crate) use error::{
    has_triggers, no_such_space, too_many_transactions, transactions_too_large,
};
pub(crate) use foreign_keys::{DEPTH_MAX, FOLLOWED_MAX, check_written, followed, too_deep};
pub(crate) use function::index_function;
pub(crate) use held_spaces::HeldSpaces;
pub(crate) use mounted::{TupleEvent, event_of, key_of};
pub(crate) use recovery::{RecoveringSpaces, SpaceFault, SpaceReplay};
pub(crate) use saving::SpaceCursor;
pub(crate) use write::log_change;
