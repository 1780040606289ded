//! Lines of a program, and its end.

use super::LINE;
use super::text::{literal, one_of};
use super::value::{table, value, words};
use crate::random::generate::plain_request;
use crate::random::rng::Rng;

/// A line that leaves something in `r`, or fails.
pub(super) fn line(rng: &mut Rng) -> String {
    let what = match rng.below(20) {
        0..=5 => format!("redis.call({})", request(rng)),
        6..=8 => format!("redis.pcall({})", request(rng)),
        9 => format!("type(redis.pcall({}))", request(rng)),
        10 => format!("{{pcall(redis.call, {})}}", request(rng)),
        11 => format!(
            "(function() local v = redis.pcall({}) return type(v) == 'table' and (v.err or v.ok) or v end)()",
            request(rng)
        ),
        12 => format!(
            "(function() for i = 1, {} do redis.call({}) end return 'done' end)()",
            1 + rng.below(3),
            request(rng)
        ),
        13 => wrong(rng),
        14 => return format!("redis.setresp({})", one_of(rng, &["3", "3", "2", "4", "'x'"])),
        15 => format!(
            "(function() redis.setresp(3) local v = redis.call({}) redis.setresp(2) return v end)()",
            request(rng)
        ),
        _ => value(rng, 2),
    };
    format!("{LINE}{what}")
}

/// Commands whose second argument is a value, a field or a member.
const VALUES: [&str; 14] = [
    "SET",
    "GETSET",
    "APPEND",
    "SETNX",
    "LPUSH",
    "RPUSH",
    "SADD",
    "SREM",
    "SISMEMBER",
    "HSET",
    "HGET",
    "HDEL",
    "HEXISTS",
    "MSET",
];

/// A request as arguments of `redis.call`.
fn request(rng: &mut Rng) -> String {
    match rng.below(40) {
        // No tables: Redis 7.0 and 8.0 crash of them where they have kept an earlier call's words.
        0 => return one_of(rng, &["", "'nothing'", "'get'", "1"]).into(),
        1 => {
            return one_of(
                rng,
                &[
                    "'multi'",
                    "'subscribe', 'n1'",
                    "'eval', 'return 1', 0",
                    "'script', 'flush'",
                    "'client', 'id'",
                    "'config', 'get', 'port'",
                    "'watch', 'k1'",
                    "'function', 'list'",
                ],
            )
            .into();
        }
        _ => {}
    }
    let words = plain_request(rng);
    // The scores of some sets are to stay equal (`guard`).
    let is_sorted_set = words[0].starts_with(b"Z");
    let takes_value = VALUES.iter().any(|name| name.as_bytes() == words[0]);
    let mut all: Vec<String> = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let number = std::str::from_utf8(word)
            .ok()
            .filter(|text| text.parse::<i32>().is_ok_and(|number| number.to_string() == **text));
        all.push(match number {
            Some(number) if at > 0 && rng.percent(40) => number.into(),
            _ if is_sorted_set => literal(word),
            _ if at == 1 && rng.percent(25) => one_of(rng, &["KEYS[1]", "KEYS[2]"]).into(),
            // Where it is no time, no place and no number of elements.
            _ if at == 2 && takes_value && rng.percent(15) => {
                one_of(rng, &["ARGV[1]", "ARGV[2]", "1.5", "#r"]).into()
            }
            _ => literal(word),
        });
    }
    all.join(", ")
}

/// What a program must not do, caught. Not an error that is a table without a text: Redis crashes.
fn wrong(rng: &mut Rng) -> String {
    let what = one_of(
        rng,
        &[
            "x = 1",
            "return x",
            "return nothing.field",
            "local t = nil return t.field",
            "local t = {} return t.a.b",
            "return 1 + nil",
            "return 'a' + 1",
            "return {} .. 'x'",
            "return {} < {}",
            "return 1 < 'x'",
            "return #nil",
            "nothing()",
            "local f = 1 f()",
            "redis.call = nil",
            "redis.x = 1",
            "string.x = 1",
            "KEYS.x = 1 return KEYS.x",
            "_G.x = 1",
            "return _G.x",
            "error('text')",
            "error('text', 0)",
            "error({err='ERR table'})",
            "error({err='table', x=1})",
            "error()",
            "error(5)",
            "assert(false)",
            "assert(nil, 'why')",
            "assert(1 == 1)",
            "return print",
            "return io",
            "return require",
            "return dofile",
            "return loadstring('return 1')()",
            "return load",
            "return getmetatable('').__index == string",
            "return getmetatable(_G)",
            "return rawget(_G, 'x')",
            "rawset(_G, 'x', 1)",
            "setmetatable(_G, nil)",
            "return collectgarbage('count') > 0",
            "return string.rep('x', -1)",
            "return ('x'):bad()",
            "return tostring()",
            "return ipairs(1)",
            "for i = 1, 'x' do end",
            "for k in 5 do end",
            "return unpack({}, 1, 3)",
            "return table.concat({{}})",
            "return string.format('%d', 'x')",
            "return math.floor('x')",
            "return setfenv",
            "return debug",
            "return newproxy",
        ],
    );
    if rng.percent(25) {
        // Not caught.
        return format!("(function() {what} end)()");
    }
    format!("{{pcall(function() {what} end)}}")
}

/// What a program ends with.
pub(super) fn end(rng: &mut Rng) -> String {
    match rng.below(30) {
        0 => format!("return {}", value(rng, 2)),
        1 => format!("return {}", table(rng, 3)),
        2 => format!("return redis.error_reply({})", words(rng)),
        3 => format!("return redis.status_reply({})", words(rng)),
        4 => format!("error({})", words(rng)),
        5 => "error({err='MINE of my own'})".into(),
        6 => String::new(),
        7 => format!("return redis.call({})", request(rng)),
        8 => format!("return redis.pcall({})", request(rng)),
        9 => {
            one_of(rng, &["return r r", "return 'open", "retrun r", "return (", "if r then"]).into()
        }
        10 => "return #r, r".into(),
        11 => format!(
            "if redis.call('exists', KEYS[1]) == 1 then return r else return {} end",
            value(rng, 1)
        ),
        12 => "return unpack(r)".into(),
        _ => "return r".into(),
    }
}
