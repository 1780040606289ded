//! `struct`: numbers and strings in the layout of C structures, as in struct 0.2 for Lua
//! (<http://www.inf.puc-rio.br/~roberto/struct/>).

use super::buffer::Buffer;
use super::stack::{Stack, upvalue};
use crate::stack::State;
use std::ffi::{c_int, c_short};

/// Where `pack` keeps the memory of its buffer from call to call.
const BUFFER: c_int = upvalue(1);

/// The longest integer, in bytes.
const INTEGER_BYTES_MAX: usize = 32;

/// The strictest alignment of this machine.
const ALIGN_MAX: usize = 8;

/// Pushes the library.
///
/// # Safety
/// The state must be live, and the caller protected from errors (memory may be short).
pub(super) unsafe fn open(state: State) {
    // SAFETY: As promised.
    let stack = unsafe { Stack::of(state) };
    stack.check_room(4, c"struct");
    stack.new_table();
    stack.push_nil();
    stack.push_function(pack, 1);
    stack.set_field(-2, c"pack");
    stack.push_function(unpack, 0);
    stack.set_field(-2, c"unpack");
    stack.push_function(size, 0);
    stack.set_field(-2, c"size");
}

/// Reads a format, option by option, and keeps what the options before have set.
struct Format<'call> {
    stack: Stack<'call>,
    rest: &'call [u8],
    is_big: bool,
    align: usize,
}

impl<'call> Format<'call> {
    /// The first argument.
    fn of(stack: Stack<'call>) -> Format<'call> {
        let text = stack.check_bytes(1);
        // As C strings, formats end at a zero.
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        Format { stack, rest: &text[..end], is_big: cfg!(target_endian = "big"), align: 1 }
    }

    /// The next option, and the size of its value.
    fn next(&mut self) -> Option<(u8, usize)> {
        let (&option, rest) = self.rest.split_first()?;
        self.rest = rest;
        let size = match option {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => size_of::<c_short>(),
            b'l' | b'L' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(1),
            b'i' | b'I' => {
                let size = self.number(size_of::<c_int>());
                if size > INTEGER_BYTES_MAX {
                    self.stack.raise(format_args!(
                        "integral size {size} is larger than limit of {INTEGER_BYTES_MAX}"
                    ));
                }
                size
            }
            _ => 0,
        };
        Some((option, size))
    }

    /// The number that follows.
    fn number(&mut self, default: usize) -> usize {
        let mut number = None;
        while let Some((digit @ b'0'..=b'9', rest)) = self.rest.split_first() {
            let next = number.unwrap_or(0_i32).checked_mul(10);
            number = next.and_then(|number| number.checked_add(i32::from(digit - b'0')));
            if number.is_none() {
                self.stack.raise(format_args!("integral size overflow"));
            }
            self.rest = rest;
        }
        number.map_or(default, |number| number as usize)
    }

    /// Bytes before a value of this size at `position`.
    fn padding(&self, position: usize, option: u8, size: usize) -> usize {
        if size == 0 || option == b'c' {
            return 0;
        }
        let size = size.min(self.align);
        size.wrapping_sub(position & (size - 1)) & (size - 1)
    }

    /// An option that has no value.
    fn control(&mut self, option: u8) {
        match option {
            b' ' => {}
            b'>' => self.is_big = true,
            b'<' => self.is_big = false,
            b'!' => {
                let align = self.number(ALIGN_MAX);
                if !align.is_power_of_two() {
                    self.stack.raise(format_args!("alignment {align} is not a power of 2"));
                }
                self.align = align;
            }
            _ => self.stack.raise_argument_byte(1, c"invalid format option '%c'", option),
        }
    }

    /// Turns bytes in this machine's order into the format's, or back.
    fn order<const COUNT: usize>(&self, mut bytes: [u8; COUNT]) -> [u8; COUNT] {
        if self.is_big != cfg!(target_endian = "big") {
            bytes.reverse();
        }
        bytes
    }
}

fn pack(stack: Stack<'_>) -> c_int {
    let mut format = Format::of(stack);
    // Marks the end of the arguments.
    stack.push_nil();
    let mut packed = Buffer::take(stack, BUFFER);
    let (mut argument, mut total) = (2, 0_usize);
    while let Some((option, mut size)) = format.next() {
        let padding = format.padding(total, option, size);
        packed.add_repeated(0, padding);
        total += padding;
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let value = integer(stack.check_number(argument));
                add_integer(&mut packed, value, size, format.is_big);
                argument += 1;
            }
            b'x' => packed.add_byte(0),
            b'f' => {
                let value = stack.check_number(argument) as f32;
                packed.add(&format.order(value.to_ne_bytes()));
                argument += 1;
            }
            b'd' => {
                let value = stack.check_number(argument);
                packed.add(&format.order(value.to_ne_bytes()));
                argument += 1;
            }
            b'c' | b's' => {
                let text = stack.check_bytes(argument);
                argument += 1;
                if size == 0 {
                    size = text.len();
                }
                let Some(text) = text.get(..size) else {
                    stack.raise_argument(argument, c"string too short")
                };
                packed.add(text);
                if option == b's' {
                    packed.add_byte(0);
                    size += 1;
                }
            }
            _ => format.control(option),
        }
        total += size;
    }
    stack.push_bytes(packed.bytes());
    packed.keep(BUFFER);
    1
}

