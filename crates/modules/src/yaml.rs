//! `yaml`: YAML 1.1 as Tarantool prints it on its console. `yaml.decode` is refused by name: the
//! library that would read it ends the process at some texts.

mod encode;

use crate::serializer::{Format, push_serializer};
use crate::stack::{State, raise};
use std::ffi::c_int;

const FORMAT: Format =
    Format { functions: &[(c"encode", encode::encode), (c"decode", decode)], new };

/// `yaml.decode(text)`.
unsafe extern "C-unwind" fn decode(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe { raise(state, b"yaml.decode is not supported yet") }
}

/// Pushes the module.
pub(crate) unsafe fn open(state: State) {
    // SAFETY: As for `stack`.
    unsafe { push_serializer(state, &FORMAT) }
}

/// `yaml.new()`: the module once more, with options of its own.
unsafe extern "C-unwind" fn new(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        open(state);
        1
    }
}
