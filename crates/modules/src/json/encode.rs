//! Lua values to JSON.

use crate::cdata;
use crate::numbers::write_double;
use crate::serializer::{DEPTH_MAX, Field, Looker, Options, own_options};
use crate::stack::{State, never, own, push_bytes, raise};
use mlua::ffi::*;
use std::ffi::c_int;
use std::io::Write as _;

/// Longest text that is made.
const BYTES_MAX: usize = i32::MAX as usize;

/// Slots of the Lua stack that a level of nesting takes: a key, a value, and what looking at it
/// needs.
const SLOTS_OF_A_LEVEL: c_int = 10;

/// `json.encode(value [, options])`.
pub(super) unsafe extern "C-unwind" fn encode(state: State) -> c_int {
    // SAFETY: As for `stack`; the functions of a serializer have their options.
    unsafe {
        let given = lua_gettop(state);
        if given != 1 && given != 2 {
            never(luaL_error(
                state,
                c"bad argument #1 to '?' (expected 1 or 2 arguments)".as_ptr(),
            ));
        }
        let mut options = own_options(state);
        if given == 2 {
            options.read(state, 2);
        }
        push_encoded(state, 1, options);
        1
    }
}

/// Pushes the value at `index` (counted from below) as JSON.
pub(crate) unsafe fn push_encoded(state: State, index: c_int, options: Options) {
    // SAFETY: As for `stack`; the bytes belong to the userdata.
    unsafe {
        let out = own::<Vec<u8>>(state);
        let looker = Looker { state, types: cdata::types(state), options };
        lua_pushvalue(state, index);
        Encoder { looker, out }.value(0);
        lua_settop(state, -2);
        push_bytes(state, &*out);
        drop(std::mem::take(&mut *out));
        lua_replace(state, -2);
    }
}

struct Encoder<'a> {
    looker: Looker<'a>,
    out: *mut Vec<u8>,
}

