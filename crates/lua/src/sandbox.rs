//! What scripts can reach: Lua's own functions that do no harm, and nothing that they can change.
//!
//! Redis marks tables as read-only in a Lua of its own. Here a script gets an empty table instead,
//! whose metatable reads from the real one and refuses to write:
//!
//! ```text
//!   globals of scripts (empty) --reads--> KEYS, ARGV, pairs, ..., redis (empty) --reads--> call, ...
//! ```
//!
//! Scripts that can neither keep nor change these tables (`bytecode.rs`) read from the real ones:
//!
//! ```text
//!   direct globals --> KEYS, ARGV, pairs, ..., redis --> call, ...
//! ```
//!
//! Functions that look past metatables (`rawset`, `pairs`, `table.insert`, ...) are replaced by
//! ones that know these tables.

use crate::calls::{self, xpcall};
use crate::compile::load;
use crate::core::{Places, core};
use crate::environment::{self, random, randomseed};
use crate::libraries::{self, bits, strings, tables};
use crate::pace::{check_depth, spend, tick};
use crate::run::{enter, finish, on_error};
use crate::stack::{State, bytes, push_bytes, raise, raise_where, raw_field, set_function};
use crate::words::REUSED_WORDS_MAX;
use mlua::ffi::*;
use std::ffi::{CStr, c_int};

/// State of `math.random` in a new machine: that of POSIX' `lrand48` before `srand48`, as in Redis.
pub(crate) const SEED: u64 = 0x1234_ABCD_330E;

/// Lua's own functions that scripts get as they are.
const BASE: [&CStr; 11] = [
    c"_VERSION",
    c"assert",
    c"coroutine",
    c"error",
    c"ipairs",
    c"rawequal",
    c"select",
    c"tonumber",
    c"type",
    c"unpack",
    c"bit",
];

/// Those that are written anew here.
const OWN: [(&CStr, lua_CFunction); 11] = [
    (c"collectgarbage", collectgarbage),
    (c"gcinfo", gcinfo),
    (c"getmetatable", getmetatable),
    (c"load", calls::load),
    (c"loadstring", calls::load),
    (c"next", next),
    (c"pairs", pairs),
    (c"rawget", rawget),
    (c"rawset", rawset),
    (c"tostring", calls::tostring),
    (c"xpcall", xpcall),
];

/// Builds everything in a fresh state.
pub(crate) unsafe extern "C-unwind" fn build(state: State) -> c_int {
    // SAFETY: `Vm::new` calls it with a fresh state, protected.
    unsafe {
        lua_checkstack(state, 40);
        lua_atpanic(state, on_panic);
        open(state, luaopen_base, c"");
        open(state, luaopen_table, c"table");
        open(state, luaopen_string, c"string");
        open(state, luaopen_math, c"math");
        open(state, luaopen_bit, c"bit");

        let core = core(state);
        let mut places = Places::default();
        lua_newtable(state);
        places.protected = luaL_ref(state, LUA_REGISTRYINDEX);
        (*core).places = places;
        places.enter = function(state, enter);
        places.finish = function(state, finish);
        places.load = function(state, load);
        places.on_error = function(state, on_error);
        (places.keys, places.argv) = (name(state, b"KEYS"), name(state, b"ARGV"));
        places.next = global(state, c"next");
        places.tostring = global(state, c"tostring");

        lua_newtable(state);
        let globals = lua_gettop(state);
        add_base(state, globals);
        for (name, function) in OWN {
            set_function(state, name, function);
        }
        set_function(state, c"setmetatable", setmetatable);
        add_pcall(state, globals);
        add_math(state, globals);
        add_string(state, globals);
        add_table(state, globals);
        add_libraries(state, globals);

        lua_newtable(state);
        let of_libraries = lua_gettop(state);
        environment::push_for_libraries(state);
        forbid_undefined(state);
        protect(state);
        set_api(state, of_libraries);
        forbid_undefined(state);
        places.globals_of_libraries = luaL_ref(state, LUA_REGISTRYINDEX);
        environment::push_for_scripts(state);
        protect(state);
        set_api(state, globals);

        forbid_undefined(state);
        lua_pushvalue(state, globals);
        places.globals = luaL_ref(state, LUA_REGISTRYINDEX);
        protect(state);
        lua_getmetatable(state, -1);
        places.globals_metatable = luaL_ref(state, LUA_REGISTRYINDEX);
        lua_pushvalue(state, -1);
        lua_rawgeti_(state, LUA_REGISTRYINDEX, places.globals);
        lua_pushvalue(state, -2);
        lua_setfield(state, -2, c"_G".as_ptr());
        lua_settop(state, -2);
        lua_replace(state, LUA_GLOBALSINDEX);
        lua_newtable(state);
        protect(state);
        places.shown_metatable = luaL_ref(state, LUA_REGISTRYINDEX);
        add_direct_globals(state, &mut places);
        (*core).places = places;
    }
    0
}

