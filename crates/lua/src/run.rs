//! Running a script: from `KEYS` and `ARGV` to the reply.

use crate::core::{Core, core};
use crate::host::Host;
use crate::pace::{self, has_room_for_handler, hook};
use crate::result;
use crate::stack::{State, bytes, push_bytes, raw_field};
use crate::words::{self, Words};
use ladon_resp::{Proto, Reply};
use mlua::ffi::*;
use std::ffi::{CStr, c_int};

/// How a script ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The reply is complete; it may be an error.
    Replied,
    /// The host stopped it, and there is no reply.
    Stopped,
}

/// One run.
pub(crate) struct Frame<'a, 'r> {
    /// The registry's number of the function.
    pub(crate) function: c_int,
    /// What errors call it.
    pub(crate) name: &'a [u8],
    pub(crate) keys: &'a [&'a [u8]],
    pub(crate) args: &'a [&'a [u8]],
    /// Where it finds them.
    pub(crate) words: Words,
    pub(crate) reply: &'a mut Reply<'r>,
    /// What the function's protected call returned, for [`finish`].
    pub(crate) status: c_int,
}

/// Runs the frame, which is [`Core::frame`]. Returns the status of a protected call. [`on_error`] is
/// at the bottom of the stack.
///
/// # Safety
/// As for [`crate::stack`], outside of any call. `core` is that of the state.
pub(crate) unsafe fn run(state: State, core: *mut Core, frame: *mut Frame<'_, '_>) -> c_int {
    // SAFETY: As promised; the frame lives until this returns. What is called without protection
    // raises no error: none of it allocates but `refill`, which promises that.
    unsafe {
        let is_ready = (*frame).words == Words::Reused
            && words::refill(state, core, [(*frame).keys, (*frame).args]);
        if !is_ready {
            return call_protected(state, (*core).places.enter);
        }
        lua_rawgeti_(state, LUA_REGISTRYINDEX, (*frame).function);
        (*frame).status = lua_pcall(state, 0, 1, ON_ERROR);
        if (*core).is_stopped
            || (*frame).status == LUA_OK
                && result::write_plain(state, (*frame).reply, (*core).proto)
        {
            return LUA_OK;
        }
        lua_rawgeti_(state, LUA_REGISTRYINDEX, (*core).places.finish);
        lua_insert(state, -2);
        lua_pcall(state, 1, 0, 0)
    }
}

/// The place of [`on_error`] on the stack of a machine, outside of any call.
pub(crate) const ON_ERROR: c_int = 1;

/// Calls the function with this number in the registry, without arguments and results.
///
/// # Safety
/// As for [`crate::stack`].
pub(crate) unsafe fn call_protected(state: State, function: c_int) -> c_int {
    // SAFETY: As promised. Neither of these allocates.
    unsafe {
        lua_rawgeti_(state, LUA_REGISTRYINDEX, function);
        lua_pcall(state, 0, 0, 0)
    }
}

/// Runs the frame of [`Core::frame`]. What it returns does not matter.
pub(crate) unsafe extern "C-unwind" fn enter(state: State) -> c_int {
    // SAFETY: `run` has put a frame there, which lives until this returns.
    let (frame, core) = unsafe {
        let core = core(state);
        (&mut *(*core).frame.cast::<Frame<'_, '_>>(), core)
    };
    // SAFETY: A fresh C function has room for some twenty values, and `core` is this state's.
    unsafe {
        lua_rawgeti_(state, LUA_REGISTRYINDEX, (*core).places.on_error);
        lua_rawgeti_(state, LUA_REGISTRYINDEX, frame.function);
        let arguments = words::pass(state, core, frame.words, [frame.keys, frame.args]);
        frame.status = lua_pcall(state, arguments, 1, 1);
        if !(*core).is_stopped {
            write(state, core, frame);
        }
    }
    0
}

/// Writes what a frame's function left, its argument.
pub(crate) unsafe extern "C-unwind" fn finish(state: State) -> c_int {
    // SAFETY: As for `enter`.
    unsafe {
        let core = core(state);
        write(state, core, &mut *(*core).frame.cast::<Frame<'_, '_>>());
    }
    0
}

/// Writes the result, or the error, at the top.
unsafe fn write(state: State, core: *mut Core, frame: &mut Frame<'_, '_>) {
    // SAFETY: As promised by the callers.
    unsafe {
        if frame.status == LUA_OK {
            result::write(state, frame.reply, (*core).proto, 0);
        } else {
            write_error(state, frame);
        }
    }
}

/// Writes the error at the top, with the name of the script, and where it was raised.
unsafe fn write_error(state: State, frame: &mut Frame<'_, '_>) {
    // SAFETY: As for `stack`; the strings stay on the stack until the reply is written.
    unsafe {
        if lua_type(state, -1) != LUA_TTABLE {
            // There was no memory for the handler, or it failed itself.
            let text = bytes(state, -1).unwrap_or(b"unknown error");
            return frame.reply.error([b"ERR ".as_slice(), text].concat());
        }
        let error = lua_gettop(state);
        let is_text = raw_field(state, error, b"err") == LUA_TSTRING;
        let has_source = raw_field(state, error, b"source") == LUA_TSTRING;
        let has_line = raw_field(state, error, b"line") == LUA_TNUMBER;
        let line = lua_tonumber(state, -1);
        let text = if is_text { bytes(state, error + 1) } else { None };
        let mut whole = text.unwrap_or(b"ERR unknown error").to_vec();
        if has_source && has_line {
            whole.extend_from_slice(b" script: ");
            whole.extend_from_slice(frame.name);
            whole.extend_from_slice(b", on ");
            whole.extend_from_slice(bytes(state, error + 2).unwrap_or_default());
            whole.extend_from_slice(format!(":{line}.").as_bytes());
        }
        frame.reply.error(whole);
    }
}

