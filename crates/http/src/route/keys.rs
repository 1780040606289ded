//! `/v1/keys/KEY`: a key as a resource. Strings are their bytes; other types are JSON.
//!
//! An `ETag` is the XXH3 digest of a string, as `DIGEST` answers it, so `If-Match` is a compare and
//! set: `SET KEY VALUE IFDEQ DIGEST`.

use super::check_query;
use crate::command::{Commands, number};
use crate::request::head::{Head, Method, Refused};
use serde_json::{Map, Value};

/// What a `PUT` or `PATCH` with JSON may have; what is longer is stored as a string, or by commands.
pub const JSON_BYTES_MAX: usize = 1 << 20;

/// A longer string is passed on as it comes, without an `ETag`.
pub const DIGESTED_BYTES_MAX: u64 = 1 << 20;

/// Keys that one request looks at, at most.
const COUNT_MAX: u32 = 10_000;

/// Types that a body of JSON can become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// `{"field":"value"}`
    Hash,
    /// `["a","b"]`
    List,
    /// `["a","b"]`
    Set,
    /// `{"member":1.5}` or `[["member",1.5]]`
    SortedSet,
}

impl Collection {
    fn named(name: &[u8]) -> Option<Collection> {
        Some(match name {
            b"hash" => Collection::Hash,
            b"list" => Collection::List,
            b"set" => Collection::Set,
            b"zset" => Collection::SortedSet,
            _ => return None,
        })
    }
}

/// A condition on the value that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// There is one.
    Exists,
    /// There is none.
    IsAbsent,
    /// Its digest is this.
    Is(String),
    /// Its digest is another.
    IsNot(String),
}

/// How long a written key lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// For ever.
    #[default]
    Ever,
    /// So many milliseconds.
    Milliseconds(u64),
    /// As before.
    Kept,
}

/// A request for a key, or for all.
#[derive(Debug)]
pub enum KeyRequest {
    /// Some of the names.
    Scan(Vec<Vec<u8>>),
    /// The value.
    Get {
        /// Which key.
        key: Vec<u8>,
        /// A string as JSON too.
        as_json: bool,
        /// A digest that the client has.
        known: Option<String>,
    },
    /// The body becomes a string.
    PutString {
        /// Which key.
        key: Vec<u8>,
        /// Only if so.
        condition: Option<Condition>,
        /// For how long.
        lifetime: Lifetime,
    },
    /// The body's JSON becomes a value of this type.
    PutCollection {
        /// Which key.
        key: Vec<u8>,
        /// Which type.
        collection: Collection,
        /// For how long.
        lifetime: Lifetime,
    },
    /// The body says what to change.
    Patch(Vec<u8>),
    /// No key any more.
    Delete {
        /// Which key.
        key: Vec<u8>,
        /// Only if so.
        condition: Option<Condition>,
    },
}

impl KeyRequest {
    /// Reads method, path behind `/v1/keys` and headers.
    ///
    /// # Errors
    /// When they make no sense.
    pub fn of(head: &Head, segments: &[&[u8]]) -> Result<KeyRequest, Refused> {
        let [key] = segments else {
            return match (segments, head.method) {
                ([], Method::Get | Method::Head) => scan(head),
                ([], _) => Err(Refused::not_allowed("GET, HEAD, OPTIONS")),
                _ => Err(Refused::new(404, "a slash in a key is written as %2F")),
            };
        };
        let key = key.to_vec();
        match head.method {
            Method::Get | Method::Head => {
                check_query(head, &[])?;
                let accept = head.headers.accept.as_deref().unwrap_or_default();
                let as_json = accept.contains("application/json");
                let known = head.headers.if_none_match.as_deref().filter(|text| !text.is_empty());
                let known = known.map(etag).transpose()?;
                Ok(KeyRequest::Get { key, as_json, known })
            }
            Method::Put => put(head, key),
            Method::Patch => {
                check_query(head, &[])?;
                Ok(KeyRequest::Patch(key))
            }
            Method::Delete => {
                check_query(head, &[])?;
                Ok(KeyRequest::Delete { key, condition: condition(head)? })
            }
            Method::Post | Method::Options => {
                Err(Refused::not_allowed("GET, HEAD, PUT, PATCH, DELETE, OPTIONS"))
            }
        }
    }
}