/// Lua's own functions and tables.
unsafe fn add_base(state: State, globals: c_int) {
    // SAFETY: As for `stack`.
    unsafe {
        bits::replace(state);
        for name in BASE {
            lua_getfield_(state, LUA_GLOBALSINDEX, name.as_ptr());
            if lua_type(state, -1) == LUA_TTABLE {
                if name == c"coroutine" {
                    calls::replace_in_coroutine(state);
                }
                protect(state);
            }
            lua_setfield(state, globals, name.as_ptr());
        }
    }
}

/// Moves the table at the top into the one at `globals`, an index from the bottom, as `redis` and by the name that Valkey 8
/// gives it, `server`.
unsafe fn set_api(state: State, globals: c_int) {
    // SAFETY: As for `stack`.
    unsafe {
        lua_pushvalue(state, -1);
        lua_insert(state, -2);
        lua_setfield(state, globals, c"redis".as_ptr());
        lua_setfield(state, globals, c"server".as_ptr());
    }
}

/// Makes the globals of scripts that only index `KEYS`, `ARGV` and `redis`.
unsafe fn add_direct_globals(state: State, places: &mut Places) {
    // SAFETY: As for `stack`.
    unsafe {
        lua_newtable(state);
        let direct = lua_gettop(state);
        lua_rawgeti_(state, LUA_REGISTRYINDEX, places.globals);
        lua_pushnil(state);
        while lua_next(state, -2) != 0 {
            lua_pushvalue(state, -2);
            lua_insert(state, -2);
            lua_rawset(state, direct);
        }
        lua_settop(state, direct);
        raw_field(state, direct, b"redis");
        if push_real(state, direct + 1) {
            set_api(state, direct);
        }
        lua_settop(state, direct);
        for (place, name) in
            [(&mut places.reused_keys, c"KEYS"), (&mut places.reused_argv, c"ARGV")]
        {
            lua_createtable(state, REUSED_WORDS_MAX as c_int, 0);
            lua_pushvalue(state, -1);
            *place = luaL_ref(state, LUA_REGISTRYINDEX);
            lua_setfield(state, direct, name.as_ptr());
        }
        forbid_undefined(state);
        places.direct_globals = luaL_ref(state, LUA_REGISTRYINDEX);
    }
}

/// Nothing is called without protection that may raise an error.
unsafe extern "C-unwind" fn on_panic(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    let text = unsafe { bytes(state, -1) }.unwrap_or_default();
    eprintln!("an error of Lua that nothing has caught: {}", text.escape_ascii());
    std::process::abort()
}

unsafe fn open(state: State, library: unsafe extern "C-unwind" fn(State) -> c_int, name: &CStr) {
    // SAFETY: As for `stack`.
    unsafe {
        lua_pushcclosure(state, library, 0);
        push_bytes(state, name.to_bytes());
        lua_call(state, 1, 0);
    }
}

/// Keeps a function; returns its number.
unsafe fn function(state: State, function: lua_CFunction) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        lua_pushcclosure(state, function, 0);
        luaL_ref(state, LUA_REGISTRYINDEX)
    }
}

/// Keeps a global of Lua's; returns its number.
unsafe fn global(state: State, name: &CStr) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        lua_getfield_(state, LUA_GLOBALSINDEX, name.as_ptr());
        luaL_ref(state, LUA_REGISTRYINDEX)
    }
}

/// Keeps a string; returns its number in the registry.
unsafe fn name(state: State, name: &[u8]) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        push_bytes(state, name);
        luaL_ref(state, LUA_REGISTRYINDEX)
    }
}

