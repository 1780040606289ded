//! A round out of its seed.

use super::operations;
use super::request::{Check, Request, key, kind};
use super::setup::{INDEXES_MAX, SPACES_MAX, Space, clean, drop_index, read_definitions};
use super::value::Value;
use super::values;
use crate::random::rng::Rng;

/// The requests of a round, and the spaces that they are about.
#[derive(Clone, Debug)]
pub struct Round {
    /// The spaces.
    pub spaces: Vec<Space>,
    /// The requests, those that make the spaces first.
    pub requests: Vec<Request>,
    /// What removes whatever the round before has left.
    pub clean: Vec<Request>,
    /// What reads the data at the end.
    pub reads: Vec<Request>,
}

/// The round of this seed with about so many requests.
pub fn round(seed: u64, length: usize) -> Round {
    let mut rng = Rng::new(seed);
    let count = 1 + rng.below(SPACES_MAX);
    let mut spaces: Vec<Space> = (0..count).map(|place| Space::random(&mut rng, place)).collect();
    let mut requests = Vec::new();
    for space in &spaces {
        requests.extend(space.requests(&mut rng));
    }
    while requests.len() < length {
        let place = rng.below(spaces.len());
        let request = match rng.below(100) {
            0 => definition(&mut rng, &mut spaces[place]),
            1..=3 => spoilt(&mut rng, &spaces[place]),
            _ => statement(&mut rng, &spaces[place]),
        };
        requests.push(request);
    }
    let mut reads = read_definitions();
    for space in &spaces {
        reads.extend(space.indexes.iter().map(|index| space.read_all(index.id)));
    }
    Round { spaces, requests, clean: clean(), reads }
}

/// A change of a definition in the middle of a round.
fn definition(rng: &mut Rng, space: &mut Space) -> Request {
    let is_unordered = space.indexes.iter().any(|index| index.id == 0 && index.is_unordered);
    let request = change(rng, space);
    let check = if is_unordered { Check::Refusal } else { request.check };
    Request { check, ..request }
}

fn change(rng: &mut Rng, space: &mut Space) -> Request {
    let id = rng.below(INDEXES_MAX) as u64;
    match rng.below(5) {
        0 => space.truncate(),
        1 => drop_index(space.id, id),
        2 => {
            let number = 1 + rng.below(space.fields.len() - 1);
            let field = &mut space.fields[number];
            field.nullable = rng.percent(70) && field.content == field.kind;
            space.define(rng, kind::REPLACE)
        }
        _ => {
            let index = space.random_index(rng, id);
            let request = space.define_index(rng, &index);
            // Where there is an index of this number already, either may be in force.
            match space.indexes.iter_mut().find(|it| it.id == id) {
                Some(old) => {
                    old.is_unordered |= index.is_unordered;
                    if index.width() < old.width() {
                        old.parts = index.parts;
                    }
                }
                None => space.indexes.push(index),
            }
            request
        }
    }
}

/// A statement or a call.
fn statement(rng: &mut Rng, space: &Space) -> Request {
    match rng.below(100) {
        0..=24 => put(rng, space),
        25..=39 => select(rng, space),
        40..=54 => update(rng, space),
        55..=62 => upsert(rng, space),
        63..=69 => delete(rng, space),
        _ => call(rng, space),
    }
}

fn put(rng: &mut Rng, space: &Space) -> Request {
    let request_type = *rng.pick(&[kind::INSERT, kind::REPLACE]);
    let tuple = tuple(rng, space);
    Request::new(request_type, vec![space_id(rng, space), (key::TUPLE, tuple)])
}

fn select(rng: &mut Rng, space: &Space) -> Request {
    let index = index_id(rng, space);
    let key = key_of(rng, space, index);
    let has_iterators = space.indexes.iter().any(|it| it.id == index && it.is_unordered);
    let iterator = match rng.below(20) {
        0 => 7 + rng.below(8) as u64,
        1..=16 if has_iterators => rng.below(12) as u64,
        1..=6 => 0,
        _ => rng.below(7) as u64,
    };
    let is_whole = rng.percent(60);
    let limit = if is_whole { u64::from(u32::MAX) } else { rng.below(6) as u64 };
    let mut body = vec![space_id(rng, space), (key::INDEX_ID, Value::int(index))];
    body.push((key::LIMIT, Value::int(limit)));
    let has_offset = rng.percent(20);
    if has_offset {
        body.push((key::OFFSET, Value::int(rng.below(5) as u64)));
    }
    body.push((key::ITERATOR, Value::int(iterator)));
    body.push((key::KEY, key));
    let check = space.check_of(index, is_whole && !has_offset);
    Request { check: after_a_hash(check, iterator == GT), ..Request::new(kind::SELECT, body) }
}

