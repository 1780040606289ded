//! Which modules there are, and how they come into a state.

use crate::stack::{State, push_bytes, run_chunk};
use crate::tail_calls::with_tail_calls;
use crate::{
    cdata, datetime, decimal, digest, errno, fio, json, log, msgpack, pickle, tarantool, utf8,
    uuid, yaml,
};
use mlua::ffi::*;
use std::ffi::{CStr, c_int, c_void};

/// How a module comes into being.
enum Source {
    /// A function pushes it.
    Rust(unsafe fn(State)),
    /// A chunk of Lua returns it.
    Lua(&'static str),
}

/// A module: what `require` calls it, and how it comes into being.
pub struct Module {
    name: &'static CStr,
    chunk: &'static CStr,
    source: Source,
}

impl Module {
    /// What `require` calls it.
    #[must_use]
    pub fn name(&self) -> &'static CStr {
        self.name
    }
}

macro_rules! rust {
    ($name:literal, $open:path) => {
        Module {
            name: match CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name without zeros"),
            },
            chunk: c"",
            source: Source::Rust($open),
        }
    };
}

macro_rules! lua {
    ($name:literal, $file:literal) => {
        Module {
            name: match CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name without zeros"),
            },
            chunk: match CStr::from_bytes_with_nul(concat!("@builtin/", $file, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name without zeros"),
            },
            source: Source::Lua(include_str!(concat!("../lua/", $file))),
        }
    };
}

static MODULES: &[Module] = &[
    lua!("buffer", "buffer.lua"),
    lua!("clock", "clock.lua"),
    rust!("crypto", digest::open_crypto),
    lua!("csv", "csv.lua"),
    rust!("datetime", datetime::open),
    rust!("decimal", decimal::open),
    rust!("digest", digest::open),
    rust!("errno", errno::open),
    rust!("fio", fio::open),
    lua!("fun", "fun.lua"),
    lua!("iconv", "iconv.lua"),
    rust!("json", json::open),
    rust!("log", log::open),
    rust!("msgpack", msgpack::open),
    rust!("pickle", pickle::open),
    lua!("pwd", "pwd.lua"),
    lua!("strict", "strict.lua"),
    lua!("tap", "tap.lua"),
    rust!("tarantool", tarantool::open),
    lua!("uri", "uri.lua"),
    rust!("utf8", utf8::open),
    rust!("uuid", uuid::open),
    rust!("yaml", yaml::open),
];

/// The names that `require` finds after [`preload`].
pub fn module_names() -> impl Iterator<Item = &'static CStr> {
    MODULES.iter().map(Module::name)
}

/// Puts a loader of each module into `package.preload`, and makes the types of `datetime`,
/// `decimal` and `uuid`, and the value `box.NULL` known.
///
/// # Safety
/// The state has to be live, with LuaJIT's own libraries open, FFI included. May raise an error of
/// Lua, so it runs within a protected call.
pub unsafe fn preload(state: *mut lua_State) {
    // SAFETY: As promised.
    unsafe {
        cdata::install(state);
        let top = lua_gettop(state);
        lua_getfield_(state, LUA_GLOBALSINDEX, c"package".as_ptr());
        lua_getfield_(state, -1, c"preload".as_ptr());
        for module in MODULES {
            lua_pushlightuserdata(state, std::ptr::from_ref(module).cast_mut().cast::<c_void>());
            lua_pushcclosure(state, load, 1);
            lua_setfield(state, -2, module.name.as_ptr());
        }
        lua_settop(state, top);
        for name in [c"datetime", c"decimal", c"uuid"] {
            lua_getfield_(state, LUA_GLOBALSINDEX, c"require".as_ptr());
            lua_pushstring_(state, name.as_ptr());
            lua_call(state, 1, 0);
        }
    }
}

/// A loader in `package.preload`.
unsafe extern "C-unwind" fn load(state: State) -> c_int {
    // SAFETY: The upvalue is one of `MODULES`.
    unsafe {
        let module = &*lua_touserdata(state, lua_upvalueindex(1)).cast::<Module>();
        match module.source {
            Source::Rust(open) => open(state),
            Source::Lua(source) => {
                push_bytes(state, module.name.to_bytes());
                run_chunk(state, source, module.chunk);
            }
        }
        1
    }
}

/// Adds Tarantool's functions to `string`, `table`, `os`, `package` and the globals.
///
/// # Safety
/// As for [`preload`], which comes first.
pub unsafe fn extend(state: *mut lua_State) {
    // SAFETY: As promised.
    unsafe {
        lua_pushnil(state);
        run_chunk(state, include_str!("../lua/extend.lua"), c"@builtin/extend.lua");
        lua_settop(state, -2);
        lua_pushcclosure(state, with_tail_calls, 0);
        run_chunk(state, include_str!("../lua/loaders.lua"), c"@builtin/loaders.lua");
        lua_settop(state, -2);
    }
}
