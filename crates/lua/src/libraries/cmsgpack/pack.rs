//! `cmsgpack.pack`.

use super::super::buffer::Buffer;
use super::super::pattern::BYTES_PER_STEP;
use super::super::stack::{Pace, Stack, Type};
use std::ffi::c_int;

/// A table within so many others becomes nil.
const NESTING_MAX: c_int = 16;

pub(super) fn pack(stack: Stack<'_>) -> c_int {
    let count = stack.height();
    if count == 0 {
        stack.raise_argument(0, c"MessagePack pack needs input.");
    }
    if !stack.has_room(count) {
        stack.raise_argument(0, c"Too many arguments for MessagePack pack.");
    }
    let packed = Buffer::new(stack);
    let mut packer = Packer { stack, packed, pace: Pace::default() };
    for argument in 1..=count {
        stack.push_copy(argument);
        packer.value(0);
        stack.pop(1);
    }
    stack.push_bytes(packer.packed.bytes());
    1
}

/// Each method takes the value on top of the stack, and leaves it there.
struct Packer<'call> {
    stack: Stack<'call>,
    packed: Buffer<'call>,
    pace: Pace,
}

impl Packer<'_> {
    fn value(&mut self, level: c_int) {
        let stack = self.stack;
        self.pace.step(stack);
        match stack.kind(-1) {
            Type::String => {
                let bytes = stack.bytes(-1);
                self.head(bytes.len(), &STRING);
                self.packed.add(bytes);
                self.pace.steps(stack, bytes.len() / BYTES_PER_STEP);
            }
            Type::Boolean => self.packed.add_byte(0xC2 + u8::from(stack.boolean(-1))),
            Type::Number => self.number(stack.number(-1)),
            Type::Table if level < NESTING_MAX => {
                stack.check_room(4, c"in function mp_encode_lua_table");
                match self.array_length() {
                    Some(length) => self.array(length, level),
                    None => self.map(level),
                }
            }
            _ => self.packed.add_byte(0xC0),
        }
    }

    fn number(&mut self, number: f64) {
        let whole = number as i64;
        // 2^63 would become 2^63 - 1, which is 2^63 again as a number.
        if whole as f64 == number && whole != i64::MAX {
            return self.integer(whole);
        }
        let short = number as f32;
        if f64::from(short) == number {
            self.packed.add_byte(0xCA);
            self.packed.add(&short.to_be_bytes());
        } else {
            self.packed.add_byte(0xCB);
            self.packed.add(&number.to_be_bytes());
        }
    }

    fn integer(&mut self, number: i64) {
        if (-32..=0x7F).contains(&number) {
            return self.packed.add_byte(number as u8);
        }
        // The type and the bytes of the number that it has.
        let (kind, length) = match number {
            0..=0xFF => (0xCC, 1),
            0x100..=0xFFFF => (0xCD, 2),
            0x1_0000..=0xFFFF_FFFF => (0xCE, 4),
            0x1_0000_0000.. => (0xCF, 8),
            -0x80.. => (0xD0, 1),
            -0x8000.. => (0xD1, 2),
            -0x8000_0000.. => (0xD2, 4),
            _ => (0xD3, 8),
        };
        self.packed.add_byte(kind);
        self.packed.add(&number.to_be_bytes()[8 - length..]);
    }

    /// How many values the table has, if its keys are the numbers from 1 up to that.
    fn array_length(&mut self) -> Option<usize> {
        let stack = self.stack;
        let (mut max, mut count) = (0.0, 0_usize);
        stack.push_nil();
        while stack.next(-2) {
            self.pace.step(stack);
            stack.pop(1);
            let key = if stack.kind(-1) == Type::Number { stack.number(-1) } else { 0.0 };
            if key <= 0.0 || key.floor() != key || key > f64::from(c_int::MAX) {
                stack.pop(1);
                return None;
            }
            max = key.max(max);
            count += 1;
        }
        (max == count as f64).then_some(count)
    }

    fn array(&mut self, length: usize, level: c_int) {
        self.head(length, &ARRAY);
        for index in 1..=length {
            self.stack.raw_get_index(-1, index as c_int);
            self.value(level + 1);
            self.stack.pop(1);
        }
    }

    fn map(&mut self, level: c_int) {
        let stack = self.stack;
        let mut length = 0;
        stack.push_nil();
        while stack.next(-2) {
            self.pace.step(stack);
            stack.pop(1);
            length += 1;
        }
        self.head(length, &MAP);
        stack.push_nil();
        while stack.next(-2) {
            stack.push_copy(-2);
            self.value(level + 1);
            stack.pop(1);
            self.value(level + 1);
            stack.pop(1);
        }
    }

    /// Writes a type and a length.
    fn head(&mut self, length: usize, kinds: &Kinds) {
        if length < kinds.fixed_max {
            return self.packed.add_byte(kinds.fixed | length as u8);
        }
        let (kind, bytes) = match (length, kinds.with_byte) {
            (..=0xFF, Some(kind)) => (kind, 1),
            (..=0xFFFF, _) => (kinds.with_word, 2),
            // No string or table of Lua is longer than 2^31.
            _ => (kinds.with_word + 1, 4),
        };
        self.packed.add_byte(kind);
        self.packed.add(&length.to_be_bytes()[8 - bytes..]);
    }
}

/// The bytes that a string or a table may begin with.
struct Kinds {
    /// For lengths below `fixed_max`, which are part of the byte.
    fixed: u8,
    fixed_max: usize,
    /// The length is the next byte.
    with_byte: Option<u8>,
    /// The length has two bytes; with the number after it, four.
    with_word: u8,
}

const STRING: Kinds = Kinds { fixed: 0xA0, fixed_max: 32, with_byte: Some(0xD9), with_word: 0xDA };
const ARRAY: Kinds = Kinds { fixed: 0x90, fixed_max: 16, with_byte: None, with_word: 0xDC };
const MAP: Kinds = Kinds { fixed: 0x80, fixed_max: 16, with_byte: None, with_word: 0xDE };
