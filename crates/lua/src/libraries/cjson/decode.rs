//! `cjson.decode`.

use std::ffi::c_int;

use super::super::NESTING_MAX;
use super::super::stack::{Pace, Stack};
use super::settings::Settings;
use super::token::{Reader, Token};

/// Bytes of a token that are read as fast as one step is made.
const BYTES_PER_STEP: usize = 8;

pub(super) fn decode(stack: Stack<'_>) -> c_int {
    if stack.height() != 1 {
        stack.raise_argument(1, c"expected 1 argument");
    }
    let settings = Settings::of(stack);
    let text = stack.check_bytes(1);
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        stack.raise(format_args!("JSON parser does not support UTF-16 or UTF-32"));
    }
    let reader = Reader::new(stack, text, settings.decode_invalid_numbers != 0);
    let mut decoder = Decoder {
        stack,
        reader,
        depth: 0,
        depth_max: settings.decode_depth_max,
        pace: Pace::default(),
    };
    let first = decoder.reader.next();
    decoder.value(first);
    let last = decoder.reader.next();
    if !matches!(last, Token::End) {
        decoder.refuse("the end", last);
    }
    decoder.reader.keep_buffer();
    1
}

struct Decoder<'call> {
    stack: Stack<'call>,
    reader: Reader<'call>,
    depth: c_int,
    depth_max: c_int,
    pace: Pace,
}

impl Decoder<'_> {
    /// Pushes the value that begins with a token.
    fn value(&mut self, token: Token<'_>) {
        let bytes = 1 + self.reader.end_position() - self.reader.position();
        self.pace.steps(self.stack, 1 + bytes / BYTES_PER_STEP);
        match token {
            Token::Plain(bytes) => self.stack.push_bytes(bytes),
            Token::Unescaped => self.stack.push_bytes(self.reader.unescaped()),
            Token::Number(number) => self.stack.push_number(number),
            Token::Boolean(value) => self.stack.push_boolean(value),
            Token::Null => self.stack.push_null_pointer(),
            Token::ObjectBegin => self.object(),
            Token::ArrayBegin => self.array(),
            other => self.refuse("value", other),
        }
    }

    fn object(&mut self) {
        // A table, a key and a value.
        self.descend(3);
        self.stack.new_table();
        let mut token = self.reader.next();
        if matches!(token, Token::ObjectEnd) {
            self.depth -= 1;
            return;
        }
        loop {
            match token {
                Token::Plain(_) | Token::Unescaped => self.value(token),
                other => self.refuse("object key string", other),
            }
            match self.reader.next() {
                Token::Colon => {}
                other => self.refuse("colon", other),
            }
            let first = self.reader.next();
            self.value(first);
            self.stack.raw_set(-3);
            match self.reader.next() {
                Token::ObjectEnd => break,
                Token::Comma => token = self.reader.next(),
                other => self.refuse("comma or object end", other),
            }
        }
        self.depth -= 1;
    }

    fn array(&mut self) {
        // A table and a value.
        self.descend(2);
        self.stack.new_table();
        let mut token = self.reader.next();
        if matches!(token, Token::ArrayEnd) {
            self.depth -= 1;
            return;
        }
        for index in 1.. {
            self.value(token);
            self.stack.raw_set_index(-2, index);
            match self.reader.next() {
                Token::ArrayEnd => break,
                Token::Comma => token = self.reader.next(),
                other => self.refuse("comma or array end", other),
            }
        }
        self.depth -= 1;
    }

    /// Goes a level deeper.
    fn descend(&mut self, slots: c_int) {
        self.stack.check_depth();
        self.depth += 1;
        if self.depth > self.depth_max.min(NESTING_MAX) || !self.stack.has_room(slots) {
            let (depth, position) = (self.depth, self.reader.end_position());
            self.stack.raise(format_args!(
                "Found too many nested data structures ({depth}) at character {position}"
            ));
        }
    }

    fn refuse(&self, expected: &str, found: Token<'_>) -> ! {
        let (found, position) = (found.name(), self.reader.position());
        self.stack
            .raise(format_args!("Expected {expected} but found {found} at character {position}"))
    }
}
