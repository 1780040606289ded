//! `uuid`: RFC 4122's numbers, as the cdata `struct tt_uuid`.

use crate::cdata::{self, Type};
use crate::stack::{State, push_bytes, push_functions, raise, run_chunk};
use mlua::ffi::*;
use std::ffi::c_int;
use std::fmt;

/// Sixteen bytes, in the order of the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Uuid([u8; 16]);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, byte) in self.0.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// Turns the three numbers that the struct begins with from the machine's order of bytes into that
/// of the text, or back.
fn turn(mut bytes: [u8; 16]) -> [u8; 16] {
    if cfg!(target_endian = "little") {
        bytes[..4].reverse();
        bytes[4..6].reverse();
        bytes[6..8].reverse();
    }
    bytes
}

/// The uuid at `index`, whose type the caller has looked at.
pub(crate) unsafe fn at(state: State, index: c_int) -> Uuid {
    // SAFETY: As for `stack`; the payload has sixteen bytes.
    Uuid(turn(unsafe { lua_topointer(state, index).cast::<[u8; 16]>().read() }))
}

/// The uuid at `index` as sixteen bytes in the order of its text, which is that of MessagePack's
/// extension 2. `None` if there is none.
///
/// # Safety
/// The state has to be live, with the types of [`crate::preload`], and the index valid.
pub unsafe fn uuid_to_bytes(state: *mut lua_State, index: c_int) -> Option<[u8; 16]> {
    // SAFETY: As promised.
    unsafe {
        cdata::payload(state, index, Type::Uuid)?;
        Some(at(state, index).0)
    }
}

/// Pushes a uuid of sixteen bytes in the order of its text.
///
/// # Safety
/// The state has to be live, with the types of [`crate::preload`]. May raise an error of Lua.
pub unsafe fn push_uuid(state: *mut lua_State, bytes: [u8; 16]) {
    // SAFETY: As promised; the new cdata has sixteen bytes.
    unsafe { cdata::push_new(state, Type::Uuid).cast::<[u8; 16]>().write(turn(bytes)) }
}

/// A new one by chance (version 4).
unsafe extern "C-unwind" fn new(state: State) -> c_int {
    let mut bytes = [0_u8; 16];
    // SAFETY: As for `stack`; nothing here has to be dropped.
    unsafe {
        if getrandom::fill(&mut bytes).is_err() {
            raise(state, b"the system has no random bytes");
        }
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        push_uuid(state, bytes);
        1
    }
}

/// The text of the uuid at 1.
unsafe extern "C-unwind" fn text(state: State) -> c_int {
    // SAFETY: As for `stack`; the Lua side has looked at the type.
    unsafe {
        if uuid_to_bytes(state, 1).is_none() {
            raise(state, b"Usage: uuid:str()");
        }
        let uuid = at(state, 1);
        let mut room = [0_u8; 36];
        let mut rest = &mut room[..];
        std::io::Write::write_fmt(&mut rest, format_args!("{uuid}")).expect("36 characters");
        push_bytes(state, &room);
        1
    }
}

/// Pushes the module.
pub(crate) unsafe fn open(state: State) {
    // SAFETY: As for `stack`.
    unsafe {
        push_functions(state, &[(c"new", new), (c"text", text)]);
        run_chunk(state, include_str!("../lua/uuid.lua"), c"@builtin/uuid.lua");
    }
}
