//! Short words for what is done to a Lua stack.
//!
//! # Safety
//! Every function here needs a live state, indices that are valid in it, and room on its stack; and
//! may raise an error of Lua wherever it allocates, which skips the caller's frame: who calls them
//! from Lua owns nothing that has to be dropped.

use mlua::ffi::*;
use std::ffi::{CStr, c_char, c_int};

/// A Lua state, or one of its coroutines.
pub(crate) type State = *mut lua_State;

/// `LUA_TCDATA` of LuaJIT: what FFI makes.
pub(crate) const LUA_TCDATA: c_int = 10;

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

/// Sets a field of the table at the top to a function with an upvalue.
pub(crate) unsafe fn set_function(
    state: State,
    name: &CStr,
    function: lua_CFunction,
    upvalue: *mut std::ffi::c_void,
) {
    // SAFETY: As for the module.
    unsafe {
        lua_pushlightuserdata(state, upvalue);
        lua_pushcclosure(state, function, 1);
        lua_setfield(state, -2, name.as_ptr());
    }
}