/// GT's number.
const GT: u64 = 6;

/// What follows a tuple of a HASH index is any part of it: not even the number is defined.
fn after_a_hash(check: Check, is_after: bool) -> Check {
    if is_after && check != Check::Exact { Check::Kind } else { check }
}

fn update(rng: &mut Rng, space: &Space) -> Request {
    let index = index_id(rng, space);
    let mut body = vec![space_id(rng, space)];
    if index > 0 || rng.percent(20) {
        body.push((key::INDEX_ID, Value::int(index)));
    }
    let base = rng.below(2) as u64;
    if base > 0 || rng.percent(20) {
        body.push((key::INDEX_BASE, Value::int(base)));
    }
    body.push((key::KEY, key_of(rng, space, index)));
    body.push((key::TUPLE, operations::random(rng, space, base, false)));
    Request::new(kind::UPDATE, body)
}

fn upsert(rng: &mut Rng, space: &Space) -> Request {
    let mut body = vec![space_id(rng, space)];
    let base = rng.below(2) as u64;
    if base > 0 {
        body.push((key::INDEX_BASE, Value::int(base)));
    }
    body.push((key::TUPLE, tuple(rng, space)));
    body.push((key::OPS, operations::random(rng, space, base, true)));
    Request::new(kind::UPSERT, body)
}

fn delete(rng: &mut Rng, space: &Space) -> Request {
    let index = index_id(rng, space);
    let body = vec![
        space_id(rng, space),
        (key::INDEX_ID, Value::int(index)),
        (key::KEY, key_of(rng, space, index)),
    ];
    Request::new(kind::DELETE, body)
}

/// A call of a method of the space or of one of its indexes.
fn call(rng: &mut Rng, space: &Space) -> Request {
    const OF_SPACE: [&str; 13] = [
        "select", "select", "get", "insert", "replace", "put", "update", "upsert", "delete",
        "count", "len", "select", "pairs",
    ];
    const OF_INDEX: [&str; 11] = [
        "select", "get", "update", "delete", "count", "min", "max", "select", "len", "random",
        "pairs",
    ];
    let of_index = rng.percent(35);
    let index = if of_index { index_id(rng, space) } else { 0 };
    let method = match if of_index { *rng.pick(&OF_INDEX) } else { *rng.pick(&OF_SPACE) } {
        // 2.6 crashes over the length of a BITSET index, which this one may become.
        "len" if index > 0 => "count",
        method => method,
    };
    let name = match of_index {
        true => format!("box.space.{}.index.i{index}:{method}", space.name),
        false => format!("box.space.{}:{method}", space.name),
    };
    let name = if rng.percent(1) { name.replace(':', ":no_") } else { name };
    let mut check = Check::Exact;
    let mut arguments = match method {
        "select" | "count" | "pairs" => {
            let (options, is_whole, is_after) = options(rng);
            let key = as_lua_has_it(loose_key(rng, space, index));
            check = after_a_hash(space.check_of(index, is_whole && method == "select"), is_after);
            if method != "select" && check == Check::Count {
                check = Check::Exact;
            }
            [vec![key], options].concat()
        }
        "random" => {
            check = Check::Kind;
            if rng.percent(50) { vec![values::any(rng)] } else { Vec::new() }
        }
        "insert" | "replace" | "put" => vec![tuple(rng, space)],
        "update" => vec![loose_key(rng, space, index), operations::random(rng, space, 1, false)],
        "upsert" => vec![tuple(rng, space), operations::random(rng, space, 1, true)],
        _ => vec![loose_key(rng, space, index)],
    };
    match rng.below(40) {
        0 => arguments.clear(),
        1 => {
            arguments.pop();
        }
        2 => arguments.push(as_lua_has_it(values::any(rng))),
        3 if !arguments.is_empty() => {
            let at = rng.below(arguments.len());
            arguments[at] = as_lua_has_it(values::any(rng));
        }
        _ => {}
    }
    let has_options = matches!(method, "select" | "count" | "pairs");
    let arguments = match has_options {
        true => Value::Array(arguments),
        false => as_lua_has_it(Value::Array(arguments)),
    };
    let body = vec![(key::FUNCTION_NAME, Value::text(&name)), (key::TUPLE, arguments)];
    let request_type = if rng.percent(15) { kind::CALL_16 } else { kind::CALL };
    Request { check, ..Request::new(request_type, body) }
}

