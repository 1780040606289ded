//! Functions that make the keys of functional indexes: called by any thread, each on a machine of the
//! thread's own, in which they see nothing but the tuple.
//!
//! A call ends after [`INSTRUCTIONS_MAX`] instructions, whatever it catches, and has
//! [`MEMORY_BYTES_MAX`]. Code is not compiled, so a call takes the same instructions whenever it is made.
//! What a single instruction may take is bounded by `lua/functions.lua`: a match by the steps that its
//! pattern may need, texts that are repeated and tables that are sorted by their lengths. A call that takes
//! [`PROCESSOR_MAX`] all the same ends too: its space is locked meanwhile.

use crate::bare::{Bare, error_of};
use crate::stack::{State, push_bytes};
use crate::values::Types;
use ladon_space::{KeyFunction, Names, set_function_maker};
use mlua::ffi::*;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Instructions of a call, and those between two looks at it.
const INSTRUCTIONS_MAX: c_int = 1_000_000;
const INSTRUCTIONS_A_LOOK: c_int = 1_000;
/// Time of the processor that a call may take: many times what its instructions do.
const PROCESSOR_MAX: Duration = Duration::from_millis(100);
/// Bytes that a machine may have.
const MEMORY_BYTES_MAX: usize = 64 << 20;
/// Functions that a machine knows. It is made anew for more.
const FUNCTIONS_MAX: usize = 1_000;
/// Longer tuples' keys are not kept for the next call.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// What of `lua/*.lua` such a machine needs.
const FILES: &[(&str, &str)] = &[
    ("boot", include_str!("../lua/boot.lua")),
    ("error", include_str!("../lua/error.lua")),
    ("tuple", include_str!("../lua/tuple.lua")),
    ("patterns", include_str!("../lua/patterns.lua")),
    ("functions", include_str!("../lua/functions.lua")),
];

/// A function: its number in this process, its name and text.
struct LuaFunction {
    number: u32,
    name: String,
    text: String,
    is_multikey: bool,
}

static NEXT: AtomicU32 = AtomicU32::new(1);

thread_local! {
    static MACHINE: RefCell<Option<Machine>> = const { RefCell::new(None) };
    /// Of the call that runs: how often the hook has come, and the thread's time when the first look was.
    static LOOKS: Cell<(c_int, Duration)> = const { Cell::new((0, Duration::ZERO)) };
}

/// Says that the functions of functional indexes are those here. A process that opens data does so
/// first.
pub fn set_key_functions() {
    set_function_maker(make_key_function);
}

/// Makes a function of its name and its text.
///
/// # Errors
/// The text is none.
fn make_key_function(
    name: &str,
    text: &str,
    is_multikey: bool,
) -> Result<Arc<dyn KeyFunction>, String> {
    let number = NEXT.fetch_add(1, Relaxed);
    let (name, text) = (name.to_owned(), text.to_owned());
    let function = LuaFunction { number, name, text, is_multikey };
    with_machine(|machine| machine.known(&function).map(drop))?;
    Ok(Arc::new(function))
}

impl KeyFunction for LuaFunction {
    fn call(&self, tuple: &[u8], names: &Names) -> Result<Vec<u8>, String> {
        with_machine(|machine| machine.call(self, tuple, names))
    }

    fn is_multikey(&self) -> bool {
        self.is_multikey
    }
}

fn with_machine<T>(with: impl FnOnce(&mut Machine) -> Result<T, String>) -> Result<T, String> {
    MACHINE.with(|machine| {
        let mut machine = machine.try_borrow_mut().map_err(|_| "it calls itself".to_owned())?;
        if machine.as_ref().is_some_and(|machine| machine.functions.len() >= FUNCTIONS_MAX) {
            *machine = None;
        }
        match &mut *machine {
            Some(machine) => with(machine),
            none => with(none.insert(Machine::new()?)),
        }
    })
}

/// A thread's machine.
struct Machine {
    bare: Bare,
    functions: HashMap<u32, Known>,
    last: Option<Last>,
}

struct Known {
    /// The function's number in the registry.
    place: c_int,
    /// The names that its tuples' fields have.
    names: Option<Names>,
}

/// A statement checks a tuple's keys and then writes them: the second call is answered by the first.
struct Last {
    function: u32,
    names: Names,
    tuple: Vec<u8>,
    returned: Vec<u8>,
}

impl Machine {
    fn new() -> Result<Machine, String> {
        let bare = Bare::new(MEMORY_BYTES_MAX)?;
        // SAFETY: The table of natives is on the stack.
        unsafe {
            lua_pushcclosure(bare.state, look_at_call, 0);
            lua_setfield(bare.state, -2, c"look".as_ptr());
        }
        bare.load(FILES)?;
        Ok(Machine { bare, functions: HashMap::new(), last: None })
    }

    /// Makes the function, if the machine does not know it.
    fn known(&mut self, function: &LuaFunction) -> Result<&mut Known, String> {
        if !self.functions.contains_key(&function.number) {
            let mut frame = Making { function, place: 0 };
            // SAFETY: The frame lives during the call.
            unsafe { self.run(make, (&raw mut frame).cast())? };
            let known = Known { place: frame.place, names: None };
            self.functions.insert(function.number, known);
        }
        self.functions.get_mut(&function.number).ok_or_else(|| "it is gone".to_owned())
    }