fn scan(head: &Head) -> Result<KeyRequest, Refused> {
    check_query(head, &["cursor", "match", "count", "type"])?;
    let value = |name| head.target.value(name);
    if let Some(count) = value("count") {
        let count = std::str::from_utf8(count).ok().and_then(|text| text.parse::<u32>().ok());
        if !count.is_some_and(|count| (1..=COUNT_MAX).contains(&count)) {
            return Err(Refused::new(400, format!("count is a number from 1 to {COUNT_MAX}")));
        }
    }
    let mut args = vec![b"SCAN".to_vec(), value("cursor").unwrap_or(b"0").to_vec()];
    for name in ["match", "count", "type"] {
        if let Some(value) = value(name) {
            args.extend([name.to_ascii_uppercase().into_bytes(), value.to_vec()]);
        }
    }
    Ok(KeyRequest::Scan(args))
}

fn put(head: &Head, key: Vec<u8>) -> Result<KeyRequest, Refused> {
    check_query(head, &["type"])?;
    let lifetime = lifetime(head)?;
    let kind = head.target.value("type").unwrap_or(b"string");
    if kind == b"string" {
        return Ok(KeyRequest::PutString { key, condition: condition(head)?, lifetime });
    }
    let Some(collection) = Collection::named(kind) else {
        return Err(Refused::new(400, "type is string, hash, list, set or zset"));
    };
    if head.headers.if_match.is_some() || head.headers.if_none_match.is_some() {
        return Err(Refused::new(400, "If-Match and If-None-Match are for strings"));
    }
    if lifetime == Lifetime::Kept {
        return Err(Refused::new(400, "Ladon-TTL: keep is for strings"));
    }
    Ok(KeyRequest::PutCollection { key, collection, lifetime })
}

/// `Ladon-TTL`: seconds, or `keep`.
fn lifetime(head: &Head) -> Result<Lifetime, Refused> {
    let Some(text) = head.headers.ladon_ttl.as_deref() else { return Ok(Lifetime::Ever) };
    if text == "keep" {
        return Ok(Lifetime::Kept);
    }
    match milliseconds(text) {
        Some(milliseconds) if milliseconds > 0 => Ok(Lifetime::Milliseconds(milliseconds)),
        _ => Err(Refused::new(400, "Ladon-TTL is in seconds, over 0, or it is keep")),
    }
}

/// Seconds with up to three decimals.
fn milliseconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 3 {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<3}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(fraction)
}

fn condition(head: &Head) -> Result<Option<Condition>, Refused> {
    // An empty header says nothing.
    let given = |header: &Option<Box<str>>| header.clone().filter(|text| !text.is_empty());
    let (if_match, if_none_match) =
        (given(&head.headers.if_match), given(&head.headers.if_none_match));
    match (if_match.as_deref(), if_none_match.as_deref()) {
        (None, None) => Ok(None),
        // What is this digest is not another one.
        (Some(is), Some(is_not)) if is != "*" && is_not != "*" && is != is_not => {
            etag(is_not)?;
            Ok(Some(Condition::Is(etag(is)?)))
        }
        (Some(_), Some(_)) => Err(Refused::new(400, "If-Match beside If-None-Match")),
        (Some("*"), None) => Ok(Some(Condition::Exists)),
        (None, Some("*")) => Ok(Some(Condition::IsAbsent)),
        (Some(text), None) => Ok(Some(Condition::Is(etag(text)?))),
        (None, Some(text)) => Ok(Some(Condition::IsNot(etag(text)?))),
    }
}

/// The digest in an `ETag`.
fn etag(text: &str) -> Result<String, Refused> {
    let digest = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let digest = digest
        .filter(|digest| digest.len() == 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    digest.map(str::to_ascii_lowercase).ok_or_else(|| {
        Refused::new(400, "one ETag as it was answered: 16 hexadecimal digits in quotation marks")
    })
}

impl Condition {
    /// The words of `SET` and `DELEX`.
    fn words(&self) -> Vec<&[u8]> {
        match self {
            Condition::Exists => vec![b"XX"],
            Condition::IsAbsent => vec![b"NX"],
            Condition::Is(digest) => vec![b"IFDEQ", digest.as_bytes()],
            Condition::IsNot(digest) => vec![b"IFDNE", digest.as_bytes()],
        }
    }
}

/// The arguments of `SET` behind the value.
pub fn set_options(condition: Option<&Condition>, lifetime: Lifetime) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    match lifetime {
        Lifetime::Ever => {}
        Lifetime::Milliseconds(milliseconds) => {
            words.extend([b"PX".to_vec(), number(milliseconds)])
        }
        Lifetime::Kept => words.push(b"KEEPTTL".to_vec()),
    }
    words.extend(condition.iter().flat_map(|it| it.words()).map(<[u8]>::to_vec));
    words
}

