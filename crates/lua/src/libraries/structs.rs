//! `struct`: C's structures, as struct 0.2 reads and writes them.
//!
//! A format's letters: `b B h H l L T i I` integers (small letters signed), `iN IN` of `N` bytes,
//! `f d` floats, `cN` a string of `N` bytes, `c0` the whole string (read: as long as the number
//! before it says), `s` a string with a zero after it, `x` a zero; `<` and `>` choose the order of
//! bytes, `!N` the alignment.

use super::buffer::Buffer;
use super::stack::{Pace, Stack};
use crate::stack::State;
use std::ffi::{CStr, c_int};

/// No integer has more bytes.
const INTEGER_BYTES_MAX: usize = 32;

/// The alignment of `!` without a number.
const ALIGN_DEFAULT: usize = 8;

/// Pushes the library.
///
/// # Safety
/// The state must be live, and the caller protected from errors (memory may be short).
pub(crate) unsafe fn open(state: State) {
    // SAFETY: As above.
    let stack = unsafe { Stack::of(state) };
    stack.new_table();
    stack.push_function(pack, 0);
    stack.set_field(-2, c"pack");
    stack.push_function(unpack, 0);
    stack.set_field(-2, c"unpack");
    stack.push_function(size, 0);
    stack.set_field(-2, c"size");
}

fn pack(stack: Stack<'_>) -> c_int {
    let mut format = Format::of(stack);
    let mut argument = 2;
    // Where arguments are missing, this is found.
    stack.push_nil();
    let mut packed = Buffer::new(stack);
    while let Some(option) = format.next() {
        packed.add_repeated(0, format.padding(packed.bytes().len(), option));
        let size = option.size;
        match option.letter {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let mut bytes = [0; INTEGER_BYTES_MAX];
                let low = wrap(stack.check_number(argument)).to_le_bytes();
                bytes[..8].copy_from_slice(&low);
                format.add(&mut packed, &mut bytes[..size]);
            }
            b'f' => {
                let mut bytes = (stack.check_number(argument) as f32).to_le_bytes();
                format.add(&mut packed, &mut bytes);
            }
            b'd' => {
                let mut bytes = stack.check_number(argument).to_le_bytes();
                format.add(&mut packed, &mut bytes);
            }
            b'c' | b's' => {
                let string = stack.check_bytes(argument);
                let size = if size == 0 { string.len() } else { size };
                let Some(string) = string.get(..size) else {
                    stack.raise_argument(argument + 1, c"string too short")
                };
                packed.add(string);
                if option.letter == b's' {
                    packed.add_byte(0);
                }
            }
            b'x' => {
                packed.add_byte(0);
                continue;
            }
            _ => {
                format.control(option.letter);
                continue;
            }
        }
        argument += 1;
    }
    stack.push_bytes(packed.bytes());
    1
}

fn unpack(stack: Stack<'_>) -> c_int {
    let mut format = Format::of(stack);
    let data = stack.check_bytes(2);
    // As C converts it: what is negative becomes very large.
    let start = stack.optional_integer(3, 1) as usize;
    if start == 0 {
        stack.raise_argument(3, c"offset must be 1 or greater");
    }
    let mut at = start - 1;
    let mut count = 0;
    while let Some(option) = format.next() {
        at = at.wrapping_add(format.padding(at, option));
        let mut bytes = slice(stack, data, at, option.size);
        stack.check_room(2, c"too many results");
        match option.letter {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                stack.push_number(format.integer(bytes, option.letter.is_ascii_lowercase()));
                count += 1;
            }
            b'f' => {
                stack.push_number(f32::from_le_bytes(format.little(bytes)).into());
                count += 1;
            }
            b'd' => {
                stack.push_number(f64::from_le_bytes(format.little(bytes)));
                count += 1;
            }
            b'c' => {
                if bytes.is_empty() {
                    if count == 0 || !stack.is_numeric(-1) {
                        stack.raise(format_args!("format 'c0' needs a previous size"));
                    }
                    let size = wrap(stack.number(-1)) as usize;
                    stack.pop(1);
                    count -= 1;
                    bytes = slice(stack, data, at, size);
                }
                stack.push_bytes(bytes);
                count += 1;
            }
            b's' => {
                let Some(length) = memchr::memchr(0, &data[at..]) else {
                    stack.raise(format_args!("unfinished string in data"))
                };
                stack.push_bytes(&data[at..at + length]);
                at += length + 1;
                count += 1;
            }
            b'x' => {}
            letter => format.control(letter),
        }
        at = at.wrapping_add(bytes.len());
    }
    stack.push_number(at.wrapping_add(1) as i64 as f64);
    count + 1
}

fn size(stack: Stack<'_>) -> c_int {
    let mut format = Format::of(stack);
    let mut total = 0_usize;
    while let Some(option) = format.next() {
        total = total.wrapping_add(format.padding(total, option));
        match option.letter {
            b's' => stack.raise_argument(1, c"option 's' has no fixed size"),
            b'c' if option.size == 0 => stack.raise_argument(1, c"option 'c0' has no fixed size"),
            letter if !letter.is_ascii_alphanumeric() => format.control(letter),
            _ => {}
        }
        total = total.wrapping_add(option.size);
    }
    stack.push_number(total as f64);
    1
}

