//! Requests of the REST API that one reply answers.

use super::{Acknowledgements, JsonValue, Making, Step};
use crate::reply::text::Encoding;
use crate::reply::tokens::Token;
use crate::route::openapi;
use crate::route::spaces::Answer;

/// A longer result of a function is not looked at to find out what it is.
const LOOKED_AT_BYTES_MAX: u64 = 1 << 20;

/// What is answered by a status alone.
#[derive(Debug)]
pub enum StatusKind {
    /// `SET`: stored, or not because of a condition.
    Stored {
        /// The new digest, once the body is over.
        etag: Option<String>,
    },
    /// `DEL` or `DELEX`.
    Deleted {
        /// Nothing deleted means that the condition did not hold.
        is_conditional: bool,
    },
    /// A transaction that stores.
    Transaction(Acknowledgements),
}

/// A request that is answered by a status alone.
#[derive(Debug)]
pub struct Status {
    /// Which one.
    pub kind: StatusKind,
    error: Option<Vec<u8>>,
}

impl Status {
    /// Of this kind.
    pub fn new(kind: StatusKind) -> Status {
        Status { kind, error: None }
    }

    /// Takes a token.
    pub fn token(&mut self, token: Token<'_>, depth: usize, making: &mut Making<'_>) -> Step {
        if let StatusKind::Transaction(acknowledgements) = &mut self.kind
            && acknowledgements.take(token, depth)
        {
            return Step::More;
        }
        if let Token::Error(text) = token
            && self.error.is_none()
        {
            self.error = Some(text.to_vec());
        }
        if depth > 0 || !token.ends_element() {
            return Step::More;
        }
        if let Some(error) = self.error.take() {
            let error = match &self.kind {
                StatusKind::Transaction(acknowledgements) => acknowledgements.error(&error),
                _ => &error,
            };
            return making.error_of(error);
        }
        match (&self.kind, token) {
            (StatusKind::Stored { .. }, Token::Null)
            | (StatusKind::Deleted { is_conditional: true }, Token::Integer(b"0")) => {
                making.error(412, b"the condition does not hold")
            }
            (StatusKind::Deleted { .. }, Token::Integer(b"0")) => {
                making.error(404, b"there is no such key")
            }
            (kind, _) => {
                let response = making.begin(204, "");
                if let StatusKind::Stored { etag: Some(etag) } = kind {
                    response.header("ETag", format_args!("\"{etag}\""));
                }
                making.finish()
            }
        }
    }
}

/// A reply that is a document of JSON.
#[derive(Debug)]
pub struct Document {
    answer: Answer,
}

impl Document {
    /// With the status that follows.
    pub fn new(answer: Answer) -> Document {
        Document { answer }
    }

    /// Takes a token.
    pub fn token(&mut self, token: Token<'_>, making: &mut Making<'_>) -> Step {
        match token {
            Token::Bulk(_) if self.answer == Answer::Deleted => {
                making.begin(204, "");
                Step::More
            }
            Token::Bulk(length) => {
                making.begin_json(200);
                if let Some(response) = making.response {
                    response.has_length(length, making.out);
                }
                Step::More
            }
            Token::Bytes(bytes) => {
                making.body().extend_from_slice(bytes);
                Step::More
            }
            Token::BulkEnd => making.finish(),
            Token::Null => making.error(404, b"there is no such tuple"),
            Token::Error(text) => making.error_of(text),
            _ => making.error(500, b"ERR the reply is no document"),
        }
    }
}

/// The result of a function: a string as it is, anything else as JSON.
#[derive(Debug)]
pub struct Function {
    value: JsonValue,
    /// A string, whose kind is still unknown.
    waits: bool,
}

impl Function {
    /// The only kind.
    pub fn new() -> Function {
        Function { value: JsonValue::new(Encoding::Utf8), waits: false }
    }

    /// Takes a token.
    pub fn token(&mut self, token: Token<'_>, depth: usize, making: &mut Making<'_>) -> Step {
        match token {
            Token::Error(b"ERR Function not found") if depth == 0 => {
                return making.error(404, b"there is no such function");
            }
            Token::Error(text) if depth == 0 => return making.error_of(text),
            Token::Bulk(length) if depth == 0 => {
                self.waits = length <= LOOKED_AT_BYTES_MAX;
                if !self.waits {
                    making.begin(200, "application/octet-stream");
                    if let Some(response) = making.response {
                        response.has_length(length, making.out);
                    }
                } else {
                    making.begin(200, "");
                }
                return Step::More;
            }
            Token::Bytes(bytes) if depth == 0 => {
                making.body().extend_from_slice(bytes);
                return Step::More;
            }
            Token::BulkEnd if depth == 0 => {
                if self.waits
                    && let Some(response) = making.response
                {
                    let kind = kind_of(response.body());
                    response.header("Content-Type", kind);
                    response.header("X-Content-Type-Options", "nosniff");
                }
                return making.finish();
            }
            _ => {}
        }
        if making.response.is_none() {
            making.begin_json(200);
        }
        self.value.token(token, making.body());
        if depth == 0 && token.ends_element() { making.finish() } else { Step::More }
    }

    /// Whether what is there has to wait for the end.
    pub fn waits(&self) -> bool {
        self.waits
    }
}

impl Default for Function {
    fn default() -> Function {
        Function::new()
    }
}

fn kind_of(bytes: &[u8]) -> &'static str {
    if serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
        "application/json"
    } else if std::str::from_utf8(bytes).is_ok() {
        "text/plain; charset=utf-8"
    } else {
        "application/octet-stream"
    }
}

/// The description of everything: the paths, with what the server says of its spaces.
#[derive(Debug, Default)]
pub struct OpenApi {
    spaces: Vec<u8>,
}

impl OpenApi {
    /// Takes a token of the list of spaces.
    pub fn token(&mut self, token: Token<'_>, making: &mut Making<'_>) -> Step {
        match token {
            Token::Bulk(_) => Step::More,
            Token::Bytes(bytes) => {
                self.spaces.extend_from_slice(bytes);
                Step::More
            }
            Token::BulkEnd => {
                let document = openapi::document(&self.spaces);
                making.begin_json(200);
                making.body().extend_from_slice(document.as_bytes());
                making.finish()
            }
            Token::Error(text) => making.error_of(text),
            _ => making.error(500, b"ERR the reply is no document"),
        }
    }
}
