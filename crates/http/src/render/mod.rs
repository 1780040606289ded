//! From the replies to a request's commands to its response.
//!
//! A response begins as soon as its status is known, and leaves in pieces while the reply comes.

mod events;
mod json;
mod keys;
mod single;

pub use events::Events;
pub use json::{JsonList, JsonOne, JsonTransaction};
pub use keys::{GetKey, ScanKeys};
pub use single::{Document, Function, OpenApi, Status, StatusKind};

use crate::reply::response::{Manner, Response, status_of};
use crate::reply::text::{Encoding, Text};
use crate::reply::tokens::Token;

/// What a token has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// More tokens have to come.
    More,
    /// The response is whole.
    Done,
}

/// A response in the making, and what is needed to begin it.
pub struct Making<'a> {
    /// How the client wants it.
    pub manner: &'a Manner,
    /// The response, once it has begun.
    pub response: &'a mut Option<Response>,
    /// The text of the header `Date`.
    pub date: &'a str,
    /// What goes to the client.
    pub out: &'a mut Vec<u8>,
}

impl Making<'_> {
    /// Begins a response of JSON.
    pub fn begin_json(&mut self, status: u16) -> &mut Response {
        self.begin(status, "application/json")
    }

    /// Begins a response.
    pub fn begin(&mut self, status: u16, content_type: &str) -> &mut Response {
        let mut response = Response::new(status, self.manner.clone(), self.date);
        if !content_type.is_empty() {
            response.header("Content-Type", content_type);
            response.header("X-Content-Type-Options", "nosniff");
        }
        if status == 401 {
            response.header("WWW-Authenticate", "Bearer realm=\"ladon\"");
        }
        self.response.insert(response)
    }

    /// The body of the response that has begun. What the server sends out of place becomes an error.
    pub fn body(&mut self) -> &mut Vec<u8> {
        let (manner, date) = (self.manner, self.date);
        self.response.get_or_insert_with(|| Response::new(500, manner.clone(), date)).body()
    }

    /// Ends the response.
    pub fn finish(&mut self) -> Step {
        if let Some(response) = self.response.take() {
            response.finish(self.out);
        }
        Step::Done
    }

    /// Answers an error in these words.
    pub fn error(&mut self, status: u16, text: &[u8]) -> Step {
        self.begin_json(status);
        write_error(self.body(), text);
        self.finish()
    }

    /// Answers the error of a command.
    pub fn error_of(&mut self, text: &[u8]) -> Step {
        self.error(status_of(text), text)
    }
}

/// `{"error":"TEXT"}`
pub(crate) fn write_error(body: &mut Vec<u8>, text: &[u8]) {
    body.extend_from_slice(b"{\"error\":\"");
    Text::whole(Encoding::Utf8, text, body);
    body.extend_from_slice(b"\"}");
}

/// Writes one value of RESP as JSON.
#[derive(Debug, Default)]
pub struct JsonValue {
    encoding: Encoding,
    text: Text,
    /// Whether the arrays that have begun have elements.
    arrays: Vec<bool>,
}

impl JsonValue {
    /// With strings in this encoding.
    pub fn new(encoding: Encoding) -> JsonValue {
        JsonValue { encoding, ..JsonValue::default() }
    }

    /// Writes a token.
    pub fn token(&mut self, token: Token<'_>, out: &mut Vec<u8>) {
        let begins_element = !matches!(token, Token::Bytes(_) | Token::BulkEnd | Token::ArrayEnd);
        if begins_element
            && let Some(has_elements) = self.arrays.last_mut()
            && std::mem::replace(has_elements, true)
        {
            out.push(b',');
        }
        match token {
            // Clients of Upstash expect it as it is.
            Token::Simple(b"OK") => out.extend_from_slice(b"\"OK\""),
            Token::Simple(text) => {
                out.push(b'"');
                Text::whole(self.encoding, text, out);
                out.push(b'"');
            }
            Token::Error(text) => write_error(out, text),
            Token::Integer(digits) => out.extend_from_slice(digits),
            Token::Null => out.extend_from_slice(b"null"),
            Token::Bulk(_) => {
                out.push(b'"');
                self.text = Text::new(self.encoding);
            }
            Token::Bytes(bytes) => self.text.push(bytes, out),
            Token::BulkEnd => {
                self.text.finish(out);
                out.push(b'"');
            }
            Token::Array(_) => {
                out.push(b'[');
                self.arrays.push(false);
            }
            Token::ArrayEnd => {
                self.arrays.pop();
                out.push(b']');
            }
        }
    }
}

/// The replies in front of `EXEC`'s: to `MULTI`, and to each command that it queues.
#[derive(Debug)]
pub struct Acknowledgements {
    left: usize,
    error: Option<Vec<u8>>,
}

impl Acknowledgements {
    /// Of so many commands between `MULTI` and `EXEC`.
    pub fn of(commands: usize) -> Acknowledgements {
        Acknowledgements { left: commands + 1, error: None }
    }

    /// Takes a token; false if it belongs to `EXEC`'s reply.
    pub fn take(&mut self, token: Token<'_>, depth: usize) -> bool {
        if self.left == 0 {
            return false;
        }
        if let Token::Error(text) = token
            && self.error.is_none()
        {
            self.error = Some(text.to_vec());
        }
        if depth == 0 && token.ends_element() {
            self.left -= 1;
        }
        true
    }

    /// The first error, or else this one: what `EXEC` says is only that there was one.
    pub fn error<'a>(&'a self, of_exec: &'a [u8]) -> &'a [u8] {
        self.error.as_deref().unwrap_or(of_exec)
    }
}
