//! How often the host is asked whether a script may go on, and how deep scripts may nest.
//!
//! Two things ask: the hook, every so many instructions of Lua, and functions of C, every so many of
//! their own steps. What a single instruction takes depends on the longest string (`s < t`, `s ..
//! t`, `s + 0`) and the largest table (`next(t)`), so the more a machine has of these, the fewer
//! instructions there are from one look to the next; and after much was allocated, the next
//! instruction looks.
//!
//! Where C calls Lua, the thread's stack grows by a frame of C. [`check_depth`] refuses to go deeper
//! than [`STACK_BYTES_MAX`], with the words of Lua's own limit.

use crate::core::{Core, core};
use crate::memory::Memory;
use crate::run::{self, raise_stop, set_hook, stop};
use crate::stack::State;
use mlua::ffi::*;
use std::ffi::c_int;

/// Instructions, and steps of C functions, from one [`Host::tick`] to the next.
///
/// [`Host::tick`]: crate::host::Host::tick
pub(crate) const STEPS: c_int = 4096;

/// Bytes of a thread's stack that a script takes at most where C calls Lua. What it calls there (a
/// command, the hook) needs more.
const STACK_BYTES_MAX: usize = 1 << 20;

/// What nested data of `cjson` and `cmsgpack` may take besides: these count their levels themselves,
/// and as many as they allow take up to 1.6 MB in a build without optimizations.
const NESTED_BYTES_MAX: usize = 2 << 20;

/// The stack that a thread should have that runs scripts: all that they take, and as much as any
/// thread has for what they call.
pub const THREAD_STACK_BYTES: usize = STACK_BYTES_MAX + NESTED_BYTES_MAX + (2 << 20);

/// A handler of an error may go so much deeper than what has raised it.
const HANDLER_BYTES: usize = 32 << 10;

/// What the instructions between two looks may work through if each of them works through the
/// longest string there is.
const BYTES_PER_LOOK: usize = 64 << 20;

/// Counts steps of a C function; asks the host when there were enough.
///
/// # Safety
/// As for [`crate::stack`]. It may raise an error.
#[inline]
pub(crate) unsafe fn spend(state: State, core: *mut Core, steps: usize) {
    // SAFETY: As promised.
    unsafe {
        let left = (*core).steps_left;
        if steps < left as usize {
            (*core).steps_left = left - steps as u32;
        } else {
            (*core).steps_left = STEPS as u32;
            tick(state);
        }
    }
}

/// Asks the host whether the script may go on; raises an error if not.
///
/// # Safety
/// As for [`crate::stack`].
pub(crate) unsafe fn tick(state: State) {
    // SAFETY: As promised.
    unsafe {
        if !may_go_on(core(state)) {
            raise_stop(state);
        }
    }
}

/// Asks the host whether the script may go on. If not, nothing of it runs any more.
///
/// # Safety
/// `core` is that of a live state.
pub(crate) unsafe fn may_go_on(core: *mut Core) -> bool {
    // SAFETY: The host lives as long as the run, which is under way while its code runs.
    unsafe {
        if (*core).is_stopped {
            return false;
        }
        let Some(host) = (*core).host else { return true };
        if (*host).tick().is_ok() {
            return true;
        }
        stop((*core).state, core);
        false
    }
}

/// Raises an error if the thread's stack has grown too much since the script began.
///
/// # Safety
/// As for [`crate::stack`].
#[inline]
pub(crate) unsafe fn check_depth(state: State, core: *mut Core) {
    // SAFETY: As promised.
    unsafe {
        if depth(core) > STACK_BYTES_MAX {
            luaL_error(state, c"C stack overflow".as_ptr());
        }
    }
}

/// As [`check_depth`], of a level of nested data, which a library counts itself.
///
/// # Safety
/// As for [`crate::stack`].
#[inline]
pub(crate) unsafe fn check_nested_depth(state: State, core: *mut Core) {
    // SAFETY: As promised.
    unsafe {
        if depth(core) > STACK_BYTES_MAX + NESTED_BYTES_MAX {
            luaL_error(state, c"C stack overflow".as_ptr());
        }
    }
}

/// Whether there is still room for the handler of an error.
///
/// # Safety
/// `core` is that of a live state.
pub(crate) unsafe fn has_room_for_handler(core: *mut Core) -> bool {
    // SAFETY: As promised.
    unsafe { depth(core) <= STACK_BYTES_MAX + HANDLER_BYTES }
}

/// Bytes of the thread's stack from where the script began.
#[inline]
unsafe fn depth(core: *mut Core) -> usize {
    let here = 0_u8;
    // SAFETY: As promised by the callers.
    unsafe { (*core).stack_begin.saturating_sub((&raw const here).addr()) }
}

/// A script begins on this place of the thread's stack.
///
/// # Safety
/// `core` is that of a live state.
#[inline]
pub(crate) unsafe fn begin(core: *mut Core) {
    let here = 0_u8;
    // SAFETY: As promised.
    unsafe { (*core).stack_begin = (&raw const here).addr() }
}

/// Instructions from one look to the next.
///
/// # Safety
/// `core` is that of a live state.
pub(crate) unsafe fn regular_instructions(core: *mut Core) -> c_int {
    // SAFETY: As promised.
    instructions(unsafe { (*core).memory.largest() })
}

fn instructions(largest: usize) -> c_int {
    let most = BYTES_PER_LOOK / largest.max(1);
    // A power of two, so that it seldom changes.
    1 << most.clamp(1, STEPS as usize).ilog2()
}

/// [`Memory::on_much`]: much was allocated since the last look.
///
/// # Safety
/// `memory` begins a live core.
pub(crate) unsafe extern "C" fn look_soon(memory: *mut Memory) {
    let core = memory.cast::<Core>();
    // SAFETY: As promised. The hook may be set at any time, from a handler of signals even.
    unsafe {
        if (*core).host.is_some() && (*core).hook_instructions != 1 {
            set_hook((*core).state, core, 1);
        }
    }
}

/// Called every so many instructions, of coroutines too.
pub(crate) unsafe extern "C-unwind" fn hook(state: State, _: *mut lua_Debug) {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        run::pace_collector(state);
        let core = core(state);
        (*core).memory.since_look = 0;
        tick(state);
        let regular = regular_instructions(core);
        if regular != (*core).hook_instructions {
            set_hook(state, core, regular);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_one_instruction_takes_the_fewer_there_are() {
        for (largest, expected) in
            [(0, 4096), (16 << 10, 4096), (1 << 20, 64), (10 << 20, 4), (1 << 30, 1)]
        {
            assert_eq!(instructions(largest), expected, "{largest}");
        }
    }
}
