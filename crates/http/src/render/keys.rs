//! `GET /v1/keys/KEY`, whatever the key's type, and `GET /v1/keys`.

use super::{Acknowledgements, JsonValue, Making, Step};
use crate::command::Commands;
use crate::reply::text::{Encoding, Text};
use crate::reply::tokens::Token;
use crate::route::keys;

/// A longer string is passed on as it comes, without an `ETag`.
const DIGESTED_BYTES_MAX: u64 = 1 << 20;

/// How often a key may change its type while it is read.
const TRIES: usize = 4;

/// What `Token::Bulk` at the place of the value has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Value {
    #[default]
    None,
    /// A string, as its bytes.
    Plain {
        /// It is looked at when it is whole.
        is_digested: bool,
    },
    /// Anything in the member `value` of a JSON object.
    Json,
}

/// Reads a key. Its type is known only from the first reply, so that another transaction may have to
/// follow.
#[derive(Debug)]
pub struct GetKey {
    key: Vec<u8>,
    as_json: bool,
    known: Option<String>,
    encoding: Encoding,
    /// The type that the transaction of the moment reads.
    read: Vec<u8>,
    tries: usize,
    acknowledgements: Acknowledgements,
    /// Of the elements of `EXEC`'s reply.
    element: usize,
    kind: Vec<u8>,
    ttl_ms: i64,
    value: Value,
    /// The value's writer, and how many of its elements have begun.
    json: JsonValue,
    members: usize,
    text: Text,
    score: Vec<u8>,
    /// The next transaction.
    next: Option<Commands>,
    failed: bool,
}

impl GetKey {
    /// The first transaction takes it for a string.
    pub fn new(
        key: Vec<u8>,
        as_json: bool,
        known: Option<String>,
        encoding: Encoding,
    ) -> (GetKey, Commands) {
        let commands = keys::read(&key, b"string").unwrap_or_default();
        let get = GetKey {
            key,
            as_json,
            known,
            encoding,
            read: b"string".to_vec(),
            tries: 1,
            acknowledgements: Acknowledgements::of(3),
            element: 0,
            kind: Vec::new(),
            ttl_ms: -1,
            value: Value::None,
            json: JsonValue::new(encoding),
            members: 0,
            text: Text::new(encoding),
            score: Vec::new(),
            next: None,
            failed: false,
        };
        (get, commands)
    }

    /// Whether what is there has to wait for the end.
    pub fn waits(&self) -> bool {
        self.value == Value::Plain { is_digested: true }
    }

    /// Takes a token.
    pub fn token(&mut self, token: Token<'_>, depth: usize, making: &mut Making<'_>) -> Step {
        if self.acknowledgements.take(token) {
            return Step::More;
        }
        match (depth, token) {
            (0, Token::Error(text)) => {
                let text = self.acknowledgements.error(text).to_vec();
                making.error_of(&text)
            }
            (0, Token::ArrayEnd) => match self.next.take() {
                Some(commands) => Step::Run(commands),
                None => self.finish(making),
            },
            (0, _) => Step::More,
            (depth, token) => {
                match (self.element, token) {
                    (0, Token::Simple(kind)) => self.kind = kind.to_vec(),
                    (1, Token::Integer(digits)) => {
                        let digits = std::str::from_utf8(digits).ok();
                        self.ttl_ms = digits.and_then(|text| text.parse().ok()).unwrap_or(-1);
                    }
                    (2, token) => self.value_token(token, depth, making),
                    _ => {}
                }
                if depth == 1 && token.ends_element() {
                    self.element += 1;
                }
                Step::More
            }
        }
    }

    fn value_token(&mut self, token: Token<'_>, depth: usize, making: &mut Making<'_>) {
        if depth == 1 && self.value == Value::None {
            if self.kind == b"none" {
                return self.fail(making, 404, b"there is no such key");
            }
            if self.kind != self.read {
                return self.read_another(making);
            }
            match token {
                Token::Error(text) => {
                    let text = text.to_vec();
                    return self.fail(making, crate::reply::response::status_of(&text), &text);
                }
                // It expired between the two.
                Token::Null => return self.fail(making, 404, b"there is no such key"),
                Token::Bulk(length) if !self.as_json => return self.begin_plain(length, making),
                _ => self.begin_json(making),
            }
        }
        match self.value {
            Value::None => {}
            Value::Plain { .. } => {
                if let Token::Bytes(bytes) = token {
                    making.body().extend_from_slice(bytes);
                }
            }
            Value::Json => self.write_json(token, depth, making.body()),
        }
    }

    fn fail(&mut self, making: &mut Making<'_>, status: u16, text: &[u8]) {
        if !self.failed && self.next.is_none() {
            self.failed = true;
            making.begin_json(status);
            super::write_error(making.body(), text);
        }
    }

    fn read_another(&mut self, making: &mut Making<'_>) {
        if self.next.is_some() || self.failed {
            return;
        }
        if self.tries == TRIES {
            return self.fail(making, 503, b"TRYAGAIN the key changes its type all the time");
        }
        let Some(commands) = keys::read(&self.key, &self.kind) else {
            let kind = String::from_utf8_lossy(&self.kind).into_owned();
            let text = format!("WRONGTYPE a key of type {kind} is read by commands only");
            return self.fail(making, 409, text.as_bytes());
        };
        let known = self.known.take();
        let (fresh, _) =
            GetKey::new(std::mem::take(&mut self.key), self.as_json, known, self.encoding);
        let (read, tries) = (std::mem::take(&mut self.kind), self.tries + 1);
        // The rest of this reply means nothing.
        *self = GetKey { read, tries, next: Some(commands), ..fresh };
        self.acknowledgements = Acknowledgements::done();
        self.element = 2;
    }

