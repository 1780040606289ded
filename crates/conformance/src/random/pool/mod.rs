//! The words that requests are made of: few enough to repeat, odd enough to find bugs.

mod bit;
mod element;
mod geo;
mod key;
mod message;
mod number;
mod program;
mod range;
mod stream;
mod time;

use super::rng::Rng;
use bit::{bit_offset, bit_type, field_offset};
use element::{field, junk, member, value};
use geo::{degrees, distance};
pub use key::Type;
use key::{any_key, key};
use number::{
    count, few, field_value, float, index, integer, offset, plain_float, plain_score, score, small,
};
use range::{lex_bound, pattern, score_bound, sort_pattern};
use time::{later, moment, seconds};

/// Kinds of words, named as in the grammar's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hole {
    /// A key that most likely holds this type.
    Key(Type),
    /// A key of a sorted set, sometimes of a set: what the algebra of sorted sets takes.
    SortedSetOrSet,
    /// A key of a sorted set whose scores are all 0.
    LexSet,
    /// A key that SORT reads, which begins so.
    ToSort(&'static str),
    /// A key where the algebra of sets stores.
    Stored,
    /// A key where the algebra of sorted sets stores.
    SortedStored,
    /// A key that SORT takes.
    Sortable,
    /// A key of any type.
    Any,
    /// A key that never exists.
    Missing,
    /// A key that `w_*` finds.
    Weight,
    /// A key that `wh_*->f1` finds.
    WeightHash,
    /// A field of a hash.
    Field,
    /// A member of a set or a sorted set.
    Member,
    /// An element of a list.
    Element,
    /// A value.
    Value,
    /// An integer, rarely none.
    Int,
    /// An integer above -2^62.
    FieldValue,
    /// A small integer, always.
    PlainInt,
    /// A place in a list, from either end.
    Index,
    /// A place from the front, rarely none.
    Place,
    /// A place in a string, not so far that it costs memory.
    Offset,
    /// How many, zero and less among them.
    Count,
    /// How many at random: never so many (negative) that the reply is large.
    FewCount,
    /// A floating-point number, rarely none.
    Float,
    /// One without exponent and with few digits.
    PlainFloat,
    /// A score: infinities too.
    Score,
    /// A score whose sums are exact.
    PlainScore,
    /// `(1.5`, `-inf`.
    ScoreBound,
    /// `[a`, `-`, `+`.
    LexBound,
    /// A glob.
    Pattern,
    /// What GET of SORT takes.
    SortPattern,
    /// What BY of SORT takes, if it is to put things in an order.
    ByPattern,
    /// A cursor, rarely a good one.
    Cursor,
    /// From now: long, or over.
    Seconds,
    /// The same in milliseconds.
    Milliseconds,
    /// A moment far from now, in seconds of the epoch.
    At,
    /// The same in milliseconds.
    AtMilliseconds,
    /// A moment that is not over, or none at all.
    Later,
    /// The same in milliseconds.
    LaterMilliseconds,
    /// A short wait.
    Timeout,
    /// A bit's place.
    BitOffset,
    /// `u8`, `i64`, and what is none.
    BitType,
    /// BITFIELD's place: bits, or `#` and a count of fields.
    FieldOffset,
    /// Degrees, rarely too many.
    Longitude,
    /// Degrees, rarely too many.
    Latitude,
    /// From nothing to around the world, in any unit.
    Distance,
    /// Of a distance.
    Unit,
    /// What commands of streams take.
    Stream(stream::Word),
    /// What commands of messages take.
    Message(message::Word),
    /// What commands of scripts and functions take.
    Program(program::Word),
    /// A database.
    Db,
    /// Anything.
    Junk,
}

/// Seconds to wait for a key.
const TIMEOUTS: [&str; 11] =
    ["0.001", "0.001", "0.001", "1e-3", "-1", "a", "nan", "inf", "1e400", "-0.01", "0x.01"];

impl Hole {
    /// The one of this name in the grammar.
    pub fn named(name: &str) -> Option<Hole> {
        Some(match name {
            "string" => Hole::Key(Type::String),
            "bits" => Hole::Key(Type::Bits),
            "hash" => Hole::Key(Type::Hash),
            "list" => Hole::Key(Type::List),
            "set" => Hole::Key(Type::Set),
            "zset" => Hole::Key(Type::SortedSet),
            "lexset" => Hole::LexSet,
            "stored" => Hole::Stored,
            "zstored" => Hole::SortedStored,
            "zsetorset" => Hole::SortedSetOrSet,
            "sortlist" => Hole::ToSort("vl"),
            "sortset" => Hole::ToSort("vs"),
            "sortzset" => Hole::ToSort("v"),
            "bypattern" => Hole::ByPattern,
            "later" => Hole::Later,
            "laterms" => Hole::LaterMilliseconds,
            "sortable" => Hole::Sortable,
            "any" => Hole::Any,
            "missing" => Hole::Missing,
            "weight" => Hole::Weight,
            "weighthash" => Hole::WeightHash,
            "field" => Hole::Field,
            "member" => Hole::Member,
            "element" => Hole::Element,
            "value" => Hole::Value,
            "int" => Hole::Int,
            "plainint" | "smallint" => Hole::PlainInt,
            "fieldvalue" => Hole::FieldValue,
            "index" => Hole::Index,
            "place" => Hole::Place,
            "offset" => Hole::Offset,
            "count" => Hole::Count,
            "fewcount" => Hole::FewCount,
            "float" => Hole::Float,
            "plainfloat" => Hole::PlainFloat,
            "score" => Hole::Score,
            "plainscore" => Hole::PlainScore,
            "scorebound" => Hole::ScoreBound,
            "lexbound" => Hole::LexBound,
            "pattern" => Hole::Pattern,
            "sortpattern" => Hole::SortPattern,
            "cursor" => Hole::Cursor,
            "seconds" => Hole::Seconds,
            "ms" => Hole::Milliseconds,
            "at" => Hole::At,
            "atms" => Hole::AtMilliseconds,
            "timeout" => Hole::Timeout,
            "bitoffset" => Hole::BitOffset,
            "bittype" => Hole::BitType,
            "fieldoffset" => Hole::FieldOffset,
            "hll" => Hole::Key(Type::HyperLogLog),
            "geo" => Hole::Key(Type::Geo),
            "longitude" => Hole::Longitude,
            "latitude" => Hole::Latitude,
            "distance" => Hole::Distance,
            "unit" => Hole::Unit,
            "stream" => Hole::Key(Type::Stream),
            "db" => Hole::Db,
            "junk" => Hole::Junk,
            name => match stream::Word::named(name) {
                Some(word) => Hole::Stream(word),
                None => match program::Word::named(name) {
                    Some(word) => Hole::Program(word),
                    None => Hole::Message(message::Word::named(name)?),
                },
            },
        })
    }

