//! `cmsgpack`: MessagePack, as lua-cmsgpack 0.4.0 reads and writes it
//! (<https://github.com/msgpack/msgpack/blob/master/spec.md>, without `bin`, `ext` and timestamps).

mod pack;
mod unpack;

use super::stack::Stack;
use crate::stack::State;

/// Pushes the library.
///
/// # Safety
/// The state must be live, and the caller protected from errors (memory may be short).
pub(crate) unsafe fn open(state: State) {
    // SAFETY: As above.
    let stack = unsafe { Stack::of(state) };
    stack.new_table();
    let texts = [
        (c"_NAME", "cmsgpack"),
        (c"_VERSION", "lua-cmsgpack 0.4.0"),
        (c"_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"),
        (c"_DESCRIPTION", "MessagePack C implementation for Lua"),
    ];
    for (name, text) in texts {
        stack.push_bytes(text.as_bytes());
        stack.set_field(-2, name);
    }
    stack.push_function(pack::pack, 0);
    stack.set_field(-2, c"pack");
    stack.push_function(unpack::unpack, 0);
    stack.set_field(-2, c"unpack");
    stack.push_function(unpack::unpack_one, 0);
    stack.set_field(-2, c"unpack_one");
    stack.push_function(unpack::unpack_limit, 0);
    stack.set_field(-2, c"unpack_limit");
}
