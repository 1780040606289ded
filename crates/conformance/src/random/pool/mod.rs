//! The words that requests are made of: few enough to repeat, odd enough to find bugs.

mod message;
mod stream;

use super::rng::Rng;

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
    /// A database.
    Db,
    /// Anything.
    Junk,
}

/// The types, by the first letter of the keys that hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `k1` ...
    String,
    /// `b1` ...
    Bits,
    /// `h1` ...
    Hash,
    /// `l1` ...
    List,
    /// `s1` ...
    Set,
    /// `z1` ...
    SortedSet,
    /// `p1` ...
    HyperLogLog,
    /// `g1` ...
    Geo,
    /// `x1` ...
    Stream,
}

const TYPES: [(Type, &str); 9] = [
    (Type::String, "k"),
    (Type::Bits, "b"),
    (Type::Hash, "h"),
    (Type::List, "l"),
    (Type::Set, "s"),
    (Type::SortedSet, "z"),
    (Type::HyperLogLog, "p"),
    (Type::Geo, "g"),
    (Type::Stream, "x"),
];

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
                None => Hole::Message(message::Word::named(name)?),
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
            Hole::Timeout => texts(
                rng,
                &[
                    "0.001", "0.001", "0.001", "1e-3", "-1", "a", "nan", "inf", "1e400", "-0.01",
                    "0x.01",
                ],
            ),
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
        }
    }
}

fn texts(rng: &mut Rng, all: &[&str]) -> Vec<u8> {
    rng.pick(all).as_bytes().to_vec()
}

/// Three keys of each type, and now and then one of another.
fn key(rng: &mut Rng, kind: Type) -> Vec<u8> {
    if rng.percent(7) {
        return any_key(rng);
    }
    let letter = TYPES.iter().find(|(it, _)| *it == kind).map_or("k", |(_, letter)| letter);
    format!("{letter}{}", 1 + rng.below(3)).into()
}

fn any_key(rng: &mut Rng) -> Vec<u8> {
    match rng.below(20) {
        0 => Vec::new(),
        1 => b"\x00\r\n\xff key".to_vec(),
        2 => b"nokey".to_vec(),
        3 => format!("w_{}", small(rng)).into(),
        _ => format!("{}{}", rng.pick(&TYPES).1, 1 + rng.below(3)).into(),
    }
}

/// Mostly of one region, so that something is near.
fn degrees(rng: &mut Rng, most: f64, odd: &[&str]) -> Vec<u8> {
    let part = (rng.bits() >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0;
    match rng.below(30) {
        0 => texts(rng, odd),
        1..=9 => format!("{:.9}", part * most).into(),
        10 => format!("{:.7}", most.copysign(part) - part.abs() / 1000.0 * part.signum()).into(),
        11..=20 => format!("{:.8}", 40.0 + part).into(),
        _ => format!("{:.6}", 40.0 + part * 10.0).into(),
    }
}

fn distance(rng: &mut Rng) -> Vec<u8> {
    let part = (rng.bits() >> 11) as f64 / (1u64 << 53) as f64;
    match rng.below(16) {
        0 => texts(rng, &["0", "-1", "x", "", "inf", "1e10", "0.0001", "40000000"]),
        1..=4 => format!("{:.3}", part * 10_000_000.0).into(),
        5..=8 => format!("{:.3}", part * 1000.0).into(),
        _ => format!("{:.1}", part * 100_000.0).into(),
    }
}

fn small(rng: &mut Rng) -> i64 {
    rng.below(24) as i64 - 4
}

fn field(rng: &mut Rng) -> Vec<u8> {
    match rng.below(12) {
        0 => value(rng),
        1 => small(rng).to_string().into(),
        2 => texts(rng, &["f1", "f2"]),
        _ => format!("f{}", rng.below(14)).into(),
    }
}

fn member(rng: &mut Rng) -> Vec<u8> {
    match rng.below(12) {
        0 => value(rng),
        1..=4 => small(rng).to_string().into(),
        5 => format!("m{}", rng.below(400)).into(),
        _ => format!("m{}", rng.below(20)).into(),
    }
}

fn value(rng: &mut Rng) -> Vec<u8> {
    match rng.below(10) {
        0..=2 => integer(rng),
        3 => float(rng),
        4 => b"\x00\x01\xff\r\n\x80".to_vec(),
        5 => {
            // Around the lengths at which encodings change.
            let length =
                *rng.pick(&[8, 9, 20, 21, 43, 44, 45, 63, 64, 65, 127, 128, 255, 256, 300, 2000]);
            vec![*rng.pick(b"ab0"); length]
        }
        6 => (0..rng.below(12)).map(|_| rng.bits() as u8).collect(),
        _ => texts(
            rng,
            &[
                "",
                "a",
                "b",
                "ab",
                "hello world",
                "Hello",
                "3.0",
                "1e5",
                "0x10",
                " 1",
                "1 ",
                "01",
                "+1",
                "-0",
                "nan",
            ],
        ),
    }
}

fn integer(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0..=3 => small(rng).to_string().into(),
        4 => (rng.bits() as i64).to_string().into(),
        5 => ((rng.bits() % 200_000) as i64 - 100_000).to_string().into(),
        6 => texts(
            rng,
            &[
                "9223372036854775807",
                "-9223372036854775808",
                "9223372036854775806",
                "-9223372036854775807",
                "4294967295",
                "4294967296",
                "2147483647",
                "2147483648",
                "-2147483648",
                "-2147483649",
                "255",
                "256",
                "127",
                "128",
                "32767",
                "32768",
                "65535",
                "65536",
                "-32768",
                "-32769",
                "12",
                "13",
                "4095",
                "4096",
                "8388607",
                "8388608",
                "-8388608",
                "-8388609",
            ],
        ),
        _ => texts(
            rng,
            &[
                "9223372036854775808",
                "-9223372036854775809",
                "",
                "a",
                "1.5",
                " 1",
                "01",
                "+1",
                "-0",
                "1e3",
                "18446744073709551615",
                "--1",
            ],
        ),
    }
}

