//! MessagePack and Lua's values, as Tarantool turns one into the other
//! (<https://www.tarantool.io/en/doc/latest/reference/reference_lua/msgpack/>).
//!
//! ```text
//!   nil, cdata NULL <-> nil          number that is whole <-> integer       other number <-> double
//!   int64_t, uint64_t <-> integers beyond 1e14      string -> str      table <-> array or map
//!   tuple (struct tuple) -> the bytes that it is       decimal, uuid <-> extensions 1, 2
//!   datetime, interval <-> extensions 4, 6
//!   error <-> extension 3, or its message -> str, as the session says
//!   another extension -> an error
//! ```
//!
//! What a cdata is, its type's number says, which LuaJIT keeps in front of it; `set_tuple_type` of
//! `natives/system.rs` finds out at the start whether this is so.

use crate::stack::{LUA_TCDATA, State, bytes, push_bytes};
use ladon_modules::Integer;
use ladon_msgpack::{Value, read, write};
use mlua::ffi::*;
use std::ffi::c_int;

/// Extensions of Tarantool's MessagePack.
const EXT_DECIMAL: i8 = 1;
const EXT_UUID: i8 = 2;
const EXT_ERROR: i8 = 3;
const EXT_DATETIME: i8 = 4;
const EXT_INTERVAL: i8 = 6;
/// Levels of tables in tables, and of arrays in arrays.
const DEPTH_MAX: u32 = 128;
/// An array with this many places is never too sparse,
const SPARSE_SAFE: u64 = 10;
/// and one with at most this many places for an element is not.
const SPARSE_RATIO: u64 = 2;

/// The number of the tuples' type of cdata, and the registry's number of what makes them. Other types are
/// those of `ladon-modules`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Types {
    pub(crate) tuple: u16,
    pub(crate) make_tuple: c_int,
}

/// A tuple as Lua has it: `struct tuple` of `box.lua`.
#[repr(C)]
pub(crate) struct LuaTuple {
    /// Bytes of `data`.
    pub(crate) size: u32,
    /// The space whose format names its fields; 0 for none.
    pub(crate) space: u32,
    data: [u8; 0],
}

/// Why a value could not be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueError(pub(crate) String);

impl From<ladon_msgpack::Error> for ValueError {
    fn from(error: ladon_msgpack::Error) -> ValueError {
        ValueError(format!("invalid MessagePack: {error}"))
    }
}

/// The number of a cdata's type.
///
/// # Safety
/// As for [`crate::stack`]; there is a cdata at `index`.
pub(crate) unsafe fn ctype(state: State, index: c_int) -> u16 {
    // SAFETY: LuaJIT keeps the number in the two bytes that begin six before the value.
    unsafe { lua_topointer(state, index).cast::<u8>().sub(6).cast::<u16>().read() }
}

