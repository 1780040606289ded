//! The numbers of requests and replies (`IPROTO_TYPES`).

macro_rules! types {
    ($($name:ident = $number:literal;)*) => {
        $(
            #[doc = concat!("`IPROTO_", stringify!($name), "`.")]
            pub const $name: u32 = $number;
        )*

        /// The type's name without `IPROTO_`.
        pub const fn name(request_type: u32) -> Option<&'static str> {
            match request_type {
                $($number => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

types! {
    OK = 0;
    SELECT = 1;
    INSERT = 2;
    REPLACE = 3;
    UPDATE = 4;
    DELETE = 5;
    CALL_16 = 6;
    AUTH = 7;
    EVAL = 8;
    UPSERT = 9;
    CALL = 10;
    EXECUTE = 11;
    NOP = 12;
    PREPARE = 13;
    BEGIN = 14;
    COMMIT = 15;
    ROLLBACK = 16;
    PING = 64;
    JOIN = 65;
    SUBSCRIBE = 66;
    VOTE_DEPRECATED = 67;
    VOTE = 68;
    FETCH_SNAPSHOT = 69;
    REGISTER = 70;
    JOIN_META = 71;
    JOIN_SNAPSHOT = 72;
    ID = 73;
    WATCH = 74;
    UNWATCH = 75;
    EVENT = 76;
    WATCH_ONCE = 77;
    CHUNK = 128;
}

/// The bit that makes an error's code the type of a reply (`IPROTO_TYPE_ERROR`).
pub const ERROR: u32 = 0x8000;
