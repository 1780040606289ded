//! Errors that the layer above spaces gives, in Tarantool's words, and how an error is replied.

use ladon_iproto::RequestError;
use ladon_iproto::reply::{self, ErrorEntry};
use ladon_kernel::node::Node;
use ladon_kernel::program::Failed;
use ladon_kernel::request::admission::Refusal;
use ladon_msgpack::write;
use ladon_space::{BoxError, ErrorCode};

/// Why most procedures are not there.
const NO_LUA: &str =
    "there is no program here (`ladon tarantool`), only box.info and the methods of box.space";

/// `ER_MEMORY_ISSUE`.
const MEMORY_ISSUE: ErrorCode = ErrorCode(2);
/// `ER_READONLY`.
const READONLY: ErrorCode = ErrorCode(7);
/// `ER_NO_SUCH_PROC`.
const NO_SUCH_PROC: ErrorCode = ErrorCode(33);
/// `ER_WAL_IO`.
const WAL_IO: ErrorCode = ErrorCode(40);
/// `ER_ACCESS_DENIED`.
pub(crate) const ACCESS_DENIED: ErrorCode = ErrorCode(42);
/// `ER_NO_SUCH_USER`.
const NO_SUCH_USER: ErrorCode = ErrorCode(45);
/// `ER_CREDS_MISMATCH`.
const CREDS_MISMATCH: ErrorCode = ErrorCode(47);
/// `ER_WRONG_SCHEMA_VERSION`.
const WRONG_SCHEMA_VERSION: ErrorCode = ErrorCode(109);
/// `ER_LOADING`.
const LOADING: ErrorCode = ErrorCode(116);
/// `ER_VIEW_IS_RO`.
const VIEW_IS_RO: ErrorCode = ErrorCode(113);

/// `ER_ACTIVE_TRANSACTION`.
const ACTIVE_TRANSACTION: ErrorCode = ErrorCode(79);
/// `ER_NO_TRANSACTION`.
const NO_TRANSACTION: ErrorCode = ErrorCode(114);
/// `ER_NO_SUCH_SAVEPOINT`.
const NO_SUCH_SAVEPOINT: ErrorCode = ErrorCode(61);
/// `ER_UNABLE_TO_PROCESS_IN_STREAM`.
const UNABLE_TO_PROCESS_IN_STREAM: ErrorCode = ErrorCode(229);
/// `ER_UNABLE_TO_PROCESS_OUT_OF_STREAM`.
const UNABLE_TO_PROCESS_OUT_OF_STREAM: ErrorCode = ErrorCode(230);
/// `ER_TRANSACTION_TIMEOUT`.
const TRANSACTION_TIMEOUT: ErrorCode = ErrorCode(231);

/// `ER_SESSION_SETTING_INVALID_VALUE`.
const SESSION_SETTING_INVALID_VALUE: ErrorCode = ErrorCode(209);

pub(crate) fn invalid_setting(name: &str, expected: &str) -> BoxError {
    let message = format!("Session setting {name} expected a value of type {expected}");
    BoxError::new(SESSION_SETTING_INVALID_VALUE, message)
}

pub(crate) fn no_such_engine(name: &str) -> BoxError {
    BoxError::new(ErrorCode::NO_SUCH_ENGINE, format!("Space engine '{name}' does not exist"))
}

pub(crate) fn active_transaction() -> BoxError {
    // The blank at the end is Tarantool's.
    let message = "Operation is not permitted when there is an active transaction ";
    BoxError::new(ACTIVE_TRANSACTION, message)
}

pub(crate) fn no_transaction() -> BoxError {
    BoxError::new(NO_TRANSACTION, "No active transaction")
}

pub(crate) fn no_such_savepoint() -> BoxError {
    let message = "Can not rollback to savepoint: the savepoint does not exist";
    BoxError::new(NO_SUCH_SAVEPOINT, message)
}

pub(crate) fn transaction_timeout() -> BoxError {
    BoxError::new(TRANSACTION_TIMEOUT, "Transaction has been aborted by timeout")
}

/// The request is only for streams, or only outside of them.
pub(crate) fn not_in_this_stream(request: &str, is_outside: bool) -> BoxError {
    match is_outside {
        true => BoxError::new(
            UNABLE_TO_PROCESS_OUT_OF_STREAM,
            format!("Unable to process {request} request out of stream"),
        ),
        false => BoxError::new(
            UNABLE_TO_PROCESS_IN_STREAM,
            format!("Unable to process {request} request in stream"),
        ),
    }
}

