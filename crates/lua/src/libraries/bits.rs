//! `bit.tohex`, as Redis has it.

use crate::stack::{State, push_bytes, set_function};
use mlua::ffi::*;
use std::ffi::c_int;

/// Replaces the function of the global table `bit`, which is LuaJIT's.
///
/// # Safety
/// As for [`crate::stack`].
pub(crate) unsafe fn replace(state: State) {
    // SAFETY: As promised.
    unsafe {
        lua_getfield_(state, LUA_GLOBALSINDEX, c"bit".as_ptr());
        set_function(state, c"tohex", tohex);
        lua_settop(state, -2);
    }
}

/// `bit.tohex(x [, n])`: the lowest `n` hexadecimal digits of a number, at most eight as in Redis;
/// of a negative `n`, in capitals. LuaJIT's fills up to 254 digits with zeros.
unsafe extern "C-unwind" fn tohex(state: State) -> c_int {
    const DIGITS_MAX: usize = 8;
    // SAFETY: As for `stack`; nothing has to be dropped when a number is missing.
    unsafe {
        let number = bits(luaL_checknumber(state, 1));
        let digits = match lua_type(state, 2) {
            LUA_TNONE => DIGITS_MAX as i32,
            _ => bits(luaL_checknumber(state, 2)) as i32,
        };
        let alphabet = if digits < 0 { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
        let length = (digits.unsigned_abs() as usize).min(DIGITS_MAX);
        let mut text = [0; DIGITS_MAX];
        for (place, digit) in text[..length].iter_mut().rev().enumerate() {
            *digit = alphabet[(number >> (4 * place)) as usize & 15];
        }
        push_bytes(state, &text[..length]);
        1
    }
}

/// The lowest 32 bits of a number rounded to an integer, as `bit`'s functions take theirs: with this
/// added, they are the lowest of the double's mantissa.
fn bits(number: f64) -> u32 {
    (number + 6_755_399_441_055_744.0).to_bits() as u32
}
