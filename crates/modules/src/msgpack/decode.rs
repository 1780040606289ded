//! MessagePack to Lua values.

use super::encode::{DATETIME, DECIMAL, ERROR, INTERVAL, UUID};
use crate::cdata::{push_i64, push_null, push_u64};
use crate::datetime::{push_datetime_payload, push_interval_payload};
use crate::decimal::push_decimal_payload;
use crate::serializer::{DEPTH_MAX, Options, own_options, push_hint};
use crate::stack::{State, check_bytes, never, push_bytes, raise};
use crate::uuid::push_uuid;
use ladon_msgpack::{Value, read};
use mlua::ffi::*;
use std::ffi::{CStr, c_int};

const SLOTS_OF_A_LEVEL: c_int = 8;

/// `decode(text, offset) -> value, offset behind it`; offsets count from 1.
pub(super) unsafe extern "C-unwind" fn decode(state: State) -> c_int {
    // SAFETY: As for `stack`; the text stays on the stack.
    unsafe {
        let text = check_bytes(state, 1);
        let offset = luaL_optnumber(state, 2, 1.0);
        if offset < 1.0 || offset > text.len() as f64 {
            never(luaL_error(state, c"msgpack.decode: offset is out of bounds".as_ptr()));
        }
        let rest = &text[offset as usize - 1..];
        let used = push_value(state, own_options(state), rest);
        lua_pushnumber(state, offset + used as f64);
        2
    }
}

/// `decode_at(address, bytes) -> value, bytes that it has`. Without bytes, the program answers for
/// that there is a whole value, as with all of FFI.
pub(super) unsafe extern "C-unwind" fn decode_at(state: State) -> c_int {
    /// No value is as long.
    const BYTES_MAX: usize = 1 << 40;
    // SAFETY: As for `stack`.
    unsafe {
        let start = lua_tonumber(state, 1) as usize as *const u8;
        if start.is_null() {
            raise(state, b"msgpack.decode: null pointer");
        }
        let length = match lua_type(state, 2) {
            LUA_TNUMBER => lua_tonumber(state, 2).max(0.0) as usize,
            _ => BYTES_MAX,
        };
        let bytes = std::slice::from_raw_parts(start, length);
        let used = push_value(state, own_options(state), bytes);
        lua_pushnumber(state, used as f64);
        2
    }
}

/// Pushes the first value; returns how many bytes it has.
unsafe fn push_value(state: State, options: Options, bytes: &[u8]) -> usize {
    let mut decoder = Decoder { state, options, rest: bytes };
    // SAFETY: As for `stack`.
    unsafe { decoder.value(0) };
    bytes.len() - decoder.rest.len()
}

struct Decoder<'a> {
    state: State,
    options: Options,
    rest: &'a [u8],
}

impl Decoder<'_> {
    unsafe fn value(&mut self, depth: u32) {
        let state = self.state;
        // SAFETY: As for `stack`.
        unsafe {
            if depth > DEPTH_MAX {
                raise(state, b"msgpack.decode: too many nested values");
            }
            luaL_checkstack(state, SLOTS_OF_A_LEVEL, c"msgpack.decode".as_ptr());
            let value = match read(&mut self.rest) {
                Ok(value) => value,
                Err(_) => raise(state, b"msgpack.decode: invalid MsgPack"),
            };
            match value {
                Value::Nil => push_null(state),
                Value::Bool(value) => lua_pushboolean(state, value.into()),
                Value::Uint(value) => push_u64(state, value),
                Value::Int(value) => push_i64(state, value),
                Value::Float(value) => self.number(value.into()),
                Value::Double(value) => self.number(value),
                Value::Str(text) | Value::Bin(text) => push_bytes(state, text),
                Value::Array(count) => self.array(count, depth + 1),
                Value::Map(count) => self.map(count, depth + 1),
                Value::Ext(kind, payload) => self.extension(kind, payload),
            }
        }
    }

    unsafe fn number(&self, value: f64) {
        // SAFETY: As for `stack`.
        unsafe {
            if !value.is_finite() && !self.options.decode_invalid_numbers {
                raise(self.state, b"number must not be NaN or Inf");
            }
            lua_pushnumber(self.state, value);
        }
    }

    unsafe fn extension(&self, kind: i8, payload: &[u8]) {
        let state = self.state;
        // SAFETY: As for `stack`.
        unsafe {
            match (kind, <[u8; 16]>::try_from(payload)) {
                (UUID, Ok(bytes)) => push_uuid(state, bytes),
                (DECIMAL, _) if push_decimal_payload(state, payload) => {}
                (DATETIME, _) if push_datetime_payload(state, payload) => {}
                (INTERVAL, _) if push_interval_payload(state, payload) => {}
                (ERROR, _) => self.error(payload, kind),
                (DECIMAL | UUID | DATETIME | INTERVAL, _) => {
                    raise(state, b"msgpack.decode: invalid MsgPack")
                }
                _ => unsupported(state, kind),
            }
        }
    }

    /// An error, where there is a box that knows them.
    unsafe fn error(&self, payload: &[u8], kind: i8) {
        let state = self.state;
        // SAFETY: As for `stack`.
        unsafe {
            lua_getfield(state, LUA_REGISTRYINDEX, c"ladon.error_of".as_ptr());
            if lua_type(state, -1) != LUA_TFUNCTION {
                unsupported(state, kind);
            }
            push_bytes(state, payload);
            lua_call(state, 1, 1);
        }
    }

    unsafe fn finish(&self, hint: &CStr) {
        if self.options.decode_save_metatables {
            // SAFETY: As for `stack`.
            unsafe {
                push_hint(self.state, hint);
                lua_setmetatable(self.state, -2);
            }
        }
    }

    unsafe fn array(&mut self, count: u32, depth: u32) {
        // SAFETY: As for `stack`. The table grows with what there is, whatever the count says.
        unsafe {
            lua_createtable(self.state, 0, 0);
            for place in 1..=i64::from(count) {
                self.value(depth);
                lua_rawseti_(self.state, -2, place as c_int);
            }
            self.finish(c"seq");
        }
    }

    unsafe fn map(&mut self, count: u32, depth: u32) {
        // SAFETY: As for `stack`.
        unsafe {
            lua_createtable(self.state, 0, 0);
            for _ in 0..count {
                self.value(depth);
                self.value(depth);
                lua_rawset(self.state, -3);
            }
            self.finish(c"map");
        }
    }
}

unsafe fn unsupported(state: State, kind: i8) -> ! {
    // SAFETY: As for `stack`.
    unsafe {
        never(luaL_error(
            state,
            c"msgpack.decode: Unsuported MsgPack extension type: %d".as_ptr(),
            c_int::from(kind),
        ))
    }
}