/// Replaces the table at the top by one that has the same fields, and that nobody can change.
unsafe fn protect(state: State) {
    // SAFETY: As for `stack`.
    unsafe {
        lua_newtable(state);
        lua_createtable(state, 0, 2);
        lua_pushvalue(state, -3);
        lua_setfield(state, -2, c"__index".as_ptr());
        set_function(state, c"__newindex", refuse);
        lua_setmetatable(state, -2);
        // real, protected
        lua_rawgeti_(state, LUA_REGISTRYINDEX, (*core(state)).places.protected);
        lua_pushvalue(state, -2);
        lua_pushvalue(state, -4);
        lua_rawset(state, -3);
        lua_settop(state, -2);
        lua_remove(state, -2);
    }
}

/// From now on, to read what is not in the table at the top is an error.
unsafe fn forbid_undefined(state: State) {
    // SAFETY: As for `stack`.
    unsafe {
        lua_newtable(state);
        set_function(state, c"__index", undefined);
        lua_setmetatable(state, -2);
    }
}

/// If the value at `index` is a read-only table, pushes the table with its fields.
unsafe fn push_real(state: State, index: c_int) -> bool {
    // SAFETY: As for `stack`; the index is positive.
    unsafe {
        if lua_type(state, index) != LUA_TTABLE {
            return false;
        }
        lua_rawgeti_(state, LUA_REGISTRYINDEX, (*core(state)).places.protected);
        lua_pushvalue(state, index);
        lua_rawget_(state, -2);
        lua_remove(state, -2);
        if lua_type(state, -1) == LUA_TNIL {
            lua_settop(state, -2);
            return false;
        }
    }
    true
}

const READ_ONLY: &[u8] = b"Attempt to modify a readonly table";

/// Refuses to change a read-only table.
unsafe fn check_writable(state: State, index: c_int) {
    // SAFETY: As for `stack`.
    unsafe {
        if push_real(state, index) {
            push_bytes(state, READ_ONLY);
            lua_error(state);
        }
    }
}

unsafe extern "C-unwind" fn refuse(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe { raise_where(state, READ_ONLY) }
}

/// A global that is not there.
unsafe extern "C-unwind" fn undefined(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        check_depth(state, core(state));
        luaL_where(state, 1);
        push_bytes(state, b"Script attempted to access nonexistent global variable '");
        lua_rawgeti_(state, LUA_REGISTRYINDEX, (*core(state)).places.tostring);
        lua_pushvalue(state, 2);
        lua_call(state, 1, 1);
        push_bytes(state, b"'");
        lua_concat(state, 4);
        lua_error(state)
    }
}

unsafe extern "C-unwind" fn setmetatable(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        luaL_checktype(state, 1, LUA_TTABLE);
        if !matches!(lua_type(state, 2), LUA_TNIL | LUA_TTABLE) {
            return luaL_argerror(state, 2, c"nil or table expected".as_ptr());
        }
        check_writable(state, 1);
        if luaL_getmetafield_(state, 1, c"__metatable".as_ptr()) != 0 {
            return luaL_error(state, c"cannot change a protected metatable".as_ptr());
        }
        lua_settop(state, 2);
        lua_setmetatable(state, 1);
    }
    1
}

/// Of read-only tables, only that of the globals is to be seen, as in Redis; it and that of strings
/// are read-only.
unsafe extern "C-unwind" fn getmetatable(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        luaL_checkany(state, 1);
        if push_real(state, 1) {
            lua_rawgeti_(state, LUA_REGISTRYINDEX, (*core(state)).places.globals);
            if lua_rawequal(state, -1, -2) != 0 {
                lua_rawgeti_(state, LUA_REGISTRYINDEX, (*core(state)).places.shown_metatable);
            } else {
                lua_pushnil(state);
            }
        } else if lua_getmetatable(state, 1) == 0 {
            lua_pushnil(state);
        } else {
            luaL_getmetafield_(state, 1, c"__metatable".as_ptr());
        }
    }
    1
}

unsafe extern "C-unwind" fn rawset(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        luaL_checktype(state, 1, LUA_TTABLE);
        luaL_checkany(state, 2);
        luaL_checkany(state, 3);
        check_writable(state, 1);
        lua_settop(state, 3);
        lua_rawset(state, 1);
    }
    1
}

unsafe extern "C-unwind" fn rawget(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        luaL_checktype(state, 1, LUA_TTABLE);
        luaL_checkany(state, 2);
        lua_settop(state, 2);
        if push_real(state, 1) {
            lua_replace(state, 1);
        }
        lua_rawget_(state, 1);
    }
    1
}

unsafe extern "C-unwind" fn next(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        luaL_checktype(state, 1, LUA_TTABLE);
        lua_settop(state, 2);
        if push_real(state, 1) {
            lua_replace(state, 1);
        }
        if lua_next(state, 1) != 0 {
            return 2;
        }
        lua_pushnil(state);
    }
    1
}

