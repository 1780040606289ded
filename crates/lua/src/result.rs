//! A script's result, as a reply.

use crate::core::core;
use crate::pace::spend;
use crate::stack::{State, bytes, raw_field};
use ladon_resp::{Proto, Reply};
use mlua::ffi::*;

/// Bytes of a result that are copied as fast as one step is made.
const BYTES_PER_STEP: usize = 64;

/// As deep as a result may nest.
const DEPTH_MAX: usize = 1000;

/// Writes the value at the top, and pops it. `script_proto` is what `redis.setresp` chose.
///
/// # Safety
/// As for [`crate::stack`].
pub(crate) unsafe fn write(state: State, reply: &mut Reply<'_>, script_proto: Proto, depth: usize) {
    // SAFETY: As promised, here and below.
    unsafe {
        // As in Redis: a result that nests too deep is cut there by an error.
        // At first the function that is entered has room.
        if depth > DEPTH_MAX || depth != 0 && lua_checkstack(state, 8) == 0 {
            reply.error("ERR reached lua stack limit");
            lua_settop(state, -2);
            return;
        }
        let core = core(state);
        if write_plain(state, reply, script_proto) {
            let is_string = lua_type(state, -1) == LUA_TSTRING;
            let bytes = if is_string { lua_objlen(state, -1) } else { 0 };
            spend(state, core, 1 + bytes / BYTES_PER_STEP);
            return lua_settop(state, -2);
        }
        spend(state, core, 4);
        write_table(state, reply, script_proto, depth);
    }
}

/// Writes the value at the top unless it is a table; whether it did. Allocates nothing of Lua's.
///
/// # Safety
/// As for [`crate::stack`].
#[inline]
pub(crate) unsafe fn write_plain(state: State, reply: &mut Reply<'_>, script_proto: Proto) -> bool {
    // SAFETY: As promised.
    unsafe {
        match lua_type(state, -1) {
            LUA_TSTRING => reply.bulk(bytes(state, -1).unwrap_or_default()),
            LUA_TBOOLEAN => {
                let value = lua_toboolean(state, -1) != 0;
                match (script_proto, value) {
                    (Proto::Resp3, value) => reply.bool(value),
                    (Proto::Resp2, true) => reply.integer(1),
                    (Proto::Resp2, false) => reply.null(),
                }
            }
            LUA_TNUMBER => reply.integer(whole(lua_tonumber(state, -1))),
            LUA_TTABLE => return false,
            _ => reply.null(),
        }
    }
    true
}

/// As a C compiler for this machine casts it: what does not fit is the smallest number.
fn whole(number: f64) -> i64 {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if (-END..END).contains(&number) { number as i64 } else { i64::MIN }
}

unsafe fn write_table(state: State, reply: &mut Reply<'_>, proto: Proto, depth: usize) {
    // SAFETY: As promised by the caller of `write`.
    unsafe {
        if raw_field(state, -1, b"err") == LUA_TSTRING {
            reply.error(bytes(state, -1).unwrap_or_default());
            return lua_settop(state, -3);
        }
        lua_settop(state, -2);
        if raw_field(state, -1, b"ok") == LUA_TSTRING {
            reply.raw(b"+");
            reply.raw(&on_one_line(bytes(state, -1).unwrap_or_default()));
            reply.raw(b"\r\n");
            return lua_settop(state, -3);
        }
        lua_settop(state, -2);
        if raw_field(state, -1, b"double") == LUA_TNUMBER {
            reply.double(lua_tonumber(state, -1));
            return lua_settop(state, -3);
        }
        lua_settop(state, -2);
        if raw_field(state, -1, b"map") == LUA_TTABLE {
            write_map(state, reply, proto, depth);
            return lua_settop(state, -3);
        }
        lua_settop(state, -2);
        if raw_field(state, -1, b"set") == LUA_TTABLE {
            write_set(state, reply, proto, depth);
            return lua_settop(state, -3);
        }
        lua_settop(state, -2);
        if raw_field(state, -1, b"big_number") == LUA_TSTRING {
            let digits = on_one_line(bytes(state, -1).unwrap_or_default());
            reply.big_number(&String::from_utf8_lossy(&digits));
            drop(digits);
            return lua_settop(state, -3);
        }
        lua_settop(state, -2);
        if raw_field(state, -1, b"verbatim_string") == LUA_TTABLE {
            let is_text = raw_field(state, -1, b"format") == LUA_TSTRING;
            if raw_field(state, -2, b"string") == LUA_TSTRING && is_text {
                let format = bytes(state, -2).unwrap_or_default();
                let mut name = *b"txt";
                let length = format.len().min(3);
                name[..length].copy_from_slice(&format[..length]);
                reply.verbatim(name, bytes(state, -1).unwrap_or_default());
                return lua_settop(state, -5);
            }
            lua_settop(state, -3);
        }
        lua_settop(state, -2);
        write_array(state, reply, proto, depth);
        lua_settop(state, -2);
    }
}

unsafe fn write_array(state: State, reply: &mut Reply<'_>, proto: Proto, depth: usize) {
    let mark = reply.begin_array();
    let mut count = 0;
    // SAFETY: As promised by the caller of `write`.
    unsafe {
        loop {
            lua_rawgeti_(state, -1, count + 1);
            if lua_type(state, -1) == LUA_TNIL {
                lua_settop(state, -2);
                break;
            }
            count += 1;
            write(state, reply, proto, depth + 1);
        }
    }
    reply.end_array(mark, count as usize);
}

/// The map at the top.
unsafe fn write_map(state: State, reply: &mut Reply<'_>, proto: Proto, depth: usize) {
    let mark = reply.begin_map();
    let mut count = 0;
    // SAFETY: As promised by the caller of `write`.
    unsafe {
        lua_pushnil(state);
        while lua_next(state, -2) != 0 {
            // The key stays for `lua_next`; writing pops a copy.
            lua_pushvalue(state, -2);
            write(state, reply, proto, depth + 1);
            write(state, reply, proto, depth + 1);
            count += 1;
        }
    }
    reply.end_map(mark, count);
}

/// The set at the top: the keys of a table.
unsafe fn write_set(state: State, reply: &mut Reply<'_>, proto: Proto, depth: usize) {
    let mark = reply.begin_set();
    let mut count = 0;
    // SAFETY: As promised by the caller of `write`.
    unsafe {
        lua_pushnil(state);
        while lua_next(state, -2) != 0 {
            lua_settop(state, -2);
            lua_pushvalue(state, -1);
            write(state, reply, proto, depth + 1);
            count += 1;
        }
    }
    reply.end_set(mark, count);
}

/// Line ends as spaces: one would end the reply.
fn on_one_line(text: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    let ends = |byte: &u8| matches!(byte, b'\r' | b'\n');
    if !text.iter().any(ends) {
        return text.into();
    }
    text.iter().map(|byte| if ends(byte) { b' ' } else { *byte }).collect::<Vec<u8>>().into()
}
