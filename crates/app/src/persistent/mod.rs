//! Persistent functions on the threads that have the requests, each thread with a machine of its own
//! (`ladon_kernel::persistent`).
//!
//! A function sees the standard library without what changes it or has effects, and box without what is
//! no tuple of a space. Anything else, and a change of what it sees, makes it leave: an error at each
//! of its instructions, until it has left all `pcall`s. So no function leaves anything behind for the
//! next call, and it does not matter where it runs.
//!
//! A call has the time that [`Reach`] gives it, which is looked at every [`INSTRUCTIONS`], and at each
//! request; [`CALL_BYTES_MAX`] of memory; and library functions that take long for what they are given
//! leave (`lua/persistent.lua`). So it holds up others no longer than a little more than its time.

mod natives;

use crate::bare::{Bare, error_of, protected};
use crate::memory::Memory;
use crate::serve::{encode, failed_of, of_lua};
use crate::stack::{State, push_bytes};
use crate::values::{Types, ValueError};
use ladon_kernel::persistent::{Called, Leave, Persistent, Reach, Runner, set_runner};
use ladon_kernel::program::{Failed, Kind, Returned};
use ladon_msgpack::read_array;
use mlua::ffi::*;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_int;

/// Instructions from one look at the time to the next.
const INSTRUCTIONS: c_int = 250;
/// Bytes that a machine may have, and those that a call may take of them.
const MEMORY_BYTES_MAX: usize = 64 << 20;
const CALL_BYTES_MAX: usize = 1 << 20;
/// Percent of what a cycle of the collector left at which the next one begins: most of a cycle's work is going
/// through the libraries.
const COLLECTOR_PAUSE: c_int = 400;
/// Functions that a machine knows. It is made anew for more.
const FUNCTIONS_MAX: usize = 1_000;

/// What of `lua/*.lua` such a machine needs.
const FILES: &[(&str, &str)] = &[
    ("boot", include_str!("../../lua/boot.lua")),
    ("error", include_str!("../../lua/error.lua")),
    ("tuple", include_str!("../../lua/tuple.lua")),
    ("space", include_str!("../../lua/space.lua")),
    ("patterns", include_str!("../../lua/patterns.lua")),
    ("persistent", include_str!("../../lua/persistent.lua")),
];

thread_local! {
    static MACHINE: RefCell<Option<Machine>> = const { RefCell::new(None) };
    /// What the call that runs reaches, for the hook, which has no other way to it.
    static RUNNING: Cell<*const Bench> = const { Cell::new(std::ptr::null()) };
}

/// Says that persistent functions run here. A process that serves them does so first.
pub fn run_persistent_functions() {
    set_runner(&OnThreads);
}

struct OnThreads;

impl Runner for OnThreads {
    fn call(
        &self,
        function: &Persistent,
        kind: Kind,
        arguments: &[u8],
        reach: &mut dyn Reach,
    ) -> Called {
        MACHINE.with(|machine| {
            let Ok(mut machine) = machine.try_borrow_mut() else {
                return asks("itself".to_owned());
            };
            if machine.as_ref().is_some_and(|machine| machine.functions.len() >= FUNCTIONS_MAX) {
                *machine = None;
            }
            let made = match machine.take() {
                Some(known) => Ok(known),
                None => Machine::new(),
            };
            match made {
                Ok(made) => machine.insert(made).call(function, kind, arguments, reach),
                Err(why) => asks(why),
            }
        })
    }
}

fn asks(what: String) -> Called {
    Called::Leaves(Leave::Asks(what))
}

/// What natives work on.
struct Bench {
    reach: Cell<Option<*mut (dyn Reach + 'static)>>,
    /// The machine's.
    memory: *const Memory,
    /// Why the function leaves, once it does.
    leaves: RefCell<Option<Leave>>,
}

impl Bench {
    /// Asks what is reached, while a call runs.
    fn ask<T>(&self, ask: impl FnOnce(&mut dyn Reach) -> T) -> Option<T> {
        // SAFETY: The pointer is there during a call, whose frame has the only reference.
        self.reach.get().map(|reach| ask(unsafe { &mut *reach }))
    }