/// With Lua's own `next`, which LuaJIT calls quickly, unless the table is read-only.
unsafe extern "C-unwind" fn pairs(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        luaL_checktype(state, 1, LUA_TTABLE);
        if push_real(state, 1) {
            lua_pushcclosure(state, next, 0);
        } else {
            lua_rawgeti_(state, LUA_REGISTRYINDEX, (*core(state)).places.next);
        }
        lua_pushvalue(state, 1);
        lua_pushnil(state);
    }
    3
}

/// `pcall` as scripts have it. It is Lua's own behind a function of Lua, because a C function that
/// calls another one protected takes stack of the thread each time that a script nests it.
const PCALL: &[u8] =
    b"local pcall, text_of_error = ... return function(...) return text_of_error(pcall(...)) end";
/// Where an error is that this function itself raises.
const PCALL_CHUNK: &CStr = c"@user_script";

unsafe fn add_pcall(state: State, globals: c_int) {
    // SAFETY: As promised by the caller.
    unsafe {
        let status =
            luaL_loadbuffer(state, PCALL.as_ptr().cast(), PCALL.len(), PCALL_CHUNK.as_ptr());
        assert_eq!(status, LUA_OK, "it is Lua");
        lua_getfield_(state, LUA_GLOBALSINDEX, c"pcall".as_ptr());
        lua_pushcclosure(state, text_of_error, 0);
        lua_call(state, 2, 1);
        lua_setfield(state, globals, c"pcall".as_ptr());
    }
}

/// The results of `pcall`, with the text of a command's error in place of the table that it is in:
/// so Redis has it for scripts from before errors were tables.
unsafe extern "C-unwind" fn text_of_error(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        let count = lua_gettop(state);
        if count == 2 && lua_toboolean(state, 1) == 0 && lua_type(state, 2) == LUA_TTABLE {
            check_depth(state, core(state));
            lua_getfield(state, 2, c"err".as_ptr());
            if lua_isstring(state, -1) != 0 {
                lua_replace(state, 2);
            }
            lua_settop(state, 2);
        }
        count
    }
}

/// A whole collection.
pub(crate) unsafe extern "C-unwind" fn collect(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe { lua_gc(state, LUA_GCCOLLECT, 0) };
    0
}

/// A few steps of a collection, each of which is short.
pub(crate) unsafe extern "C-unwind" fn collect_a_little(state: State) -> c_int {
    const STEPS: usize = 16;
    // SAFETY: Lua calls it with a live state.
    unsafe { (0..STEPS).any(|_| lua_gc(state, LUA_GCSTEP, 0) != 0) };
    0
}

/// Scripts may collect and ask, but not switch the collector off for those after them.
unsafe extern "C-unwind" fn collectgarbage(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        let option = if lua_type(state, 1) <= LUA_TNIL {
            Some(b"collect".as_slice())
        } else {
            bytes(state, 1)
        };
        let number = match option {
            Some(b"collect") => {
                collect_in_steps(state);
                0.0
            }
            Some(b"step") => {
                let done = lua_gc(state, LUA_GCSTEP, 0);
                lua_pushboolean(state, done);
                return 1;
            }
            Some(b"count") => kilobytes(state),
            _ => return raise(state, b"ERR collectgarbage can 'collect', 'step' and 'count' here"),
        };
        lua_pushnumber(state, number);
    }
    1
}

/// A whole collection, during which the host is asked.
unsafe fn collect_in_steps(state: State) {
    // SAFETY: As for `stack`.
    unsafe {
        // What is left of the cycle that has begun, and one that finds all that is unused now.
        for _ in 0..2 {
            while lua_gc(state, LUA_GCSTEP, 0) == 0 {
                tick(state);
            }
        }
        tick(state);
    }
}

unsafe fn kilobytes(state: State) -> f64 {
    // SAFETY: As for `stack`.
    unsafe {
        f64::from(lua_gc(state, LUA_GCCOUNT, 0))
            + f64::from(lua_gc(state, LUA_GCCOUNTB, 0)) / 1024.0
    }
}

unsafe extern "C-unwind" fn gcinfo(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe { lua_pushnumber(state, kilobytes(state).trunc()) };
    1
}

