//! A stream of server-sent events: `data: message,CHANNEL,TEXT`, as Upstash's clients read it.

use super::{Making, Step};
use crate::reply::tokens::Token;

/// Messages of a subscription, or lines of `MONITOR`.
#[derive(Debug, Default)]
pub struct Events {
    /// The last byte was CR: an LF behind it is the same line's end.
    was_cr: bool,
    has_any: bool,
}

impl Events {
    /// Takes a token of a message.
    pub fn token(&mut self, token: Token<'_>, depth: usize, making: &mut Making<'_>) -> Step {
        if making.response.is_none() {
            if let Token::Error(text) = token {
                return making.error_of(text);
            }
            let response = making.begin(200, "text/event-stream");
            response.header("Cache-Control", "no-cache");
            if let Some(response) = making.response {
                response.is_endless(making.out);
            }
        }
        let ends = depth == 0 && token.ends_element();
        let begins_part = !matches!(token, Token::Bytes(_) | Token::BulkEnd | Token::ArrayEnd);
        let body = making.body();
        if begins_part && !matches!(token, Token::Array(_)) {
            let start: &[u8] = if self.has_any { b"," } else { b"data: " };
            body.extend_from_slice(start);
            self.has_any = true;
        }
        match token {
            Token::Simple(text) | Token::Integer(text) | Token::Error(text) => {
                self.text(text, body);
            }
            Token::Bytes(bytes) => self.text(bytes, body),
            Token::Null | Token::Bulk(_) | Token::BulkEnd => {}
            Token::Array(_) | Token::ArrayEnd => {}
        }
        if ends {
            *self = Events::default();
            body.extend_from_slice(b"\n\n");
        }
        Step::More
    }

    /// Whether an event is incomplete: each leaves as a whole.
    pub fn waits(&self) -> bool {
        self.has_any
    }

    /// Each line of a text is one of the event.
    fn text(&mut self, text: &[u8], body: &mut Vec<u8>) {
        for &byte in text {
            let was_cr = std::mem::replace(&mut self.was_cr, byte == b'\r');
            match byte {
                b'\n' if was_cr => {}
                b'\n' | b'\r' => body.extend_from_slice(b"\ndata: "),
                byte => body.push(byte),
            }
        }
    }
}
