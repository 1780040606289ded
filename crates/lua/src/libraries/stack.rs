//! The stack of a running C function of Lua: the only place where the libraries call Lua's API.
//!
//! **Why this is sound.** [`Stack::of`] is unsafe: its caller vouches for a live state for as long
//! as the value is used. All else follows from three rules that the libraries keep.
//!
//! - An index is that of a value which the function itself has on its stack, or of an argument or
//!   an upvalue. LuaJIT answers "none" for an argument that was not given.
//! - Bytes of a string are used only while the string is on the stack. Lua's strings do not move.
//! - Errors leave frames as `longjmp` does. That is defined for frames which have no destructor to
//!   run, so no frame between Lua and this file has one.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::io::Write as _;
use std::marker::PhantomData;
use std::{mem, ptr, slice};

use crate::core::core;
use crate::pace::{check_nested_depth, spend};
use mlua::ffi;
pub(crate) use mlua::ffi::lua_State;

/// Longest text of an error, with its closing zero. None of the libraries' texts is half as long.
const ERROR_TEXT_BYTES_MAX: usize = 160;

/// The stack of the C function that runs. A method that pushes, and most that read, may raise an
/// error of Lua, which does not return.
#[derive(Clone, Copy)]
pub(crate) struct Stack<'call> {
    state: *mut lua_State,
    call: PhantomData<&'call ()>,
}

/// Lua's type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Nil,
    Boolean,
    LightUserdata,
    Number,
    String,
    Table,
    Other,
}

/// Methods that are one call each.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $function:ident;)*) => {
        $($(#[$doc])* pub(crate) fn $name(self, $($argument: $type),*) $(-> $result)? {
            // SAFETY: the state is live, and the index is one that the function may use (see the
            // head of the file).
            unsafe { ffi::$function(self.state, $($argument),*) }
        })*
    };
}

