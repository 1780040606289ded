//! Time, the log, the settings, and the end.

use super::{Native, raise_text};
use crate::blocking;
use crate::context::Context;
use crate::host::Setting;
use crate::memory::Memory;
use crate::stack::{State, bytes, push_bytes};
use crate::syntax;
use crate::values::Types;
use ladon_iproto::auth::{StoredPassword, scramble};
use ladon_iproto::greeting;
use mlua::ffi::*;
use std::ffi::c_int;

pub(super) const NATIVES: &[Native] = &[
    (c"clock", clock),
    (c"log", log),
    (c"configure", configure),
    (c"exit", exit),
    (c"read_line", read_line),
    (c"is_unfinished", is_unfinished),
    (c"snapshot", snapshot),
    (c"password_map", password_map),
    (c"scramble", scramble_password),
    (c"pid", pid),
    (c"memory", memory),
    (c"memory_max", memory_max),
    (c"set_tuple_type", set_tuple_type),
];

/// `clock(number) -> seconds` of one of the system's clocks (`clock_gettime(2)`).
unsafe extern "C-unwind" fn clock(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls; the time is written to a place of this frame.
    unsafe {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        libc::clock_gettime(lua_tonumber(state, 1) as libc::clockid_t, &raw mut time);
        lua_pushnumber(state, time.tv_sec as f64 + time.tv_nsec as f64 / 1e9);
    }
    1
}

/// `read_line(prompt) -> text`, while other fibers run; nil at the end of the input, and the reason if
/// it is no end.
unsafe extern "C-unwind" fn read_line(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls. What is owned is dropped before an error can come.
    unsafe {
        let context = Context::of(state);
        let terminal = context.host.borrow_mut().terminal();
        let prompt = String::from_utf8_lossy(bytes(state, 1).unwrap_or_default()).into_owned();
        let mut read = Ok(None);
        let of = std::ptr::from_ref(context).cast();
        if let Some(terminal) = &terminal {
            blocking::run(state, of, &mut || read = terminal.read_line(&prompt));
        }
        drop((terminal, prompt));
        match read {
            Ok(Some(line)) => push_bytes(state, line.as_bytes()),
            Ok(None) => lua_pushnil(state),
            Err(why) => {
                lua_pushnil(state);
                push_bytes(state, why.as_bytes());
                return 2;
            }
        }
    }
    1
}

/// `is_unfinished(text) -> boolean`: whether it is the beginning of a statement.
unsafe extern "C-unwind" fn is_unfinished(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let text = bytes(state, 1).unwrap_or_default();
        lua_pushboolean(state, c_int::from(syntax::is_unfinished(text)));
    }
    1
}

/// `log(level, text)`.
unsafe extern "C-unwind" fn log(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let level = lua_tonumber(state, 1) as u8;
        let text = String::from_utf8_lossy(bytes(state, 2).unwrap_or_default());
        Context::of(state).host.borrow_mut().log(level, &text);
    }
    0
}

/// `configure(table of options)`: texts, numbers and booleans by name.
unsafe extern "C-unwind" fn configure(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let mut options = Vec::new();
        lua_pushnil(state);
        while lua_next(state, 1) != 0 {
            let value = match lua_type(state, -1) {
                LUA_TBOOLEAN => Setting::Switch(lua_toboolean(state, -1) != 0),
                LUA_TNUMBER => Setting::Number(lua_tonumber(state, -1)),
                _ => {
                    let text = bytes(state, -1).unwrap_or_default();
                    Setting::Text(String::from_utf8_lossy(text).into_owned())
                }
            };
            // A copy: `tolstring` would change a key that is a number.
            lua_pushvalue(state, -2);
            let name = String::from_utf8_lossy(bytes(state, -1).unwrap_or_default()).into_owned();
            options.push((name, value));
            lua_settop(state, -3);
        }
        let done = context.host.borrow_mut().configure(&options);
        drop(options);
        match done {
            Ok(Some(data)) => *context.data.borrow_mut() = Some(data),
            Ok(None) => {}
            Err(why) => return raise_text(state, why),
        }
    }
    0
}

/// `exit(code)`: the program ends with this turn.
unsafe extern "C-unwind" fn exit(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        context.exit.set(Some(lua_tonumber(state, 1) as i32));
        // Nothing of this fiber goes on.
        context.scheduler.wait(None);
    }
    0
}

/// `snapshot()`: a checkpoint, in the background of other fibers.
unsafe extern "C-unwind" fn snapshot(state: State) -> c_int {
    /// How often to look whether it is made.
    const LOOK_EVERY_NS: u64 = 5_000_000;
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        super::fibers::before_switch(state);
        let begun = context.host.borrow_mut().begin_checkpoint();
        let mut done = match begun {
            Ok(()) => context.host.borrow_mut().checkpoint(),
            Err(why) => return raise_text(state, why),
        };
        while done.is_none() {
            context.scheduler.wait(Some(context.now_ns() + LOOK_EVERY_NS));
            done = context.host.borrow_mut().checkpoint();
        }
        match done {
            Some(Err(why)) => raise_text(state, why),
            _ => 0,
        }
    }
}

/// `password_map(password) -> string`: the MessagePack map that `_user` keeps of a password.
unsafe extern "C-unwind" fn password_map(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let mut map = Context::of(state).take_buffer();
        StoredPassword::chap_sha1(bytes(state, 1).unwrap_or_default()).write_map(&mut map);
        push_bytes(state, &map);
        Context::of(state).give_buffer(map);
    }
    1
}

/// `scramble(greeting, password) -> string`: what proves to a server that the password is known.
unsafe extern "C-unwind" fn scramble_password(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let text = bytes(state, 1).unwrap_or_default();
        let greeted = text.try_into().ok().and_then(greeting::read);
        match greeted.map(|it| it.salt) {
            Some(salt) => {
                push_bytes(state, &scramble(bytes(state, 2).unwrap_or_default(), &salt));
                1
            }
            None => raise_text(state, "Invalid greeting".to_owned()),
        }
    }
}

/// `pid() -> number`.
unsafe extern "C-unwind" fn pid(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe { lua_pushnumber(state, f64::from(std::process::id())) };
    1
}

/// `memory() -> bytes` that Lua has.
unsafe extern "C-unwind" fn memory(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe { lua_pushnumber(state, (*memory_of(state)).used as f64) };
    1
}

/// `memory_max() -> bytes` that Lua may have.
unsafe extern "C-unwind" fn memory_max(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe { lua_pushnumber(state, (*memory_of(state)).max as f64) };
    1
}

/// What the state's allocator was given.
unsafe fn memory_of(state: State) -> *const Memory {
    let mut of = std::ptr::null_mut();
    // SAFETY: As promised by the caller.
    unsafe { lua_getallocf(state, &raw mut of) };
    of.cast()
}

/// `set_tuple_type(number, maker, a tuple)`: the tuples' type of cdata, and what makes them.
unsafe extern "C-unwind" fn set_tuple_type(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let tuple = lua_tonumber(state, 1) as u16;
        // What LuaJIT keeps in front of a cdata is its type's number, as `values.rs` believes.
        if crate::values::ctype(state, 3) != tuple {
            return raise_text(state, "this LuaJIT keeps the types of cdata elsewhere".into());
        }
        lua_pushvalue(state, 2);
        let make_tuple = luaL_ref(state, LUA_REGISTRYINDEX);
        context.types.set(Types { tuple, make_tuple });
    }
    0
}