/// Without what Tarantool 2's Lua cannot pass on: bytes that are no text, which Ladon keeps, as
/// Tarantool 3 does; the order of maps; and doubles beyond 64 bits, which 2.6 takes for integers in
/// keys.
fn as_lua_has_it(value: Value) -> Value {
    match value {
        Value::Bin(bytes) => Value::Str(bytes),
        Value::Array(items) => Value::Array(items.into_iter().map(as_lua_has_it).collect()),
        Value::Map(pairs) => {
            let first = pairs.into_iter().take(1);
            Value::Map(first.map(|(name, value)| (name, as_lua_has_it(value))).collect())
        }
        Value::Double(bits) if f64::from_bits(bits).abs() > 1e18 => values::double(1.5),
        other => other,
    }
}

/// What `select` takes after the key, in every form; whether nothing limits it, and whether it
/// begins after a tuple.
fn options(rng: &mut Rng) -> (Vec<Value>, bool, bool) {
    const NAMES: [&str; 9] = ["EQ", "REQ", "ALL", "LT", "LE", "GE", "GT", "eq", "ge"];
    const OTHERS: [&str; 6] =
        ["NEAR", "BITS_ALL_SET", "BITS_ANY_SET", "BITS_ALL_NOT_SET", "OVERLAPS", "NEIGHBOR"];
    let name = if rng.percent(12) { *rng.pick(&OTHERS) } else { *rng.pick(&NAMES) };
    let iterator = match rng.below(10) {
        0 => Value::int(rng.below(8) as u64),
        1 if rng.percent(40) => option(rng),
        _ => Value::text(name),
    };
    let is_after = iterator == Value::int(GT) || iterator == Value::text("GT");
    let mut pairs = Vec::new();
    let mut is_whole = true;
    match rng.below(6) {
        0 | 1 => return (vec![], true, false),
        2 => return (vec![iterator], true, is_after),
        _ => {}
    }
    if rng.percent(70) {
        pairs.push(("iterator", iterator));
    }
    let is_after = is_after && !pairs.is_empty();
    for name in ["offset", "limit"] {
        if rng.percent(30) {
            is_whole = false;
            let value = match rng.below(8) {
                0 => option(rng),
                _ => Value::int(rng.below(5) as u64),
            };
            pairs.push((name, value));
        }
    }
    if rng.percent(3) {
        pairs.push(("unknown", Value::int(1u64)));
    }
    let Value::Map(mut pairs) = Value::named(&pairs) else { return (vec![], is_whole, is_after) };
    if rng.percent(4) {
        pairs.push((option(rng), option(rng)));
    }
    (vec![Value::Map(pairs)], is_whole, is_after)
}

/// Any value as an option.
fn option(rng: &mut Rng) -> Value {
    const DOUBLES: [f64; 8] = [0.5, 1.5, 2.5, -0.5, -1.5, 1e14, f64::NAN, f64::INFINITY];
    match rng.below(4) {
        0 => values::double(*rng.pick(&DOUBLES)),
        1 => Value::int(*rng.pick(&[-1i64, -3, 12, (1 << 32) + 1, 100_000_000_000_000])),
        _ => match values::any(rng) {
            // Tarantool 2 makes a text of it.
            Value::Bin(bytes) => Value::Str(bytes),
            other => other,
        },
    }
}

/// Keys that a body may have besides its own; the last is unknown.
const EXTRA_KEYS: [u8; 10] = [0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x20, 0x21, 0x28, 0x7f];

/// A body that is none: cut, changed, or with a field that is missing, twice or of another type.
fn spoilt(rng: &mut Rng, space: &Space) -> Request {
    let mut request = statement(rng, space);
    // It may become one about another index.
    if space.indexes.iter().any(|index| index.is_unordered) {
        request.check = Check::Kind;
    }
    let is_call = matches!(request.request_type, kind::CALL | kind::CALL_16);
    match rng.below(6) {
        0 => {
            let at = rng.below(request.body.len());
            request.body.remove(at);
        }
        1 => {
            let at = rng.below(request.body.len());
            let value = values::any(rng);
            request.body[at].1 = if is_call { as_lua_has_it(value) } else { value };
        }
        2 => {
            let twice = rng.pick(&request.body).clone();
            request.body.push(twice);
        }
        3 => {
            let (key, value) = (*rng.pick(&EXTRA_KEYS), values::any(rng));
            request.body.push((key, if is_call { as_lua_has_it(value) } else { value }));
        }
        // 2.6 crashes where the bytes of a decimal are none.
        4 | 5 if request.line().contains("ext(") => {}
        4 => {
            let mut bytes = request.body_bytes();
            bytes.truncate(rng.below(bytes.len()));
            request.raw = Some(bytes);
        }
        _ => {
            let mut bytes = request.body_bytes();
            let at = rng.below(bytes.len());
            bytes[at] = rng.bits() as u8;
            request.raw = Some(bytes);
            if is_told_otherwise(&request) {
                request.raw = None;
            }
        }
    }
    request
}