impl<'call> Stack<'call> {
    /// # Safety
    /// The state must live, and belong to the running thread, for as long as the value is used.
    pub(crate) unsafe fn of(state: *mut lua_State) -> Stack<'call> {
        Stack { state, call: PhantomData }
    }

    calls! {
        /// The number of values on the stack: at the start, of arguments.
        height() -> c_int = lua_gettop;
        set_height(height: c_int) = lua_settop;
        pop(count: c_int) = lua_pop;
        push_copy(index: c_int) = lua_pushvalue;
        /// Moves the topmost value to `index` and those from there on up by one.
        insert(index: c_int) = lua_insert;
        /// Moves the topmost value to `index`, in the place of what is there.
        replace(index: c_int) = lua_replace;
        push_nil() = lua_pushnil;
        push_number(number: f64) = lua_pushnumber;
        push_integer(integer: i64) = lua_pushinteger;
        new_table() = lua_newtable;
        number(index: c_int) -> f64 = lua_tonumber;
        /// The length of a string, a table or a userdata.
        length(index: c_int) -> usize = lua_objlen;
        raw_get_index(table: c_int, key: c_int) = lua_rawgeti_;
        /// `table[value below the topmost] = topmost value`, and pops both.
        raw_set(table: c_int) = lua_rawset;
        raw_set_index(table: c_int, key: c_int) = lua_rawseti_;
        check_number(argument: c_int) -> f64 = luaL_checknumber;
        check_integer(argument: c_int) -> i64 = luaL_checkinteger;
        optional_integer(argument: c_int, default: i64) -> i64 = luaL_optinteger;
    }

    pub(crate) fn kind(self, index: c_int) -> Type {
        // SAFETY: see the head of the file.
        match unsafe { ffi::lua_type(self.state, index) } {
            ffi::LUA_TNIL => Type::Nil,
            ffi::LUA_TBOOLEAN => Type::Boolean,
            ffi::LUA_TLIGHTUSERDATA => Type::LightUserdata,
            ffi::LUA_TNUMBER => Type::Number,
            ffi::LUA_TSTRING => Type::String,
            ffi::LUA_TTABLE => Type::Table,
            _ => Type::Other,
        }
    }

    /// The name of a value's type.
    pub(crate) fn kind_name(self, index: c_int) -> &'static str {
        // SAFETY: see the head of the file. LuaJIT has the names as constants.
        let name = unsafe { CStr::from_ptr(ffi::luaL_typename(self.state, index)) };
        name.to_str().unwrap_or("value")
    }

    pub(crate) fn boolean(self, index: c_int) -> bool {
        // SAFETY: see the head of the file.
        unsafe { ffi::lua_toboolean(self.state, index) != 0 }
    }

    /// Whether the value is a number, or a string that reads as one.
    pub(crate) fn is_numeric(self, index: c_int) -> bool {
        // SAFETY: see the head of the file.
        unsafe { ffi::lua_isnumber(self.state, index) != 0 }
    }

    /// The memory of a userdata; the address that a light userdata has.
    pub(crate) fn userdata(self, index: c_int) -> *mut c_void {
        // SAFETY: see the head of the file.
        unsafe { ffi::lua_touserdata(self.state, index) }
    }

    /// Pushes a userdata of `bytes` bytes, aligned to 8, whose contents are undefined.
    pub(crate) fn new_userdata(self, bytes: usize) -> *mut c_void {
        // SAFETY: see the head of the file.
        unsafe { ffi::lua_newuserdata(self.state, bytes) }
    }

    /// The bytes of a string at `index`; a zero follows them in memory.
    ///
    /// The string has to stay on the stack for as long as they are used.
    pub(crate) fn bytes(self, index: c_int) -> &'call [u8] {
        debug_assert_eq!(self.kind(index), Type::String);
        let mut length = 0;
        // SAFETY: see the head of the file; a string is not converted.
        unsafe {
            let bytes = ffi::lua_tolstring(self.state, index, &raw mut length);
            slice::from_raw_parts(bytes.cast(), length)
        }
    }

    /// The bytes of an argument that has to be a string, or a number, which becomes one.
    pub(crate) fn check_bytes(self, argument: c_int) -> &'call [u8] {
        let mut length = 0;
        // SAFETY: see the head of the file.
        unsafe {
            let bytes = ffi::luaL_checklstring(self.state, argument, &raw mut length);
            slice::from_raw_parts(bytes.cast(), length)
        }
    }

    /// Which of `options` (a null pointer ends them) the argument names.
    pub(crate) fn check_option<const COUNT: usize>(
        self,
        argument: c_int,
        options: &[&CStr; COUNT],
    ) -> c_int {
        let mut list = [ptr::null::<c_char>(); 4];
        const { assert!(COUNT < 4) };
        for (place, option) in list.iter_mut().zip(options) {
            *place = option.as_ptr();
        }
        // SAFETY: see the head of the file; the list ends with a null pointer.
        unsafe { ffi::luaL_checkoption(self.state, argument, ptr::null(), list.as_ptr()) }
    }

    pub(crate) fn push_boolean(self, value: bool) {
        // SAFETY: see the head of the file.
        unsafe { ffi::lua_pushboolean(self.state, c_int::from(value)) }
    }

    pub(crate) fn push_bytes(self, bytes: &[u8]) {
        // SAFETY: see the head of the file; Lua copies the bytes.
        unsafe { ffi::lua_pushlstring_(self.state, bytes.as_ptr().cast(), bytes.len()) }
    }

    pub(crate) fn push_null_pointer(self) {
        // SAFETY: see the head of the file.
        unsafe { ffi::lua_pushlightuserdata(self.state, ptr::null_mut()) }
    }

    /// Pops a key and pushes the next key and value of a table; at its end, pushes nothing.
    pub(crate) fn next(self, table: c_int) -> bool {
        // SAFETY: see the head of the file.
        unsafe { ffi::lua_next(self.state, table) != 0 }
    }

    /// `table[value below the topmost] = topmost value`, and pops both. A key must not be nil or
    /// NaN. Calls `__newindex`.
    pub(crate) fn set(self, table: c_int) {
        // SAFETY: see the head of the file.
        unsafe { ffi::lua_settable(self.state, table) }
    }

    /// Pops a value into a field of a table.
    pub(crate) fn set_field(self, table: c_int, name: &CStr) {
        // SAFETY: see the head of the file.
        unsafe { ffi::lua_setfield(self.state, table, name.as_ptr()) }
    }

    /// Makes room for `slots` values; false where a C function cannot have so many.
    pub(crate) fn has_room(self, slots: c_int) -> bool {
        // SAFETY: see the head of the file.
        unsafe { ffi::lua_checkstack(self.state, slots) != 0 }
    }

    /// Makes room for `slots` values, or raises "stack overflow" with a text.
    pub(crate) fn check_room(self, slots: c_int, text: &CStr) {
        // SAFETY: see the head of the file.
        unsafe { ffi::luaL_checkstack_(self.state, slots, text.as_ptr()) }
    }

    /// Pops `upvalues` values and pushes a function that has them.
    pub(crate) fn push_function<F>(self, function: F, upvalues: c_int)
    where
        F: Fn(Stack<'_>) -> c_int + Copy + 'static,
    {
        // SAFETY: see the head of the file.
        unsafe { ffi::lua_pushcclosure(self.state, c_function(function), upvalues) }
    }

    /// These are the settings of the `cjson` that all scripts have.
    pub(crate) fn keep_json_settings(self, memory: *mut c_void) {
        // SAFETY: see the head of the file.
        unsafe { (*core(self.state)).json_settings = memory }
    }

    /// A script has changed settings, which may be those of all.
    pub(crate) fn note_json_settings(self, memory: *mut c_void) {
        // SAFETY: see the head of the file.
        unsafe {
            let core = core(self.state);
            (*core).has_json_settings |= (*core).json_settings == memory;
        }
    }

    /// Raises an error where the thread's stack is too deep for another level.
    #[inline]
    pub(crate) fn check_depth(self) {
        // SAFETY: see the head of the file.
        unsafe { check_nested_depth(self.state, core(self.state)) }
    }

    /// Raises an error with the place in the script before its text.
    pub(crate) fn raise(self, text: fmt::Arguments<'_>) -> ! {
        let mut bytes = [0; ERROR_TEXT_BYTES_MAX];
        let mut free = &mut bytes[..ERROR_TEXT_BYTES_MAX - 1];
        // A longer text is cut.
        let _ = free.write_fmt(text);
        // SAFETY: see the head of the file; a zero ends the text.
        unsafe { ffi::luaL_error(self.state, c"%s".as_ptr(), bytes.as_ptr()) };
        unreachable!("luaL_error does not return")
    }

    /// Raises "bad argument #... to '...'" with a text.
    pub(crate) fn raise_argument(self, argument: c_int, text: &CStr) -> ! {
        // SAFETY: see the head of the file.
        unsafe { ffi::luaL_argerror(self.state, argument, text.as_ptr()) };
        unreachable!("luaL_argerror does not return")
    }

    /// Raises "bad argument #... to '...'" with a text in which `%c` is the byte.
    pub(crate) fn raise_argument_byte(self, argument: c_int, format: &CStr, byte: u8) -> ! {
        // SAFETY: see the head of the file; the text that was pushed stays on the stack.
        unsafe {
            let text = ffi::lua_pushfstring(self.state, format.as_ptr(), c_int::from(byte));
            ffi::luaL_argerror(self.state, argument, text);
        }
        unreachable!("luaL_argerror does not return")
    }
}

