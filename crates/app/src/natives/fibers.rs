//! What `fiber.lua` is built on.

use super::{Native, raise_text};
use crate::context::Context;
use crate::stack::{State, bytes, push_bytes};
use crate::values::ValueError;
use ladon_fibers::Woken;
use ladon_kernel::program::{Kind, User};
use mlua::ffi::*;
use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

pub(super) const NATIVES: &[Native] = &[
    (c"spawn", spawn),
    (c"wait", wait),
    (c"wake", wake),
    (c"give_way", give_way),
    (c"current", current),
    (c"switches", switches),
    (c"user", user),
    (c"set_user", set_user),
    (c"user_since", user_since),
    (c"client", client),
    (c"marshals", marshals),
    (c"push", push),
    (c"want", want),
];

unsafe extern "C-unwind" {
    /// LuaJIT's `luaJIT_setmode` (<https://luajit.org/ext_c_api.html>), which `mlua` leaves out.
    fn luaJIT_setmode(state: State, index: c_int, mode: c_int) -> c_int;
}

/// No mode that there is: all that the call does is to end a trace that is being recorded, and to
/// raise an error inside a finalizer. Stacks must not be switched in either.
const NO_MODE: c_int = 0x0e;

/// Makes it safe to leave this stack.
///
/// # Safety
/// As for [`crate::stack`]; called from Lua.
pub(crate) unsafe fn before_switch(state: State) {
    // SAFETY: As promised.
    unsafe { luaJIT_setmode(state, 0, NO_MODE) };
}

/// `spawn(function, at_once) -> number`: a new fiber calls the function.
unsafe extern "C-unwind" fn spawn(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let at_once = lua_toboolean(state, 2) != 0;
        if at_once {
            before_switch(state);
        }
        let taken = context.take_thread(state);
        let thread = taken.0;
        lua_pushvalue(state, 1);
        lua_xmove(state, thread, 1);
        let (of, user) = (&raw const *context, context.seat().user);
        let body = Box::new(move || {
            // The context outlives its fibers.
            let context = &*of;
            context.change_seat(|seat| seat.user = user);
            // The function catches errors itself; what comes here is one of memory.
            lua_pcall(thread, 0, 0, 0);
            context.fiber_ends(thread);
            context.leave_seat();
            context.give_thread(taken);
        });
        let started = match at_once {
            true => context.scheduler.start(body),
            false => context.scheduler.queue(body),
        };
        match started {
            Ok(id) => {
                lua_pushnumber(state, id as f64);
                1
            }
            Err(error) => {
                context.give_thread(taken);
                raise_text(state, error.to_string())
            }
        }
    }
}

/// `wait(seconds or nil) -> boolean`: whether it was woken, and not by time.
unsafe extern "C-unwind" fn wait(state: State) -> c_int {
    /// As long as no program waits.
    const SECONDS_MAX: f64 = 1e9;
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        before_switch(state);
        let deadline = match lua_type(state, 1) {
            LUA_TNUMBER => {
                let seconds = lua_tonumber(state, 1).clamp(0.0, SECONDS_MAX);
                Some(context.now_ns() + (seconds * 1e9) as u64)
            }
            _ => None,
        };
        let woken = context.scheduler.wait(deadline);
        lua_pushboolean(state, c_int::from(woken == Woken::Called));
    }
    1
}

/// `wake(number) -> boolean`: whether the fiber waited.
unsafe extern "C-unwind" fn wake(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let woken = Context::of(state).scheduler.wake(lua_tonumber(state, 1) as u64);
        lua_pushboolean(state, c_int::from(woken));
    }
    1
}

/// `give_way()`: behind those that are ready.
unsafe extern "C-unwind" fn give_way(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        before_switch(state);
        Context::of(state).scheduler.give_way();
    }
    0
}

/// `current() -> number`.
unsafe extern "C-unwind" fn current(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe { lua_pushnumber(state, Context::of(state).scheduler.current() as f64) };
    1
}

/// `switches(number) -> number`, 0 of a fiber that is over.
unsafe extern "C-unwind" fn switches(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let of = lua_tonumber(state, 1) as u64;
        let count = Context::of(state).scheduler.switches(of).unwrap_or(0);
        lua_pushnumber(state, count as f64);
    }
    1
}

