//! Functions of `table` that may take long or call Lua: with steps that are counted, and a depth
//! that is checked. What they answer is what LuaJIT's own answer, error texts included.

use super::buffer::Buffer;
use super::pattern::BYTES_PER_STEP;
use super::stack::{Stack, upvalue};
use crate::core::{Core, core};
use crate::pace::{check_depth, spend};
use crate::stack::{State, bytes};
use mlua::ffi::*;
use std::ffi::c_int;

/// Where `concat` keeps the memory of its buffer from call to call.
const BUFFER: c_int = upvalue(1);

/// Replaces functions of the table at the top, LuaJIT's `table`.
///
/// # Safety
/// As for [`crate::stack`].
pub(crate) unsafe fn replace(state: State) {
    // SAFETY: As promised.
    unsafe {
        lua_getfield(state, -1, c"concat".as_ptr());
        (*core(state)).own_concat = lua_tocfunction(state, -1);
        lua_settop(state, -2);
        lua_pushnil(state);
        lua_pushcclosure(state, concat, 1);
        lua_setfield(state, -2, c"concat".as_ptr());
        lua_pushcclosure(state, sort, 0);
        lua_setfield(state, -2, c"sort".as_ptr());
    }
}

/// `table.concat`: LuaJIT's own for few elements.
unsafe extern "C-unwind" fn concat(state: State) -> c_int {
    /// LuaJIT joins so many in a few microseconds.
    const FEW: lua_Integer = 1024;
    // SAFETY: Lua calls it with a live state. The arguments stay on the stack.
    unsafe {
        luaL_checktype(state, 1, LUA_TTABLE);
        let core = core(state);
        let is_given = |argument| lua_type(state, argument) > LUA_TNIL;
        let first = if is_given(3) { luaL_checkinteger(state, 3) } else { 1 };
        let last = if is_given(4) {
            luaL_checkinteger(state, 4)
        } else {
            lua_objlen(state, 1) as lua_Integer
        };
        if last.saturating_sub(first) < FEW
            && let Some(own) = (*core).own_concat
        {
            let results = own(state);
            spend(state, core, lua_objlen(state, -1) / BYTES_PER_STEP);
            return results;
        }
        let between = if is_given(2) {
            luaL_checklstring(state, 2, std::ptr::null_mut());
            bytes(state, 2).unwrap_or_default()
        } else {
            &[]
        };
        lua_settop(state, 4);
        let mut result = Buffer::take(Stack::of(state), BUFFER);
        // As LuaJIT, which counts in 32 bits.
        for index in first as c_int..=last as c_int {
            lua_rawgeti_(state, 1, index);
            let Some(element) = bytes(state, -1) else {
                let text = c"invalid value (%s) at index %d in table for 'concat'";
                let kind = luaL_typename(state, -1);
                return luaL_error(state, text.as_ptr(), kind, index);
            };
            result.add(element);
            lua_settop(state, -2);
            if index != last as c_int {
                result.add(between);
            }
            spend(state, core, 1 + (element.len() + between.len()) / BYTES_PER_STEP);
        }
        result.push();
        result.keep(BUFFER);
    }
    1
}

/// The array that is sorted, and its order at 2: a function, or nil for `<`.
#[derive(Clone, Copy)]
struct Sorted {
    state: State,
    core: *mut Core,
}

/// `table.sort`.
unsafe extern "C-unwind" fn sort(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        luaL_checktype(state, 1, LUA_TTABLE);
        let length = lua_objlen(state, 1) as c_int;
        lua_settop(state, 2);
        if lua_type(state, 2) != LUA_TNIL {
            luaL_checktype(state, 2, LUA_TFUNCTION);
        }
        let core = core(state);
        check_depth(state, core);
        luaL_checkstack_(state, 40, c"sort".as_ptr());
        Sorted { state, core }.sort(1, length);
    }
    0
}