impl Types {
    /// The tuple at `index`, if there is one.
    ///
    /// # Safety
    /// As for [`crate::stack`].
    pub(crate) unsafe fn tuple<'a>(&self, state: State, index: c_int) -> Option<(&'a [u8], u32)> {
        // SAFETY: As promised; a cdata of this type is a tuple, whose bytes follow it.
        unsafe {
            if lua_type(state, index) != LUA_TCDATA || ctype(state, index) != self.tuple {
                return None;
            }
            let tuple = lua_topointer(state, index).cast::<LuaTuple>();
            let data = (&raw const (*tuple).data).cast::<u8>();
            Some((std::slice::from_raw_parts(data, (*tuple).size as usize), (*tuple).space))
        }
    }

    /// Pushes a tuple.
    ///
    /// # Safety
    /// As for [`crate::stack`]; three places are free.
    pub(crate) unsafe fn push_tuple(&self, state: State, data: &[u8], space: u32) {
        // SAFETY: As promised; what the constructor makes has room for the bytes.
        unsafe {
            lua_rawgeti_(state, LUA_REGISTRYINDEX, self.make_tuple);
            lua_pushnumber(state, data.len() as f64);
            lua_call(state, 1, 1);
            let tuple = lua_topointer(state, -1).cast_mut().cast::<LuaTuple>();
            (*tuple).size = data.len() as u32;
            (*tuple).space = space;
            let to = (&raw mut (*tuple).data).cast::<u8>();
            std::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len());
        }
    }

    /// Pushes the next value of `input`.
    ///
    /// # Errors
    /// It is no MessagePack, is nested too deeply, or has an extension that is not known.
    ///
    /// # Safety
    /// As for [`crate::stack`].
    pub(crate) unsafe fn push(&self, state: State, input: &mut &[u8]) -> Result<(), ValueError> {
        // SAFETY: As promised.
        unsafe { self.push_at(state, input, 0) }
    }

    unsafe fn push_at(
        &self,
        state: State,
        input: &mut &[u8],
        depth: u32,
    ) -> Result<(), ValueError> {
        // SAFETY: As promised by the caller; room is made on the stack.
        unsafe {
            if depth > DEPTH_MAX || lua_checkstack(state, 8) == 0 {
                return Err(ValueError("the value is nested too deeply".to_owned()));
            }
            match read(input)? {
                Value::Nil => ladon_modules::push_null(state),
                Value::Bool(value) => lua_pushboolean(state, c_int::from(value)),
                Value::Uint(value) => ladon_modules::push_u64(state, value),
                Value::Int(value) => ladon_modules::push_i64(state, value),
                Value::Float(value) => lua_pushnumber(state, f64::from(value)),
                Value::Double(value) => lua_pushnumber(state, value),
                Value::Str(value) | Value::Bin(value) => push_bytes(state, value),
                Value::Array(count) => self.push_array(state, input, count, depth)?,
                Value::Map(count) => self.push_map(state, input, count, depth)?,
                Value::Ext(EXT_UUID, uuid) if uuid.len() == 16 => {
                    let mut bytes = [0; 16];
                    bytes.copy_from_slice(uuid);
                    ladon_modules::push_uuid(state, bytes);
                }
                Value::Ext(EXT_DECIMAL, payload)
                    if ladon_modules::push_decimal_payload(state, payload) => {}
                Value::Ext(EXT_DATETIME, payload)
                    if ladon_modules::push_datetime_payload(state, payload) => {}
                Value::Ext(EXT_INTERVAL, payload)
                    if ladon_modules::push_interval_payload(state, payload) => {}
                Value::Ext(EXT_ERROR, payload) => {
                    lua_getfield(state, LUA_REGISTRYINDEX, c"ladon.error_of".as_ptr());
                    push_bytes(state, payload);
                    protected(state, 1, 1)?;
                }
                Value::Ext(kind, _) => {
                    return Err(ValueError(format!(
                        "MessagePack extension {kind} has no type here"
                    )));
                }
            }
        }
        Ok(())
    }

    unsafe fn push_array(
        &self,
        state: State,
        input: &mut &[u8],
        count: u32,
        depth: u32,
    ) -> Result<(), ValueError> {
        // An announced count takes no memory before the values are seen.
        let room = (count as usize).min(input.len()).min(1 << 20) as c_int;
        // SAFETY: As promised by the caller.
        unsafe {
            lua_createtable(state, room, 0);
            for at in 1..=count {
                self.push_at(state, input, depth + 1)?;
                lua_rawseti_(state, -2, at as c_int);
            }
            if count == 0 || depth > 0 {
                self.mark(state, c"ladon.seq");
            }
        }
        Ok(())
    }

    unsafe fn push_map(
        &self,
        state: State,
        input: &mut &[u8],
        count: u32,
        depth: u32,
    ) -> Result<(), ValueError> {
        let room = (count as usize).min(input.len()).min(1 << 20) as c_int;
        // SAFETY: As promised by the caller.
        unsafe {
            lua_createtable(state, 0, room);
            for _ in 0..count {
                self.push_at(state, input, depth + 1)?;
                self.push_at(state, input, depth + 1)?;
                lua_rawset(state, -3);
            }
            self.mark(state, c"ladon.map");
        }
        Ok(())
    }

    /// The table at the top is shown as what it came as: it gets `{__serialize = 'seq'}` or
    /// `{__serialize = 'map'}`.
    unsafe fn mark(&self, state: State, name: &std::ffi::CStr) {
        // SAFETY: As promised by the caller.
        unsafe {
            lua_getfield(state, LUA_REGISTRYINDEX, name.as_ptr());
            lua_setmetatable(state, -2);
        }
    }

    /// Appends the value at `index`.
    ///
    /// # Errors
    /// It has no MessagePack, or is nested too deeply.
    ///
    /// # Safety
    /// As for [`crate::stack`]. `__serialize` functions may raise any error.
    pub(crate) unsafe fn encode(
        &self,
        state: State,
        index: c_int,
        out: &mut Vec<u8>,
    ) -> Result<(), ValueError> {
        // SAFETY: As promised.
        unsafe { self.encode_at(state, absolute(state, index), out, 0) }
    }

    unsafe fn encode_at(
        &self,
        state: State,
        index: c_int,
        out: &mut Vec<u8>,
        depth: u32,
    ) -> Result<(), ValueError> {
        // SAFETY: As promised by the caller; room is made on the stack.
        unsafe {
            if depth > DEPTH_MAX || lua_checkstack(state, 10) == 0 {
                return Err(ValueError("Too high nest level".to_owned()));
            }
            match lua_type(state, index) {
                LUA_TNIL | LUA_TNONE => write::nil(out),
                LUA_TBOOLEAN => write::bool(out, lua_toboolean(state, index) != 0),
                LUA_TNUMBER => number(out, lua_tonumber(state, index)),
                LUA_TSTRING => write::str(out, bytes(state, index).unwrap_or_default()),
                LUA_TTABLE => return self.encode_table(state, index, out, depth),
                LUA_TCDATA => return self.encode_cdata(state, index, out, depth),
                LUA_TLIGHTUSERDATA if lua_touserdata(state, index).is_null() => write::nil(out),
                other => {
                    let name = std::ffi::CStr::from_ptr(lua_typename(state, other));
                    let name = name.to_string_lossy();
                    return Err(ValueError(format!("unsupported Lua type '{name}'")));
                }
            }
        }
        Ok(())
    }

    unsafe fn encode_cdata(
        &self,
        state: State,
        index: c_int,
        out: &mut Vec<u8>,
        depth: u32,
    ) -> Result<(), ValueError> {
        // SAFETY: As promised by the caller: a cdata of these types has these bytes.
        unsafe {
            if ladon_modules::is_null(state, index) {
                write::nil(out);
            } else if let Some(integer) = ladon_modules::cdata_integer(state, index) {
                match integer {
                    Integer::Signed(value) => write::int(out, value),
                    Integer::Unsigned(value) => write::uint(out, value),
                }
            } else if let Some((data, _)) = self.tuple(state, index) {
                out.extend_from_slice(data);
            } else {
                return self.encode_other(state, index, out, depth);
            }
        }
        Ok(())
    }

    /// A cdata that Lua knows how to show: as the value that `ladon.plain` makes of it, or an
    /// extension of the payload that it makes, with this number.
    unsafe fn encode_other(
        &self,
        state: State,
        index: c_int,
        out: &mut Vec<u8>,
        depth: u32,
    ) -> Result<(), ValueError> {
        // SAFETY: As promised by the caller.
        unsafe {
            if let Some(uuid) = ladon_modules::uuid_to_bytes(state, index) {
                write::ext(out, EXT_UUID, &uuid);
                return Ok(());
            }
            let mut payload = [0; ladon_modules::PAYLOAD_BYTES_MAX];
            if let Some(length) = ladon_modules::decimal_to_payload(state, index, &mut payload) {
                write::ext(out, EXT_DECIMAL, &payload[..length]);
                return Ok(());
            }
            let mut payload = [0; ladon_modules::DATETIME_BYTES_MAX];
            if let Some(length) = ladon_modules::datetime_to_payload(state, index, &mut payload) {
                write::ext(out, EXT_DATETIME, &payload[..length]);
                return Ok(());
            }
            let mut payload = [0; ladon_modules::INTERVAL_BYTES_MAX];
            if let Some(length) = ladon_modules::interval_to_payload(state, index, &mut payload) {
                write::ext(out, EXT_INTERVAL, &payload[..length]);
                return Ok(());
            }
            lua_getfield(state, LUA_REGISTRYINDEX, c"ladon.plain".as_ptr());
            lua_pushvalue(state, index);
            protected(state, 1, 3)?;
            let has_one = lua_toboolean(state, -3) != 0;
            let extension = lua_tonumber(state, -1) as i8;
            lua_settop(state, -2);
            let done = match (has_one, extension) {
                (true, 0) => self.encode_at(state, lua_gettop(state), out, depth + 1),
                (true, _) => {
                    write::ext(out, extension, bytes(state, -1).unwrap_or_default());
                    Ok(())
                }
                (false, _) => Err(ValueError("unsupported Lua type 'cdata'".to_owned())),
            };
            lua_settop(state, -3);
            done
        }
    }

    unsafe fn encode_table(
        &self,
        state: State,
        index: c_int,
        out: &mut Vec<u8>,
        depth: u32,
    ) -> Result<(), ValueError> {
        // SAFETY: As promised by the caller.
        unsafe {
            let mut shape = Shape::Guess;
            if luaL_getmetafield(state, index, c"__serialize".as_ptr()) != 0 {
                match lua_type(state, -1) {
                    LUA_TSTRING => {
                        shape = match bytes(state, -1).unwrap_or_default() {
                            b"map" | b"mapping" => Shape::Map,
                            _ => Shape::Array,
                        };
                    }
                    LUA_TNIL => {}
                    _ => {
                        lua_pushvalue(state, index);
                        protected(state, 1, 1)?;
                        let top = lua_gettop(state);
                        let done = match lua_rawequal(state, top, index) != 0 {
                            true => Err(ValueError("__serialize returns its table".to_owned())),
                            false => self.encode_at(state, top, out, depth + 1),
                        };
                        lua_settop(state, -2);
                        return done;
                    }
                }
                lua_settop(state, -2);
            }
            if matches!(shape, Shape::Guess) && self.encode_plain(state, index, out, depth)? {
                return Ok(());
            }
            let (count, most) = match shape {
                Shape::Map => (count_of(state, index).0, None),
                Shape::Array | Shape::Guess => count_of(state, index),
            };
            match (shape, most) {
                (Shape::Array, _) => {
                    let most = most.unwrap_or(lua_objlen(state, index) as u64);
                    self.encode_array(state, index, most, out, depth)
                }
                (Shape::Guess, Some(most))
                    if most <= SPARSE_SAFE || most <= count.saturating_mul(SPARSE_RATIO) =>
                {
                    self.encode_array(state, index, most, out, depth)
                }
                _ => self.encode_map(state, index, count, out, depth),
            }
        }
    }

    /// Appends a table that has values under 1, 2, 3 ... and nothing else, none of them a table.
    /// Returns `false` of another one, of which nothing is appended.
    unsafe fn encode_plain(
        &self,
        state: State,
        index: c_int,
        out: &mut Vec<u8>,
        depth: u32,
    ) -> Result<bool, ValueError> {
        let (start, mut at) = (out.len(), 0);
        // SAFETY: As promised by the caller; the table is not changed meanwhile.
        unsafe {
            let count = u32::try_from(lua_objlen(state, index)).unwrap_or(0);
            if count == 0 {
                return Ok(false);
            }
            write::array(out, count);
            lua_pushnil(state);
            while lua_next(state, index) != 0 {
                let top = lua_gettop(state);
                at += 1;
                let is_next = lua_type(state, top - 1) == LUA_TNUMBER
                    && lua_tonumber(state, top - 1) == f64::from(at);
                if !is_next || at > count || lua_type(state, top) == LUA_TTABLE {
                    lua_settop(state, top - 2);
                    out.truncate(start);
                    return Ok(false);
                }
                let done = self.encode_at(state, top, out, depth + 1);
                lua_settop(state, top - 1);
                done?;
            }
            if at != count {
                out.truncate(start);
            }
            Ok(at == count)
        }
    }

    unsafe fn encode_array(
        &self,
        state: State,
        index: c_int,
        count: u64,
        out: &mut Vec<u8>,
        depth: u32,
    ) -> Result<(), ValueError> {
        let count = u32::try_from(count).map_err(|_| ValueError("too long a table".to_owned()))?;
        write::array(out, count);
        for at in 1..=count {
            // SAFETY: As promised by the caller.
            unsafe {
                lua_rawgeti_(state, index, at as c_int);
                let done = self.encode_at(state, lua_gettop(state), out, depth + 1);
                lua_settop(state, -2);
                done?;
            }
        }
        Ok(())
    }

    unsafe fn encode_map(
        &self,
        state: State,
        index: c_int,
        count: u64,
        out: &mut Vec<u8>,
        depth: u32,
    ) -> Result<(), ValueError> {
        let count = u32::try_from(count).map_err(|_| ValueError("too long a table".to_owned()))?;
        write::map(out, count);
        // SAFETY: As promised by the caller; the table is not changed meanwhile.
        unsafe {
            lua_pushnil(state);
            while lua_next(state, index) != 0 {
                let top = lua_gettop(state);
                self.encode_at(state, top - 1, out, depth + 1)?;
                self.encode_at(state, top, out, depth + 1)?;
                lua_settop(state, -2);
            }
        }
        Ok(())
    }
}

