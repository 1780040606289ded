//! Work that may hold up its thread: files, names of hosts, children.
//!
//! A program with fibers has a runner that does the work on another thread while the calling fiber
//! alone waits. Without one it is done in place.

use crate::stack::State;
use mlua::ffi::*;
use std::ffi::c_void;

/// What runs work elsewhere, and returns when it is done.
///
/// Its arguments are the state, what it was registered with, and the work.
pub type BlockingRunner = unsafe fn(*mut lua_State, *const c_void, &mut (dyn FnMut() + Send));

#[derive(Clone, Copy)]
struct Registered {
    run: BlockingRunner,
    of: *const c_void,
}

/// The address of this is the key of [`Registered`] in the registry.
static KEY: u8 = 0;

/// Makes the runner known that a state's modules use from now on.
///
/// # Safety
/// The state has to be live, and `of` as long as the state. May raise an error of Lua.
pub unsafe fn set_blocking_runner(state: *mut lua_State, run: BlockingRunner, of: *const c_void) {
    // SAFETY: As promised; the value owns no memory.
    unsafe {
        lua_pushlightuserdata(state, (&raw const KEY).cast_mut().cast());
        let place = lua_newuserdata(state, size_of::<Registered>()).cast::<Registered>();
        place.write(Registered { run, of });
        lua_rawset(state, LUA_REGISTRYINDEX);
    }
}

/// Does the work, on another thread if the state has a runner. What the work borrows has to stay
/// where it is, as strings on the fiber's stack do.
pub(crate) unsafe fn run_blocking<T: Send>(state: State, work: impl FnOnce() -> T + Send) -> T {
    let (mut work, mut result) = (Some(work), None);
    let mut job = || {
        if let Some(work) = work.take() {
            result = Some(work());
        }
    };
    // SAFETY: As for `stack`; the userdata stays in the registry.
    unsafe {
        lua_pushlightuserdata(state, (&raw const KEY).cast_mut().cast());
        lua_rawget_(state, LUA_REGISTRYINDEX);
        let registered = lua_touserdata(state, -1).cast::<Registered>();
        lua_settop(state, -2);
        if registered.is_null() {
            job();
        } else {
            let Registered { run, of } = *registered;
            run(state, of, &mut job);
        }
    }
    result.expect("a runner returns when the work is done")
}