/// `os.clock`: processor time of the process, in seconds.
unsafe extern "C-unwind" fn clock(state: State) -> c_int {
    unsafe extern "C" {
        safe fn clock() -> std::ffi::c_long;
    }
    // SAFETY: Lua calls it with a live state. POSIX: a second has a million ticks.
    unsafe { lua_pushnumber(state, clock() as f64 / 1e6) };
    1
}

/// `os`, and what Lua does not have by itself.
unsafe fn add_libraries(state: State, globals: c_int) {
    // SAFETY: As for `stack`.
    unsafe {
        lua_newtable(state);
        set_function(state, c"clock", clock);
        protect(state);
        lua_setfield(state, globals, c"os".as_ptr());
        for (name, open) in libraries::ALL {
            open(state);
            protect(state);
            lua_setfield(state, globals, name.as_ptr());
        }
    }
}

unsafe fn add_math(state: State, globals: c_int) {
    // SAFETY: As for `stack`.
    unsafe {
        lua_getfield_(state, LUA_GLOBALSINDEX, c"math".as_ptr());
        set_function(state, c"random", random);
        set_function(state, c"randomseed", randomseed);
        alias(state, b"fmod", c"mod");
        protect(state);
        lua_setfield(state, globals, c"math".as_ptr());
    }
}

/// Gives the table at the top a second name for a function.
unsafe fn alias(state: State, name: &[u8], other: &CStr) {
    // SAFETY: As for `stack`.
    unsafe {
        raw_field(state, -1, name);
        lua_setfield(state, -2, other.as_ptr());
    }
}

unsafe fn add_string(state: State, globals: c_int) {
    // SAFETY: As for `stack`.
    unsafe {
        lua_getfield_(state, LUA_GLOBALSINDEX, c"string".as_ptr());
        strings::replace(state);
        alias(state, b"gmatch", c"gfind");
        protect(state);
        lua_pushvalue(state, -1);
        lua_setfield(state, globals, c"string".as_ptr());
        // The metatable of strings, as scripts see it.
        lua_newtable(state);
        lua_insert(state, -2);
        lua_setfield(state, -2, c"__index".as_ptr());
        protect(state);
        push_bytes(state, b"");
        lua_getmetatable(state, -1);
        lua_pushvalue(state, -3);
        lua_setfield(state, -2, c"__metatable".as_ptr());
        lua_settop(state, -4);
    }
}

unsafe fn add_table(state: State, globals: c_int) {
    // SAFETY: As for `stack`.
    unsafe {
        lua_getfield_(state, LUA_GLOBALSINDEX, c"table".as_ptr());
        tables::replace(state);
        set_function(state, c"insert", insert);
        set_function(state, c"remove", remove);
        set_function(state, c"setn", setn);
        protect(state);
        lua_setfield(state, globals, c"table".as_ptr());
    }
}

unsafe extern "C-unwind" fn setn(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe { luaL_error(state, c"'setn' is obsolete".as_ptr()) }
}

/// `table.insert`.
unsafe extern "C-unwind" fn insert(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        luaL_checktype(state, 1, LUA_TTABLE);
        check_writable(state, 1);
        let core = core(state);
        let end = lua_objlen(state, 1) as c_int + 1;
        match lua_gettop(state) {
            2 => lua_rawseti_(state, 1, end),
            3 => {
                let position = luaL_checknumber(state, 2) as c_int;
                let mut at = end.max(position);
                while at > position {
                    lua_rawgeti_(state, 1, at - 1);
                    lua_rawseti_(state, 1, at);
                    at -= 1;
                    spend(state, core, 1);
                }
                lua_rawseti_(state, 1, position);
            }
            _ => return luaL_error(state, c"wrong number of arguments to 'insert'".as_ptr()),
        }
    }
    0
}

/// `table.remove`.
unsafe extern "C-unwind" fn remove(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        luaL_checktype(state, 1, LUA_TTABLE);
        check_writable(state, 1);
        let core = core(state);
        let end = lua_objlen(state, 1) as c_int;
        let position =
            if lua_type(state, 2) <= LUA_TNIL { end } else { luaL_checknumber(state, 2) as c_int };
        if !(1..=end).contains(&position) {
            return 0;
        }
        lua_rawgeti_(state, 1, position);
        for at in position..end {
            lua_rawgeti_(state, 1, at + 1);
            lua_rawseti_(state, 1, at);
            spend(state, core, 1);
        }
        lua_pushnil(state);
        lua_rawseti_(state, 1, end);
    }
    1
}
