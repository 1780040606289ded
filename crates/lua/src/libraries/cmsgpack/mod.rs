//! `cmsgpack`: MessagePack, as lua-cmsgpack 0.4 reads and writes it
//! (<https://github.com/msgpack/msgpack/blob/master/spec-old.md>: strings have no encoding, and
//! there are no extensions).

mod pack;
mod unpack;

use super::stack::{Stack, upvalue};
use crate::stack::State;
use std::ffi::c_int;

/// Where `pack` keeps the memory of its buffer from call to call.
const BUFFER: c_int = upvalue(1);

/// Pushes the library.
///
/// # Safety
/// The state must be live, and the caller protected from errors (memory may be short).
pub(super) unsafe fn open(state: State) {
    // SAFETY: As promised.
    let stack = unsafe { Stack::of(state) };
    stack.check_room(4, c"cmsgpack");
    stack.new_table();
    stack.push_nil();
    stack.push_function(pack::pack, 1);
    stack.set_field(-2, c"pack");
    stack.push_function(unpack::unpack, 0);
    stack.set_field(-2, c"unpack");
    stack.push_function(unpack::unpack_one, 0);
    stack.set_field(-2, c"unpack_one");
    stack.push_function(unpack::unpack_limit, 0);
    stack.set_field(-2, c"unpack_limit");
    for (name, text) in [
        (c"_NAME", &b"cmsgpack"[..]),
        (c"_VERSION", b"lua-cmsgpack 0.4.0"),
        (c"_COPYRIGHT", b"Copyright (C) 2012, Salvatore Sanfilippo"),
        (c"_DESCRIPTION", b"MessagePack C implementation for Lua"),
    ] {
        stack.push_bytes(text);
        stack.set_field(-2, name);
    }
}
