//! A machine without a program, of a thread that has other things to do: it has no fibers, and nothing
//! is in reach of its functions but what is given to them.

use crate::blocking::Blocking;
use crate::context::Context;
use crate::host::{Data, Host, Setting};
use crate::inbox::Inbox;
use crate::memory::{Memory, allocate};
use crate::natives;
use crate::stack::{State, bytes};
use ladon_msgpack::write;
use mlua::ffi::*;
use std::cell::Cell;
use std::ffi::{CString, c_int};
use std::sync::Arc;

unsafe extern "C-unwind" {
    /// See `natives/fibers.rs`.
    fn luaJIT_setmode(state: State, index: c_int, mode: c_int) -> c_int;
}

/// `LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF`.
const COMPILES_NOTHING: c_int = 0;

/// The machine.
pub(crate) struct Bare {
    pub(crate) state: State,
    pub(crate) context: Box<Context>,
    /// Its place is known to the state's allocator.
    pub(crate) memory: Box<Memory>,
}

impl Bare {
    /// A machine with its libraries, and the table of natives on its stack. Code is not compiled: a call
    /// takes the same instructions whenever it is made.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn new(memory_bytes_max: usize) -> Result<Bare, String> {
        let inbox = Arc::new(Inbox::new().map_err(|error| error.to_string())?);
        let poll = inbox.take_poll().ok_or("the inbox has a machine already")?;
        let blocking = Blocking::new(Arc::clone(&inbox));
        let context = Box::new(Context::new(Box::new(NoHost), (inbox, poll), blocking, 0));
        let mut memory =
            Box::new(Memory { used: 0, max: memory_bytes_max, was_refused: Cell::new(false) });
        // SAFETY: The memory keeps its address, and is dropped after the state is closed.
        let state = unsafe { lua_newstate(allocate, (&raw mut *memory).cast()) };
        if state.is_null() {
            return Err("there is no memory for a machine".to_owned());
        }
        let bare = Bare { state, context, memory };
        // SAFETY: The state is live, and the context outlives it. Errors end in protected calls.
        unsafe {
            luaL_openlibs(state);
            luaJIT_setmode(state, 0, COMPILES_NOTHING);
            lua_pushcclosure(state, open_modules, 0);
            protected(state, 0)?;
            natives::push_all(state, &raw const *bare.context);
        }
        Ok(bare)
    }

    /// Runs files of `lua/` with the table of natives, which leaves the stack.
    ///
    /// # Errors
    /// Theirs.
    pub(crate) fn load(&self, files: &[(&str, &str)]) -> Result<(), String> {
        let state = self.state;
        // SAFETY: As above.
        unsafe {
            for (name, text) in files {
                let chunk = CString::new(format!("@builtin/{name}.lua")).unwrap_or_default();
                if luaL_loadbuffer(state, text.as_ptr().cast(), text.len(), chunk.as_ptr())
                    != LUA_OK
                {
                    return Err(error_of(state));
                }
                lua_pushvalue(state, 1);
                protected(state, 1)?;
            }
            lua_settop(state, 0);
        }
        Ok(())
    }

    /// The values on the stack: a MessagePack array.
    pub(crate) fn returned(&self) -> Result<Vec<u8>, String> {
        let types = self.context.types.get();
        let mut out = Vec::new();
        // SAFETY: The values are on the stack; what may raise an error runs protected.
        unsafe {
            let count = lua_gettop(self.state);
            write::array(&mut out, count as u32);
            for at in 1..=count {
                types.encode(self.state, at, &mut out).map_err(|error| error.0)?;
            }
        }
        Ok(out)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // SAFETY: Nothing runs on it.
        unsafe { lua_close(self.state) };
    }
}

unsafe extern "C-unwind" fn open_modules(state: State) -> c_int {
    // SAFETY: LuaJIT's own libraries are open, and this is a protected call.
    unsafe {
        ladon_modules::preload(state);
        ladon_modules::extend(state);
    }
    0
}

/// Calls what is on the stack with so many arguments, and wants no result.
///
/// # Safety
/// As for [`crate::stack`].
pub(crate) unsafe fn protected(state: State, arguments: c_int) -> Result<(), String> {
    // SAFETY: As promised by the caller.
    unsafe {
        match lua_pcall(state, arguments, 0, 0) {
            LUA_OK => Ok(()),
            _ => Err(error_of(state)),
        }
    }
}

/// The text of the error at the top.
///
/// # Safety
/// As for [`crate::stack`].
pub(crate) unsafe fn error_of(state: State) -> String {
    // SAFETY: As promised by the caller.
    let text = unsafe { bytes(state, -1) };
    String::from_utf8_lossy(text.unwrap_or(b"an error that is no text")).into_owned()
}

/// Such a machine asks nobody for anything: its natives are not in reach of functions.
struct NoHost;

impl Host for NoHost {
    fn configure(&mut self, _: &[(String, Setting)]) -> Result<Option<Box<dyn Data>>, String> {
        Err("this function configures nothing".to_owned())
    }

    fn log(&mut self, _: u8, _: &str) {}

    fn begin_checkpoint(&mut self) -> Result<(), String> {
        Err("this function makes no checkpoints".to_owned())
    }

    fn checkpoint(&mut self) -> Option<Result<(), String>> {
        None
    }

    fn is_stopping(&self) -> bool {
        false
    }
}
