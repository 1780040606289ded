//! Tarantool's system spaces: their ids, and the tuples that a fresh server of 2.11 has in them.
//!
//! Spaces, indexes, users and privileges are themselves tuples of spaces. Connectors read them to
//! learn the schema, and a server begins with them: [`bootstrap`].
//!
//! The tuples are in `tuples.txt`, recorded from a real server by
//! `scripts/record-system-spaces.py`, with later versions' changes, each named there.
//!
//! **Architecture invariant:** data only. Nothing here knows what a space does. What differs from
//! server to server (the uuids in `_schema` and `_cluster`) is left to the caller.

#![forbid(unsafe_code)]

mod json;

macro_rules! spaces {
    ($($name:ident = $id:literal, $text:literal;)*) => {
        $(
            #[doc = concat!("The id of `", $text, "`.")]
            pub const $name: u32 = $id;
        )*

        /// Every system space: its id and its name, by id.
        pub const ALL: &[(u32, &str)] = &[$(($id, $text)),*];
    };
}

spaces! {
    VINYL_DEFERRED_DELETE = 257, "_vinyl_deferred_delete";
    SCHEMA = 272, "_schema";
    COLLATION = 276, "_collation";
    VCOLLATION = 277, "_vcollation";
    SPACE = 280, "_space";
    VSPACE = 281, "_vspace";
    SEQUENCE = 284, "_sequence";
    SEQUENCE_DATA = 285, "_sequence_data";
    VSEQUENCE = 286, "_vsequence";
    INDEX = 288, "_index";
    VINDEX = 289, "_vindex";
    FUNC = 296, "_func";
    VFUNC = 297, "_vfunc";
    USER = 304, "_user";
    VUSER = 305, "_vuser";
    PRIV = 312, "_priv";
    VPRIV = 313, "_vpriv";
    CLUSTER = 320, "_cluster";
    TRIGGER = 328, "_trigger";
    TRUNCATE = 330, "_truncate";
    SPACE_SEQUENCE = 340, "_space_sequence";
    VSPACE_SEQUENCE = 341, "_vspace_sequence";
    FK_CONSTRAINT = 356, "_fk_constraint";
    CK_CONSTRAINT = 364, "_ck_constraint";
    FUNC_INDEX = 372, "_func_index";
    SESSION_SETTINGS = 380, "_session_settings";
}

/// The smallest id that a user's space gets (`BOX_SYSTEM_ID_MAX` + 1).
pub const USER_ID_MIN: u32 = 512;

/// Whether the id is one of those that Tarantool keeps for system spaces, existing or not.
pub const fn is_system(id: u32) -> bool {
    id > 256 && id < USER_ID_MIN - 1
}

/// The space that a view shows: what of it the user may see.
pub const fn view_of(id: u32) -> Option<u32> {
    Some(match id {
        VCOLLATION => COLLATION,
        VSPACE => SPACE,
        VSEQUENCE => SEQUENCE,
        VINDEX => INDEX,
        VFUNC => FUNC,
        VUSER => USER,
        VPRIV => PRIV,
        VSPACE_SEQUENCE => SPACE_SEQUENCE,
        _ => return None,
    })
}

/// The tuples of a fresh server as MessagePack, each with its space's id, in an order in which they
/// can be applied: the spaces first, then their indexes, then what is in them.
pub fn bootstrap() -> Vec<(u32, Vec<u8>)> {
    include_str!("tuples.txt").lines().filter(|line| !line.starts_with('#')).map(tuple).collect()
}

/// Reads a line of `tuples.txt`. The text is part of the program, so a mistake in it is a panic;
/// the tests read all of it.
fn tuple(line: &str) -> (u32, Vec<u8>) {
    let (id, text) = line.split_once(' ').unwrap_or_else(|| panic!("no tuple: {line}"));
    let id = id.parse().unwrap_or_else(|_| panic!("no id: {line}"));
    let tuple = json::to_msgpack(text).unwrap_or_else(|| panic!("no JSON: {line}"));
    (id, tuple)
}
