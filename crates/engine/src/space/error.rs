//! Errors of the catalog, in Tarantool's words.

use ladon_record::SpaceId;
use ladon_space::{BoxError, ErrorCode};

/// `ER_DROP_SPACE`.
const DROP_SPACE: ErrorCode = ErrorCode(11);
/// `ER_MEMORY_ISSUE`.
const MEMORY_ISSUE: ErrorCode = ErrorCode(2);
/// `ER_TRANSACTION_CONFLICT`.
const TRANSACTION_CONFLICT: ErrorCode = ErrorCode(97);
/// `ER_DROP_SEQUENCE`.
const DROP_SEQUENCE: ErrorCode = ErrorCode(144);
/// `ER_NO_SUCH_SEQUENCE`.
const NO_SUCH_SEQUENCE: ErrorCode = ErrorCode(145);

pub(crate) fn no_such_space(id: SpaceId) -> BoxError {
    BoxError::new(ErrorCode::NO_SUCH_SPACE, format!("Space '{id}' does not exist"))
}

pub(super) fn cannot_drop(space: &str, why: &str) -> BoxError {
    BoxError::new(DROP_SPACE, format!("Can't drop space '{space}': {why}"))
}

pub(super) fn cannot_alter(space: impl std::fmt::Display, why: &str) -> BoxError {
    BoxError::new(ErrorCode::ALTER_SPACE, format!("Can't modify space '{space}': {why}"))
}

pub(super) fn cannot_mount(why: &str) -> BoxError {
    let message = format!("Wrong space options (field 5): 'resp_prefix': {why}");
    BoxError::new(ErrorCode::WRONG_SPACE_OPTIONS, message)
}

pub(super) fn cannot_drop_sequence(sequence: &str, why: &str) -> BoxError {
    BoxError::new(DROP_SEQUENCE, format!("Can't drop sequence '{sequence}': {why}"))
}

pub(super) fn no_such_sequence(id: u32) -> BoxError {
    BoxError::new(NO_SUCH_SEQUENCE, format!("Sequence '{id}' does not exist"))
}

pub(crate) fn conflict() -> BoxError {
    BoxError::new(TRANSACTION_CONFLICT, "Transaction has been aborted by conflict")
}

pub(crate) fn transactions_too_large(limit: u64) -> BoxError {
    let message = format!(
        "Failed to allocate memory: a connection's transactions may hold {limit} bytes \
         (client-transaction-memory); roll back"
    );
    BoxError::new(MEMORY_ISSUE, message)
}

pub(crate) fn too_many_transactions(limit: u64) -> BoxError {
    let message = format!(
        "Failed to allocate memory: open transactions hold {limit} bytes (transaction-memory); \
         commit, or roll back"
    );
    BoxError::new(MEMORY_ISSUE, message)
}