fn field_value(rng: &mut Rng) -> Vec<u8> {
    match rng.below(3) {
        0 => ((rng.bits() as i64) >> 2).to_string().into(),
        1 => {
            let edge = 1i64 << rng.below(62);
            (if rng.percent(50) { edge } else { -edge } + rng.below(3) as i64 - 1)
                .to_string()
                .into()
        }
        _ => texts(
            rng,
            &["0", "1", "-1", "9223372036854775807", "9223372036854775808", "a", "", "1.5"],
        ),
    }
}

fn index(rng: &mut Rng) -> Vec<u8> {
    match rng.below(16) {
        0 => integer(rng),
        1 => texts(
            rng,
            &["-9223372036854775808", "9223372036854775807", "-1000", "1000", "a", "1.0", ""],
        ),
        2..=4 => texts(rng, &["0", "-1"]),
        _ => (rng.below(30) as i64 - 12).to_string().into(),
    }
}

fn offset(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(
            rng,
            &["-1", "536870912", "536870911", "9223372036854775807", "a", "4611686018427387904"],
        ),
        1 => rng.below(4000).to_string().into(),
        _ => rng.below(70).to_string().into(),
    }
}

fn count(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(
            rng,
            &[
                "-1",
                "-9223372036854775808",
                "9223372036854775807",
                "9223372036854775808",
                "a",
                "",
                "1.5",
                "4294967296",
            ],
        ),
        1 => b"0".to_vec(),
        _ => rng.below(12).to_string().into(),
    }
}

fn few(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(
            rng,
            &["-9223372036854775808", "9223372036854775807", "9223372036854775808", "a", ""],
        ),
        _ => (rng.below(24) as i64 - 12).to_string().into(),
    }
}

/// Without a negative zero, whose sign Redis loses when it packs a sorted set.
fn float(rng: &mut Rng) -> Vec<u8> {
    match rng.below(6) {
        0 => plain_float(rng),
        1 => format!("{:e}", f64::from_bits(rng.bits())).replace("NaN", "nan").into(),
        2 => {
            let number = (rng.bits() >> 11) as f64 / (1u64 << rng.below(60)) as f64;
            number.to_string().into()
        }
        3 => integer(rng),
        _ => texts(
            rng,
            &[
                "0.1",
                "-0.1",
                "3.141592653589793",
                "1e-5",
                "1e21",
                "1e20",
                "1e17",
                "1e16",
                "123456789012345680000",
                "9007199254740993",
                "0.30000000000000004",
                "5e-324",
                "2.2250738585072014e-308",
                "1.7976931348623157e308",
                "-1e308",
                "1e308",
                "1e400",
                "-1e400",
                "inf",
                "-inf",
                "+inf",
                "Infinity",
                "-infinity",
                "nan",
                "-nan",
                "0x1p3",
                "0x10",
                "0x",
                "1.",
                ".5",
                "-.5",
                ".",
                "1e",
                "1e+2",
                "1E2",
                "+1.5",
                " 1",
                "1 ",
                "1,5",
                "1_0",
                "0.00000000000000001",
                "1234567890.12345678901",
                "17.123456789012345678",
                "",
            ],
        ),
    }
}

fn plain_float(rng: &mut Rng) -> Vec<u8> {
    let number = rng.below(20_000) as f64 / 8.0 - 1000.0;
    number.to_string().into()
}

fn score(rng: &mut Rng) -> Vec<u8> {
    if rng.percent(50) { plain_score(rng) } else { float(rng) }
}

fn plain_score(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => plain_float(rng),
        1 => texts(rng, &["inf", "-inf", "0", "1e10", "0.5", "1e15"]),
        _ => small(rng).to_string().into(),
    }
}