/// Whether changed bytes are something that the generator does not make. 2.6 takes a very small
/// double for 0 beside a decimal, and not beside an integer, and a positive number that is encoded
/// as a signed one for a negative one. It does not fill in fields in front of one that is set, which
/// an upsert does not show. To its Lua, a double beyond 64 bits is an integer.
fn is_told_otherwise(request: &Request) -> bool {
    let line = request.line();
    let raw = request.raw.as_deref().unwrap_or_default();
    if raw.windows(2).any(|it| matches!(it, [0xd0..=0xd3, 0..=0x7f])) {
        return true;
    }
    let exponent = |text: &str| {
        let end = text.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse().unwrap_or(0)
    };
    if line.starts_with("CALL") && line.split('e').skip(1).any(|text| exponent(text) >= 18) {
        return true;
    }
    // It makes decimals of doubles with fifteen digits.
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    if line.split('.').skip(1).any(|text| digits(text) >= 14) {
        return true;
    }
    let sets = line.contains("[\"=\"") || line.contains("[\"!\"");
    line.contains("e-") || (sets && line.to_ascii_lowercase().contains("upsert"))
}

fn space_id(rng: &mut Rng, space: &Space) -> (u8, Value) {
    let id = if rng.percent(1) { space.id + 7 } else { space.id };
    (key::SPACE_ID, Value::int(id))
}

/// One of its indexes, or seldom one that it may not have.
fn index_id(rng: &mut Rng, space: &Space) -> u64 {
    match rng.below(40) {
        0 => rng.below(INDEXES_MAX + 1) as u64,
        1..=18 => 0,
        _ => rng.pick(&space.indexes).id,
    }
}

/// A tuple, mostly one that fits.
fn tuple(rng: &mut Rng, space: &Space) -> Value {
    if rng.percent(1) {
        return values::any(rng);
    }
    let mut fields = Vec::new();
    for field in &space.fields {
        let is_nil = field.nullable && rng.percent(25);
        fields.push(if is_nil { Value::Nil } else { values::of_type(rng, field.content) });
    }
    match rng.below(16) {
        0 | 1 => fields.push(values::any(rng)),
        2 => fields.truncate(rng.below(fields.len())),
        _ => {
            while space.fields[fields.len() - 1].nullable && rng.percent(20) {
                fields.pop();
            }
        }
    }
    Value::Array(fields)
}

/// A key of an index: whole, partial, too long, of other types, or none at all.
fn key_of(rng: &mut Rng, space: &Space, index: u64) -> Value {
    if rng.percent(1) {
        return values::any(rng);
    }
    let index = space.indexes.iter().find(|it| it.id == index);
    let parts = index.map_or(&[(0, "unsigned")][..], |index| &index.parts);
    let mut key = Vec::new();
    for (number, kind) in parts {
        let nullable = space.fields[*number].nullable;
        let is_nil = rng.percent(if nullable { 15 } else { 2 });
        let kind = if *kind == "array" { space.fields[*number].content } else { kind };
        key.push(if is_nil { Value::Nil } else { values::of_type(rng, kind) });
    }
    if let [Value::Array(coordinates)] = &key[..]
        && index.is_some_and(|index| index.kind == "rtree")
        && rng.percent(40)
    {
        key = coordinates.clone();
    }
    match rng.below(20) {
        0 => key.push(values::any(rng)),
        1 | 2 => key.truncate(rng.below(key.len() + 1)),
        _ => {}
    }
    Value::Array(key)
}

/// A key as Lua takes it: a table, or a part by itself.
fn loose_key(rng: &mut Rng, space: &Space, index: u64) -> Value {
    match key_of(rng, space, index) {
        Value::Array(mut key) if key.len() == 1 && rng.percent(60) => key.remove(0),
        Value::Array(key) if rng.percent(2) => {
            let names = (1..).map(|name: u64| Value::int(name));
            Value::Map(names.zip(key.into_iter().take(1)).collect())
        }
        _ if rng.percent(2) => Value::Nil,
        key => key,
    }
}
