//! Replies as Upstash's REST API has them: `{"result":..}`, `{"error":..}`, and arrays of both.

use super::{Acknowledgements, JsonValue, Making, Step};
use crate::reply::text::Encoding;
use crate::reply::tokens::Token;

/// One command.
#[derive(Debug)]
pub struct JsonOne {
    value: JsonValue,
}

impl JsonOne {
    /// With strings in this encoding.
    pub fn new(encoding: Encoding) -> JsonOne {
        JsonOne { value: JsonValue::new(encoding) }
    }

    /// Takes a token of the reply.
    pub fn token(&mut self, token: Token<'_>, depth: usize, making: &mut Making<'_>) -> Step {
        if making.response.is_none() {
            if let Token::Error(text) = token {
                return making.error_of(text);
            }
            making.begin_json(200);
            making.body().extend_from_slice(b"{\"result\":");
        }
        self.value.token(token, making.body());
        if depth == 0 && token.ends_element() {
            making.body().push(b'}');
            return making.finish();
        }
        Step::More
    }
}

/// Elements of an array, each a result or an error.
#[derive(Debug)]
struct Elements {
    value: JsonValue,
    has_any: bool,
    /// Inside of `{"result":`.
    is_open: bool,
}

impl Elements {
    /// Takes a token of an element; `is_top` if the element itself begins or ends with it.
    fn token(&mut self, token: Token<'_>, is_top: bool, body: &mut Vec<u8>) {
        let begins = is_top && !self.is_open;
        if begins {
            if std::mem::replace(&mut self.has_any, true) {
                body.push(b',');
            }
            if !matches!(token, Token::Error(_)) {
                self.is_open = true;
                body.extend_from_slice(b"{\"result\":");
            }
        }
        self.value.token(token, body);
        if is_top && token.ends_element() && std::mem::take(&mut self.is_open) {
            body.push(b'}');
        }
    }
}

/// Some commands, one after the other.
#[derive(Debug)]
pub struct JsonList {
    elements: Elements,
    left: usize,
}

impl JsonList {
    /// Of so many commands, one at least.
    pub fn new(encoding: Encoding, commands: usize) -> JsonList {
        let value = JsonValue::new(encoding);
        JsonList { elements: Elements { value, has_any: false, is_open: false }, left: commands }
    }

    /// Takes a token of a reply.
    pub fn token(&mut self, token: Token<'_>, depth: usize, making: &mut Making<'_>) -> Step {
        if making.response.is_none() {
            making.begin_json(200);
            making.body().push(b'[');
        }
        self.elements.token(token, depth == 0, making.body());
        if depth == 0 && token.ends_element() {
            self.left -= 1;
            if self.left == 0 {
                making.body().push(b']');
                return making.finish();
            }
        }
        Step::More
    }
}

/// Some commands between `MULTI` and `EXEC`.
#[derive(Debug)]
pub struct JsonTransaction {
    elements: Elements,
    acknowledgements: Acknowledgements,
}

impl JsonTransaction {
    /// Of so many commands.
    pub fn new(encoding: Encoding, commands: usize) -> JsonTransaction {
        let value = JsonValue::new(encoding);
        JsonTransaction {
            elements: Elements { value, has_any: false, is_open: false },
            acknowledgements: Acknowledgements::of(commands),
        }
    }

    /// Takes a token of a reply.
    pub fn token(&mut self, token: Token<'_>, depth: usize, making: &mut Making<'_>) -> Step {
        if self.acknowledgements.take(token, depth) {
            return Step::More;
        }
        match (depth, token) {
            (0, Token::Error(text)) => {
                let text = self.acknowledgements.error(text).to_vec();
                making.error_of(&text)
            }
            (0, Token::Array(_)) => {
                making.begin_json(200);
                making.body().push(b'[');
                Step::More
            }
            (0, Token::ArrayEnd) => {
                making.body().push(b']');
                making.finish()
            }
            (0, _) => making.error(500, b"ERR EXEC answered no array"),
            (depth, token) => {
                self.elements.token(token, depth == 1, making.body());
                Step::More
            }
        }
    }
}