    fn call(
        &mut self,
        function: &LuaFunction,
        tuple: &[u8],
        names: &Names,
    ) -> Result<Vec<u8>, String> {
        if let Some(last) = &self.last
            && last.function == function.number
            && Arc::ptr_eq(&last.names, names)
            && last.tuple == tuple
        {
            return Ok(last.returned.clone());
        }
        let known = self.known(function)?;
        let place = known.place;
        let are_named = known.names.as_ref().is_some_and(|known| Arc::ptr_eq(known, names));
        let number = function.number;
        let types = self.bare.context.types.get();
        let names_or_none = (!are_named).then_some(names);
        let calling = Calling { types, place, number, tuple, names: names_or_none };
        // SAFETY: The frame lives during the call.
        unsafe { self.run(enter, (&raw const calling).cast_mut().cast())? };
        let returned = self.bare.returned();
        // SAFETY: Nothing runs on the state.
        unsafe { lua_settop(self.bare.state, 0) };
        let returned = returned?;
        if let Some(known) = self.functions.get_mut(&number) {
            known.names = Some(Arc::clone(names));
        }
        if tuple.len() <= KEPT_BYTES_MAX {
            let (names, tuple) = (Arc::clone(names), tuple.to_vec());
            self.last = Some(Last { function: number, names, tuple, returned: returned.clone() });
        }
        Ok(returned)
    }

    /// Runs a native with its frame, bounded. What it returns is on the stack then. Without memory, it
    /// runs again once what is unused was collected.
    unsafe fn run(
        &self,
        native: lua_CFunction,
        frame: *mut std::ffi::c_void,
    ) -> Result<(), String> {
        let state = self.bare.state;
        // SAFETY: As promised by the caller; nothing else runs on the state.
        unsafe {
            for is_last in [false, true] {
                lua_settop(state, 0);
                lua_pushcclosure(state, native, 0);
                lua_pushlightuserdata(state, frame);
                LOOKS.set((0, Duration::ZERO));
                lua_sethook(state, Some(look), LUA_MASKCOUNT, INSTRUCTIONS_A_LOOK);
                let status = lua_pcall(state, 1, LUA_MULTRET, 0);
                lua_sethook(state, None, 0, 0);
                if status == LUA_OK {
                    return Ok(());
                }
                if status != LUA_ERRMEM || is_last {
                    return Err(error_of(state));
                }
                lua_gc(state, LUA_GCCOLLECT, 0);
            }
        }
        Ok(())
    }
}

/// What [`make`] gets.
struct Making<'f> {
    function: &'f LuaFunction,
    place: c_int,
}

unsafe extern "C-unwind" fn make(state: State) -> c_int {
    // SAFETY: The frame is on the stack of who has called this; nothing here owns memory.
    unsafe {
        let frame = lua_touserdata(state, 1).cast::<Making<'_>>();
        lua_getfield(state, LUA_REGISTRYINDEX, c"ladon.make".as_ptr());
        push_bytes(state, (*frame).function.name.as_bytes());
        push_bytes(state, (*frame).function.text.as_bytes());
        lua_call(state, 2, 1);
        (*frame).place = luaL_ref(state, LUA_REGISTRYINDEX);
        0
    }
}

/// What [`enter`] gets.
struct Calling<'c> {
    types: Types,
    place: c_int,
    number: u32,
    tuple: &'c [u8],
    /// If they are others than before.
    names: Option<&'c Names>,
}

unsafe extern "C-unwind" fn enter(state: State) -> c_int {
    // SAFETY: The frame is on the stack of who has called this; nothing here owns memory.
    unsafe {
        let frame = &*lua_touserdata(state, 1).cast::<Calling<'_>>();
        lua_settop(state, 0);
        if let Some(names) = frame.names {
            lua_getfield(state, LUA_REGISTRYINDEX, c"ladon.name".as_ptr());
            lua_pushnumber(state, f64::from(frame.number));
            luaL_checkstack(state, names.len() as c_int + 1, c"too many fields".as_ptr());
            for name in names.iter() {
                push_bytes(state, name.as_bytes());
            }
            lua_call(state, names.len() as c_int + 1, 0);
        }
        lua_rawgeti_(state, LUA_REGISTRYINDEX, frame.place);
        frame.types.push_tuple(state, frame.tuple, frame.number);
        lua_call(state, 1, LUA_MULTRET);
        lua_gettop(state)
    }
}

/// Whether the call that runs has time left, which is counted from the first time that it is asked.
fn has_time() -> bool {
    let ((looks, began), now) = (LOOKS.get(), thread_time());
    if began.is_zero() {
        LOOKS.set((looks, now));
        return true;
    }
    now.saturating_sub(began) < PROCESSOR_MAX
}

/// Time of the processor that the thread has had.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: The place is there; a clock that is not leaves it as it is.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The hook.
unsafe extern "C-unwind" fn look(state: State, at: *mut lua_Debug) {
    let (looks, began) = LOOKS.get();
    LOOKS.set((looks + 1, began));
    if (looks + 1) * INSTRUCTIONS_A_LOOK >= INSTRUCTIONS_MAX || !has_time() {
        // SAFETY: As for the hook itself.
        unsafe { too_long(state, at) }
    }
}

/// `look()`: raises an error if the call has no time left.
unsafe extern "C-unwind" fn look_at_call(state: State) -> c_int {
    if !has_time() {
        // SAFETY: As for all functions that Lua calls.
        unsafe { too_long(state, std::ptr::null_mut()) }
    }
    0
}

/// The call has had its instructions, or its time: each further one is an error, until it has left all
/// `pcall`s.
unsafe extern "C-unwind" fn too_long(state: State, _at: *mut lua_Debug) {
    // SAFETY: LuaJIT calls it with a live state.
    unsafe {
        lua_sethook(state, Some(too_long), LUA_MASKCOUNT, 1);
        luaL_error(state, c"the function takes too long".as_ptr());
    }
}
