//! `yaml`: YAML 1.1 as Tarantool prints and reads it on its console.
//!
//! Two libraries, since the one that writes as Tarantool does ends the process when it reads some
//! texts.

mod decode;
mod encode;

use crate::serializer::{Format, push_serializer};
use crate::stack::State;
use std::ffi::c_int;

const FORMAT: Format =
    Format { functions: &[(c"encode", encode::encode), (c"decode", decode::decode)], new };

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
