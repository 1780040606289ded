//! A command's reply, as values of Lua.

use crate::core::core;
use crate::pace::spend;
use crate::stack::{State, push_bytes};
use mlua::ffi::*;
use std::ffi::{CStr, c_int};

/// More than any reply nests.
const DEPTH_MAX: c_int = 128;

/// The field of a map.
const MAP: &CStr = c"map";

/// Pushes the first reply of `bytes`; returns the rest. A reply that is not whole ends as nil.
///
/// # Safety
/// As for [`crate::stack`].
#[inline]
pub(crate) unsafe fn push(state: State, bytes: &[u8]) -> &[u8] {
    if let [b':', digits @ .., b'\r', b'\n'] = bytes
        && let Some(number) = short_number(digits)
    {
        // SAFETY: As promised, here and below.
        unsafe { lua_pushnumber(state, number as f64) };
        return &[];
    }
    // SAFETY: See above.
    unsafe { push_at(state, bytes, 0) }
}

/// The line at the start, and what follows.
fn line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let is_end = |&at: &usize| bytes.get(at + 1) == Some(&b'\n');
    let end = memchr::memchr_iter(b'\r', bytes).find(is_end).unwrap_or(bytes.len());
    (&bytes[..end], bytes.get(end + 2..).unwrap_or_default())
}

fn number(text: &[u8]) -> i64 {
    short_number(text).unwrap_or_else(|| {
        std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(-1)
    })
}

/// A number of up to 18 digits, which do not overflow.
#[inline]
fn short_number(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if !(1..=18).contains(&digits.len()) {
        return None;
    }
    let mut number = 0;
    for digit in digits {
        match digit.wrapping_sub(b'0') {
            digit @ 0..=9 => number = 10 * number + i64::from(digit),
            _ => return None,
        }
    }
    Some(if is_negative { -number } else { number })
}

unsafe fn push_at(state: State, bytes: &[u8], depth: c_int) -> &[u8] {
    let Some((&kind, rest)) = bytes.split_first() else {
        // SAFETY: As promised by the caller, here and below.
        unsafe { lua_pushnil(state) };
        return &[];
    };
    let (head, rest) = line(rest);
    // SAFETY: See above.
    unsafe {
        // At first the function that Lua called has room.
        if depth > DEPTH_MAX || depth != 0 && lua_checkstack(state, 8) == 0 {
            crate::stack::raise(state, b"ERR reached lua stack limit");
        }
        match kind {
            b':' => lua_pushnumber(state, number(head) as f64),
            b'+' => push_field(state, c"ok", head),
            b'-' => push_failure(state, head),
            b',' => {
                let value = std::str::from_utf8(head).ok().and_then(|text| text.parse().ok());
                lua_createtable(state, 0, 1);
                lua_pushnumber(state, value.unwrap_or(f64::NAN));
                lua_setfield(state, -2, c"double".as_ptr());
            }
            b'(' => push_field(state, c"big_number", head),
            b'#' => lua_pushboolean(state, c_int::from(head == b"t")),
            b'_' => lua_pushnil(state),
            b'$' | b'=' | b'!' => return push_bulk(state, kind, head, rest),
            b'*' | b'>' => return push_array(state, number(head), rest, depth),
            b'%' => return push_keyed(state, MAP, number(head), rest, depth),
            b'~' => return push_keyed(state, c"set", number(head), rest, depth),
            b'|' => {
                // What is said about the reply is not for scripts.
                let mut rest = rest;
                for _ in 0..2 * number(head).max(0) {
                    rest = push_at(state, rest, depth + 1);
                    lua_settop(state, -2);
                }
                return push_at(state, rest, depth + 1);
            }
            _ => lua_pushnil(state),
        }
    }
    rest
}

unsafe fn push_field(state: State, name: &CStr, text: &[u8]) {
    // SAFETY: As promised by the caller.
    unsafe {
        lua_createtable(state, 0, 1);
        push_bytes(state, text);
        lua_setfield(state, -2, name.as_ptr());
    }
}

/// An error that was counted when the command failed.
unsafe fn push_failure(state: State, text: &[u8]) {
    // SAFETY: As promised by the caller.
    unsafe {
        crate::stack::push_error(state, text);
        lua_pushboolean(state, 1);
        lua_setfield(state, -2, c"ignore_error_stats_update".as_ptr());
    }
}

unsafe fn push_bulk<'a>(state: State, kind: u8, head: &[u8], rest: &'a [u8]) -> &'a [u8] {
    let Ok(length) = usize::try_from(number(head)) else {
        // SAFETY: As promised by the caller, here and below.
        unsafe { lua_pushboolean(state, 0) };
        return rest;
    };
    let length = length.min(rest.len());
    let (text, rest) = rest.split_at(length);
    // SAFETY: See above.
    unsafe {
        match kind {
            b'$' => push_bytes(state, text),
            b'!' => push_failure(state, text),
            _ => {
                let (format, text) = text.split_at(text.len().min(4));
                lua_createtable(state, 0, 1);
                lua_createtable(state, 0, 2);
                push_bytes(state, text);
                lua_setfield(state, -2, c"string".as_ptr());
                push_bytes(state, &format[..format.len().min(3)]);
                lua_setfield(state, -2, c"format".as_ptr());
                lua_setfield(state, -2, c"verbatim_string".as_ptr());
            }
        }
    }
    rest.get(2..).unwrap_or_default()
}

unsafe fn push_array(state: State, count: i64, rest: &[u8], depth: c_int) -> &[u8] {
    let mut rest = rest;
    // SAFETY: As promised by the caller.
    unsafe {
        if count < 0 {
            lua_pushboolean(state, 0);
            return rest;
        }
        // No reply is shorter than three bytes.
        let room = count.min(rest.len() as i64 / 3);
        lua_createtable(state, c_int::try_from(room).unwrap_or(0), 0);
        let core = core(state);
        for index in 1..=count {
            spend(state, core, 1);
            rest = push_at(state, rest, depth + 1);
            lua_rawseti_(state, -2, c_int::try_from(index).unwrap_or(c_int::MAX));
        }
    }
    rest
}

/// Pushes `{field = {key = value, ...}}`: of a set, which has no values, each is true.
unsafe fn push_keyed<'a>(
    state: State,
    field: &CStr,
    count: i64,
    rest: &'a [u8],
    depth: c_int,
) -> &'a [u8] {
    let has_values = field == MAP;
    let mut rest = rest;
    // SAFETY: As promised by the caller.
    unsafe {
        lua_createtable(state, 0, 1);
        lua_newtable(state);
        let core = core(state);
        for _ in 0..count {
            spend(state, core, 1);
            rest = push_at(state, rest, depth + 1);
            if has_values {
                rest = push_at(state, rest, depth + 1);
            } else {
                lua_pushboolean(state, 1);
            }
            set_unless_nil(state);
        }
        lua_setfield(state, -2, field.as_ptr());
    }
    rest
}

/// Sets the pair at the top in the table below it; nil is no key.
unsafe fn set_unless_nil(state: State) {
    // SAFETY: As promised by the caller.
    unsafe {
        if lua_type(state, -2) == LUA_TNIL {
            lua_settop(state, -3);
        } else {
            lua_rawset(state, -3);
        }
    }
}