/// So many bytes of the data, which is the second argument.
fn slice<'a>(stack: Stack<'_>, data: &'a [u8], at: usize, size: usize) -> &'a [u8] {
    match at.checked_add(size).and_then(|end| data.get(at..end)) {
        Some(bytes) => bytes,
        None => stack.raise_argument(2, c"data string too short"),
    }
}

/// A number as 64 bits, as C converts it on x86: out of range, a negative one and NaN become the
/// lowest, a positive one 0.
fn wrap(number: f64) -> u64 {
    const LOWEST: u64 = 1 << 63;
    if number.is_nan() || number < -9_223_372_036_854_775_808.0 {
        LOWEST
    } else if number < 0.0 {
        number as i64 as u64
    } else if number < 18_446_744_073_709_551_616.0 {
        number as u64
    } else {
        0
    }
}

/// A letter of a format, and how many bytes its value has; 0 if that is not fixed.
#[derive(Clone, Copy)]
struct Opt {
    letter: u8,
    size: usize,
}

/// What is left of a format, and what it has chosen.
struct Format<'call> {
    stack: Stack<'call>,
    rest: &'call [u8],
    is_big: bool,
    align: usize,
    pace: Pace,
}

impl<'call> Format<'call> {
    /// The first argument; a zero ends it.
    fn of(stack: Stack<'call>) -> Format<'call> {
        let text = stack.check_bytes(1);
        let end = memchr::memchr(0, text).unwrap_or(text.len());
        let rest = &text[..end];
        Format { stack, rest, is_big: false, align: 1, pace: Pace::default() }
    }

    fn next(&mut self) -> Option<Opt> {
        self.pace.step(self.stack);
        let (letter, rest) = self.rest.split_first()?;
        self.rest = rest;
        let size = match letter {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'f' => 4,
            b'l' | b'L' | b'T' | b'd' => 8,
            b'c' => self.number(1),
            b'i' | b'I' => {
                let size = self.number(4);
                if size > INTEGER_BYTES_MAX {
                    self.stack.raise(format_args!(
                        "integral size {size} is larger than limit of {INTEGER_BYTES_MAX}"
                    ));
                }
                size
            }
            _ => 0,
        };
        Some(Opt { letter: *letter, size })
    }

    /// The number that begins here, which fits into 31 bits.
    fn number(&mut self, default: usize) -> usize {
        if !self.rest.first().is_some_and(u8::is_ascii_digit) {
            return default;
        }
        let mut number = 0_usize;
        while let Some((digit @ b'0'..=b'9', rest)) = self.rest.split_first() {
            number = number * 10 + usize::from(digit - b'0');
            if number > c_int::MAX as usize {
                self.stack.raise(format_args!("integral size overflow"));
            }
            self.rest = rest;
        }
        number
    }

    /// Bytes before a value, so that it is aligned.
    fn padding(&self, at: usize, option: Opt) -> usize {
        if option.size == 0 || option.letter == b'c' {
            return 0;
        }
        let size = option.size.min(self.align);
        (size - (at & (size - 1))) & (size - 1)
    }

    /// What is not the letter of a value.
    fn control(&mut self, letter: u8) {
        match letter {
            b' ' => {}
            b'<' => self.is_big = false,
            b'>' => self.is_big = true,
            b'!' => {
                let align = self.number(ALIGN_DEFAULT);
                if !align.is_power_of_two() {
                    self.stack.raise(format_args!("alignment {align} is not a power of 2"));
                }
                self.align = align;
            }
            _ => {
                let text: &CStr = c"invalid format option '%c'";
                self.stack.raise_argument_byte(1, text, letter);
            }
        }
    }

    /// Adds bytes that are in little-endian order.
    fn add(&self, packed: &mut Buffer<'_>, bytes: &mut [u8]) {
        if self.is_big {
            bytes.reverse();
        }
        packed.add(bytes);
    }

    /// Bytes in little-endian order. There are `COUNT` of them.
    fn little<const COUNT: usize>(&self, bytes: &[u8]) -> [u8; COUNT] {
        let mut copy = [0; COUNT];
        copy.copy_from_slice(bytes);
        if self.is_big {
            copy.reverse();
        }
        copy
    }

    /// An integer, of which no more than the lowest 64 bits count.
    fn integer(&self, bytes: &[u8], is_signed: bool) -> f64 {
        let shift = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let value = if self.is_big {
            bytes.iter().fold(0, shift)
        } else {
            bytes.iter().rev().fold(0, shift)
        };
        if !is_signed {
            return value as f64;
        }
        // As x86 shifts: by the count's lowest six bits.
        let sign = u64::MAX.wrapping_shl((bytes.len() as u32 * 8).wrapping_sub(1));
        let value = if value & sign == 0 { value } else { value | sign };
        value as i64 as f64
    }
}
