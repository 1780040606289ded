//! Functions of Lua's base that call Lua from C: `xpcall`, `load` and coroutines. Each checks how
//! deep the thread's stack is, and none leaves the hook switched off.

use crate::core::{Core, core};
use crate::libraries::buffer::Buffer;
use crate::libraries::stack::{Stack, upvalue};
use crate::pace::{check_depth, has_room_for_handler, may_go_on, spend};
use crate::run::raise_stop;
use crate::stack::{State, bytes, push_bytes, raise_where, set_function};
use mlua::ffi::*;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null;

/// LuaJIT's own `xpcall` would run the handler also where a script is stopped, and there, within
/// the hook, nothing could stop the handler.
pub(crate) unsafe extern "C-unwind" fn xpcall(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        luaL_checkany(state, 2);
        check_depth(state, core(state));
        lua_settop(state, 2);
        lua_pushcclosure(state, handle_unless_stopped, 1);
        lua_insert(state, 1);
        let status = lua_pcall(state, 0, LUA_MULTRET, 1);
        lua_pushboolean(state, c_int::from(status == LUA_OK));
        lua_replace(state, 1);
        lua_gettop(state)
    }
}

/// The handler of [`xpcall`]; the script's own one is its upvalue.
unsafe extern "C-unwind" fn handle_unless_stopped(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state, and with the error.
    unsafe {
        let core = core(state);
        if !(*core).is_stopped && has_room_for_handler(core) {
            lua_pushvalue(state, lua_upvalueindex(1));
            lua_insert(state, 1);
            lua_call(state, 1, 1);
        }
    }
    1
}

/// LuaJIT's own `tostring` would call itself without end, and without any instruction, where it is
/// the `__tostring` of a value.
pub(crate) unsafe extern "C-unwind" fn tostring(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        luaL_checkany(state, 1);
        lua_settop(state, 1);
        match lua_type(state, 1) {
            LUA_TSTRING => return 1,
            LUA_TNUMBER => {
                lua_tolstring(state, 1, std::ptr::null_mut());
                return 1;
            }
            _ => {}
        }
        let core = core(state);
        if luaL_getmetafield_(state, 1, c"__tostring".as_ptr()) != 0 {
            check_depth(state, core);
            spend(state, core, 1);
        } else {
            lua_rawgeti_(state, LUA_REGISTRYINDEX, (*core).places.tostring);
        }
        lua_insert(state, 1);
        lua_call(state, 1, 1);
    }
    1
}

/// `load` and `loadstring`: text, never bytecode, which LuaJIT does not check.
///
/// LuaJIT's own would call the script's reader from within the parser, and an error of the hook
/// there would leave all hooks switched off. Here the reader is called before.
pub(crate) unsafe extern "C-unwind" fn load(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state. The text stays on the stack.
    unsafe {
        if lua_isstring(state, 1) == 0 {
            luaL_checktype(state, 1, LUA_TFUNCTION);
        }
        lua_settop(state, 2);
        let core = core(state);
        let mut default = c"=(load)".as_ptr();
        if lua_isstring(state, 1) != 0 {
            // Its own text is its name.
            default = lua_tolstring(state, 1, std::ptr::null_mut());
        } else {
            check_depth(state, core);
            lua_pushnil(state);
            lua_pushcclosure(state, read_all, 1);
            lua_pushvalue(state, 1);
            let status = lua_pcall(state, 1, 1, 0);
            if (*core).is_stopped {
                return raise_stop(state);
            }
            if status != LUA_OK {
                lua_pushnil(state);
                lua_insert(state, -2);
                return 2;
            }
            lua_replace(state, 1);
        }
        let name = luaL_optlstring(state, 2, default, std::ptr::null_mut());
        let text = bytes(state, 1).unwrap_or_default();
        if text.starts_with(b"\x1b") {
            lua_pushnil(state);
            push_bytes(state, b"attempt to load chunk with wrong mode");
            return 2;
        }
        let mut source = Source { rest: text.as_ptr(), left: text.len(), core };
        let status = lua_load(state, next_piece, (&raw mut source).cast(), name);
        if (*core).is_stopped {
            return raise_stop(state);
        }
        if status == LUA_OK {
            return 1;
        }
        lua_pushnil(state);
        lua_insert(state, -2);
    }
    2
}

/// Text that is parsed.
struct Source {
    rest: *const u8,
    left: usize,
    core: *mut Core,
}

/// `lua_Reader` (Lua 5.1 manual): the next piece, until the host has the script stopped.
unsafe extern "C-unwind" fn next_piece(
    _: State,
    source: *mut c_void,
    length: *mut usize,
) -> *const c_char {
    /// The parser takes a few microseconds for so many bytes.
    const PIECE: usize = 1024;
    // SAFETY: `load` gave the address of its source. Nothing raises an error.
    unsafe {
        let source = &mut *source.cast::<Source>();
        let piece = source.left.min(PIECE);
        let is_end = source.left == 0;
        if is_end || !may_go_on(source.core) {
            *length = 0;
            return null();
        }
        let start = source.rest;
        source.rest = start.add(piece);
        source.left -= piece;
        *length = piece;
        start.cast()
    }
}

