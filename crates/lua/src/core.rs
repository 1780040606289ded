//! What a machine's callbacks find when Lua calls them: data, and nothing that runs.

use crate::host::Host;
use crate::memory::Memory;
use crate::stack::State;
use crate::words::Reused;
use ladon_resp::Proto;
use mlua::ffi::*;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// The state that functions find when Lua calls them. Its beginning is the allocator's.
#[repr(C)]
pub(crate) struct Core {
    pub(crate) memory: Memory,
    /// The machine's own thread of Lua.
    pub(crate) state: State,
    /// Steps of C functions until the host is asked.
    pub(crate) steps_left: u32,
    /// Where the script began on the thread's stack.
    pub(crate) stack_begin: usize,
    /// While a script runs.
    pub(crate) host: Option<*mut dyn Host>,
    pub(crate) is_stopped: bool,
    /// How often the hook is called; 0 for never.
    pub(crate) hook_instructions: c_int,
    /// Scripts that ran since the last one that was not short.
    pub(crate) short_row: u32,
    /// As [`pace_collector`](crate::run::pace_collector) chose; 0 before.
    pub(crate) collector_pause: c_int,
    /// The globals `KEYS` and `ARGV` are those of a script that ran.
    pub(crate) has_keys: bool,
    pub(crate) reused: Reused,
    /// The last run got new tables for its words.
    pub(crate) makes_tables: bool,
    /// As `redis.setresp` chose.
    pub(crate) proto: Proto,
    /// What the function that is entered works on.
    pub(crate) frame: *mut c_void,
    pub(crate) places: Places,
    /// LuaJIT's `string.format` and `table.concat`.
    pub(crate) own_format: Option<lua_CFunction>,
    pub(crate) own_concat: Option<lua_CFunction>,
    /// Space for a call of a command: its reply,
    pub(crate) reply: Vec<u8>,
    /// its arguments, which live on Lua's stack and in `numbers`,
    pub(crate) arguments: Vec<&'static [u8]>,
    pub(crate) numbers: Vec<u8>,
    /// State of `math.random`, of 48 bits.
    pub(crate) random: u64,
    /// What it was before a script chose another one.
    pub(crate) random_before: Option<u64>,
    /// Settings of the `cjson` that all scripts have, and whether this script has changed them.
    pub(crate) json_settings: *mut c_void,
    pub(crate) has_json_settings: bool,
    pub(crate) registering: Registering,
    pub(crate) version: String,
}

/// The registry's numbers of values that are needed often.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    pub(crate) enter: c_int,
    pub(crate) finish: c_int,
    pub(crate) load: c_int,
    pub(crate) on_error: c_int,
    pub(crate) tostring: c_int,
    /// Lua's own `next`.
    pub(crate) next: c_int,
    /// What scripts see as globals.
    pub(crate) globals: c_int,
    /// The names `KEYS` and `ARGV`.
    pub(crate) keys: c_int,
    pub(crate) argv: c_int,
    /// From each read-only table to the table that has its fields.
    pub(crate) protected: c_int,
    /// The metatable of the table that scripts see as globals, and where else it may read: what the
    /// code of a library sees while it is loaded.
    pub(crate) globals_metatable: c_int,
    pub(crate) globals_of_libraries: c_int,
    /// What scripts see as globals that only index `KEYS`, `ARGV` and `redis`, and its own `KEYS`
    /// and `ARGV`.
    pub(crate) direct_globals: c_int,
    pub(crate) reused_keys: c_int,
    pub(crate) reused_argv: c_int,
    /// What scripts see as the metatable of the globals.
    pub(crate) shown_metatable: c_int,
}

/// The core of a state.
pub(crate) unsafe fn core(state: State) -> *mut Core {
    let mut memory = null_mut();
    // SAFETY: The state is live. Its allocator was given the address of its core.
    unsafe { lua_getallocf(state, &raw mut memory) };
    memory.cast()
}

/// What a library registers while its code runs.
#[derive(Debug, Default)]
pub(crate) struct Registering {
    /// Its code runs now.
    pub(crate) is_open: bool,
    pub(crate) functions: Vec<RegisteredFunction>,
}

/// One call of `redis.register_function`.
#[derive(Clone, Debug)]
pub struct RegisteredFunction {
    /// Its name, as given.
    pub name: Vec<u8>,
    /// Its description, if it has one.
    pub description: Option<Vec<u8>>,
    /// The names of its flags, in lower case.
    pub flags: Vec<Vec<u8>>,
    /// To run it.
    pub handle: FunctionHandle,
}

/// A function of a library.
#[derive(Clone, Debug)]
pub struct FunctionHandle(pub(crate) c_int);
