//! `cmsgpack.unpack`, `unpack_one` and `unpack_limit`.

use super::super::NESTING_MAX;
use super::super::pattern::BYTES_PER_STEP;
use super::super::stack::{Pace, Stack};
use std::ffi::{CStr, c_int};

pub(super) fn unpack(stack: Stack<'_>) -> c_int {
    unpack_some(stack, 0, 0)
}

pub(super) fn unpack_one(stack: Stack<'_>) -> c_int {
    let offset = stack.optional_integer(2, 0) as c_int;
    if stack.height() > 1 {
        stack.set_height(1);
    }
    unpack_some(stack, 1, offset)
}

pub(super) fn unpack_limit(stack: Stack<'_>) -> c_int {
    let limit = stack.check_integer(2) as c_int;
    let offset = stack.optional_integer(3, 0) as c_int;
    stack.set_height(1);
    unpack_some(stack, limit, offset)
}

/// Pushes up to `limit` values, beginning at `offset`, and before them where the next one begins,
/// -1 at the end. If both are 0: all values, and nothing before them.
fn unpack_some(stack: Stack<'_>, limit: c_int, offset: c_int) -> c_int {
    let text = stack.check_bytes(1);
    let length = text.len();
    let is_all = limit == 0 && offset == 0;
    let (Ok(limit), Ok(offset)) = (usize::try_from(limit), usize::try_from(offset)) else {
        // The length instead of the limit: as the original has it.
        stack.raise(format_args!(
            "Invalid request to unpack with offset of {offset} and limit of {length}."
        ))
    };
    if offset > length {
        stack.raise(format_args!("Start offset {offset} greater than input length {length}."));
    }
    let mut unpacker = Unpacker { stack, rest: &text[offset..], pace: Pace::default() };
    let mut count = 0;
    while !unpacker.rest.is_empty() && (is_all || (count as usize) < limit) {
        match unpacker.value(0) {
            Ok(()) => count += 1,
            Err(Broken::End) => stack.raise(format_args!("Missing bytes in input.")),
            Err(Broken::Format) => stack.raise(format_args!("Bad data format in input.")),
        }
    }
    if is_all {
        return count;
    }
    stack.check_room(1, c"in function mp_unpack_full");
    let rest = unpacker.rest.len();
    stack.push_integer(if rest == 0 { -1 } else { (length - rest) as i64 });
    stack.insert(2);
    count + 1
}

const TOO_MANY: &CStr = c"too many return values at once; use unpack_one or unpack_limit instead.";

enum Broken {
    /// The text ends within a value.
    End,
    /// No value begins with this byte.
    Format,
}

struct Unpacker<'call> {
    stack: Stack<'call>,
    rest: &'call [u8],
    pace: Pace,
}

impl Unpacker<'_> {
    /// Pushes the next value. On an error, some values more than before may be on the stack.
    fn value(&mut self, depth: c_int) -> Result<(), Broken> {
        let stack = self.stack;
        stack.check_room(1, TOO_MANY);
        self.pace.step(stack);
        let [kind] = self.take()?;
        match kind {
            0x00..=0x7F | 0xE0..=0xFF => stack.push_number(f64::from(kind as i8)),
            0x80..=0x8F => return self.map(u32::from(kind & 15), depth),
            0x90..=0x9F => return self.array(u32::from(kind & 15), depth),
            0xA0..=0xBF => return self.string(u32::from(kind & 31)),
            0xC0 => stack.push_nil(),
            0xC2 | 0xC3 => stack.push_boolean(kind == 0xC3),
            0xCA => stack.push_number(f64::from(f32::from_be_bytes(self.take()?))),
            0xCB => stack.push_number(f64::from_be_bytes(self.take()?)),
            0xCC => stack.push_number(f64::from(u8::from_be_bytes(self.take()?))),
            0xCD => stack.push_number(f64::from(u16::from_be_bytes(self.take()?))),
            0xCE => stack.push_number(f64::from(u32::from_be_bytes(self.take()?))),
            0xCF => stack.push_number(i64::from_be_bytes(self.take()?) as f64),
            0xD0 => stack.push_number(f64::from(i8::from_be_bytes(self.take()?))),
            0xD1 => stack.push_number(f64::from(i16::from_be_bytes(self.take()?))),
            0xD2 => stack.push_number(f64::from(i32::from_be_bytes(self.take()?))),
            0xD3 => stack.push_number(i64::from_be_bytes(self.take()?) as f64),
            0xD9 => {
                let length = u8::from_be_bytes(self.take()?);
                return self.string(length.into());
            }
            0xDA | 0xDC | 0xDE => {
                let length = u16::from_be_bytes(self.take()?);
                return self.long(kind, length.into(), depth);
            }
            0xDB | 0xDD | 0xDF => {
                let length = u32::from_be_bytes(self.take()?);
                return self.long(kind - 1, length, depth);
            }
            _ => return Err(Broken::Format),
        }
        Ok(())
    }

    /// What has a length of two or four bytes.
    fn long(&mut self, kind: u8, length: u32, depth: c_int) -> Result<(), Broken> {
        match kind {
            0xDA => self.string(length),
            0xDC => self.array(length, depth),
            _ => self.map(length, depth),
        }
    }

    fn string(&mut self, length: u32) -> Result<(), Broken> {
        let (bytes, rest) = self.rest.split_at_checked(length as usize).ok_or(Broken::End)?;
        self.stack.push_bytes(bytes);
        self.pace.steps(self.stack, bytes.len() / BYTES_PER_STEP);
        self.rest = rest;
        Ok(())
    }

    fn array(&mut self, length: u32, depth: c_int) -> Result<(), Broken> {
        let stack = self.stack;
        check_nesting(stack, depth, "in function mp_decode_to_lua_array");
        stack.new_table();
        stack.check_room(1, c"in function mp_decode_to_lua_array");
        for index in 1..=length {
            stack.push_number(f64::from(index));
            self.value(depth + 1)?;
            stack.set(-3);
        }
        Ok(())
    }

    fn map(&mut self, length: u32, depth: c_int) -> Result<(), Broken> {
        let stack = self.stack;
        check_nesting(stack, depth, TOO_MANY.to_str().unwrap_or_default());
        stack.new_table();
        for _ in 0..length {
            self.value(depth + 1)?;
            self.value(depth + 1)?;
            stack.set(-3);
        }
        Ok(())
    }

    fn take<const COUNT: usize>(&mut self) -> Result<[u8; COUNT], Broken> {
        let (bytes, rest) = self.rest.split_first_chunk::<COUNT>().ok_or(Broken::End)?;
        self.rest = rest;
        Ok(*bytes)
    }
}

fn check_nesting(stack: Stack<'_>, depth: c_int, text: &str) {
    stack.check_depth();
    if depth >= NESTING_MAX {
        stack.raise(format_args!("stack overflow ({text})"));
    }
}
