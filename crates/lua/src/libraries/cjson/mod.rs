//! `cjson`: JSON, as lua-cjson 2.1 reads and writes it.
//!
//! `cjson.new()` makes another copy of the library with settings of its own. All functions of a
//! copy share one userdata with the settings, as their first upvalue.

mod decode;
mod encode;
mod settings;
mod token;

use std::ffi::{CStr, c_int, c_void};

use super::stack::{Stack, lua_State, upvalue};
use settings::Settings;
pub(crate) use settings::restore;

/// Where `encode` and `decode` keep the memory of their buffer from call to call.
const BUFFER: c_int = upvalue(2);

/// Pushes the library.
///
/// # Safety
/// The state must be live, and the caller protected from errors (memory may be short).
pub(crate) unsafe fn open(state: *mut lua_State) {
    // SAFETY: as above.
    let stack = unsafe { Stack::of(state) };
    stack.keep_json_settings(push_library(stack));
}

/// Pushes a copy of the library. Returns where its settings are.
fn push_library(stack: Stack<'_>) -> *mut c_void {
    stack.check_room(5, c"cjson");
    stack.new_table();
    let settings = Settings::push_default(stack);
    // Stack: library, settings.
    add(stack, c"encode", encode::encode);
    add(stack, c"decode", decode::decode);
    add(stack, c"encode_sparse_array", settings::encode_sparse_array);
    add(stack, c"encode_max_depth", settings::encode_max_depth);
    add(stack, c"decode_max_depth", settings::decode_max_depth);
    add(stack, c"encode_number_precision", settings::encode_number_precision);
    add(stack, c"encode_keep_buffer", settings::encode_keep_buffer);
    add(stack, c"encode_invalid_numbers", settings::encode_invalid_numbers);
    add(stack, c"decode_invalid_numbers", settings::decode_invalid_numbers);
    add(stack, c"new", |stack| {
        push_library(stack);
        1
    });
    stack.pop(1);
    stack.push_null_pointer();
    stack.set_field(-2, c"null");
    stack.push_bytes(b"cjson");
    stack.set_field(-2, c"_NAME");
    stack.push_bytes(b"2.1.0");
    stack.set_field(-2, c"_VERSION");
    settings
}

/// Adds a function to the library: the settings are its first upvalue, memory its second.
fn add<F>(stack: Stack<'_>, name: &CStr, function: F)
where
    F: Fn(Stack<'_>) -> c_int + Copy + 'static,
{
    stack.push_copy(-1);
    stack.push_nil();
    stack.push_function(function, 2);
    stack.set_field(-3, name);
}
