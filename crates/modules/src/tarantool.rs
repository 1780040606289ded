//! `tarantool`: what this process is. Programs ask for a version, so it answers the one whose
//! functions there are.

use crate::stack::{State, push_bytes, push_functions};
use mlua::ffi::*;
use std::ffi::{CStr, c_int};
use std::sync::OnceLock;
use std::time::Instant;

/// The release whose Lua API this is.
pub const VERSION: &str = concat!("2.6.0-ladon-", env!("CARGO_PKG_VERSION"));

static START: OnceLock<Instant> = OnceLock::new();

/// Seconds since the first state of the process had this module.
unsafe extern "C-unwind" fn uptime(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        lua_pushnumber(state, START.get_or_init(Instant::now).elapsed().as_secs_f64());
        1
    }
}

unsafe extern "C-unwind" fn pid(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        lua_pushnumber(state, std::process::id().into());
        1
    }
}

unsafe fn set_text(state: State, name: &CStr, text: &str) {
    // SAFETY: As for `stack`.
    unsafe {
        push_bytes(state, text.as_bytes());
        lua_setfield(state, -2, name.as_ptr());
    }
}

/// Pushes the module.
pub(crate) unsafe fn open(state: State) {
    START.get_or_init(Instant::now);
    // SAFETY: As for `stack`.
    unsafe {
        push_functions(state, &[(c"uptime", uptime), (c"pid", pid)]);
        set_text(state, c"version", VERSION);
        set_text(state, c"package", "Tarantool");
        lua_createtable(state, 0, 4);
        let target = target_name();
        set_text(state, c"target", target);
        set_text(state, c"mod_format", "so");
        set_text(state, c"compiler", "rustc");
        set_text(state, c"options", "cargo build --release");
        set_text(state, c"flags", "");
        lua_setfield(state, -2, c"build".as_ptr());
    }
}

/// System, processor and kind of build, as in Tarantool's `build.target`.
fn target_name() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "Linux-aarch64-RelWithDebInfo"
    } else {
        "Linux-x86_64-RelWithDebInfo"
    }
}