/// Counts the steps of a loop whose length a script chooses.
#[derive(Default)]
pub(crate) struct Pace {
    steps: usize,
}

impl Pace {
    /// Steps are handed on together.
    const TOGETHER: usize = 64;

    /// Asks the host now and then whether the script may go on; raises an error if not.
    #[inline]
    pub(crate) fn step(&mut self, stack: Stack<'_>) {
        self.steps(stack, 1);
    }

    /// The same of several steps.
    #[inline]
    pub(crate) fn steps(&mut self, stack: Stack<'_>, count: usize) {
        self.steps += count;
        if self.steps >= Pace::TOGETHER {
            let steps = std::mem::take(&mut self.steps);
            // SAFETY: see the head of the file.
            unsafe { spend(stack.state, core(stack.state), steps) }
        }
    }
}

/// The index of the running function's upvalue, counted from 1.
pub(crate) const fn upvalue(number: c_int) -> c_int {
    ffi::lua_upvalueindex(number)
}

/// A function as Lua calls it. It must be a plain function, not a closure that captures.
fn c_function<F>(_: F) -> ffi::lua_CFunction
where
    F: Fn(Stack<'_>) -> c_int + Copy + 'static,
{
    unsafe extern "C-unwind" fn call<F>(state: *mut lua_State) -> c_int
    where
        F: Fn(Stack<'_>) -> c_int + Copy + 'static,
    {
        // SAFETY: `F` has no bytes, and there was a value of it.
        let function: F = unsafe { mem::zeroed() };
        // SAFETY: Lua calls with its live state, on the thread that runs it.
        function(unsafe { Stack::of(state) })
    }
    const { assert!(mem::size_of::<F>() == 0) };
    call::<F>
}
