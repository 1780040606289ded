//! Functions that make the keys of functional indexes: called by any thread, each on a machine of the
//! thread's own, in which they see nothing but the tuple.
//!
//! A call ends after [`INSTRUCTIONS_MAX`] instructions, whatever it catches, and has
//! [`MEMORY_BYTES_MAX`]. Code is not compiled, so a call takes the same instructions whenever it is made.

use crate::bare::{Bare, error_of};
use crate::stack::{State, push_bytes};
use crate::values::Types;
use ladon_space::{KeyFunction, Names, set_function_maker};
use mlua::ffi::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Instructions of a call.
const INSTRUCTIONS_MAX: c_int = 1_000_000;
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
                lua_sethook(state, Some(too_long), LUA_MASKCOUNT, INSTRUCTIONS_MAX);
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

/// The call has had its instructions: each further one is an error, until it has left all `pcall`s.
unsafe extern "C-unwind" fn too_long(state: State, _at: *mut lua_Debug) {
    // SAFETY: LuaJIT calls it with a live state.
    unsafe {
        lua_sethook(state, Some(too_long), LUA_MASKCOUNT, 1);
        luaL_error(state, c"the function takes too long".as_ptr());
    }
}