pub(crate) fn of_request(error: &RequestError) -> BoxError {
    BoxError::new(ErrorCode(error.code()), error.to_string())
}

pub(crate) fn no_such_space(name: &str) -> BoxError {
    BoxError::new(ErrorCode::NO_SUCH_SPACE, format!("Space '{name}' does not exist"))
}

pub(crate) fn no_such_index(index: &str, space: &str) -> BoxError {
    let message = format!("No index '{index}' is defined in space '{space}'");
    BoxError::new(ErrorCode::NO_SUCH_INDEX_NAME, message)
}

pub(crate) fn no_such_procedure(name: &str) -> BoxError {
    let name = up_to_zero(name);
    let message = format!("Procedure '{name}' is not defined: {NO_LUA}");
    BoxError::new(NO_SUCH_PROC, message)
}

/// Of a name that is one of a space that is not there, or of no method: as Tarantool has it.
pub(crate) fn no_such_method(name: &str) -> BoxError {
    let name = up_to_zero(name);
    BoxError::new(NO_SUCH_PROC, format!("Procedure '{name}' is not defined"))
}

/// Why a request is not admitted.
pub(crate) fn of_refusal(refusal: Refusal, node: &Node) -> BoxError {
    match refusal {
        Refusal::Loading => BoxError::new(LOADING, "Instance bootstrap hasn't finished yet"),
        Refusal::OutOfMemory => out_of_memory(node.settings.maxmemory()),
        Refusal::TooFewReplicas => {
            let message = "Can't modify data on a read-only instance - fewer replicas than \
                           min-replicas-to-write";
            BoxError::new(READONLY, message)
        }
        Refusal::ReadOnly => {
            let message = "Can't modify data because this instance is in read-only mode.";
            BoxError::new(READONLY, message)
        }
        Refusal::FollowsQuorum | Refusal::Unanswered(_) => {
            let why = match refusal {
                Refusal::Unanswered(why) => why.reason(),
                _ => "it is a replica of another server",
            };
            BoxError::new(
                READONLY,
                format!("Can't read at the gate quorum on this instance - {why}"),
            )
        }
        Refusal::Follows
        | Refusal::CutOff
        | Refusal::Outside
        | Refusal::Stale
        | Refusal::Witness => {
            let why = match refusal {
                Refusal::Follows if node.cluster.is_none() => "it is a replica of another server",
                Refusal::Stale => "the server that it follows is not heard",
                Refusal::Witness => "it is a witness of its cluster, and has no data",
                Refusal::Follows => "it follows the leader of its cluster",
                Refusal::CutOff => "it cannot reach most of its cluster's members",
                _ => "it is no member of a cluster yet",
            };
            BoxError::new(READONLY, format!("Can't modify data on a read-only instance - {why}"))
        }
        // The others are not about statements.
        _ => wal_io(),
    }
}

/// What Tarantool has, and Ladon has not.
pub(crate) fn unsupported_procedure(name: &str) -> BoxError {
    unsupported(&format!("CALL of '{}': {NO_LUA}", up_to_zero(name)))
}

/// The log takes no writes; the server's own log says why.
fn wal_io() -> BoxError {
    BoxError::new(WAL_IO, "Failed to write to disk")
}

fn out_of_memory(limit: u64) -> BoxError {
    let message =
        format!("Failed to allocate memory: the data has reached maxmemory, {limit} bytes");
    BoxError::new(MEMORY_ISSUE, message)
}

/// Of a session whose user was dropped.
pub(crate) fn user_is_gone(id: u32) -> BoxError {
    BoxError::new(NO_SUCH_USER, format!("User '{id}' is not found"))
}

pub(crate) fn bad_credentials() -> BoxError {
    BoxError::new(CREDS_MISMATCH, "User not found or supplied credentials are invalid")
}

pub(crate) fn wrong_schema_version(theirs: u64, ours: u64) -> BoxError {
    let message = format!("Wrong schema version, current: {ours}, in request: {theirs}");
    BoxError::new(WRONG_SCHEMA_VERSION, message)
}

pub(crate) fn view_is_read_only(name: &str) -> BoxError {
    BoxError::new(VIEW_IS_RO, format!("View '{name}' is read-only"))
}

pub(crate) fn unsupported(what: &str) -> BoxError {
    BoxError::new(ErrorCode::UNSUPPORTED, format!("Ladon does not support {what}"))
}

/// What Lua would say of wrong arguments.
pub(crate) fn of_lua(message: String) -> BoxError {
    BoxError::new(ErrorCode::PROC_LUA, message)
}

