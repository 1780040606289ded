//! `pickle`: numbers and strings to bytes and back, by a format of letters.

use crate::cdata::{self, Integer};
use crate::stack::{State, bytes, check_bytes, never, own, push_bytes, push_functions};
use mlua::ffi::*;
use std::ffi::c_int;

/// Pushes the module.
pub(crate) unsafe fn open(state: State) {
    // SAFETY: As for `stack`.
    unsafe { push_functions(state, &[(c"pack", pack), (c"unpack", unpack)]) }
}

/// The integer argument for a letter, cut to 64 bits.
unsafe fn number(state: State, index: c_int, letter: u8) -> u64 {
    // SAFETY: As for `stack`; nothing here has to be dropped.
    unsafe {
        if index > lua_gettop(state) {
            never(luaL_error(
                state,
                c"pickle.pack: argument count does not match the format".as_ptr(),
            ));
        }
        match cdata::integer(state, index) {
            Some(Integer::Signed(value)) => value as u64,
            Some(Integer::Unsigned(value)) => value,
            None if lua_isnumber(state, index) != 0 => lua_tonumber(state, index) as i64 as u64,
            None => never(luaL_error(
                state,
                c"pickle.pack: expected numeric for '%c'".as_ptr(),
                c_int::from(letter),
            )),
        }
    }
}

/// Bytes that an integer of a letter takes, and whether the highest comes first.
fn width(letter: u8) -> Option<(usize, bool)> {
    Some(match letter {
        b'b' | b'B' => (1, false),
        b's' | b'S' => (2, false),
        b'i' | b'I' => (4, false),
        b'l' | b'L' => (8, false),
        b'n' => (2, true),
        b'N' => (4, true),
        b'q' | b'Q' => (8, true),
        _ => return None,
    })
}

/// `pickle.pack(format, ...)`.
unsafe extern "C-unwind" fn pack(state: State) -> c_int {
    // SAFETY: As for `stack`; the bytes belong to the userdata.
    unsafe {
        let format = check_bytes(state, 1);
        let given = lua_gettop(state);
        let out = own::<Vec<u8>>(state);
        lua_insert(state, 1);
        for (index, letter) in (3..).zip(format) {
            if index > given + 1 {
                never(luaL_error(
                    state,
                    c"pickle.pack: argument count does not match the format".as_ptr(),
                ));
            }
            match letter {
                b'a' | b'A' => {
                    let text = check_bytes(state, index);
                    (*out).extend_from_slice(text);
                }
                b'f' => {
                    let value = luaL_checknumber(state, index) as f32;
                    (*out).extend_from_slice(&value.to_le_bytes());
                }
                b'd' => {
                    let value = luaL_checknumber(state, index);
                    (*out).extend_from_slice(&value.to_le_bytes());
                }
                _ => {
                    let Some((width, high_first)) = width(*letter) else {
                        never(luaL_error(
                            state,
                            c"pickle.pack: unsupported pack format specifier '%c'".as_ptr(),
                            c_int::from(*letter),
                        ));
                    };
                    let value = number(state, index, *letter);
                    if high_first {
                        (*out).extend_from_slice(&value.to_be_bytes()[8 - width..]);
                    } else {
                        (*out).extend_from_slice(&value.to_le_bytes()[..width]);
                    }
                }
            }
        }
        push_bytes(state, &*out);
        1
    }
}

/// `pickle.unpack(format, text)`.
unsafe extern "C-unwind" fn unpack(state: State) -> c_int {
    // SAFETY: As for `stack`; the text stays at its place on the stack.
    unsafe {
        let format = check_bytes(state, 1);
        let Some(mut rest) = bytes(state, 2) else {
            never(luaL_error(state, c"pickle.unpack: got nil instead of string".as_ptr()))
        };
        let mut pushed = 0;
        luaL_checkstack(state, format.len().min(i32::MAX as usize) as c_int, c"pickle".as_ptr());
        for letter in format {
            let size = match letter {
                b'a' | b'A' => {
                    push_bytes(state, rest);
                    rest = &[];
                    pushed += 1;
                    continue;
                }
                b'f' => 4,
                b'd' => 8,
                _ => match width(*letter) {
                    Some((width, _)) => width,
                    None => never(luaL_error(
                        state,
                        c"pickle.unpack: unsupported format specifier '%c'".as_ptr(),
                        c_int::from(*letter),
                    )),
                },
            };
            let Some((field, after)) = rest.split_at_checked(size) else {
                never(luaL_error(
                    state,
                    c"pickle.unpack('%c'): got %d bytes (expected: %d+)".as_ptr(),
                    c_int::from(*letter),
                    rest.len() as c_int,
                    size as c_int,
                ))
            };
            rest = after;
            push_field(state, *letter, field);
            pushed += 1;
        }
        if !rest.is_empty() {
            let length = bytes(state, 2).map_or(0, <[u8]>::len);
            never(luaL_error(
                state,
                c"pickle.unpack: too many bytes: unpacked %d, total %d".as_ptr(),
                (length - rest.len()) as c_int,
                length as c_int,
            ));
        }
        pushed
    }
}

unsafe fn push_field(state: State, letter: u8, field: &[u8]) {
    let high_first = matches!(letter, b'n' | b'N' | b'q' | b'Q');
    let mut room = [0; 8];
    if high_first {
        room[8 - field.len()..].copy_from_slice(field);
        room.reverse();
    } else {
        room[..field.len()].copy_from_slice(field);
    }
    let value = u64::from_le_bytes(room);
    // SAFETY: As for `stack`.
    unsafe {
        match letter {
            b'f' => lua_pushnumber(state, f32::from_bits(value as u32).into()),
            b'd' => lua_pushnumber(state, f64::from_bits(value)),
            _ => cdata::push_u64(state, value),
        }
    }
}
