//! Errors as clients see them: Tarantool's code and its message, word for word.
//!
//! Source: Tarantool 2.11, `src/box/errcode.h`.

use crate::field_type::FieldType;
use thiserror::Error;

/// An error with the code and the text that Tarantool gives.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct BoxError {
    /// Which error.
    pub code: ErrorCode,
    /// Its text.
    pub message: String,
}

/// Tarantool's number of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

macro_rules! codes {
    ($($name:ident = $code:literal;)*) => {
        #[allow(missing_docs, reason = "the names are Tarantool's, without ER_")]
        impl ErrorCode {
            $(pub const $name: ErrorCode = ErrorCode($code);)*
        }
    };
}

codes! {
    ILLEGAL_PARAMS = 1;
    TUPLE_FOUND = 3;
    UNSUPPORTED = 5;
    CREATE_SPACE = 9;
    ALTER_SPACE = 12;
    INDEX_TYPE = 13;
    MODIFY_INDEX = 14;
    DROP_PRIMARY_KEY = 17;
    KEY_PART_TYPE = 18;
    EXACT_MATCH = 19;
    INVALID_MSGPACK = 20;
    TUPLE_NOT_ARRAY = 22;
    FIELD_TYPE = 23;
    INDEX_PART_TYPE_MISMATCH = 24;
    UPDATE_SPLICE = 25;
    UPDATE_ARG_TYPE = 26;
    FORMAT_MISMATCH_INDEX_PART = 27;
    UNKNOWN_UPDATE_OP = 28;
    UPDATE_FIELD = 29;
    KEY_PART_COUNT = 31;
    PROC_LUA = 32;
    NO_SUCH_INDEX_ID = 35;
    NO_SUCH_SPACE = 36;
    NO_SUCH_FIELD_NO = 37;
    EXACT_FIELD_COUNT = 38;
    FIELD_MISSING = 39;
    MORE_THAN_ONE_TUPLE = 41;
    NO_SUCH_FUNCTION = 51;
    NO_SUCH_ENGINE = 57;
    IDENTIFIER = 70;
    ITERATOR_TYPE = 72;
    INDEX_EXISTS = 85;
    CANT_UPDATE_PRIMARY_KEY = 94;
    UPDATE_INTEGER_OVERFLOW = 95;
    RTREE_RECT = 101;
    LOAD_FUNCTION = 99;
    WRONG_INDEX_PARTS = 107;
    WRONG_INDEX_OPTIONS = 108;
    MEMTX_MAX_TUPLE_SIZE = 110;
    WRONG_SPACE_OPTIONS = 111;
    UNSUPPORTED_INDEX_FEATURE = 112;
    PARTIAL_KEY = 136;
    WRONG_SPACE_FORMAT = 141;
    NO_SUCH_INDEX_NAME = 148;
    SPACE_FIELD_IS_DUPLICATE = 149;
    NULLABLE_PRIMARY = 152;
    UPDATE_DECIMAL_OVERFLOW = 160;
    NO_SUCH_COLLATION = 166;
    INDEX_EXISTS_IN_SPACE = 177;
    MULTIKEY_INDEX_MISMATCH = 194;
    FUNC_INDEX_FUNC = 198;
    FUNC_INDEX_FORMAT = 199;
    FUNC_INDEX_PARTS = 200;
    NO_SUCH_FIELD_NAME = 201;
    TUPLE_METADATA_IS_TOO_BIG = 218;
    TUPLE_FIELD_COUNT_LIMIT = 233;
    CREATE_FOREIGN_KEY = 237;
    FOREIGN_KEY_INTEGRITY = 238;
    FIELD_FOREIGN_KEY_FAILED = 239;
    COMPLEX_FOREIGN_KEY_FAILED = 240;
    ITERATOR_POSITION = 247;
    DEFAULT_VALUE_TYPE = 248;
}

impl BoxError {
    /// An error with this text.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> BoxError {
        BoxError { code, message: message.into() }
    }

    /// `ILLEGAL_PARAMS`, in these words.
    pub fn illegal(what: &str) -> BoxError {
        BoxError::new(ErrorCode::ILLEGAL_PARAMS, format!("Illegal parameters, {what}"))
    }

    pub(crate) fn unsupported(who: &str, what: &str) -> BoxError {
        BoxError::new(ErrorCode::UNSUPPORTED, format!("{who} does not support {what}"))
    }

    pub(crate) fn modify_index(index: &str, space: &str, why: &str) -> BoxError {
        let message = format!("Can't create or modify index '{index}' in space '{space}': {why}");
        BoxError::new(ErrorCode::MODIFY_INDEX, message)
    }

    pub(crate) fn alter_space(space: &str, why: &str) -> BoxError {
        BoxError::new(ErrorCode::ALTER_SPACE, format!("Can't modify space '{space}': {why}"))
    }

    pub(crate) fn no_index(id: u32, space: &str) -> BoxError {
        let message = format!("No index #{id} is defined in space '{space}'");
        BoxError::new(ErrorCode::NO_SUCH_INDEX_ID, message)
    }

    pub(crate) fn not_array() -> BoxError {
        BoxError::new(ErrorCode::TUPLE_NOT_ARRAY, "Tuple/Key must be MsgPack array")
    }

    pub(crate) fn key_part_type(part: usize, expected: FieldType) -> BoxError {
        let expected = expected.name();
        let message = format!(
            "Supplied key type of part {part} does not match index part type: expected {expected}"
        );
        BoxError::new(ErrorCode::KEY_PART_TYPE, message)
    }

    /// Tarantool keeps four bytes for each key in front of a tuple.
    pub(crate) fn too_many_keys(keys: u64) -> BoxError {
        let message = format!("Can't create tuple: metadata size {} is too big", keys * 4);
        BoxError::new(ErrorCode::TUPLE_METADATA_IS_TOO_BIG, message)
    }

    pub(crate) fn tuple_too_large(bytes: usize) -> BoxError {
        let message = format!(
            "Failed to allocate {bytes} bytes for tuple: tuple is too large. \
             Check 'memtx_max_tuple_size' configuration option."
        );
        BoxError::new(ErrorCode::MEMTX_MAX_TUPLE_SIZE, message)
    }
}

impl From<ladon_msgpack::Error> for BoxError {
    fn from(error: ladon_msgpack::Error) -> BoxError {
        BoxError::new(ErrorCode::INVALID_MSGPACK, format!("Invalid MsgPack - {error}"))
    }
}