/// Calls a function that is not this crate's. Its error is one here: who encodes owns a buffer.
unsafe fn protected(state: State, arguments: c_int, results: c_int) -> Result<(), ValueError> {
    // SAFETY: As promised by the caller.
    unsafe {
        if lua_pcall(state, arguments, results, 0) == LUA_OK {
            return Ok(());
        }
        let text = bytes(state, -1).unwrap_or(b"an error that is no text");
        Err(ValueError(String::from_utf8_lossy(text).into_owned()))
    }
}

#[derive(Clone, Copy)]
enum Shape {
    Guess,
    Array,
    Map,
}

/// How many pairs a table has; and the largest key, if all keys are those of an array.
unsafe fn count_of(state: State, index: c_int) -> (u64, Option<u64>) {
    let (mut count, mut most, mut is_array) = (0, 0, true);
    // SAFETY: As promised by the caller.
    unsafe {
        lua_pushnil(state);
        while lua_next(state, index) != 0 {
            lua_settop(state, -2);
            count += 1;
            let key = match lua_type(state, -1) {
                LUA_TNUMBER => lua_tonumber(state, -1),
                _ => 0.0,
            };
            if key >= 1.0 && key.fract() == 0.0 && key <= f64::from(u32::MAX) {
                most = most.max(key as u64);
            } else {
                is_array = false;
            }
        }
    }
    (count, is_array.then_some(most))
}

/// The index from the stack's bottom.
unsafe fn absolute(state: State, index: c_int) -> c_int {
    if index > 0 || index <= LUA_REGISTRYINDEX {
        return index;
    }
    // SAFETY: As promised by the caller.
    unsafe { lua_gettop(state) + 1 + index }
}

/// A whole number is an integer as far as integers go.
fn number(out: &mut Vec<u8>, value: f64) {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if value.fract() != 0.0 || !value.is_finite() {
        write::double(out, value);
    } else if (0.0..TWO_TO_63 * 2.0).contains(&value) {
        write::uint(out, value as u64);
    } else if (-TWO_TO_63..0.0).contains(&value) {
        write::int(out, value as i64);
    } else {
        write::double(out, value);
    }
}
