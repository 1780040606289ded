//! `msgpack`: values as the bytes of the protocol, by the options of a serializer.

mod decode;
mod encode;

use crate::serializer::{Format, push_serializer};
use crate::stack::{State, run_chunk};
use std::ffi::c_int;

const FORMAT: Format = Format {
    functions: &[
        (c"encode", encode::encode),
        (c"decode", decode::decode),
        (c"decode_at", decode::decode_at),
    ],
    new,
};

/// Pushes the module.
pub(crate) unsafe fn open(state: State) {
    // SAFETY: As for `stack`.
    unsafe {
        push_serializer(state, &FORMAT);
        run_chunk(state, include_str!("../lua/msgpack.lua"), c"@builtin/msgpack.lua");
    }
}

/// `msgpack.new()`: the module once more, with options of its own.
unsafe extern "C-unwind" fn new(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        open(state);
        1
    }
}