/// The command that deletes.
///
/// # Errors
/// For a condition that means nothing here.
pub fn delete(key: &[u8], condition: Option<&Condition>) -> Result<Commands, Refused> {
    let mut commands = Commands::default();
    match condition {
        None | Some(Condition::Exists) => commands.add(&[b"DEL", key]),
        Some(Condition::IsAbsent) => {
            return Err(Refused::new(400, "what is absent cannot be deleted"));
        }
        Some(condition) => {
            let words = condition.words();
            commands.add(&[&[b"DELEX", key], &words[..]].concat());
        }
    }
    Ok(commands)
}

/// The command that reads a key, whatever its type.
pub fn read(key: &[u8]) -> Commands {
    let mut commands = Commands::default();
    commands.add(&[b"LADON.READ", key]);
    commands
}

fn not_json(error: impl std::fmt::Display) -> Refused {
    Refused::new(400, format!("the body is not JSON: {error}"))
}

fn wrong(what: &str) -> Refused {
    Refused::new(400, what)
}

/// What a value of JSON is as bytes.
pub(crate) fn scalar(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Number(number) => Some(number.to_string().into_bytes()),
        Value::Bool(bool) => Some(bool.to_string().into_bytes()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn scalars(values: &[Value]) -> Result<Vec<Vec<u8>>, Refused> {
    let all = values.iter().map(scalar).collect::<Option<_>>();
    all.ok_or_else(|| wrong("elements are strings, numbers or booleans"))
}

fn pairs(object: &Map<String, Value>) -> Result<Vec<Vec<u8>>, Refused> {
    let mut all = Vec::with_capacity(object.len() * 2);
    for (name, value) in object {
        let value =
            scalar(value).ok_or_else(|| wrong("values are strings, numbers or booleans"))?;
        all.extend([name.as_bytes().to_vec(), value]);
    }
    Ok(all)
}

/// Scores and members, as `ZADD` wants them.
fn scored(value: &Value) -> Result<Vec<Vec<u8>>, Refused> {
    let shape = || wrong("members with scores are {\"member\":1.5} or [[\"member\",1.5]]");
    // A score may be a text: JSON has no infinity.
    let score = |value: &Value| scalar(value).filter(|_| !value.is_boolean()).ok_or_else(shape);
    match value {
        Value::Object(object) => {
            let mut all = Vec::with_capacity(object.len() * 2);
            for (member, value) in object {
                all.extend([score(value)?, member.as_bytes().to_vec()]);
            }
            Ok(all)
        }
        Value::Array(list) => {
            let mut all = Vec::with_capacity(list.len() * 2);
            for pair in list {
                let Some([member, value]) = pair.as_array().map(Vec::as_slice) else {
                    return Err(shape());
                };
                all.push(score(value)?);
                all.push(scalar(member).ok_or_else(shape)?);
            }
            Ok(all)
        }
        _ => Err(shape()),
    }
}

fn add(commands: &mut Commands, start: &[&[u8]], rest: &[Vec<u8>]) {
    let args: Vec<&[u8]> = start.iter().copied().chain(rest.iter().map(Vec::as_slice)).collect();
    commands.add(&args);
}

/// The transaction that makes the body's JSON the value.
///
/// # Errors
/// When it is not of the type's shape.
pub fn put_collection(
    key: &[u8],
    collection: Collection,
    lifetime: Lifetime,
    body: &[u8],
) -> Result<Commands, Refused> {
    let value: Value = serde_json::from_slice(body).map_err(not_json)?;
    let (command, elements) = match (collection, &value) {
        (Collection::Hash, Value::Object(object)) => (&b"HSET"[..], pairs(object)?),
        (Collection::Hash, _) => return Err(wrong("a hash is an object")),
        (Collection::List, Value::Array(list)) => (&b"RPUSH"[..], scalars(list)?),
        (Collection::Set, Value::Array(list)) => (&b"SADD"[..], scalars(list)?),
        (Collection::List | Collection::Set, _) => return Err(wrong("it is an array")),
        (Collection::SortedSet, value) => (&b"ZADD"[..], scored(value)?),
    };
    let mut commands = Commands::default();
    commands.add(&[b"MULTI"]);
    commands.add(&[b"DEL", key]);
    if !elements.is_empty() {
        add(&mut commands, &[command, key], &elements);
        if let Lifetime::Milliseconds(milliseconds) = lifetime {
            commands.add(&[b"PEXPIRE", key, &number(milliseconds)]);
        }
    }
    commands.add(&[b"EXEC"]);
    Ok(commands)
}

/// The transaction that a body of `PATCH` asks for: its members are done in this order.
///
/// ```text
/// {"incr":1} {"incrbyfloat":0.5} {"append":"x"}            strings
/// {"set":{"field":"v"},"unset":["other"]}                  hashes
/// {"push":["last"],"unshift":["first"]}                    lists
/// {"add":["member"],"remove":["other"]}                    sets
/// {"scores":{"member":1.5},"remove_scored":["other"]}      sorted sets
/// {"ttl":60} {"ttl":null}                                  any type
/// ```
///
/// # Errors
/// When it asks for nothing, or for something else.
pub fn patch(key: &[u8], body: &[u8]) -> Result<Commands, Refused> {
    let value: Value = serde_json::from_slice(body).map_err(not_json)?;
    let object = value.as_object().ok_or_else(|| wrong("changes are an object"))?;
    if object.is_empty() {
        return Err(wrong("no change is asked for"));
    }
    let mut commands = Commands::default();
    commands.add(&[b"MULTI"]);
    // A lifetime counts from what the others have left.
    let (last, others): (Vec<_>, Vec<_>) = object.iter().partition(|(name, _)| *name == "ttl");
    for (name, value) in others.into_iter().chain(last) {
        change(&mut commands, key, name, value)?;
    }
    commands.add(&[b"EXEC"]);
    Ok(commands)
}

fn change(commands: &mut Commands, key: &[u8], name: &str, value: &Value) -> Result<(), Refused> {
    let plain = || scalar(value).ok_or_else(|| wrong(&format!("{name} takes one value")));
    let list = || -> Result<Vec<Vec<u8>>, Refused> {
        let list = value.as_array().filter(|list| !list.is_empty());
        scalars(list.ok_or_else(|| wrong(&format!("{name} takes an array of some elements")))?)
    };
    let object = || -> Result<&Map<String, Value>, Refused> {
        let object = value.as_object().filter(|object| !object.is_empty());
        object.ok_or_else(|| wrong(&format!("{name} takes an object of some members")))
    };
    let (command, rest): (&[u8], Vec<Vec<u8>>) = match name {
        "incr" => (b"INCRBY", vec![step(name, value)?]),
        "incrbyfloat" => (b"INCRBYFLOAT", vec![step(name, value)?]),
        "append" => (b"APPEND", vec![plain()?]),
        "set" => (b"HSET", pairs(object()?)?),
        "unset" => (b"HDEL", list()?),
        "push" => (b"RPUSH", list()?),
        // The first of them comes to stand first.
        "unshift" => (b"LPUSH", list()?.into_iter().rev().collect()),
        "add" => (b"SADD", list()?),
        "remove" => (b"SREM", list()?),
        "scores" => (b"ZADD", scored(value)?),
        "remove_scored" => (b"ZREM", list()?),
        "ttl" if value.is_null() => (b"PERSIST", Vec::new()),
        "ttl" => {
            let seconds = value.as_f64().filter(|seconds| (0.001..=1e10).contains(seconds));
            let error = || wrong("ttl is in seconds, from 0.001 on, or it is null");
            let milliseconds = (seconds.ok_or_else(error)? * 1000.0).round();
            (b"PEXPIRE", vec![number(milliseconds as u64)])
        }
        _ => {
            return Err(wrong(&format!("{name:?} is no change; GET /v1/openapi.json names them")));
        }
    };
    add(commands, &[command, key], &rest);
    Ok(())
}

/// A number, or one of JSON's in a string: for clients whose own numbers have 53 bits. `incr` takes whole
/// ones.
fn step(name: &str, value: &Value) -> Result<Vec<u8>, Refused> {
    let is_float = name == "incrbyfloat";
    let is_number = match value {
        Value::Number(number) => is_float || number.as_f64().is_some_and(|it| it.fract() == 0.0),
        Value::String(text) => is_number_text(text, is_float),
        _ => false,
    };
    let text = scalar(value).filter(|_| is_number);
    let kind = if is_float { "a number" } else { "a whole number" };
    text.ok_or_else(|| wrong(&format!("{name} takes {kind}")))
}

/// Whether a text is a number of JSON (RFC 8259, section 6), however large; a whole one unless it is a float.
fn is_number_text(text: &str, is_float: bool) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let is_whole = |text: &str| is_digits(text) && (text == "0" || !text.starts_with('0'));
    let text = text.strip_prefix('-').unwrap_or(text);
    if !is_float {
        return is_whole(text);
    }
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    is_whole(whole) && is_digits(fraction) && is_digits(exponent)
}

/// The digest that an `ETag` has.
pub fn digest(bytes: &[u8]) -> String {
    format!("{:016x}", xxhash_rust::xxh3::xxh3_64(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(commands: &Result<Commands, Refused>) -> String {
        match commands {
            Err(refused) => format!("{} {}", refused.status, refused.why),
            Ok(commands) => {
                let lists = commands.lists();
                let words = |list: &Vec<Vec<u8>>| {
                    let words = list.iter().map(|word| String::from_utf8_lossy(word).into_owned());
                    words.collect::<Vec<_>>().join(" ")
                };
                lists.iter().map(words).collect::<Vec<_>>().join("; ")
            }
        }
    }

    #[test]
    fn bodies_become_collections() {
        let put = |collection, body: &str| {
            text(&put_collection(b"k", collection, Lifetime::Milliseconds(1500), body.as_bytes()))
        };
        assert_eq!(
            put(Collection::Hash, r#"{"a":"x","b":2}"#),
            "MULTI; DEL k; HSET k a x b 2; PEXPIRE k 1500; EXEC"
        );
        assert_eq!(put(Collection::List, "[]"), "MULTI; DEL k; EXEC");
        let zset = "MULTI; DEL k; ZADD k 1.5 m 2 n; PEXPIRE k 1500; EXEC";
        assert_eq!(put(Collection::SortedSet, r#"{"m":1.5,"n":2}"#), zset);
        assert_eq!(put(Collection::SortedSet, r#"[["m",1.5],["n",2]]"#), zset);
        for (collection, body) in [
            (Collection::Hash, "[]"),
            (Collection::Hash, r#"{"a":{}}"#),
            (Collection::Set, r#"[null]"#),
            (Collection::SortedSet, r#"[["m"]]"#),
            (Collection::List, "no"),
        ] {
            assert!(put(collection, body).starts_with("400 "), "{body}");
        }
    }

    #[test]
    fn patches_become_transactions() {
        let patch = |body: &str| text(&patch(b"k", body.as_bytes()));
        assert_eq!(patch(r#"{"ttl":1.5,"incr":2}"#), "MULTI; INCRBY k 2; PEXPIRE k 1500; EXEC");
        let long = r#"{"incr":"9007199254740993"}"#;
        assert_eq!(patch(long), "MULTI; INCRBY k 9007199254740993; EXEC");
        assert_eq!(patch(r#"{"incrbyfloat":-1e-3}"#), "MULTI; INCRBYFLOAT k -0.001; EXEC");
        let huge = r#"{"incrbyfloat":"-1.5E+999"}"#;
        assert_eq!(patch(huge), "MULTI; INCRBYFLOAT k -1.5E+999; EXEC");
        assert_eq!(patch(r#"{"unshift":["a","b"]}"#), "MULTI; LPUSH k b a; EXEC");
        assert_eq!(patch(r#"{"ttl":null}"#), "MULTI; PERSIST k; EXEC");
        assert_eq!(
            patch(r#"{"set":{"a":"1"},"unset":["b"]}"#),
            "MULTI; HSET k a 1; HDEL k b; EXEC"
        );
        for wrong in [
            "{}",
            "[]",
            r#"{"incr":{}}"#,
            r#"{"incr":"x"}"#,
            r#"{"incr":1.5}"#,
            r#"{"incr":"1e3"}"#,
            r#"{"incrbyfloat":"01"}"#,
            r#"{"incrbyfloat":"1."}"#,
            r#"{"incrbyfloat":"nan"}"#,
            r#"{"incrbyfloat":true}"#,
            r#"{"push":[]}"#,
            r#"{"x":1}"#,
            r#"{"ttl":0}"#,
            r#"{"scores":{"m":true}}"#,
        ] {
            assert!(patch(wrong).starts_with("400 "), "{wrong}");
        }
    }

    #[test]
    fn lifetimes_are_in_seconds() {
        assert_eq!(milliseconds("60"), Some(60_000));
        assert_eq!(milliseconds("0.25"), Some(250));
        for wrong in ["", "-1", "1.", ".5", "1.2345", "1e3", "99999999999999999999"] {
            assert_eq!(milliseconds(wrong), None, "{wrong}");
        }
    }
}