pub(crate) fn without_object(is_of_index: bool, method: &str) -> BoxError {
    let object = if is_of_index { "index" } else { "space" };
    of_lua(format!("Use {object}:{method}(...) instead of {object}.{method}(...)"))
}

pub(crate) fn illegal(what: &str) -> BoxError {
    BoxError::new(ErrorCode::ILLEGAL_PARAMS, what)
}

/// Who sends no more, and may be gone, gets no definition that takes long.
pub(crate) fn client_has_left() -> BoxError {
    illegal("the client has closed its side of the connection while a long definition was prepared")
}

pub(crate) fn not_array() -> BoxError {
    BoxError::new(ErrorCode::TUPLE_NOT_ARRAY, "Tuple/Key must be MsgPack array")
}

pub(crate) fn unknown_iterator(name: &str) -> BoxError {
    let message = format!("Unknown iterator type '{name}'");
    BoxError::new(ErrorCode::ITERATOR_TYPE, up_to_zero(&message))
}

/// Tarantool shows a text up to a byte 0.
fn up_to_zero(text: &str) -> &str {
    text.split('\0').next().unwrap_or_default()
}

/// Appends an error reply.
pub(crate) fn write(out: &mut Vec<u8>, sync: u64, schema_version: u64, error: &BoxError) {
    let class = match error.code {
        ACCESS_DENIED => ACCESS_DENIED_CLASS,
        MEMORY_ISSUE => "OutOfMemory",
        _ => "ClientError",
    };
    write_entry(out, sync, schema_version, (error.code.0, class, &error.message));
}

/// The class of errors that have fields: what was denied.
const ACCESS_DENIED_CLASS: &str = "AccessDeniedError";

/// Appends an error reply with this code, class and message.
pub(crate) fn write_entry(
    out: &mut Vec<u8>,
    sync: u64,
    schema_version: u64,
    (code, class, message): (u32, &str, &str),
) {
    let fields = own_fields(class, message);
    let entry = entry((code, class, message), ("ladon", 0), fields.as_deref());
    reply::error(out, sync, schema_version, &[entry]);
}

/// Appends an error reply: a program's error, and what it came of.
pub(crate) fn write_failed(out: &mut Vec<u8>, sync: u64, schema_version: u64, failed: &Failed) {
    let fields = |it: &Failed| own_fields(&it.class, &it.message).or_else(|| it.fields.clone());
    let fields: Vec<Option<Vec<u8>>> = failed.stack().map(fields).collect();
    let entries: Vec<ErrorEntry<'_>> = failed
        .stack()
        .zip(&fields)
        .map(|(it, fields)| {
            let place = it.place.as_ref().map_or(("ladon", 0), |(file, line)| (&file[..], *line));
            entry((it.code, &it.class, &it.message), place, fields.as_deref())
        })
        .collect();
    reply::error(out, sync, schema_version, &entries);
}

/// An error of a reply, by its code, class and message, with the file and line where it was raised.
fn entry<'a>(
    (code, class, message): (u32, &'a str, &'a str),
    (file, line): (&'a str, u32),
    fields: Option<&'a [u8]>,
) -> ErrorEntry<'a> {
    // Tarantool's own client takes this class for no error if it has no fields.
    let has_its_fields = class != ACCESS_DENIED_CLASS || fields.is_some();
    ErrorEntry {
        class: if has_its_fields { class } else { "ClientError" }.as_bytes(),
        file: file.as_bytes(),
        line: line.into(),
        message: message.as_bytes(),
        errno: 0,
        code: code.into(),
        fields,
    }
}

/// The fields that its message tells of a class.
fn own_fields(class: &str, message: &str) -> Option<Vec<u8>> {
    if class == ACCESS_DENIED_CLASS { denied_fields(message) } else { None }
}

/// What `RIGHT access to KIND 'NAME' is denied for user 'USER'` says, as the fields of its class.
fn denied_fields(message: &str) -> Option<Vec<u8>> {
    let (right, rest) = message.split_once(" access to ")?;
    let (object, _) = rest.rsplit_once(" is denied for user ")?;
    let (kind, name) = object.split_once(' ')?;
    let name = name.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut fields = Vec::new();
    write::map(&mut fields, 3);
    for (key, value) in [("object_type", kind), ("object_name", name), ("access_type", right)] {
        write::str(&mut fields, key.as_bytes());
        write::str(&mut fields, value.as_bytes());
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_up_to_a_zero() {
        let message = |name| no_such_method(name).message;
        assert_eq!(message("box.space.\0one:select"), "Procedure 'box.space.' is not defined");
        assert_eq!(message("\0"), "Procedure '' is not defined");
    }
}
