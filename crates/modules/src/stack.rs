//! Short words for what the modules do to a Lua stack.
//!
//! # Safety
//! Every function here needs a live state, indices that are valid in it, and room on its stack; and
//! may raise an error of Lua wherever it allocates, which skips the caller's frame. A caller
//! therefore owns nothing that has to be dropped: values that own memory go into [`own`].

use mlua::ffi::*;
use std::ffi::{CStr, c_char, c_int};

/// A Lua state, or one of its coroutines.
pub(crate) type State = *mut lua_State;

/// A function that Lua calls.
pub(crate) type Function = lua_CFunction;

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

/// The string argument at `index`, or an error of Lua that names the argument.
pub(crate) unsafe fn check_bytes<'a>(state: State, index: c_int) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: As for the module; the bytes live as long as the string on the stack.
    unsafe {
        let start = luaL_checklstring(state, index, &raw mut length);
        std::slice::from_raw_parts(start.cast::<u8>(), length)
    }
}

/// Sets a field of the table at the top to a function.
pub(crate) unsafe fn set_function(state: State, name: &CStr, function: Function) {
    // SAFETY: As for the module.
    unsafe {
        lua_pushcclosure(state, function, 0);
        lua_setfield(state, -2, name.as_ptr());
    }
}

/// Pushes a table of functions.
pub(crate) unsafe fn push_functions(state: State, functions: &[(&CStr, Function)]) {
    // SAFETY: As for the module.
    unsafe {
        lua_createtable(state, 0, functions.len() as c_int);
        for (name, function) in functions {
            set_function(state, name, *function);
        }
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

/// Raises an error that names the file and the line of the caller.
pub(crate) unsafe fn raise(state: State, text: &[u8]) -> ! {
    // SAFETY: As for the module.
    unsafe {
        luaL_where(state, 1);
        push_bytes(state, text);
        lua_concat(state, 2);
        lua_error(state)
    }
}

/// What `luaL_error` and its kind return, which they never do.
pub(crate) fn never(_: c_int) -> ! {
    unreachable!("an error of Lua skips this frame")
}

/// Pushes a userdata with a `T` that the collector drops, and returns where it is.
///
/// The value lives while the userdata is on the stack.
pub(crate) unsafe fn own<T: Default>(state: State) -> *mut T {
    const { assert!(align_of::<T>() <= 8, "Lua aligns a userdata to eight bytes") };
    // SAFETY: As for the module. The metatable comes last, so that only a whole value is dropped;
    // until then the value owns no memory, as a default one of the crate's types does not.
    unsafe {
        let place = lua_newuserdata(state, size_of::<T>()).cast::<T>();
        place.write(T::default());
        push_metatable_of::<T>(state);
        if lua_type(state, -1) == LUA_TNIL {
            lua_settop(state, -2);
            lua_createtable(state, 0, 1);
            set_function(state, c"__gc", drop_owned::<T>);
            push_bytes(state, std::any::type_name::<T>().as_bytes());
            lua_pushvalue(state, -2);
            lua_rawset(state, LUA_REGISTRYINDEX);
        }
        lua_setmetatable(state, -2);
        place
    }
}

/// Pushes what the registry has for `T`: by its name, since functions of two types may be one.
unsafe fn push_metatable_of<T>(state: State) {
    // SAFETY: As for the module.
    unsafe {
        push_bytes(state, std::any::type_name::<T>().as_bytes());
        lua_rawget_(state, LUA_REGISTRYINDEX);
    }
}

/// The `T` that [`own`] made and that is at `index`; `None` of anything else.
pub(crate) unsafe fn owned<T: Default>(state: State, index: c_int) -> Option<*mut T> {
    // SAFETY: As for the module. Only what `own` made of a `T` has this metatable, and this length.
    unsafe {
        let place = lua_touserdata(state, index).cast::<T>();
        if place.is_null() || lua_getmetatable(state, index) == 0 {
            return None;
        }
        push_metatable_of::<T>(state);
        let is_one = lua_type(state, -1) == LUA_TTABLE && lua_rawequal(state, -1, -2) != 0;
        lua_settop(state, -3);
        (is_one && lua_objlen(state, index) == size_of::<T>()).then_some(place)
    }
}

/// `__gc` of what [`own`] made.
unsafe extern "C-unwind" fn drop_owned<T: Default>(state: State) -> c_int {
    // SAFETY: Lua calls it with the userdata. The default that takes the value's place owns nothing,
    // so a second call (a program may get at `__gc` by the debug library) is harmless.
    unsafe {
        let place = lua_touserdata(state, 1).cast::<T>();
        if !place.is_null() && lua_objlen(state, 1) == size_of::<T>() {
            drop(std::mem::take(&mut *place));
        }
        0
    }
}

/// Loads and runs a chunk of the crate's own Lua with one argument, which is at the top; leaves its
/// one result in that place.
///
/// `name` is what error texts call the chunk, as `@builtin/json.lua`.
pub(crate) unsafe fn run_chunk(state: State, source: &str, name: &CStr) {
    // SAFETY: As for the module.
    unsafe {
        let start = source.as_ptr().cast::<c_char>();
        if luaL_loadbuffer(state, start, source.len(), name.as_ptr()) != 0 {
            lua_error(state);
        }
        lua_insert(state, -2);
        lua_call(state, 1, 1);
    }
}