/// Turns whatever was raised into `{err = text, source = ..., line = ...}`.
pub(crate) unsafe extern "C-unwind" fn on_error(state: State) -> c_int {
    // SAFETY: As for `stack`. `lua_getinfo` fills the fields that it is asked for.
    unsafe {
        let mut place: lua_Debug = std::mem::zeroed();
        let mut found = lua_getstack(state, 1, &raw mut place) != 0
            && lua_getinfo(state, c"nSl".as_ptr(), &raw mut place) != 0;
        if found && CStr::from_ptr(place.what) == c"C" {
            found = lua_getstack(state, 2, &raw mut place) != 0
                && lua_getinfo(state, c"nSl".as_ptr(), &raw mut place) != 0;
        }
        lua_createtable(state, 0, 4);
        let table = lua_gettop(state);
        if lua_type(state, 1) == LUA_TTABLE {
            if raw_field(state, 1, b"err") == LUA_TSTRING {
                lua_setfield(state, table, c"err".as_ptr());
            }
        } else {
            push_bytes(state, b"ERR ");
            lua_pushvalue(state, 1);
            if lua_type(state, 1) != LUA_TSTRING && has_room_for_handler(core(state)) {
                lua_rawgeti_(state, LUA_REGISTRYINDEX, (*core(state)).places.tostring);
                lua_insert(state, -2);
                lua_call(state, 1, 1);
            }
            if bytes(state, -1).is_none() {
                lua_settop(state, -2);
                push_bytes(state, b"unknown error");
            }
            lua_concat(state, 2);
            lua_setfield(state, table, c"err".as_ptr());
        }
        if found {
            push_bytes(state, CStr::from_ptr(place.source).to_bytes());
            lua_setfield(state, table, c"source".as_ptr());
            lua_pushnumber(state, f64::from(place.currentline));
            lua_setfield(state, table, c"line".as_ptr());
        }
        lua_settop(state, table);
    }
    1
}

/// Makes the collector wait longer while there is little memory to save: most of a cycle's work is
/// going through what the libraries hold for good. Not after scripts that reuse their tables: they
/// leave little behind but short strings, and the more of these there are, the longer it takes to
/// look for the next one.
pub(crate) unsafe fn pace_collector(state: State) {
    /// Percent of what a cycle left at which the next one begins; LuaJIT's own is the second.
    const PAUSES: [c_int; 2] = [800, 200];
    const LITTLE_BYTES: usize = 4 << 20;
    // SAFETY: As for `stack`. It allocates nothing.
    unsafe {
        let core = core(state);
        let is_soon = (*core).memory.used > LITTLE_BYTES || !(*core).makes_tables;
        let pause = PAUSES[usize::from(is_soon)];
        if pause != (*core).collector_pause {
            (*core).collector_pause = pause;
            lua_gc(state, LUA_GCSETPAUSE, pause);
        }
    }
}

/// From now on nothing of the script runs any more.
pub(crate) unsafe fn stop(state: State, core: *mut Core) {
    // SAFETY: As for `stack`.
    unsafe {
        (*core).is_stopped = true;
        set_hook(state, core, 1);
    }
}

/// From now on the hook is called every so many instructions; never if 0.
pub(crate) unsafe fn set_hook(state: State, core: *mut Core, instructions: c_int) {
    // SAFETY: As for `stack`.
    unsafe {
        (*core).hook_instructions = instructions;
        let mask = if instructions == 0 { 0 } else { LUA_MASKCOUNT };
        lua_sethook(state, (instructions != 0).then_some(hook), mask, instructions);
    }
}

/// Sees to it that the hook is called where it is needed. Short scripts end before it would be due,
/// and while there is one, each of their instructions takes a detour; but to change it costs more
/// than they do.
pub(crate) unsafe fn want_hook(state: State, core: *mut Core, is_short: bool) {
    /// Short scripts in a row before they run without it.
    const ROW: u32 = 64;
    // SAFETY: As for `stack`.
    unsafe {
        (*core).short_row = if is_short { (*core).short_row.saturating_add(1) } else { 0 };
        let wanted = if (*core).short_row < ROW { pace::regular_instructions(core) } else { 0 };
        if wanted != (*core).hook_instructions {
            set_hook(state, core, wanted);
        }
    }
}

/// Ends the function that Lua called, without a reason that the script could read.
pub(crate) unsafe fn raise_stop(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        lua_pushboolean(state, 0);
        lua_error(state)
    }
}

/// Lets `host` be asked during `body`.
///
/// # Safety
/// `core` is that of a live state.
pub(crate) unsafe fn with_host<R>(
    core: *mut Core,
    host: &mut dyn Host,
    body: impl FnOnce() -> R,
) -> R {
    let host: *mut (dyn Host + '_) = host;
    // SAFETY: Only the host's lifetime changes, and the pointer is gone before the host is.
    unsafe {
        (*core).host =
            Some(std::mem::transmute::<*mut (dyn Host + '_), *mut (dyn Host + 'static)>(host));
        (*core).proto = Proto::Resp2;
        let result = body();
        (*core).host = None;
        result
    }
}
