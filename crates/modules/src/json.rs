//! `json`: RFC 8259 in Tarantool's ways.
//!
//! As there, `/` is escaped, bytes that are no UTF-8 pass, `nan` and `inf` are numbers unless the
//! options forbid them, and whole numbers are kept with 64 bits.

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

/// `json.new()`: the module once more, with options of its own.
unsafe extern "C-unwind" fn new(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        open(state);
        1
    }
}
