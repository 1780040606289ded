//! Runs a file of Lua with the modules and nothing else: for the tests, and to try a module.

use mlua::ffi::*;
use std::ffi::{CString, c_int};
use std::process::ExitCode;

unsafe extern "C-unwind" fn prepare(state: *mut lua_State) -> c_int {
    // SAFETY: The state is new.
    unsafe {
        luaL_openlibs(state);
        ladon_modules::preload(state);
        ladon_modules::extend(state);
        0
    }
}

/// Why the last call failed.
///
/// # Safety
/// The state has to be live, with an error at its top.
unsafe fn complaint(state: *mut lua_State) -> String {
    // SAFETY: As promised; the text is copied.
    unsafe {
        let text = lua_tostring(state, -1);
        if text.is_null() {
            return "an error that is no text".to_owned();
        }
        std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1).and_then(|file| CString::new(file).ok()) else {
        eprintln!("usage: modules-lua FILE");
        return ExitCode::from(2);
    };
    // SAFETY: The state is new, and used by this thread alone.
    unsafe {
        let state = luaL_newstate();
        assert!(!state.is_null(), "there is memory for a state");
        let is_prepared = lua_cpcall(state, prepare, std::ptr::null_mut()) == 0;
        lua_getglobal(state, c"dofile".as_ptr());
        lua_pushstring(state, file.as_ptr());
        if !is_prepared || lua_pcall(state, 1, 0, 0) != 0 {
            eprintln!("{}", complaint(state));
            return ExitCode::FAILURE;
        }
        lua_close(state);
    }
    ExitCode::SUCCESS
}
