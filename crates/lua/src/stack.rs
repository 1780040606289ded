//! Short words for what is done to a Lua stack.
//!
//! # Safety
//! Every function here needs a live state, indices that are valid in it, and room on its stack; and
//! may raise an error of Lua wherever it allocates, which skips the caller's frame.

use mlua::ffi::*;
use std::ffi::{CStr, c_char, c_int};

/// A Lua state, or one of its coroutines.
pub(crate) type State = *mut lua_State;

/// Pushes a string.
pub(crate) unsafe fn push_bytes(state: State, bytes: &[u8]) {
    // SAFETY: As for the module.
    unsafe { lua_pushlstring_(state, bytes.as_ptr().cast::<c_char>(), bytes.len()) }
}

/// The string at `index`; a number there is turned into one. `None` of other types.
///
/// The bytes live as long as the string does: at least while it is on the stack.
pub(crate) unsafe fn bytes<'a>(state: State, index: c_int) -> Option<&'a [u8]> {
    let mut length = 0;
    // SAFETY: As for the module.
    let start = unsafe { lua_tolstring(state, index, &raw mut length) };
    if start.is_null() {
        return None;
    }
    // SAFETY: Lua says that so many bytes begin there.
    Some(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) })
}

/// Sets a field of the table at the top to a function.
pub(crate) unsafe fn set_function(state: State, name: &CStr, function: lua_CFunction) {
    // SAFETY: As for the module.
    unsafe {
        lua_pushcclosure(state, function, 0);
        lua_setfield(state, -2, name.as_ptr());
    }
}

/// Sets a field of the table at the top to a number.
pub(crate) unsafe fn set_number(state: State, name: &CStr, number: f64) {
    // SAFETY: As for the module.
    unsafe {
        lua_pushnumber(state, number);
        lua_setfield(state, -2, name.as_ptr());
    }
}

/// Pushes the field `name` of the table at `index`, past its metatable; returns its type.
pub(crate) unsafe fn raw_field(state: State, index: c_int, name: &[u8]) -> c_int {
    let index = if index < 0 { index - 1 } else { index };
    // SAFETY: As for the module.
    unsafe {
        push_bytes(state, name);
        lua_rawget_(state, index);
        lua_type(state, -1)
    }
}

/// Raises an error as Redis' own functions do: a table with the field `err`.
pub(crate) unsafe fn raise(state: State, text: &[u8]) -> c_int {
    // SAFETY: As for the module.
    unsafe {
        push_error(state, text);
        lua_error(state)
    }
}

/// Pushes `{err = text}`.
pub(crate) unsafe fn push_error(state: State, text: &[u8]) {
    // SAFETY: As for the module.
    unsafe {
        lua_createtable(state, 0, 4);
        push_bytes(state, text);
        lua_setfield(state, -2, c"err".as_ptr());
    }
}

/// Raises an error that names the script and the line of the caller.
pub(crate) unsafe fn raise_where(state: State, text: &[u8]) -> c_int {
    // SAFETY: As for the module.
    unsafe {
        luaL_where(state, 1);
        push_bytes(state, text);
        lua_concat(state, 2);
        lua_error(state)
    }
}
