//! The keys of headers and bodies: their numbers, names and types (`IPROTO_KEYS`).

use ladon_msgpack::Kind;

macro_rules! keys {
    ($($name:ident = $number:literal: $kind:ident;)*) => {
        $(
            #[doc = concat!("`IPROTO_", stringify!($name), "`.")]
            pub const $name: u8 = $number;
        )*

        /// The key's name without `IPROTO_`, as messages show it.
        pub const fn name(key: u64) -> Option<&'static str> {
            match key {
                $($number => Some(stringify!($name)),)*
                _ => None,
            }
        }

        /// The type that the key's value must have. `None`: any, or the key is not known.
        const fn kind(key: u64) -> Option<Kind> {
            match key {
                $($number => keys!(@kind $kind),)*
                _ => None,
            }
        }
    };
    (@kind Any) => { None };
    (@kind $kind:ident) => { Some(Kind::$kind) };
}

keys! {
    REQUEST_TYPE = 0x00: Uint;
    SYNC = 0x01: Uint;
    REPLICA_ID = 0x02: Uint;
    LSN = 0x03: Uint;
    TIMESTAMP = 0x04: Double;
    SCHEMA_VERSION = 0x05: Uint;
    SERVER_VERSION = 0x06: Uint;
    GROUP_ID = 0x07: Uint;
    TSN = 0x08: Uint;
    FLAGS = 0x09: Uint;
    STREAM_ID = 0x0a: Uint;
    SPACE_ID = 0x10: Uint;
    INDEX_ID = 0x11: Uint;
    LIMIT = 0x12: Uint;
    OFFSET = 0x13: Uint;
    ITERATOR = 0x14: Uint;
    INDEX_BASE = 0x15: Uint;
    FETCH_POSITION = 0x1f: Bool;
    KEY = 0x20: Array;
    TUPLE = 0x21: Array;
    FUNCTION_NAME = 0x22: Str;
    USER_NAME = 0x23: Str;
    INSTANCE_UUID = 0x24: Str;
    REPLICASET_UUID = 0x25: Str;
    VCLOCK = 0x26: Map;
    EXPR = 0x27: Str;
    OPS = 0x28: Array;
    BALLOT = 0x29: Map;
    TUPLE_META = 0x2a: Map;
    // net.box sends an empty array or a map.
    OPTIONS = 0x2b: Any;
    OLD_TUPLE = 0x2c: Array;
    NEW_TUPLE = 0x2d: Array;
    AFTER_POSITION = 0x2e: Str;
    AFTER_TUPLE = 0x2f: Array;
    DATA = 0x30: Array;
    ERROR_24 = 0x31: Str;
    METADATA = 0x32: Array;
    BIND_METADATA = 0x33: Array;
    BIND_COUNT = 0x34: Uint;
    POSITION = 0x35: Str;
    SQL_TEXT = 0x40: Str;
    SQL_BIND = 0x41: Array;
    SQL_INFO = 0x42: Map;
    STMT_ID = 0x43: Uint;
    REPLICA_ANON = 0x50: Bool;
    ID_FILTER = 0x51: Array;
    ERROR = 0x52: Map;
    TERM = 0x53: Uint;
    VERSION = 0x54: Uint;
    FEATURES = 0x55: Array;
    TIMEOUT = 0x56: Double;
    EVENT_KEY = 0x57: Str;
    EVENT_DATA = 0x58: Any;
    TXN_ISOLATION = 0x59: Uint;
    VCLOCK_SYNC = 0x5a: Uint;
    AUTH_TYPE = 0x5b: Str;
    REPLICASET_NAME = 0x5c: Str;
    INSTANCE_NAME = 0x5d: Str;
    SPACE_NAME = 0x5e: Str;
    INDEX_NAME = 0x5f: Str;
    TUPLE_FORMATS = 0x60: Map;
    IS_SYNC = 0x61: Bool;
}

/// Whether a value of this type may follow the key. A key that is not known may have any value:
/// newer connectors' keys are passed over, as the documentation asks for.
pub(crate) fn allows(key: u64, found: Kind) -> bool {
    kind(key).is_none_or(|kind| kind == found)
}