/// `user() -> number, since`: whose rights the fiber has; another user may get the number, but since
/// another time.
unsafe extern "C-unwind" fn user(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe { push_user(state, Context::of(state).seat().user) };
    2
}

unsafe fn push_user(state: State, user: User) {
    // SAFETY: As promised by the callers.
    unsafe {
        lua_pushnumber(state, f64::from(user.number));
        lua_pushnumber(state, user.since as f64);
    }
}

/// `set_user(number, since or nil)`; without a time, it is the user who has the number now.
unsafe extern "C-unwind" fn set_user(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let (context, number) = (Context::of(state), super::uint(state, 1));
        let user = match lua_type(state, 2) {
            LUA_TNUMBER => User { number, since: lua_tonumber(state, 2) as u64 },
            _ => context.user(number),
        };
        context.change_seat(|seat| seat.user = user);
    }
    0
}

/// `user_since(number) -> since` of the user who has the number now.
unsafe extern "C-unwind" fn user_since(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let user = Context::of(state).user(super::uint(state, 1));
        lua_pushnumber(state, user.since as f64);
    }
    1
}

/// `client() -> session, user, address, socket, request's number, since` of the client whose request the
/// fiber serves; nothing of others.
unsafe extern "C-unwind" fn client(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let current = context.scheduler.current();
        let clients = context.clients.borrow();
        let Some(client) = clients.get(&current) else { return 0 };
        lua_pushnumber(state, client.info.id as f64);
        lua_pushnumber(state, f64::from(client.user.number));
        push_bytes(state, client.info.addr.as_bytes());
        lua_pushnumber(state, f64::from(client.info.fd));
        lua_pushnumber(state, client.sync as f64);
        lua_pushnumber(state, client.user.since as f64);
        6
    }
}

/// `marshals([boolean]) -> boolean`: whether errors are errors in what the fiber's session gets, not
/// texts; changes it if told to.
unsafe extern "C-unwind" fn marshals(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let wanted = (lua_gettop(state) > 0).then(|| lua_toboolean(state, 1) != 0);
        let current = context.scheduler.current();
        let clients = context.clients.borrow();
        let is_on = match clients.get(&current) {
            Some(client) => {
                if let Some(wanted) = wanted {
                    client.info.marshals_errors.store(wanted, Relaxed);
                }
                client.info.marshals_errors.load(Relaxed)
            }
            None => {
                context.marshals_errors.set(wanted.unwrap_or(context.marshals_errors.get()));
                context.marshals_errors.get()
            }
        };
        lua_pushboolean(state, c_int::from(is_on));
        1
    }
}

/// `push(value) -> boolean`: sends the client whose request the fiber serves a value ahead of the
/// answer. False if it serves none, `nil` if the client has to read others first.
unsafe extern "C-unwind" fn push(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let current = context.scheduler.current();
        let asker = context.clients.borrow().get(&current).and_then(|it| it.asker.clone());
        let Some(asker) = asker else {
            lua_pushboolean(state, 0);
            return 1;
        };
        if !asker.has_room_to_push() {
            return 0;
        }
        let mut value = context.take_buffer();
        let encoded = context.types.get().encode(state, 1, &mut value);
        let is_pushed = encoded.is_ok() && asker.push(&value, context.seat().depends);
        drop(asker);
        context.give_buffer(value);
        match encoded {
            Ok(()) if is_pushed => {
                lua_pushboolean(state, 1);
                1
            }
            Ok(()) => raise_text(state, "there is no room for a value of this size".to_owned()),
            Err(ValueError(text)) => raise_text(state, text),
        }
    }
}

/// `want(event, boolean)`: whether the program is told when clients connect, log in, go or are denied
/// something, or asked to end before the process does.
unsafe extern "C-unwind" fn want(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let inbox = &Context::of(state).inbox;
        let kind = match bytes(state, 1).unwrap_or_default() {
            b"end" => {
                inbox.want_end(lua_toboolean(state, 2) != 0);
                return 0;
            }
            b"connect" => Kind::Connect,
            b"auth" => Kind::Auth,
            b"denied" => Kind::Denied,
            _ => Kind::Disconnect,
        };
        inbox.want(kind, lua_toboolean(state, 2) != 0);
    }
    0
}
