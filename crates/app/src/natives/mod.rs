//! The functions that `lua/*.lua` are built on: one table, which each of those files is called with.

mod children;
mod commands;
mod data;
mod fibers;
mod http;
mod sockets;
mod system;
mod tls;
mod tuples;

use crate::context::Context;
use crate::stack::{State, push_bytes, set_function};
pub(crate) use data::{encode_key, not_array};
pub(crate) use fibers::before_switch;
use ladon_kernel::program::Failed;
use mlua::ffi::*;
use std::ffi::{CStr, c_int};
pub(crate) use tls::TlsConnections;

type Native = (&'static CStr, unsafe extern "C-unwind" fn(State) -> c_int);

/// Pushes the table.
///
/// # Safety
/// As for [`crate::stack`]; the context outlives the state.
pub(crate) unsafe fn push_all(state: State, context: *const Context) {
    let upvalue = context.cast_mut().cast();
    // SAFETY: As promised.
    unsafe {
        lua_createtable(state, 0, 64);
        let all = [
            children::NATIVES,
            commands::NATIVES,
            data::NATIVES,
            fibers::NATIVES,
            http::NATIVES,
            sockets::NATIVES,
            system::NATIVES,
            tls::NATIVES,
            tuples::NATIVES,
        ];
        for (name, function) in all.into_iter().flatten() {
            set_function(state, name, *function, upvalue);
        }
    }
}

/// Raises an error of box; one without a code as a text.
///
/// # Safety
/// As for [`crate::stack`]; the caller owns nothing else that has to be dropped.
pub(crate) unsafe fn raise_failed(state: State, failed: Failed) -> c_int {
    // SAFETY: As promised.
    unsafe {
        lua_getfield(state, LUA_REGISTRYINDEX, c"ladon.raise".as_ptr());
        lua_pushnumber(state, f64::from(failed.code));
        push_bytes(state, failed.message.as_bytes());
        push_bytes(state, failed.class.as_bytes());
        drop(failed);
        lua_call(state, 3, 0);
    }
    0
}

/// Raises a text, with the place of the caller in front.
///
/// # Safety
/// As above.
pub(crate) unsafe fn raise_text(state: State, text: String) -> c_int {
    // SAFETY: As promised.
    unsafe {
        luaL_where(state, 1);
        push_bytes(state, text.as_bytes());
        drop(text);
        lua_concat(state, 2);
        lua_error(state)
    }
}

/// The number at `index`, as an unsigned one; 0 for what is none.
///
/// # Safety
/// As for [`crate::stack`].
pub(crate) unsafe fn uint(state: State, index: c_int) -> u32 {
    // SAFETY: As promised.
    let number = unsafe { lua_tonumber(state, index) };
    number as u32
}