    fn leave(&self, leave: Leave) {
        self.leaves.borrow_mut().get_or_insert(leave);
    }
}

/// A thread's machine.
struct Machine {
    bare: Bare,
    bench: Box<Bench>,
    /// The functions' numbers in the registry, and why some cannot run here.
    functions: HashMap<u32, Result<c_int, String>>,
    /// Which definitions it has objects for.
    version: Option<(u64, u64)>,
}

impl Machine {
    fn new() -> Result<Machine, String> {
        let bare = Bare::new(MEMORY_BYTES_MAX)?;
        let bench = Box::new(Bench {
            reach: Cell::new(None),
            memory: &raw const *bare.memory,
            leaves: RefCell::new(None),
        });
        // SAFETY: The table of natives is on the stack; the bench outlives the state's use.
        unsafe { natives::push_all(bare.state, &raw const *bench, &raw const *bare.context) };
        bare.load(FILES)?;
        // SAFETY: Nothing runs. The hook stays: to set it takes longer than most calls.
        unsafe {
            lua_sethook(bare.state, Some(look), LUA_MASKCOUNT, INSTRUCTIONS);
            lua_gc(bare.state, LUA_GCSETPAUSE, COLLECTOR_PAUSE);
        }
        Ok(Machine { bare, bench, functions: HashMap::new(), version: None })
    }

