//! Lua values to MessagePack.

use crate::cdata::{self, Type};
use crate::datetime::{
    DATETIME_BYTES_MAX, INTERVAL_BYTES_MAX, datetime_to_payload, interval_to_payload,
};
use crate::decimal::{PAYLOAD_BYTES_MAX, decimal_to_payload};
use crate::serializer::{DEPTH_MAX, Field, Looker, own_options};
use crate::stack::{State, bytes, own, push_bytes, raise};
use crate::uuid::uuid_to_bytes;
use ladon_msgpack::write;
use mlua::ffi::*;
use std::ffi::c_int;

const SLOTS_OF_A_LEVEL: c_int = 10;
/// The longest text that is written.
const BYTES_MAX: usize = 1 << 31;

/// The types of extensions.
pub(super) const DECIMAL: i8 = 1;
pub(super) const UUID: i8 = 2;
pub(super) const ERROR: i8 = 3;
pub(super) const DATETIME: i8 = 4;
pub(super) const INTERVAL: i8 = 6;

/// `encode(value) -> text`.
pub(super) unsafe extern "C-unwind" fn encode(state: State) -> c_int {
    // SAFETY: As for `stack`; the text belongs to the userdata.
    unsafe {
        let options = own_options(state);
        lua_settop(state, 1);
        let out = own::<Vec<u8>>(state);
        lua_pushvalue(state, 1);
        let looker = Looker { state, types: cdata::types(state), options };
        Encoder { looker, out }.value(0);
        push_bytes(state, &*out);
        *out = Vec::new();
        1
    }
}

struct Encoder<'a> {
    looker: Looker<'a>,
    out: *mut Vec<u8>,
}

impl Encoder<'_> {
    /// Where the text is written: it lives as long as its userdata, and is used here alone.
    fn out(&mut self) -> &mut Vec<u8> {
        // SAFETY: As said.
        let out = unsafe { &mut *self.out };
        if out.len() > BYTES_MAX {
            // SAFETY: As for `stack`; nothing here has to be dropped.
            unsafe { raise(self.looker.state, b"not enough memory") };
        }
        out
    }

    /// Writes the value at the top of the stack, which stays there, perhaps replaced.
    unsafe fn value(&mut self, depth: u32) {
        let state = self.looker.state;
        // SAFETY: As for `stack`, and there is room for a level.
        unsafe {
            let index = lua_gettop(state);
            luaL_checkstack(state, SLOTS_OF_A_LEVEL, c"msgpack.encode".as_ptr());
            // What a program has made a float or a double stays one.
            match cdata::look(state, self.looker.types, index) {
                Some((Type::Float, payload)) => {
                    return write::float(self.out(), payload.cast::<f32>().read());
                }
                Some((Type::Double, payload)) => {
                    return write::double(self.out(), payload.cast::<f64>().read());
                }
                _ => {}
            }
            if self.extension(index) {
                return;
            }
            match self.looker.look(index) {
                Field::Nil => write::nil(self.out()),
                Field::Bool(value) => write::bool(self.out(), value),
                Field::Signed(value) => write::int(self.out(), value),
                Field::Unsigned(value) => write::uint(self.out(), value),
                Field::Double(value) => write::double(self.out(), value),
                Field::Text(text) => write::str(self.out(), text),
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
                Field::Decimal => {
                    let mut payload = [0; PAYLOAD_BYTES_MAX];
                    if let Some(length) = decimal_to_payload(state, index, &mut payload) {
                        write::ext(self.out(), DECIMAL, &payload[..length]);
                    }
                }
                Field::Datetime => {
                    let mut payload = [0; DATETIME_BYTES_MAX];
                    if let Some(length) = datetime_to_payload(state, index, &mut payload) {
                        write::ext(self.out(), DATETIME, &payload[..length]);
                    }
                }
                Field::Interval => {
                    let mut payload = [0; INTERVAL_BYTES_MAX];
                    if let Some(length) = interval_to_payload(state, index, &mut payload) {
                        write::ext(self.out(), INTERVAL, &payload[..length]);
                    }
                }
                Field::Uuid => {
                    if let Some(bytes) = uuid_to_bytes(state, index) {
                        write::ext(self.out(), UUID, &bytes);
                    }
                }
            }
        }
    }

    /// Writes a cdata that a box shows as an extension (`ladon.extension`, which answers payload and
    /// number, or nothing). Whether it is one.
    unsafe fn extension(&mut self, index: c_int) -> bool {
        let state = self.looker.state;
        // SAFETY: As for `stack`; the texts are at the top while they are written.
        unsafe {
            let is_off = !self.looker.options.encode_error_as_ext;
            if is_off || lua_type(state, index) != cdata::LUA_TCDATA {
                return false;
            }
            lua_getfield(state, LUA_REGISTRYINDEX, c"ladon.extension".as_ptr());
            if lua_type(state, -1) != LUA_TFUNCTION {
                lua_settop(state, index);
                return false;
            }
            lua_pushvalue(state, index);
            lua_call(state, 1, 2);
            let kind = lua_tonumber(state, -1) as i8;
            if kind != 0 {
                write::ext(self.out(), kind, bytes(state, -2).unwrap_or_default());
            }
            lua_settop(state, index);
            kind != 0
        }
    }

    /// Whether a table at this depth is written. As nil it is written here.
    fn enter(&mut self, depth: u32) -> bool {
        let depth_max = u32::try_from(self.looker.options.encode_max_depth).unwrap_or(0);
        if depth < depth_max.min(DEPTH_MAX) {
            return true;
        }
        if !self.looker.options.encode_deep_as_nil || depth >= DEPTH_MAX {
            // SAFETY: As for `stack`; nothing here has to be dropped.
            unsafe { raise(self.looker.state, b"Too high nest level") };
        }
        write::nil(self.out());
        false
    }

    unsafe fn array(&mut self, index: c_int, length: usize, depth: u32) {
        let state = self.looker.state;
        write::array(self.out(), u32::try_from(length).unwrap_or(u32::MAX));
        for place in 1..=length {
            // SAFETY: As for `stack`.
            unsafe {
                lua_rawgeti_(state, index, place as c_int);
                self.value(depth);
                lua_settop(state, -2);
            }
        }
    }

    unsafe fn map(&mut self, index: c_int, depth: u32) {
        let state = self.looker.state;
        // SAFETY: As for `stack`. The key is copied before it is looked at, which may replace it.
        unsafe {
            let mut count = 0;
            lua_pushnil(state);
            while lua_next(state, index) != 0 {
                count += 1;
                lua_settop(state, -2);
            }
            write::map(self.out(), count);
            lua_pushnil(state);
            while lua_next(state, index) != 0 {
                lua_pushvalue(state, -2);
                self.value(depth);
                lua_settop(state, -2);
                self.value(depth);
                lua_settop(state, -2);
            }
        }
    }
}