fn score_bound(rng: &mut Rng) -> Vec<u8> {
    let open: &[u8] = if rng.percent(30) { b"(" } else { b"" };
    let bound = match rng.below(5) {
        0 => texts(rng, &["-inf", "+inf", "inf"]),
        1 => score(rng),
        _ => plain_score(rng),
    };
    [open, &bound].concat()
}

fn lex_bound(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(rng, &["-", "+"]),
        1 => b"-".to_vec(),
        2 => b"+".to_vec(),
        3 => texts(rng, &["", "a", "(", "[", "--", "-a", "+a", "]a"]),
        _ => [texts(rng, &["[", "("]), member(rng)].concat(),
    }
}

fn pattern(rng: &mut Rng) -> Vec<u8> {
    texts(
        rng,
        &[
            "*", "*", "?1", "m*", "[hz]*", "f[0-4]", "[^m]*", "m[9-0]", "*1*", "", "\\*", "[",
            "[a", "[^", "**", "?", "h?", "k1", "m1?", "*\\", "[\\]]", "m[", "f[1-", "[a-",
            "*[0-9]",
        ],
    )
}

fn sort_pattern(rng: &mut Rng) -> Vec<u8> {
    texts(
        rng,
        &[
            "w_*", "w_*", "wh_*->f1", "wh_*->f2", "#", "nosort", "w_", "*", "wh_*->", "wh_*-f1",
            "", "h*->f1", "*->f1", "w_*->",
        ],
    )
}

/// Relative times: so different from each other that the servers' clocks do not decide the result
/// of `GT`, and so long that nothing expires meanwhile.
fn seconds(rng: &mut Rng, unit: i64) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(
            rng,
            &[
                "0",
                "-1",
                "-100",
                "9223372036854775807",
                "-9223372036854775808",
                "9223372036854775",
                "9223372036854775808",
                "a",
                "",
                "1.5",
                "99999999999999",
            ],
        ),
        _ => ((100_000 + rng.below(1_000_000) as i64) * unit).to_string().into(),
    }
}

fn moment(rng: &mut Rng, unit: i64) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(
            rng,
            &[
                "0",
                "-1",
                "1",
                "9223372036854775807",
                "-9223372036854775808",
                "9223372036854775",
                "a",
                "",
            ],
        ),
        1 => (1_000_000_000 * unit).to_string().into(),
        _ => ((4_102_444_800 + rng.below(8) as i64) * unit).to_string().into(),
    }
}

fn later(rng: &mut Rng, unit: i64) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(rng, &["0", "-1", "9223372036854775807", "-9223372036854775808", "a", ""]),
        _ => ((4_102_444_800 + rng.below(8) as i64) * unit).to_string().into(),
    }
}

fn bit_offset(rng: &mut Rng) -> Vec<u8> {
    match rng.below(10) {
        0 => texts(
            rng,
            &["-1", "4294967296", "a", "", "9223372036854775807", "1.0", "18446744073709551616"],
        ),
        1 => rng.below(40_000).to_string().into(),
        _ => rng.below(200).to_string().into(),
    }
}

fn bit_type(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(
            rng,
            &[
                "u0", "u64", "u65", "i0", "i65", "f8", "u", "i", "8", "U8", "I8", "u 8", "i-1",
                "u63", "i64", "i1", "u1", "u08",
            ],
        ),
        _ => format!("{}{}", rng.pick(&["u", "i"]), 1 + rng.below(63)).into(),
    }
}

fn field_offset(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(
            rng,
            &[
                "-1",
                "#",
                "#-1",
                "a",
                "4294967296",
                "4294967295a",
                "#4294967296",
                "##1",
                "9223372036854775807",
                "#9223372036854775807",
                "+1",
                " 1",
            ],
        ),
        1..=3 => format!("#{}", rng.below(20)).into(),
        _ => rng.below(300).to_string().into(),
    }
}

/// Words that mean something to some command.
const OPTIONS: &str = "
    NX XX GT LT CH INCR EX PX KEEPTTL PERSIST GET LIMIT COUNT MATCH BY STORE ALPHA DESC REV
    BYSCORE BYLEX WITHSCORES WITHVALUES WITHSCORE FIELDS FNX FXX WEIGHTS AGGREGATE SUM
    OVERFLOW SAT LEFT RIGHT REPLACE DB TYPE get limit ex NOVALUES BIT BYTE RANK MAXLEN MINID
    STREAMS NOACK JUSTID FORCE MKSTREAM > $ ~ = IDX LEN * # -1 0 2
";

fn junk(rng: &mut Rng) -> Vec<u8> {
    match rng.below(4) {
        0 => value(rng),
        1 => any_key(rng),
        _ => {
            let options: Vec<&str> = OPTIONS.split_ascii_whitespace().collect();
            texts(rng, &options)
        }
    }
}