impl Encoder<'_> {
    fn write(&mut self, bytes: &[u8]) {
        // SAFETY: The vector lives as long as its userdata on the stack, and is used here alone.
        let out = unsafe { &mut *self.out };
        if out.len() + bytes.len() > BYTES_MAX {
            // SAFETY: As for `stack`; nothing here has to be dropped.
            unsafe { raise(self.looker.state, b"not enough memory") };
        }
        out.extend_from_slice(bytes);
    }

    /// Writes the value at the top of the stack, which stays there, perhaps replaced.
    unsafe fn value(&mut self, depth: u32) {
        let state = self.looker.state;
        // SAFETY: As for `stack`, and there is room for a level.
        unsafe {
            let index = lua_gettop(state);
            luaL_checkstack(state, SLOTS_OF_A_LEVEL, c"json.encode".as_ptr());
            match self.looker.look(index) {
                Field::Nil => self.write(b"null"),
                Field::Bool(true) => self.write(b"true"),
                Field::Bool(false) => self.write(b"false"),
                Field::Double(number) => self.double(number),
                Field::Text(text) => self.text(text),
                Field::Array { length, .. } => {
                    if self.enter(depth) {
                        self.array(index, length, depth + 1);
                    }
                }
                Field::Map { .. } => {
                    if self.enter(depth) {
                        self.map(index, depth + 1);
                    }
                }
                other => {
                    let mut room = [0_u8; ROOM];
                    let length = scalar(state, index, other, &mut room);
                    self.write(&room[..length]);
                }
            }
        }
    }

    fn double(&mut self, number: f64) {
        let mut room = [0; 64];
        let length = write_double(number, self.looker.options.encode_number_precision, &mut room);
        self.write(&room[..length]);
    }

    /// Whether a table at this depth is written. As `null` it is written here.
    fn enter(&mut self, depth: u32) -> bool {
        let depth_max = u32::try_from(self.looker.options.encode_max_depth).unwrap_or(0);
        if depth < depth_max.min(DEPTH_MAX) {
            return true;
        }
        if !self.looker.options.encode_deep_as_nil || depth >= DEPTH_MAX {
            // SAFETY: As for `stack`; nothing here has to be dropped.
            unsafe { raise(self.looker.state, b"Too high nest level") };
        }
        self.write(b"null");
        false
    }

    unsafe fn array(&mut self, index: c_int, length: usize, depth: u32) {
        let state = self.looker.state;
        self.write(b"[");
        for place in 1..=length {
            if place > 1 {
                self.write(b",");
            }
            // SAFETY: As for `stack`.
            unsafe {
                lua_rawgeti_(state, index, place as c_int);
                self.value(depth);
                lua_settop(state, -2);
            }
        }
        self.write(b"]");
    }

    unsafe fn map(&mut self, index: c_int, depth: u32) {
        let state = self.looker.state;
        self.write(b"{");
        let mut first = true;
        // SAFETY: As for `stack`. The key is copied before it is looked at, which may replace it.
        unsafe {
            lua_pushnil(state);
            while lua_next(state, index) != 0 {
                if !first {
                    self.write(b",");
                }
                first = false;
                lua_pushvalue(state, -2);
                self.key();
                lua_settop(state, -2);
                self.value(depth);
                lua_settop(state, -2);
            }
        }
        self.write(b"}");
    }

    unsafe fn key(&mut self) {
        let state = self.looker.state;
        // SAFETY: As for `stack`.
        unsafe {
            let index = lua_gettop(state);
            match self.looker.look(index) {
                Field::Text(text) => self.text(text),
                field @ (Field::Signed(_) | Field::Unsigned(_)) => {
                    let mut room = [0_u8; ROOM];
                    let length = scalar(state, index, field, &mut room);
                    self.write(b"\"");
                    self.write(&room[..length]);
                    self.write(b"\"");
                }
                _ => {
                    raise(state, b"table key must be a number or string");
                }
            }
        }
        self.write(b":");
    }

    fn text(&mut self, text: &[u8]) {
        self.write(b"\"");
        let mut plain = 0;
        for (place, byte) in text.iter().enumerate() {
            let mut room = *b"\\u00..";
            let escaped: &[u8] = match byte {
                b'"' => b"\\\"",
                b'\\' => b"\\\\",
                b'/' => b"\\/",
                b'\x08' => b"\\b",
                b'\t' => b"\\t",
                b'\n' => b"\\n",
                b'\x0c' => b"\\f",
                b'\r' => b"\\r",
                0..=0x1f | 0x7f => {
                    room[4] = b"0123456789abcdef"[usize::from(byte >> 4)];
                    room[5] = b"0123456789abcdef"[usize::from(byte & 15)];
                    &room[..6]
                }
                _ => continue,
            };
            self.write(&text[plain..place]);
            self.write(escaped);
            plain = place + 1;
        }
        self.write(&text[plain..]);
        self.write(b"\"");
    }
}

/// What the longest scalar takes: an interval of eight numbers with their units.
const ROOM: usize = 320;

/// Writes an integer, a decimal, a uuid, a datetime or an interval to `room`; returns its length.
/// Quotes are included.
unsafe fn scalar(state: State, index: c_int, field: Field<'_>, room: &mut [u8; ROOM]) -> usize {
    let mut rest = &mut room[..];
    // SAFETY: As for `stack`; the value at `index` is of the type that was found.
    let written = unsafe {
        match field {
            Field::Signed(value) => write!(rest, "{value}"),
            Field::Unsigned(value) => write!(rest, "{value}"),
            Field::Uuid => write!(rest, "\"{}\"", crate::uuid::at(state, index)),
            Field::Decimal => write!(rest, "\"{}\"", crate::decimal::at(state, index)),
            Field::Datetime => write!(rest, "\"{}\"", crate::datetime::at(state, index)),
            Field::Interval => write!(rest, "\"{}\"", crate::datetime::interval_at(state, index)),
            _ => unreachable!("`value` and `key` call this with these six alone"),
        }
    };
    written.expect("39 digits, a sign, a point, zeros up to a scale of 38 and quotes fit in 64, eight numbers with units in 320");
    ROOM - rest.len()
}
