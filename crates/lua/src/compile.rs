//! Compiling a chunk, within a protected call.

use crate::bytecode::{self, Traits};
use crate::core::core;
use crate::stack::{State, bytes, push_bytes};
use crate::words::Words;
use mlua::ffi::*;
use std::ffi::{c_int, c_void};

/// A compiled chunk.
pub(crate) struct Code {
    /// Its number in the registry.
    pub(crate) function: c_int,
    /// Where it finds its words if it is a script.
    pub(crate) words: Words,
    pub(crate) is_short: bool,
    pub(crate) is_quick: bool,
}

/// Text to be compiled.
pub(crate) struct Chunk<'a> {
    pub(crate) body: &'a [u8],
    pub(crate) name: &'static [u8],
    pub(crate) is_script: bool,
    /// Its code, for as long as this takes to look at it.
    pub(crate) dump: Vec<u8>,
    pub(crate) result: Result<Code, String>,
}

impl Chunk<'_> {
    /// Longer scripts are not looked at.
    const LOOKED_AT_MAX: usize = 64 << 10;

    /// Looks at the code of the script at the top, and gives it the globals that it may have.
    /// Returns where it finds its words, and what is known of it otherwise.
    ///
    /// # Safety
    /// As for [`crate::stack`].
    unsafe fn set_globals(&mut self, state: State) -> (Words, Traits) {
        if !self.is_script || self.body.len() > Chunk::LOOKED_AT_MAX {
            return (Words::Globals, Traits::default());
        }
        // SAFETY: As promised. Errors of the dump end in it, and what collects it lives as long.
        let traits = unsafe {
            let function = lua_gettop(state);
            let dumped = lua_dump_(state, collect_dump, (&raw mut self.dump).cast());
            lua_settop(state, function);
            let traits = bytecode::traits(&self.dump);
            if dumped != 0 || !traits.only_indexes {
                return (Words::Globals, Traits::default());
            }
            lua_rawgeti_(state, LUA_REGISTRYINDEX, (*core(state)).places.direct_globals);
            lua_setfenv(state, function);
            traits
        };
        (Words::Reused, traits)
    }
}

/// `lua_Writer` (Lua 5.1 manual): appends a part of a dump to a `Vec`.
pub(crate) unsafe extern "C-unwind" fn collect_dump(
    _: State,
    part: *const c_void,
    length: usize,
    to: *mut c_void,
) -> c_int {
    // SAFETY: So many bytes are there, and the caller of `lua_dump` gave the address of a `Vec`.
    unsafe {
        let part = std::slice::from_raw_parts(part.cast::<u8>(), length);
        (*to.cast::<Vec<u8>>()).extend_from_slice(part);
    }
    0
}

/// Compiles the chunk of [`Core::frame`](crate::core::Core::frame).
pub(crate) unsafe extern "C-unwind" fn load(state: State) -> c_int {
    // SAFETY: `Vm::compile` has put a chunk there, which lives until this returns. No value that
    // must be dropped is alive where an error may be raised.
    unsafe {
        let chunk = &mut *(*core(state)).frame.cast::<Chunk<'_>>();
        if chunk.body.starts_with(b"\x1b") {
            chunk.result = Err("bytecode is not accepted".to_owned());
            return 0;
        }
        // A string of Lua's, so that the machine's limit covers it.
        push_bytes(state, chunk.body);
        let body = bytes(state, -1).unwrap_or_default();
        let status =
            luaL_loadbuffer(state, body.as_ptr().cast(), body.len(), chunk.name.as_ptr().cast());
        if status == LUA_OK {
            let (words, Traits { is_short, is_quick, .. }) = chunk.set_globals(state);
            let function = luaL_ref(state, LUA_REGISTRYINDEX);
            chunk.result = Ok(Code { function, words, is_short, is_quick });
        } else {
            let text = bytes(state, -1).unwrap_or(b"unknown error");
            chunk.result = Err(String::from_utf8_lossy(text).into_owned());
        }
    }
    0
}