/// LuaJIT's quicksort, which is Lua's: what is equal keeps the order that scripts know.
///
/// # Safety
/// Each method needs a live state whose array is at 1, and indices of values on its stack.
impl Sorted {
    unsafe fn get(self, index: c_int) {
        // SAFETY: As promised.
        unsafe { lua_rawgeti_(self.state, 1, index) }
    }

    /// Pops two values into two places.
    unsafe fn set_both(self, first: c_int, second: c_int) {
        // SAFETY: As promised.
        unsafe {
            lua_rawseti_(self.state, 1, first);
            lua_rawseti_(self.state, 1, second);
        }
    }

    unsafe fn pop(self, count: c_int) {
        // SAFETY: As promised.
        unsafe { lua_settop(self.state, -count - 1) }
    }

    /// Whether one value on the stack comes before another one.
    unsafe fn is_less(self, one: c_int, other: c_int) -> bool {
        let Sorted { state, core } = self;
        // SAFETY: As promised.
        unsafe {
            spend(state, core, 1);
            if lua_type(state, 2) == LUA_TNIL {
                return lua_lessthan(state, one, other) != 0;
            }
            lua_pushvalue(state, 2);
            lua_pushvalue(state, one - 1);
            lua_pushvalue(state, other - 2);
            lua_call(state, 2, 1);
            let is_less = lua_toboolean(state, -1) != 0;
            self.pop(1);
            is_less
        }
    }

    unsafe fn sort(self, mut low: c_int, mut high: c_int) {
        // SAFETY: As promised.
        unsafe {
            while low < high {
                if self.order_ends(low, high) {
                    return;
                }
                let pivot = self.part(low, high);
                // The smaller half by a call, so that these nest a few times at most.
                if pivot - low < high - pivot {
                    self.sort(low, pivot - 1);
                    low = pivot + 1;
                } else {
                    self.sort(pivot + 1, high);
                    high = pivot - 1;
                }
            }
        }
    }

    /// Orders the first element, the one in the middle and the last one. Whether these were all.
    unsafe fn order_ends(self, low: c_int, high: c_int) -> bool {
        // SAFETY: As promised.
        unsafe {
            self.get(low);
            self.get(high);
            if self.is_less(-1, -2) {
                self.set_both(low, high);
            } else {
                self.pop(2);
            }
            if high - low == 1 {
                return true;
            }
            let middle = middle(low, high);
            self.get(middle);
            self.get(low);
            if self.is_less(-2, -1) {
                self.set_both(middle, low);
            } else {
                self.pop(1);
                self.get(high);
                if self.is_less(-1, -2) {
                    self.set_both(middle, high);
                } else {
                    self.pop(2);
                }
            }
            high - low == 2
        }
    }

    /// Parts what is between into what comes before the middle element and what comes after it.
    /// Returns where that is now.
    unsafe fn part(self, low: c_int, high: c_int) -> c_int {
        // SAFETY: As promised.
        unsafe {
            let middle = middle(low, high);
            self.get(middle);
            lua_pushvalue(self.state, -1);
            self.get(high - 1);
            self.set_both(middle, high - 1);
            let (mut from, mut to) = (low, high - 1);
            loop {
                from += 1;
                self.get(from);
                while self.is_less(-1, -2) {
                    if from >= high {
                        self.refuse();
                    }
                    self.pop(1);
                    from += 1;
                    self.get(from);
                }
                to -= 1;
                self.get(to);
                while self.is_less(-3, -1) {
                    if to <= low {
                        self.refuse();
                    }
                    self.pop(1);
                    to -= 1;
                    self.get(to);
                }
                if to < from {
                    self.pop(3);
                    break;
                }
                self.set_both(from, to);
            }
            self.get(high - 1);
            self.get(from);
            self.set_both(high - 1, from);
            from
        }
    }

    unsafe fn refuse(self) {
        // SAFETY: As promised.
        unsafe { luaL_error(self.state, c"invalid order function for sorting".as_ptr()) };
    }
}

/// As C divides the sum, which may not fit.
fn middle(low: c_int, high: c_int) -> c_int {
    low + (high - low) / 2
}
