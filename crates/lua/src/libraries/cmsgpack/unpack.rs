//! `cmsgpack.unpack`, `unpack_one` and `unpack_limit`.

use super::super::NESTING_MAX;
use super::super::stack::Stack;
use std::ffi::{CStr, c_int};

pub(super) fn unpack(stack: Stack<'_>) -> c_int {
    values(stack, 0, 0)
}

/// `unpack_one(text, [offset])`: the offset behind the value, or -1 at the end, and the value.
pub(super) fn unpack_one(stack: Stack<'_>) -> c_int {
    let offset = stack.optional_integer(2, 0);
    stack.set_height(1);
    values(stack, 1, offset)
}

/// `unpack_limit(text, limit, [offset])`: as `unpack_one`, with several values.
pub(super) fn unpack_limit(stack: Stack<'_>) -> c_int {
    let limit = stack.check_integer(2);
    let offset = stack.optional_integer(3, 0);
    stack.set_height(1);
    values(stack, limit, offset)
}

/// Pushes up to `limit` values from `offset` on. Without both, all of them, and no offset.
fn values(stack: Stack<'_>, limit: i64, offset: i64) -> c_int {
    let text = stack.check_bytes(1);
    let length = text.len();
    // As `int`s, which they are in the original.
    let (limit, offset) = (limit as c_int, offset as c_int);
    let (Ok(limit), Ok(start)) = (usize::try_from(limit), usize::try_from(offset)) else {
        stack.raise(format_args!(
            "Invalid request to unpack with offset of {offset} and limit of {length}."
        ))
    };
    if start > length {
        stack.raise(format_args!("Start offset {start} greater than input length {length}."));
    }
    let takes_all = limit == 0 && start == 0;
    let limit = if takes_all { c_int::MAX as usize } else { limit };
    let mut unpacker = Unpacker { stack, rest: &text[start..], depth: 0 };
    let mut count = 0;
    while !unpacker.rest.is_empty() && count < limit {
        unpacker.value();
        count += 1;
    }
    if takes_all {
        return count as c_int;
    }
    stack.check_room(1, c"in function mp_unpack_full");
    let left = unpacker.rest.len();
    stack.push_number(if left == 0 { -1.0 } else { (length - left) as f64 });
    stack.insert(2);
    count as c_int + 1
}

struct Unpacker<'call> {
    stack: Stack<'call>,
    rest: &'call [u8],
    depth: usize,
}

const TOO_MANY: &CStr = c"too many return values at once; use unpack_one or unpack_limit instead.";

impl<'call> Unpacker<'call> {
    /// Pushes the next value. Lua gives a function some 8,000 slots, which bounds how many there are.
    fn value(&mut self) {
        let stack = self.stack;
        stack.check_room(1, TOO_MANY);
        let [lead] = self.bytes();
        match lead {
            0x00..=0x7f => stack.push_number(f64::from(lead)),
            0xe0..=0xff => stack.push_number(f64::from(lead as i8)),
            0xa0..=0xbf => self.string(usize::from(lead & 31)),
            0x90..=0x9f => self.array(u32::from(lead & 15)),
            0x80..=0x8f => self.map(u32::from(lead & 15)),
            0xc0 => stack.push_nil(),
            0xc2 => stack.push_boolean(false),
            0xc3 => stack.push_boolean(true),
            0xca => stack.push_number(f64::from(f32::from_be_bytes(self.bytes()))),
            0xcb => stack.push_number(f64::from_be_bytes(self.bytes())),
            0xcc => stack.push_number(f64::from(u8::from_be_bytes(self.bytes()))),
            0xcd => stack.push_number(f64::from(u16::from_be_bytes(self.bytes()))),
            0xce => stack.push_number(f64::from(u32::from_be_bytes(self.bytes()))),
            // The original turns it into a signed one, too.
            0xcf | 0xd3 => stack.push_number(i64::from_be_bytes(self.bytes()) as f64),
            0xd0 => stack.push_number(f64::from(i8::from_be_bytes(self.bytes()))),
            0xd1 => stack.push_number(f64::from(i16::from_be_bytes(self.bytes()))),
            0xd2 => stack.push_number(f64::from(i32::from_be_bytes(self.bytes()))),
            0xd9 => {
                let length = u8::from_be_bytes(self.bytes());
                self.string(usize::from(length));
            }
            0xda => {
                let length = u16::from_be_bytes(self.bytes());
                self.string(usize::from(length));
            }
            0xdb => {
                let length = u32::from_be_bytes(self.bytes());
                self.string(length as usize);
            }
            0xdc => {
                let count = u16::from_be_bytes(self.bytes());
                self.array(u32::from(count));
            }
            0xdd => {
                let count = u32::from_be_bytes(self.bytes());
                self.array(count);
            }
            0xde => {
                let count = u16::from_be_bytes(self.bytes());
                self.map(u32::from(count));
            }
            0xdf => {
                let count = u32::from_be_bytes(self.bytes());
                self.map(count);
            }
            _ => stack.raise(format_args!("Bad data format in input.")),
        }
    }

    fn take(&mut self, count: usize) -> &'call [u8] {
        let Some((bytes, rest)) = self.rest.split_at_checked(count) else {
            self.stack.raise(format_args!("Missing bytes in input."))
        };
        self.rest = rest;
        bytes
    }

    fn bytes<const COUNT: usize>(&mut self) -> [u8; COUNT] {
        self.take(COUNT).try_into().unwrap_or([0; COUNT])
    }

    fn string(&mut self, length: usize) {
        let bytes = self.take(length);
        self.stack.push_bytes(bytes);
    }

    fn array(&mut self, count: u32) {
        let stack = self.stack;
        self.descend(2, c"in function mp_decode_to_lua_array");
        stack.new_table();
        for index in 1..=count {
            self.value();
            stack.raw_set_index(-2, index as c_int);
        }
        self.depth -= 1;
    }

    fn map(&mut self, count: u32) {
        let stack = self.stack;
        self.descend(3, c"in function mp_decode_to_lua_hash");
        stack.new_table();
        for _ in 0..count {
            self.value();
            self.value();
            stack.set(-3);
        }
        self.depth -= 1;
    }

    /// Goes a level deeper, with room for so many values.
    fn descend(&mut self, slots: c_int, place: &CStr) {
        self.depth += 1;
        let slots = if self.depth > NESTING_MAX { c_int::MAX / 2 } else { slots };
        self.stack.check_room(slots, place);
    }
}