/// Puts together what a reader returns until it returns nil or nothing.
unsafe extern "C-unwind" fn read_all(state: State) -> c_int {
    const BUFFER: c_int = upvalue(1);
    const READER: c_int = 1;
    // SAFETY: Lua calls it with a live state and the reader.
    unsafe {
        let mut text = Buffer::take(Stack::of(state), BUFFER);
        let core = core(state);
        loop {
            spend(state, core, 1);
            lua_pushvalue(state, READER);
            lua_call(state, 0, 1);
            if lua_type(state, -1) == LUA_TNIL {
                break;
            }
            let Some(piece) = bytes(state, -1) else {
                return raise_where(state, b"reader function must return a string");
            };
            if piece.is_empty() {
                break;
            }
            text.add(piece);
            lua_settop(state, -2);
        }
        text.push();
    }
    1
}

/// Replaces functions of the table at the top, LuaJIT's `coroutine`.
///
/// # Safety
/// As for [`crate::stack`].
pub(crate) unsafe fn replace_in_coroutine(state: State) {
    // SAFETY: As promised.
    unsafe {
        set_function(state, c"resume", resume);
        set_function(state, c"wrap", wrap);
    }
}

unsafe extern "C-unwind" fn resume(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        let coroutine = lua_tothread(state, 1);
        if coroutine.is_null() {
            return luaL_argerror(state, 1, c"coroutine expected".as_ptr());
        }
        match go_on(state, coroutine, lua_gettop(state) - 1) {
            Ok(results) => {
                lua_pushboolean(state, 1);
                lua_insert(state, -results - 1);
                results + 1
            }
            Err(()) => {
                lua_pushboolean(state, 0);
                lua_insert(state, -2);
                2
            }
        }
    }
}

unsafe extern "C-unwind" fn wrap(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        luaL_checktype(state, 1, LUA_TFUNCTION);
        let coroutine = lua_newthread(state);
        lua_pushvalue(state, 1);
        lua_xmove(state, coroutine, 1);
        lua_pushcclosure(state, call_wrapped, 1);
    }
    1
}

/// What [`wrap`] returns; the coroutine is its upvalue.
unsafe extern "C-unwind" fn call_wrapped(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        let coroutine = lua_tothread(state, lua_upvalueindex(1));
        if let Ok(results) = go_on(state, coroutine, lua_gettop(state)) {
            return results;
        }
        if lua_type(state, -1) == LUA_TSTRING {
            luaL_where(state, 1);
            lua_insert(state, -2);
            lua_concat(state, 2);
        }
        lua_error(state)
    }
}

/// Lets a coroutine go on with so many values from the top. Returns how many results there are in
/// their place; an error is in their place.
unsafe fn go_on(state: State, coroutine: State, arguments: c_int) -> Result<c_int, ()> {
    // SAFETY: As promised by the callers.
    unsafe {
        let core = core(state);
        check_depth(state, core);
        if let Some(text) = refusal(state, coroutine) {
            push_bytes(state, text.to_bytes());
            return Err(());
        }
        if lua_checkstack(coroutine, arguments) == 0 {
            luaL_error(state, c"too many arguments to resume".as_ptr());
        }
        lua_xmove(state, coroutine, arguments);
        let status = lua_resume_(coroutine, arguments);
        if (*core).is_stopped {
            raise_stop(state);
        }
        if !matches!(status, LUA_OK | LUA_YIELD) {
            lua_xmove(coroutine, state, 1);
            return Err(());
        }
        let results = lua_gettop(coroutine);
        if lua_checkstack(state, results + 1) == 0 {
            luaL_error(state, c"too many results to resume".as_ptr());
        }
        lua_xmove(coroutine, state, results);
        Ok(results)
    }
}

/// Why a coroutine cannot go on.
unsafe fn refusal(state: State, coroutine: State) -> Option<&'static CStr> {
    const RUNS: &CStr = c"cannot resume running coroutine";
    // SAFETY: As promised by the caller.
    unsafe {
        match lua_status(coroutine) {
            LUA_YIELD => return None,
            LUA_OK if coroutine == state => return Some(RUNS),
            LUA_OK => {}
            _ => return Some(c"cannot resume dead coroutine"),
        }
        let mut place: lua_Debug = std::mem::zeroed();
        if lua_getstack(coroutine, 0, &raw mut place) != 0 {
            return Some(RUNS);
        }
        (lua_gettop(coroutine) == 0).then_some(c"cannot resume dead coroutine")
    }
}
