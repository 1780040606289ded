//! Errors of the catalog, in Tarantool's words.

use ladon_record::SpaceId;
use ladon_space::{BoxError, ErrorCode};

/// `ER_DROP_SPACE`.
const DROP_SPACE: ErrorCode = ErrorCode(11);
/// `ER_MEMORY_ISSUE`.
const MEMORY_ISSUE: ErrorCode = ErrorCode(2);
/// `ER_CREATE_USER`.
const CREATE_USER: ErrorCode = ErrorCode(43);
/// `ER_DROP_USER`.
const DROP_USER: ErrorCode = ErrorCode(44);
/// `ER_NO_SUCH_USER`.
const NO_SUCH_USER: ErrorCode = ErrorCode(45);
/// `ER_UNKNOWN_SCHEMA_OBJECT`.
const UNKNOWN_SCHEMA_OBJECT: ErrorCode = ErrorCode(49);
/// `ER_CREATE_FUNCTION`.
const CREATE_FUNCTION: ErrorCode = ErrorCode(50);
/// `ER_NO_SUCH_FUNCTION`.
const NO_SUCH_FUNCTION: ErrorCode = ErrorCode(51);
/// `ER_DROP_FUNCTION`.
const DROP_FUNCTION: ErrorCode = ErrorCode(71);
/// `ER_NO_SUCH_ROLE`.
const NO_SUCH_ROLE: ErrorCode = ErrorCode(82);
/// `ER_CREATE_ROLE`.
const CREATE_ROLE: ErrorCode = ErrorCode(84);
/// `ER_ROLE_LOOP`.
const ROLE_LOOP: ErrorCode = ErrorCode(87);
/// `ER_GRANT`.
const GRANT: ErrorCode = ErrorCode(88);
/// `ER_FUNCTION_LANGUAGE`.
const FUNCTION_LANGUAGE: ErrorCode = ErrorCode(100);
/// `ER_TRUNCATE_SYSTEM_SPACE`.
const TRUNCATE_SYSTEM_SPACE: ErrorCode = ErrorCode(137);
/// `ER_WRONG_FUNCTION_OPTIONS`.
const WRONG_FUNCTION_OPTIONS: ErrorCode = ErrorCode(265);
/// `ER_TRANSACTION_CONFLICT`.
const TRANSACTION_CONFLICT: ErrorCode = ErrorCode(97);
/// `ER_DROP_SEQUENCE`.
const DROP_SEQUENCE: ErrorCode = ErrorCode(144);
/// `ER_NO_SUCH_SEQUENCE`.
const NO_SUCH_SEQUENCE: ErrorCode = ErrorCode(145);

pub(crate) fn no_such_space(id: SpaceId) -> BoxError {
    BoxError::new(ErrorCode::NO_SUCH_SPACE, format!("Space '{id}' does not exist"))
}

/// A program's functions are called when tuples of the space change; here nobody calls them.
pub(crate) fn has_triggers(space: &ladon_space::Space) -> BoxError {
    let name = &space.def().name;
    let what = format!(
        "a change of space '{name}' here: it has triggers of a program, which requests of IPROTO and CALL run"
    );
    BoxError::new(ErrorCode::UNSUPPORTED, format!("Ladon does not support {what}"))
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

/// What was shown in a transaction is true no more.
pub fn conflict() -> BoxError {
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

pub(super) fn cannot_create_user(user: &str, why: &str) -> BoxError {
    BoxError::new(CREATE_USER, format!("Failed to create user '{user}': {why}"))
}

pub(super) fn cannot_create_role(role: &str, why: &str) -> BoxError {
    BoxError::new(CREATE_ROLE, format!("Failed to create role '{role}': {why}"))
}

pub(super) fn cannot_drop_user(user: &str, why: &str) -> BoxError {
    BoxError::new(DROP_USER, format!("Failed to drop user or role '{user}': {why}"))
}

pub(super) fn cannot_create_function(function: &str, why: &str) -> BoxError {
    BoxError::new(CREATE_FUNCTION, format!("Failed to create function '{function}': {why}"))
}

pub(super) fn unknown_language(language: &str, function: &str) -> BoxError {
    let message = format!("Unsupported language '{language}' specified for function '{function}'");
    BoxError::new(FUNCTION_LANGUAGE, message)
}

pub(super) fn wrong_function_options(why: &str) -> BoxError {
    BoxError::new(WRONG_FUNCTION_OPTIONS, format!("Wrong function options: {why}"))
}

/// Tarantool shows the number of the owner.
pub(super) fn cannot_drop_function(owner: u32, why: &str) -> BoxError {
    BoxError::new(DROP_FUNCTION, format!("Can't drop function {owner}: {why}"))
}

pub(super) fn cannot_truncate(space: &str) -> BoxError {
    let message = format!("Can't truncate a system space, space '{space}'");
    BoxError::new(TRUNCATE_SYSTEM_SPACE, message)
}

pub(super) fn no_such_user(user: impl std::fmt::Display) -> BoxError {
    BoxError::new(NO_SUCH_USER, format!("User '{user}' is not found"))
}

pub(super) fn no_such_role(role: impl std::fmt::Display) -> BoxError {
    BoxError::new(NO_SUCH_ROLE, format!("Role '{role}' is not found"))
}

pub(super) fn no_such_function(id: u32) -> BoxError {
    BoxError::new(NO_SUCH_FUNCTION, format!("Function '{id}' does not exist"))
}

pub(super) fn unknown_object_kind(kind: &str) -> BoxError {
    BoxError::new(UNKNOWN_SCHEMA_OBJECT, format!("Unknown object type '{kind}'"))
}

pub(super) fn wrong_grant(why: &str) -> BoxError {
    BoxError::new(GRANT, format!("Incorrect grant arguments: {why}"))
}

pub(super) fn role_loop(role: &str, grantee: &str) -> BoxError {
    let message = format!("Granting role '{role}' to role '{grantee}' would create a loop");
    BoxError::new(ROLE_LOOP, message)
}

/// Tarantool's, about what it does not support.
pub(super) fn does_not_support(who: &str, what: &str) -> BoxError {
    BoxError::new(ErrorCode::UNSUPPORTED, format!("{who} does not support {what}"))
}
