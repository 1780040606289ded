//! Errors of statements: codes and texts are Tarantool 2.6's.

use crate::ast::Raise;
use ladon_space::{BoxError, ErrorCode};

/// A statement's error: Tarantool's number and text.
pub type Error = BoxError;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub(crate) const $name: ErrorCode = ErrorCode($code);)*
    };
}

codes! {
    UNSUPPORTED = 5;
    CREATE_SPACE = 9;
    SPACE_EXISTS = 10;
    DROP_SPACE = 11;
    ALTER_SPACE = 12;
    NO_SUCH_SPACE = 36;
    NO_SUCH_FUNCTION = 51;
    NO_SUCH_TRIGGER = 34;
    TRIGGER_EXISTS = 55;
    NO_SUCH_INDEX = 148;
    SQL_BIND_PARAMETER_MAX = 158;
    SQL_EXECUTE = 159;
    NO_SUCH_FIELD_NAME = 153;
    NO_SUCH_COLLATION = 166;
    SQL_TYPE_MISMATCH = 171;
    SQL_CANT_RESOLVE_FIELD = 176;
    INDEX_EXISTS_IN_SPACE = 177;
    INCONSISTENT_TYPES = 178;
    SQL_STATEMENT_EMPTY = 180;
    SQL_SELECT_WILDCARD = 181;
    SQL_KEYWORD_IS_RESERVED = 183;
    SQL_SYNTAX_NEAR_TOKEN = 184;
    SQL_UNKNOWN_TOKEN = 185;
    SQL_PARSER_GENERIC = 186;
    SQL_COLUMN_COUNT = 197;
    HEX_LITERAL_MAX = 189;
    INT_LITERAL_MAX = 190;
    SQL_PARSER_LIMIT = 191;
    FUNC_WRONG_ARG_COUNT = 202;
    SQL_PARSER_GENERIC_WITH_POS = 206;
}

pub(crate) fn make(code: ErrorCode, message: impl Into<String>) -> Error {
    BoxError::new(code, message)
}

pub(crate) fn generic(message: impl Into<String>) -> Error {
    make(SQL_PARSER_GENERIC, message)
}

pub(crate) fn execute(message: &str) -> Error {
    make(SQL_EXECUTE, format!("Failed to execute SQL statement: {message}"))
}

/// What an error makes of what the statement has done so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// What it has done is taken back.
    Abort,
    /// What it has done stays.
    Keep,
    /// The transaction is taken back.
    Rollback,
    /// It goes on with the next row.
    Ignore,
}

/// Codes of RAISE, until the statement ends.
const RAISED: [(ErrorCode, Then); 3] = [
    (ErrorCode(u32::MAX - 1), Then::Ignore),
    (ErrorCode(u32::MAX - 2), Then::Keep),
    (ErrorCode(u32::MAX - 3), Then::Rollback),
];

pub(crate) fn raised(raise: &Raise) -> Error {
    let (then, message) = match raise {
        Raise::Ignore => (Then::Ignore, ""),
        Raise::Abort(message) => (Then::Abort, &message[..]),
        Raise::Fail(message) => (Then::Keep, &message[..]),
        Raise::Rollback(message) => (Then::Rollback, &message[..]),
    };
    let mut error = execute(message);
    if let Some((code, _)) = RAISED.iter().find(|(_, of)| *of == then) {
        error.code = *code;
    }
    error
}

/// The error as a client sees it, and what it makes of the rest of the statement.
pub(crate) fn then(mut error: Error) -> (Error, Then) {
    let raised = RAISED.iter().find(|(code, _)| *code == error.code);
    if raised.is_some() {
        error.code = SQL_EXECUTE;
    }
    (error, raised.map_or(Then::Abort, |(_, then)| *then))
}

pub(crate) fn unsupported(what: &str) -> Error {
    make(UNSUPPORTED, format!("SQL of Ladon does not support {what}"))
}

pub(crate) fn mismatch(value: &str, kind: &str) -> Error {
    make(SQL_TYPE_MISMATCH, format!("Type mismatch: can not convert {value} to {kind}"))
}

pub(crate) fn inconsistent(expected: &str, got: &str) -> Error {
    make(INCONSISTENT_TYPES, format!("Inconsistent types: expected {expected} got {got}"))
}

pub(crate) fn no_space(name: &str) -> Error {
    make(NO_SUCH_SPACE, format!("Space '{name}' does not exist"))
}

pub(crate) fn no_column(name: &str) -> Error {
    make(SQL_CANT_RESOLVE_FIELD, format!("Can’t resolve field '{name}'"))
}

pub(crate) fn no_field(name: &str, space: &str) -> Error {
    make(NO_SUCH_FIELD_NAME, format!("Field '{name}' was not found in space '{space}' format"))
}

pub(crate) fn no_pragma(name: &str) -> Error {
    make(SQL_EXECUTE, format!("Pragma '{name}' does not exist"))
}

pub(crate) fn no_index(name: &str, space: &str) -> Error {
    make(NO_SUCH_INDEX, format!("No index '{name}' is defined in space '{space}'"))
}

pub(crate) fn limit(what: &str, found: usize, most: usize) -> Error {
    make(SQL_PARSER_LIMIT, format!("{what} {found} exceeds the limit ({most})"))
}

/// The line of a place, and its position in the line; both begin with 1.
pub(crate) fn place(text: &[u8], at: usize) -> (usize, usize) {
    let before = &text[..at.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    (line, before.len() - begin + 1)
}

pub(crate) fn unrecognized(text: &[u8], start: usize, end: usize) -> Error {
    let (line, position) = place(text, start);
    let token = String::from_utf8_lossy(&text[start..end]);
    let message =
        format!("At line {line} at or near position {position}: unrecognized token '{token}'");
    make(SQL_UNKNOWN_TOKEN, message)
}

/// A trigger without FOR EACH ROW.
pub(crate) fn for_each_statement(text: &[u8], at: usize) -> Error {
    let (line, position) = place(text, at);
    let message = format!(
        "At line {line} at or near position {position}: FOR EACH STATEMENT triggers are not \
         implemented, please supply FOR EACH ROW clause"
    );
    make(SQL_PARSER_GENERIC_WITH_POS, message)
}

pub(crate) fn near(text: &[u8], start: usize, end: usize) -> Error {
    let (line, _) = place(text, start);
    let token = String::from_utf8_lossy(&text[start..end]);
    make(SQL_SYNTAX_NEAR_TOKEN, format!("Syntax error at line {line} near '{token}'"))
}

pub(crate) fn reserved(text: &[u8], at: usize, word: &[u8]) -> Error {
    let (line, position) = place(text, at);
    let word = String::from_utf8_lossy(word);
    let message = format!(
        "At line {line} at or near position {position}: keyword '{word}' is reserved. \
         Please use double quotes if '{word}' is an identifier."
    );
    make(SQL_KEYWORD_IS_RESERVED, message)
}
