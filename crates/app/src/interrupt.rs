//! Ends a fiber that never waits.
//!
//! ```text
//! any thread   Inbox::kill(fiber)            noted; who waits is ended in the machine's next turn
//! watchdog     Inbox::look, now and then     it runs still: a signal to the machine's thread
//! handler      lua_sethook                   which LuaJIT allows there; compiled code leaves to it
//! hook         an error of Lua               again and again, until the fiber has left all pcalls
//! ```
//!
//! # Safety
//!
//! The handler reads two atomics and calls `lua_sethook`, as LuaJIT's own program does in its
//! handler. The state and the inbox are never freed: the machine lives as long as its process.

use crate::inbox::Inbox;
use crate::stack::State;
use ladon_fibers::Running;
use mlua::ffi::*;
use std::ffi::c_int;
use std::io;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

/// What the machine's thread gets. By default it is ignored, so nobody else uses it.
const SIGNAL: c_int = libc::SIGURG;
/// Instructions between two errors at first: who catches them gets so far.
const INSTRUCTIONS: c_int = 1_000;
/// Errors after which each instruction is one.
const GENTLE_ERRORS_MAX: u32 = 10;

/// The machine of this process.
static STATE: AtomicPtr<lua_State> = AtomicPtr::new(null_mut());
static INBOX: AtomicPtr<Inbox> = AtomicPtr::new(null_mut());
/// Errors that the fiber has caught.
static ERRORS: AtomicU32 = AtomicU32::new(0);

/// Prepares the thread that runs a machine; called on it.
///
/// # Errors
/// The system's.
///
/// # Safety
/// The state is live as long as the process, and there is one such machine.
pub(crate) unsafe fn prepare(
    state: State,
    inbox: &Arc<Inbox>,
    running: &Arc<Running>,
) -> io::Result<()> {
    INBOX.store(Arc::into_raw(Arc::clone(inbox)).cast_mut(), Relaxed);
    STATE.store(state, Relaxed);
    // SAFETY: The handler is as the module says; the structure is one of numbers.
    unsafe {
        inbox.runs(running, libc::pthread_self());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        if libc::sigaction(SIGNAL, &raw const action, null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Interrupts the machine.
pub(crate) fn interrupt(thread: libc::pthread_t) {
    // SAFETY: The thread runs as long as its machine does, which lives as long as the process.
    unsafe { libc::pthread_kill(thread, SIGNAL) };
}

extern "C" fn handle(_signal: c_int) {
    let state = STATE.load(Relaxed);
    if !state.is_null() {
        // SAFETY: See the module.
        unsafe { lua_sethook(state, Some(hook), LUA_MASKCOUNT, 1) };
    }
}

/// Raises an error in the fiber that is to end; in others, the hook goes away.
unsafe extern "C-unwind" fn hook(state: State, _at: *mut lua_Debug) {
    let inbox = INBOX.load(Relaxed);
    // SAFETY: See the module.
    unsafe {
        if inbox.is_null() || !(*inbox).is_doomed() {
            lua_sethook(state, None, 0, 0);
            return;
        }
        let errors = ERRORS.fetch_add(1, Relaxed);
        let next = if errors < GENTLE_ERRORS_MAX { INSTRUCTIONS } else { 1 };
        lua_sethook(state, Some(hook), LUA_MASKCOUNT, next);
        luaL_error(state, c"fiber is cancelled".as_ptr());
    }
}

/// The fiber that runs is over. Returns whether it was to end.
///
/// # Safety
/// As for [`prepare`].
pub(crate) unsafe fn fiber_ends(state: State, inbox: &Inbox) -> bool {
    if !inbox.is_doomed() {
        return false;
    }
    inbox.has_ended();
    ERRORS.store(0, Relaxed);
    // SAFETY: As promised.
    unsafe { lua_sethook(state, None, 0, 0) };
    true
}
