//! `GET /v1/keys/KEY`, whatever the key's type, and `GET /v1/keys`.

use super::{JsonValue, Making, Step};
use crate::reply::text::{Encoding, Text};
use crate::reply::tokens::Token;
use crate::route::keys::{self, DIGESTED_BYTES_MAX};

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

/// Reads a key: its type, its time to live and its value, which `LADON.READ` answers.
#[derive(Debug)]
pub struct GetKey {
    as_json: bool,
    known: Option<String>,
    encoding: Encoding,
    /// Of the elements of the reply.
    element: usize,
    kind: Vec<u8>,
    ttl_ms: i64,
    value: Value,
    /// The value's writer, and how many of its elements have begun.
    json: JsonValue,
    members: usize,
    text: Text,
    score: Vec<u8>,
    failed: bool,
}

impl GetKey {
    /// A string is JSON too if `as_json`; a client that has one of the digest `known` has it.
    pub fn new(as_json: bool, known: Option<String>, encoding: Encoding) -> GetKey {
        GetKey {
            as_json,
            known,
            encoding,
            element: 0,
            kind: Vec::new(),
            ttl_ms: -1,
            value: Value::None,
            json: JsonValue::new(encoding),
            members: 0,
            text: Text::new(encoding),
            score: Vec::new(),
            failed: false,
        }
    }

    /// Whether what is there has to wait for the end.
    pub fn waits(&self) -> bool {
        self.value == Value::Plain { is_digested: true }
    }

    /// Takes a token.
    pub fn token(&mut self, token: Token<'_>, depth: usize, making: &mut Making<'_>) -> Step {
        match (depth, token) {
            (0, Token::Error(text)) => return making.error_of(text),
            (0, Token::ArrayEnd) => return self.finish(making),
            (0, _) => {}
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
            }
        }
        Step::More
    }

    fn value_token(&mut self, token: Token<'_>, depth: usize, making: &mut Making<'_>) {
        if depth == 1 && self.value == Value::None {
            match token {
                Token::Error(text) => {
                    let status = crate::reply::response::status_of(text);
                    return self.fail(making, status, text);
                }
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
        self.failed = true;
        making.begin_json(status);
        super::write_error(making.body(), text);
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