    /// The next transaction has begun: its replies are counted from now on.
    pub fn begins_again(&mut self) {
        self.acknowledgements = Acknowledgements::of(3);
        self.element = 0;
    }

    fn head(&self, making: &mut Making<'_>) {
        if let Some(response) = making.response {
            if self.ttl_ms >= 0 {
                response.header("Ladon-TTL", seconds(self.ttl_ms));
            }
            response.header("Ladon-Type", String::from_utf8_lossy(&self.kind));
        }
    }

    fn begin_plain(&mut self, length: u64, making: &mut Making<'_>) {
        let is_digested = length <= DIGESTED_BYTES_MAX;
        self.value = Value::Plain { is_digested };
        making.begin(200, "application/octet-stream");
        self.head(making);
        if !is_digested && let Some(response) = making.response {
            response.has_length(length, making.out);
        }
    }

    fn begin_json(&mut self, making: &mut Making<'_>) {
        self.value = Value::Json;
        making.begin_json(200);
        self.head(making);
        let kind = String::from_utf8_lossy(&self.kind).into_owned();
        let ttl = if self.ttl_ms >= 0 { seconds(self.ttl_ms) } else { "null".to_owned() };
        let start = format!("{{\"type\":\"{kind}\",\"ttl\":{ttl},\"value\":");
        making.body().extend_from_slice(start.as_bytes());
    }

    fn write_json(&mut self, token: Token<'_>, depth: usize, body: &mut Vec<u8>) {
        match &self.kind[..] {
            b"hash" => self.write_pairs(token, depth, body, *b"{}", false),
            b"zset" => self.write_pairs(token, depth, body, *b"[]", true),
            _ => self.json.token(token, body),
        }
    }

    /// An array of names and values in turn, as the members of an object or as an array of pairs.
    fn write_pairs(
        &mut self,
        token: Token<'_>,
        depth: usize,
        body: &mut Vec<u8>,
        [open, close]: [u8; 2],
        is_scored: bool,
    ) {
        if depth == 1 {
            return body.push(if matches!(token, Token::Array(_)) { open } else { close });
        }
        let is_second = self.members % 2 == 1;
        match token {
            Token::Bulk(_) => {
                match (is_second, is_scored) {
                    (false, _) if self.members > 0 => body.push(b','),
                    _ => {}
                }
                if !is_second && is_scored {
                    body.push(b'[');
                }
                self.text = Text::new(self.encoding);
                if !(is_second && is_scored) {
                    body.push(b'"');
                }
            }
            Token::Bytes(bytes) if is_second && is_scored => self.score.extend_from_slice(bytes),
            Token::Bytes(bytes) => self.text.push(bytes, body),
            Token::BulkEnd => {
                self.text.finish(body);
                match (is_second, is_scored) {
                    (false, true) => body.extend_from_slice(b"\","),
                    (true, true) => {
                        // Infinity is no number in JSON.
                        let is_infinite = matches!(&self.score[..], b"inf" | b"-inf");
                        body.extend_from_slice(if is_infinite { b"null" } else { &self.score });
                        self.score.clear();
                        body.push(b']');
                    }
                    (false, false) => body.extend_from_slice(b"\":"),
                    (true, false) => body.push(b'"'),
                }
                self.members += 1;
            }
            _ => {}
        }
    }

    fn finish(&mut self, making: &mut Making<'_>) -> Step {
        if self.failed {
            return making.finish();
        }
        match self.value {
            Value::None => return making.error(500, b"ERR the key has no value"),
            Value::Json => making.body().push(b'}'),
            Value::Plain { is_digested: false } => {}
            Value::Plain { is_digested: true } => {
                let digest = keys::digest(making.body());
                if self.known.as_deref() == Some(digest.as_str()) {
                    making.begin(304, "");
                }
                if let Some(response) = making.response {
                    response.header("ETag", format_args!("\"{digest}\""));
                }
            }
        }
        making.finish()
    }
}

/// Milliseconds as seconds with three decimals at most.
fn seconds(milliseconds: i64) -> String {
    let text = format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `SCAN`'s reply as `{"cursor":"0","keys":[..]}`.
#[derive(Debug)]
pub struct ScanKeys {
    json: JsonValue,
    element: usize,
}

impl ScanKeys {
    /// With names in this encoding.
    pub fn new(encoding: Encoding) -> ScanKeys {
        ScanKeys { json: JsonValue::new(encoding), element: 0 }
    }

    /// Takes a token.
    pub fn token(&mut self, token: Token<'_>, depth: usize, making: &mut Making<'_>) -> Step {
        match (depth, token) {
            (0, Token::Error(text)) => return making.error_of(text),
            (0, Token::Array(_)) => {
                making.begin_json(200);
                making.body().extend_from_slice(b"{\"cursor\":");
                return Step::More;
            }
            (0, Token::ArrayEnd) => {
                making.body().push(b'}');
                return making.finish();
            }
            (0, _) => return making.error(500, b"ERR SCAN answered no array"),
            _ => {}
        }
        self.json.token(token, making.body());
        if depth == 1 && token.ends_element() {
            self.element += 1;
            if self.element == 1 {
                making.body().extend_from_slice(b",\"keys\":");
            }
        }
        Step::More
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_live_are_seconds() {
        for (milliseconds, expected) in [(0, "0"), (1, "0.001"), (60_000, "60"), (1500, "1.5")] {
            assert_eq!(seconds(milliseconds), expected);
        }
    }
}