    /// Whether the word is a key.
    pub fn is_key(self) -> bool {
        use Hole::{
            Any, Key, LexSet, Missing, Sortable, SortedSetOrSet, SortedStored, Stored, ToSort,
            Weight, WeightHash,
        };
        matches!(
            self,
            Key(_)
                | Any
                | LexSet
                | Missing
                | Sortable
                | SortedSetOrSet
                | SortedStored
                | Stored
                | ToSort(_)
                | Weight
                | WeightHash
        )
    }

    /// Makes one up.
    pub fn word(self, rng: &mut Rng) -> Vec<u8> {
        match self {
            Hole::Key(kind) => key(rng, kind),
            Hole::SortedSetOrSet if rng.percent(25) => key(rng, Type::Set),
            Hole::SortedSetOrSet => key(rng, Type::SortedSet),
            Hole::LexSet if rng.percent(4) => texts(rng, &["k1", "h1", "s1", "nokey"]),
            Hole::LexSet => format!("y{}", 1 + rng.below(2)).into(),
            Hole::ToSort(name) => format!("{name}{}", 1 + rng.below(2)).into(),
            Hole::SortedStored => texts(rng, &["e1", "e2"]),
            Hole::Stored => texts(rng, &["d1", "d2"]),
            Hole::Sortable => texts(
                rng,
                &["vl1", "vl2", "vs1", "vs2", "v1", "v2", "vl1", "vl2", "vs1", "wh_1", "none"],
            ),
            Hole::Any => any_key(rng),
            Hole::Missing => b"nokey".to_vec(),
            Hole::Weight => format!("w_{}", small(rng)).into(),
            Hole::WeightHash => format!("wh_{}", small(rng)).into(),
            Hole::Field => field(rng),
            Hole::Member | Hole::Element => member(rng),
            Hole::Value => value(rng),
            Hole::Int => integer(rng),
            Hole::FieldValue => field_value(rng),
            Hole::PlainInt => small(rng).to_string().into(),
            Hole::Index => index(rng),
            Hole::Place if rng.percent(5) => texts(rng, &["a", "", "1.5", "9223372036854775808"]),
            Hole::Place => rng.below(6).to_string().into(),
            Hole::Offset => offset(rng),
            Hole::Count => count(rng),
            Hole::FewCount => few(rng),
            Hole::Float => float(rng),
            Hole::PlainFloat => plain_float(rng),
            Hole::Score => score(rng),
            Hole::PlainScore => plain_score(rng),
            Hole::ScoreBound => score_bound(rng),
            Hole::LexBound => lex_bound(rng),
            Hole::Pattern => pattern(rng),
            Hole::SortPattern => sort_pattern(rng),
            Hole::ByPattern => texts(
                rng,
                &["w_*", "w_*", "wh_*->f1", "wh_*->f2", "*", "wh_*->", "wh_*-f1", "*->f1", "w_*->"],
            ),
            Hole::Cursor => texts(rng, &["0", "0", "1", "17", "-1", "a", ""]),
            Hole::Seconds => seconds(rng, 1),
            Hole::Milliseconds => seconds(rng, 1000),
            Hole::At => moment(rng, 1),
            Hole::AtMilliseconds => moment(rng, 1000),
            Hole::Later => later(rng, 1),
            Hole::LaterMilliseconds => later(rng, 1000),
            Hole::Timeout => texts(rng, &TIMEOUTS),
            Hole::BitOffset => bit_offset(rng),
            Hole::BitType => bit_type(rng),
            Hole::FieldOffset => field_offset(rng),
            Hole::Longitude => degrees(rng, 180.0, &["180.1", "-181", "x", "", "inf", "1e400"]),
            Hole::Latitude => degrees(rng, 85.05, &["85.06", "-90", "x", "", "nan", "0x1p3"]),
            Hole::Distance => distance(rng),
            Hole::Unit if rng.percent(3) => texts(rng, &["x", "", "meter", "k"]),
            Hole::Unit => texts(rng, &["m", "km", "ft", "mi", "M", "Km"]),
            Hole::Db => {
                texts(rng, &["0", "1", "2", "1", "0", "-1", "16", "a", "9999999999999999999"])
            }
            Hole::Junk => junk(rng),
            Hole::Message(word) => word.make(rng),
            Hole::Stream(word) => word.make(rng),
            Hole::Program(word) => word.make(rng),
        }
    }
}

fn texts(rng: &mut Rng, all: &[&str]) -> Vec<u8> {
    rng.pick(all).as_bytes().to_vec()
}
