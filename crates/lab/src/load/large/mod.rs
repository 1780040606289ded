//! Large values, and commands that take long on them: what there is of both, as data.
//!
//! ```text
//!   Fill   loads a Value, many elements with each request          fill.rs
//!   Stall  does Commands on one connection, and small GETs on others meanwhile   stall.rs
//! ```

mod fill;
mod stall;

pub use fill::Fill;
pub use stall::Stall;

/// How large the values are.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Members of the sorted set.
    pub sorted_set: u32,
    /// Fields of the hash.
    pub hash: u32,
    /// Members of each of the two sets, half of which both have.
    pub set: u32,
    /// Elements of the list.
    pub list: u32,
    /// Bytes of each of the two strings.
    pub string: u32,
}

/// A command that takes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `DEL` of the sorted set; only once, as it is gone then.
    DelSortedSet,
    /// `HGETALL`.
    Hgetall,
    /// `SMEMBERS` of the first set.
    Smembers,
    /// `ZRANGE 0 -1` of the sorted set.
    Zrange,
    /// `LRANGE 0 -1`.
    Lrange,
    /// `SUNIONSTORE` of the two sets, over what it stored the last time.
    Sunionstore,
    /// `SINTERSTORE` of them.
    Sinterstore,
    /// `ZUNIONSTORE` of them.
    Zunionstore,
    /// `SORT ALPHA STORE` of the list.
    Sort,
    /// `COPY` of the first set.
    Copy,
    /// `BITOP AND` of the two strings, over what it stored the last time.
    Bitop,
    /// `BITCOUNT` of the first string.
    Bitcount,
    /// `BITPOS` of a bit that the first string does not have.
    Bitpos,
    /// `COPY` of the first string.
    CopyString,
    /// `GET` of the first string.
    GetString,
    /// `SET` of the first string to what it is.
    SetString,
    /// `LPOS` of the list's last element.
    Lpos,
    /// `RENAME` of a hash of its own, to and fro.
    Rename,
    /// `LCS LEN` of the two short strings, which are all that has a table of lengths.
    Lcs,
}

impl Command {
    /// What it is done on.
    #[must_use]
    pub const fn values(self) -> &'static [Value] {
        match self {
            Self::DelSortedSet | Self::Zrange => &[Value::SortedSet],
            Self::Hgetall => &[Value::Hash],
            Self::Smembers | Self::Copy => &[Value::FirstSet],
            Self::Lrange | Self::Sort | Self::Lpos => &[Value::List],
            Self::Sunionstore | Self::Sinterstore | Self::Zunionstore => {
                &[Value::FirstSet, Value::SecondSet]
            }
            Self::Bitop => &[Value::FirstString, Value::SecondString],
            Self::Bitcount
            | Self::Bitpos
            | Self::CopyString
            | Self::GetString
            | Self::SetString => &[Value::FirstString],
            Self::Rename => &[Value::Renamed],
            Self::Lcs => &[Value::ShortStrings],
        }
    }
}

/// Keys of the values, and what loads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The sorted set, with scores in no order.
    SortedSet,
    /// The hash; each value has its field's number.
    Hash,
    /// The first set.
    FirstSet,
    /// The second set.
    SecondSet,
    /// The list.
    List,
    /// The first string, all ones.
    FirstString,
    /// The second string, every other bit set.
    SecondString,
    /// The hash that is renamed, like the other.
    Renamed,
    /// Two strings of [`SHORT_BYTES`], one like the other.
    ShortStrings,
}

/// Length of the short strings.
pub const SHORT_BYTES: u32 = 5000;

impl Value {
    /// Whether its pieces must come in their order, so over one connection.
    #[must_use]
    pub const fn is_in_order(self) -> bool {
        matches!(self, Self::List | Self::FirstString | Self::SecondString | Self::ShortStrings)
    }

    /// Its key; of several, the first's.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::SortedSet => "large:zset",
            Self::Hash => "large:hash",
            Self::FirstSet => "large:set:1",
            Self::SecondSet => "large:set:2",
            Self::List => "large:list",
            Self::FirstString => "large:string:1",
            Self::SecondString => "large:string:2",
            Self::Renamed => RENAMED[0],
            Self::ShortStrings => SHORT[0],
        }
    }
}

/// Names of the hash that is renamed.
const RENAMED: [&str; 2] = ["large:renamed:1", "large:renamed:2"];
/// Names of the short strings.
const SHORT: [&str; 2] = ["short:string:1", "short:string:2"];