/// As C converts a number on x86 to `unsigned long`, by way of `long` if it is negative.
fn integer(number: f64) -> u64 {
    if number < 0.0 { number as i64 as u64 } else { number as u64 }
}

/// Adds the lowest `size` bytes of a number; what goes beyond it is zero.
fn add_integer(packed: &mut Buffer<'_>, value: u64, size: usize, is_big: bool) {
    let mut bytes = [0; INTEGER_BYTES_MAX];
    bytes[..8].copy_from_slice(&value.to_le_bytes());
    let bytes = &mut bytes[..size];
    if is_big {
        bytes.reverse();
    }
    packed.add(bytes);
}

fn unpack(stack: Stack<'_>) -> c_int {
    let mut format = Format::of(stack);
    let data = stack.check_bytes(2);
    let position = stack.optional_integer(3, 1) as usize;
    if position == 0 {
        stack.raise_argument(3, c"offset must be 1 or greater");
    }
    let mut position = position - 1;
    let mut results = 0;
    let part = |position: usize, size: usize| {
        let end = position.checked_add(size);
        end.and_then(|end| data.get(position..end))
            .unwrap_or_else(|| stack.raise_argument(2, c"data string too short"))
    };
    while let Some((option, mut size)) = format.next() {
        position = position.wrapping_add(format.padding(position, option, size));
        let bytes = part(position, size);
        // The value, and the next position.
        stack.check_room(2, c"too many results");
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let is_signed = option.is_ascii_lowercase();
                stack.push_number(number_of(bytes, is_signed, format.is_big));
                results += 1;
            }
            b'x' => {}
            b'f' => {
                let bytes = format.order(bytes.try_into().unwrap_or_default());
                stack.push_number(f64::from(f32::from_ne_bytes(bytes)));
                results += 1;
            }
            b'd' => {
                let bytes = format.order(bytes.try_into().unwrap_or_default());
                stack.push_number(f64::from_ne_bytes(bytes));
                results += 1;
            }
            b'c' if size == 0 => {
                if results == 0 || !stack.is_numeric(-1) {
                    stack.raise(format_args!("format 'c0' needs a previous size"));
                }
                // What is no size is longer than all data.
                size = integer(stack.number(-1)) as usize;
                stack.pop(1);
                stack.push_bytes(part(position, size));
            }
            b'c' => {
                stack.push_bytes(bytes);
                results += 1;
            }
            b's' => {
                let rest = &data[position..];
                let Some(length) = memchr::memchr(0, rest) else {
                    stack.raise(format_args!("unfinished string in data"))
                };
                stack.push_bytes(&rest[..length]);
                size = length + 1;
                results += 1;
            }
            _ => format.control(option),
        }
        position += size;
    }
    stack.push_number((position + 1) as f64);
    results + 1
}

/// The number of these bytes; of more than eight, the last ones count.
fn number_of(bytes: &[u8], is_signed: bool, is_big: bool) -> f64 {
    let join = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
    let value = if is_big { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) };
    if !is_signed {
        return value as f64;
    }
    let sign = u64::MAX.wrapping_shl((bytes.len() as u32).wrapping_mul(8).wrapping_sub(1));
    let value = if value & sign != 0 { value | sign } else { value };
    value as i64 as f64
}

fn size(stack: Stack<'_>) -> c_int {
    let mut format = Format::of(stack);
    let mut position = 0_usize;
    while let Some((option, size)) = format.next() {
        position += format.padding(position, option, size);
        match option {
            b's' => stack.raise_argument(1, c"option 's' has no fixed size"),
            b'c' if size == 0 => stack.raise_argument(1, c"option 'c0' has no fixed size"),
            _ if !option.is_ascii_alphanumeric() => format.control(option),
            _ => {}
        }
        position += size;
    }
    stack.push_number(position as f64);
    1
}