    fn call(
        &mut self,
        function: &Persistent,
        kind: Kind,
        arguments: &[u8],
        reach: &mut dyn Reach,
    ) -> Called {
        let pointer: *mut (dyn Reach + '_) = reach;
        // SAFETY: Only the lifetime changes, and the pointer is gone before this returns.
        let pointer = unsafe {
            std::mem::transmute::<*mut (dyn Reach + '_), *mut (dyn Reach + 'static)>(pointer)
        };
        self.bench.reach.set(Some(pointer));
        RUNNING.set(&raw const *self.bench);
        let called = self.run(function, kind, arguments);
        RUNNING.set(std::ptr::null());
        self.bench.reach.set(None);
        // SAFETY: Nothing runs on the state.
        unsafe { lua_settop(self.bare.state, 0) };
        match self.bench.leaves.take() {
            Some(leave) => {
                // SAFETY: As above. Each instruction was an error.
                unsafe { lua_sethook(self.bare.state, Some(look), LUA_MASKCOUNT, INSTRUCTIONS) };
                Called::Leaves(leave)
            }
            None if self.bare.memory.was_refused.get() => Called::Leaves(Leave::Late),
            None => called.unwrap_or_else(asks),
        }
    }

    fn run(
        &mut self,
        function: &Persistent,
        kind: Kind,
        arguments: &[u8],
    ) -> Result<Called, String> {
        self.allow(MEMORY_BYTES_MAX);
        self.forget_definitions()?;
        let place = self.known(function)?;
        self.allow(self.bare.memory.used + CALL_BYTES_MAX);
        self.bench.ask(|reach| reach.begin_time());
        Ok(Called::Done(self.enter(place, kind, arguments)))
    }

    fn allow(&mut self, bytes: usize) {
        self.bare.memory.max = bytes.min(MEMORY_BYTES_MAX);
        self.bare.memory.was_refused.set(false);
    }

    /// Forgets the objects of spaces, if they are of other definitions.
    fn forget_definitions(&mut self) -> Result<(), String> {
        let version = self.bench.ask(|reach| reach.version());
        if version == self.version {
            return Ok(());
        }
        // SAFETY: Nothing runs on the state; errors end in the protected call.
        unsafe {
            lua_getfield(self.bare.state, LUA_REGISTRYINDEX, c"ladon.forget".as_ptr());
            protected(self.bare.state, 0)?;
        }
        self.version = version;
        Ok(())
    }

    /// The function's number in the registry. It is made if the machine does not know it.
    fn known(&mut self, function: &Persistent) -> Result<c_int, String> {
        if let Some(known) = self.functions.get(&function.number) {
            return known.clone();
        }
        let state = self.bare.state;
        // SAFETY: As above.
        let made = unsafe {
            lua_getfield(state, LUA_REGISTRYINDEX, c"ladon.prepare".as_ptr());
            push_bytes(state, function.text.as_bytes());
            match lua_pcall(state, 1, 1, 0) {
                LUA_OK => Ok(luaL_ref(state, LUA_REGISTRYINDEX)),
                _ => Err(error_of(state)),
            }
        };
        self.functions.insert(function.number, made.clone());
        made
    }

    fn enter(&self, place: c_int, kind: Kind, arguments: &[u8]) -> Result<Returned, Failed> {
        let state = self.bare.state;
        let types = self.bare.context.types.get();
        let mut frame = Frame { types, place, arguments, failed: None };
        // SAFETY: The frame lives during the call; what may raise an error runs protected.
        unsafe {
            lua_settop(state, 0);
            lua_pushcclosure(state, enter, 0);
            lua_pushlightuserdata(state, (&raw mut frame).cast());
            let status = lua_pcall(state, 1, LUA_MULTRET, 0);
            if let Some(ValueError(text)) = frame.failed.take() {
                return Err(of_lua(text));
            }
            if status != LUA_OK {
                // An error that leaves is not looked at.
                let leaves = self.bench.leaves.borrow().is_some();
                return Err(if leaves { of_lua(String::new()) } else { failed_of(state) });
            }
            let mut returned = Returned::default();
            encode(&types, state, kind, &mut returned).map_err(|ValueError(text)| of_lua(text))?;
            Ok(returned)
        }
    }
}

/// What [`enter`] gets.
struct Frame<'a> {
    types: Types,
    place: c_int,
    arguments: &'a [u8],
    failed: Option<ValueError>,
}

/// Calls the function. Errors of the arguments are left in the frame.
unsafe extern "C-unwind" fn enter(state: State) -> c_int {
    // SAFETY: The frame is on the stack of who has called this; nothing here owns memory.
    unsafe {
        let frame = lua_touserdata(state, 1).cast::<Frame<'_>>();
        lua_settop(state, 0);
        lua_rawgeti_(state, LUA_REGISTRYINDEX, (*frame).place);
        let mut input = (*frame).arguments;
        let count = if input.is_empty() { 0 } else { read_array(&mut input).unwrap_or(0) };
        for _ in 0..count {
            let pushed = match lua_checkstack(state, 8) {
                0 => Err(ValueError("too many arguments".to_owned())),
                _ => (*frame).types.push(state, &mut input),
            };
            if let Err(error) = pushed {
                (*frame).failed = Some(error);
                return 0;
            }
        }
        lua_call(state, count as c_int, LUA_MULTRET);
        lua_gettop(state)
    }
}

/// The hook: whether there is time left.
unsafe extern "C-unwind" fn look(state: State, _at: *mut lua_Debug) {
    let bench = RUNNING.get();
    // SAFETY: LuaJIT calls it with a live state; the bench is there while a call runs.
    unsafe {
        let Some(bench) = bench.as_ref() else { return };
        let has_memory = bench.memory.as_ref().is_none_or(|memory| !memory.was_refused.get());
        let is_late = bench.ask(|reach| reach.is_late()) == Some(true);
        if is_late || !has_memory {
            bench.leave(Leave::Late);
        }
        if bench.leaves.borrow().is_some() {
            raise_leave(state);
        }
    }
}

/// Raises the error that no `pcall` ends.
///
/// # Safety
/// As for [`crate::stack`].
unsafe fn raise_leave(state: State) -> c_int {
    // SAFETY: As promised.
    unsafe {
        lua_sethook(state, Some(look), LUA_MASKCOUNT, 1);
        luaL_error(state, c"the function leaves".as_ptr())
    }
}
