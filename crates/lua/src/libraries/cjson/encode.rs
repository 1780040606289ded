//! `cjson.encode`.

use std::ffi::c_int;

use super::super::NESTING_MAX;
use super::super::buffer::Buffer;
use super::super::stack::{Pace, Stack, Type};
use super::BUFFER;
use super::settings::{ACCEPT, REFUSE, Settings};

/// Bytes of a string from one look at the host to the next, and those that are written as fast as
/// one step is made.
const PIECE: usize = 16 << 10;
const BYTES_PER_STEP: usize = 8;

/// The longest that `%.14g` can be, with its closing zero, and some.
const NUMBER_BYTES_MAX: usize = 32;

pub(super) fn encode(stack: Stack<'_>) -> c_int {
    if stack.height() != 1 {
        stack.raise_argument(1, c"expected 1 argument");
    }
    let settings = Settings::of(stack);
    let json = Buffer::take(stack, BUFFER);
    stack.push_copy(1);
    let mut encoder = Encoder { stack, settings, json, pace: Pace::default() };
    encoder.value(0);
    stack.push_bytes(encoder.json.bytes());
    if settings.keep_buffer != 0 {
        encoder.json.keep(BUFFER);
    }
    1
}

/// Each method takes the value on top of the stack, and leaves it there.
struct Encoder<'call> {
    stack: Stack<'call>,
    settings: Settings,
    json: Buffer<'call>,
    pace: Pace,
}

impl Encoder<'_> {
    fn value(&mut self, depth: c_int) {
        let stack = self.stack;
        self.pace.step(stack);
        match stack.kind(-1) {
            Type::String => self.string(-1),
            Type::Number => self.number(-1),
            Type::Boolean if stack.boolean(-1) => self.json.add(b"true"),
            Type::Boolean => self.json.add(b"false"),
            Type::Table => self.table(depth + 1),
            Type::Nil => self.json.add(b"null"),
            Type::LightUserdata if stack.userdata(-1).is_null() => self.json.add(b"null"),
            _ => self.refuse(-1, "type not supported"),
        }
    }

    fn table(&mut self, depth: c_int) {
        // A level has the table, a key and a value.
        self.stack.check_depth();
        let depth_max = self.settings.encode_depth_max.min(NESTING_MAX);
        if depth > depth_max || !self.stack.has_room(3) {
            self.stack.raise(format_args!("Cannot serialise, excessive nesting ({depth})"));
        }
        match self.array_length() {
            Some(length) if length > 0 => self.array(length, depth),
            _ => self.object(depth),
        }
    }

    /// The highest index, if all keys are positive integers.
    fn array_length(&mut self) -> Option<c_int> {
        let stack = self.stack;
        let (mut max, mut count) = (0_i32, 0_i64);
        stack.push_nil();
        while stack.next(-2) {
            self.pace.step(stack);
            stack.pop(1);
            let key = if stack.kind(-1) == Type::Number { stack.number(-1) } else { 0.0 };
            if key < 1.0 || key.floor() != key {
                stack.pop(1);
                return None;
            }
            if key > f64::from(max) {
                max = index_of(key);
            }
            count += 1;
        }
        let Settings { sparse_convert, sparse_ratio, sparse_safe, .. } = self.settings;
        let places_max = count * i64::from(sparse_ratio);
        if sparse_ratio > 0 && i64::from(max) > places_max && max > sparse_safe {
            if sparse_convert == 0 {
                self.refuse(-1, "excessively sparse array");
            }
            return None;
        }
        Some(max)
    }

    fn array(&mut self, length: c_int, depth: c_int) {
        self.json.add_byte(b'[');
        for index in 1..=length {
            if index > 1 {
                self.json.add_byte(b',');
            }
            self.stack.raw_get_index(-1, index);
            self.value(depth);
            self.stack.pop(1);
        }
        self.json.add_byte(b']');
    }

    fn object(&mut self, depth: c_int) {
        let stack = self.stack;
        self.json.add_byte(b'{');
        let mut first = true;
        stack.push_nil();
        while stack.next(-2) {
            if !first {
                self.json.add_byte(b',');
            }
            first = false;
            match stack.kind(-2) {
                Type::String => self.string(-2),
                Type::Number => {
                    self.json.add_byte(b'"');
                    self.number(-2);
                    self.json.add_byte(b'"');
                }
                _ => self.refuse(-2, "table key must be a number or string"),
            }
            self.json.add_byte(b':');
            self.value(depth);
            stack.pop(1);
        }
        self.json.add_byte(b'}');
    }

    fn string(&mut self, index: c_int) {
        let bytes = self.stack.bytes(index);
        self.json.add_byte(b'"');
        for piece in bytes.chunks(PIECE) {
            let mut rest = piece;
            while let Some(at) = rest.iter().position(|byte| escaped(*byte)) {
                self.json.add(&rest[..at]);
                self.escape(rest[at]);
                rest = &rest[at + 1..];
            }
            self.json.add(rest);
            self.pace.steps(self.stack, piece.len() / BYTES_PER_STEP);
        }
        self.json.add_byte(b'"');
    }

    fn escape(&mut self, byte: u8) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let short = match byte {
            b'"' | b'\\' | b'/' => byte,
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0c => b'f',
            b'\r' => b'r',
            _ => {
                let [high, low] = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
                return self.json.add(&[b'\\', b'u', b'0', b'0', high, low]);
            }
        };
        self.json.add(&[b'\\', short]);
    }

    fn number(&mut self, index: c_int) {
        let number = self.stack.number(index);
        if !number.is_finite() {
            match self.settings.encode_invalid_numbers {
                REFUSE => self.refuse(index, "must not be NaN or Inf"),
                ACCEPT if number.is_nan() => return self.json.add(b"nan"),
                ACCEPT => {}
                _ => return self.json.add(b"null"),
            }
        }
        let mut text = [0_u8; NUMBER_BYTES_MAX];
        // SAFETY: the text is not longer than the array, and has a closing zero.
        let length = unsafe {
            let (start, bytes) = (text.as_mut_ptr().cast(), text.len());
            libc::snprintf(start, bytes, c"%.*g".as_ptr(), self.settings.number_precision, number)
        };
        self.json.add(&text[..usize::try_from(length).unwrap_or(0)]);
    }

    fn refuse(&self, index: c_int, reason: &str) -> ! {
        let kind = self.stack.kind_name(index);
        self.stack.raise(format_args!("Cannot serialise {kind}: {reason}"))
    }
}

fn escaped(byte: u8) -> bool {
    byte < b' ' || matches!(byte, b'"' | b'\\' | b'/' | 0x7f)
}

/// A key as C converts it on x86: what an `int` cannot have becomes the lowest, which makes the
/// table an object.
#[expect(clippy::cast_possible_truncation)]
fn index_of(key: f64) -> c_int {
    if key <= f64::from(c_int::MAX) { key as c_int } else { c_int::MIN }
}
