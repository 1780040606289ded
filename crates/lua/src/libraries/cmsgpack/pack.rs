//! `cmsgpack.pack`.

use super::super::buffer::Buffer;
use super::super::stack::{Stack, Type};
use super::BUFFER;
use std::ffi::c_int;

/// A table in so many others is written as nil, which also ends circles.
const DEPTH_MAX: usize = 16;

pub(super) fn pack(stack: Stack<'_>) -> c_int {
    let count = stack.height();
    if count == 0 {
        stack.raise_argument(0, c"MessagePack pack needs input.");
    }
    let mut packer = Packer { stack, packed: Buffer::take(stack, BUFFER) };
    for argument in 1..=count {
        stack.check_room(4, c"in function mp_pack");
        stack.push_copy(argument);
        packer.value(0);
    }
    stack.push_bytes(packer.packed.bytes());
    packer.packed.keep(BUFFER);
    1
}

/// The lead bytes of a type with a length: where the short form begins, how many bits of it are the
/// length, and then with 8, 16 and 32 bits.
struct Lead {
    short: u8,
    short_max: usize,
    with_8: Option<u8>,
    with_16: u8,
}

const STRING: Lead = Lead { short: 0xa0, short_max: 31, with_8: Some(0xd9), with_16: 0xda };
const ARRAY: Lead = Lead { short: 0x90, short_max: 15, with_8: None, with_16: 0xdc };
const MAP: Lead = Lead { short: 0x80, short_max: 15, with_8: None, with_16: 0xde };

struct Packer<'call> {
    stack: Stack<'call>,
    packed: Buffer<'call>,
}

impl Packer<'_> {
    /// Packs the value on top of the stack, and pops it.
    fn value(&mut self, depth: usize) {
        let stack = self.stack;
        match stack.kind(-1) {
            Type::String => {
                let bytes = stack.bytes(-1);
                self.lead(&STRING, bytes.len());
                self.packed.add(bytes);
            }
            Type::Boolean => self.packed.add_byte(if stack.boolean(-1) { 0xc3 } else { 0xc2 }),
            Type::Number => self.number(stack.number(-1)),
            Type::Table if depth < DEPTH_MAX => {
                // A table, a key and a value, and a copy of the key.
                stack.check_room(4, c"in function mp_encode_lua_table");
                if is_array(stack) { self.array(depth) } else { self.map(depth) }
            }
            _ => self.packed.add_byte(0xc0),
        }
        stack.pop(1);
    }

    fn lead(&mut self, lead: &Lead, length: usize) {
        if length <= lead.short_max {
            return self.packed.add_byte(lead.short | length as u8);
        }
        if let (Some(with_8), Ok(length)) = (lead.with_8, u8::try_from(length)) {
            return self.packed.add(&[with_8, length]);
        }
        if let Ok(length) = u16::try_from(length) {
            self.packed.add_byte(lead.with_16);
            return self.packed.add(&length.to_be_bytes());
        }
        // No string or table of Lua has more.
        self.packed.add_byte(lead.with_16 + 1);
        self.packed.add(&(length as u32).to_be_bytes());
    }

    fn number(&mut self, number: f64) {
        const END: f64 = 9_223_372_036_854_775_808.0;
        if (-END..END).contains(&number) && number.trunc() == number {
            return self.integer(number as i64);
        }
        let short = number as f32;
        if f64::from(short) == number {
            self.packed.add_byte(0xca);
            self.packed.add(&short.to_be_bytes());
        } else {
            self.packed.add_byte(0xcb);
            self.packed.add(&number.to_be_bytes());
        }
    }

    /// In the shortest form.
    fn integer(&mut self, number: i64) {
        let bytes = number.to_be_bytes();
        let (lead, length) = match number {
            -32..=0x7f => return self.packed.add_byte(bytes[7]),
            0x80..=0xff => (0xcc, 1),
            0x100..=0xffff => (0xcd, 2),
            0x1_0000..=0xffff_ffff => (0xce, 4),
            0x1_0000_0000.. => (0xcf, 8),
            -0x80..-32 => (0xd0, 1),
            -0x8000..-0x80 => (0xd1, 2),
            -0x8000_0000..-0x8000 => (0xd2, 4),
            _ => (0xd3, 8),
        };
        self.packed.add_byte(lead);
        self.packed.add(&bytes[8 - length..]);
    }

    fn array(&mut self, depth: usize) {
        let stack = self.stack;
        let length = stack.length(-1);
        self.lead(&ARRAY, length);
        for index in 1..=length {
            stack.push_number(index as f64);
            stack.get(-2);
            self.value(depth + 1);
        }
    }

    fn map(&mut self, depth: usize) {
        let stack = self.stack;
        let mut count = 0;
        stack.push_nil();
        while stack.next(-2) {
            stack.pop(1);
            count += 1;
        }
        self.lead(&MAP, count);
        stack.push_nil();
        while stack.next(-2) {
            stack.push_copy(-2);
            self.value(depth + 1);
            self.value(depth + 1);
        }
    }
}

/// Whether the keys of the table on top are 1, 2, ... without a gap.
fn is_array(stack: Stack<'_>) -> bool {
    let (mut max, mut count) = (0.0_f64, 0_u32);
    stack.push_nil();
    while stack.next(-2) {
        stack.pop(1);
        let key = if stack.kind(-1) == Type::Number { stack.number(-1) } else { 0.0 };
        if key <= 0.0 || key.trunc() != key || key > f64::from(c_int::MAX) {
            stack.pop(1);
            return false;
        }
        max = max.max(key);
        count += 1;
    }
    max == f64::from(count)
}
