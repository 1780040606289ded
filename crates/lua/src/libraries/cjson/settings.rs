//! What scripts may set, and the functions that set it. Each gives the settings that hold from then
//! on; an argument that is nil or missing changes nothing.

use std::ffi::{CStr, c_int, c_void};
use std::mem;

use super::super::stack::{Stack, Type, upvalue};

/// What to do with NaN and the infinities.
pub(super) const REFUSE: c_int = 0;
pub(super) const ACCEPT: c_int = 1;
/// Write them as `null`.
pub(super) const NULL: c_int = 2;

/// The settings of one copy of the library. Plain integers: they live in a userdata.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    /// Whether an array that is too sparse becomes an object; otherwise it is an error.
    pub(super) sparse_convert: c_int,
    /// An array is too sparse with more than this many places for each value; 0: none is.
    pub(super) sparse_ratio: c_int,
    /// No array of this many places or fewer is too sparse.
    pub(super) sparse_safe: c_int,
    pub(super) encode_depth_max: c_int,
    pub(super) decode_depth_max: c_int,
    /// Significant digits of numbers.
    pub(super) number_precision: c_int,
    pub(super) keep_buffer: c_int,
    pub(super) encode_invalid_numbers: c_int,
    pub(super) decode_invalid_numbers: c_int,
}

impl Settings {
    /// Pushes a userdata with the settings that a new copy of the library has. Returns its memory.
    pub(super) fn push_default(stack: Stack<'_>) -> *mut c_void {
        let memory = stack.new_userdata(mem::size_of::<Settings>());
        // SAFETY: the userdata has room, and is aligned to 8.
        unsafe { memory.cast::<Settings>().write(Settings::default()) };
        memory
    }

    /// The settings of the running function's copy of the library.
    pub(super) fn of(stack: Stack<'_>) -> Settings {
        // SAFETY: the first upvalue of each of the library's functions is such a userdata.
        unsafe { stack.userdata(upvalue(1)).cast::<Settings>().read() }
    }

    fn store(self, stack: Stack<'_>) {
        let memory = stack.userdata(upvalue(1));
        // SAFETY: as in `of`.
        unsafe { memory.cast::<Settings>().write(self) };
        stack.note_json_settings(memory);
    }
}

/// Makes the settings of the library that all scripts have those of a new one again: what a script
/// sets lasts until its end.
///
/// # Safety
/// `memory` came from [`Settings::push_default`], and its library is still there.
pub(crate) unsafe fn restore(memory: *mut c_void) {
    // SAFETY: as promised.
    unsafe { memory.cast::<Settings>().write(Settings::default()) };
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            sparse_convert: 0,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth_max: 1000,
            decode_depth_max: 1000,
            number_precision: 14,
            keep_buffer: 1,
            encode_invalid_numbers: REFUSE,
            decode_invalid_numbers: ACCEPT,
        }
    }
}

pub(super) fn encode_sparse_array(stack: Stack<'_>) -> c_int {
    let mut settings = arguments(stack, 3);
    set_option(stack, 1, &mut settings.sparse_convert, None);
    settings.store(stack);
    set_integer(stack, 2, &mut settings.sparse_ratio, 0, c_int::MAX);
    settings.store(stack);
    set_integer(stack, 3, &mut settings.sparse_safe, 0, c_int::MAX);
    settings.store(stack);
    3
}

pub(super) fn encode_max_depth(stack: Stack<'_>) -> c_int {
    let mut settings = arguments(stack, 1);
    set_integer(stack, 1, &mut settings.encode_depth_max, 1, c_int::MAX);
    settings.store(stack);
    1
}

pub(super) fn decode_max_depth(stack: Stack<'_>) -> c_int {
    let mut settings = arguments(stack, 1);
    set_integer(stack, 1, &mut settings.decode_depth_max, 1, c_int::MAX);
    settings.store(stack);
    1
}

pub(super) fn encode_number_precision(stack: Stack<'_>) -> c_int {
    let mut settings = arguments(stack, 1);
    set_integer(stack, 1, &mut settings.number_precision, 1, 14);
    settings.store(stack);
    1
}

pub(super) fn encode_keep_buffer(stack: Stack<'_>) -> c_int {
    let mut settings = arguments(stack, 1);
    set_option(stack, 1, &mut settings.keep_buffer, None);
    settings.store(stack);
    1
}

pub(super) fn encode_invalid_numbers(stack: Stack<'_>) -> c_int {
    let mut settings = arguments(stack, 1);
    let options = [c"off", c"on", c"null"];
    set_option(stack, 1, &mut settings.encode_invalid_numbers, Some(&options));
    settings.store(stack);
    1
}

pub(super) fn decode_invalid_numbers(stack: Stack<'_>) -> c_int {
    let mut settings = arguments(stack, 1);
    set_option(stack, 1, &mut settings.decode_invalid_numbers, None);
    settings.store(stack);
    1
}

/// Makes missing arguments nil, and gives the settings.
fn arguments(stack: Stack<'_>, count_max: c_int) -> Settings {
    if stack.height() > count_max {
        stack.raise_argument(count_max + 1, c"found too many arguments");
    }
    stack.set_height(count_max);
    stack.check_room(4, c"cjson");
    Settings::of(stack)
}

/// Sets and pushes a number.
fn set_integer(stack: Stack<'_>, argument: c_int, setting: &mut c_int, min: c_int, max: c_int) {
    if stack.kind(argument) != Type::Nil {
        // As C converts it: what is beyond 32 bits is cut off.
        #[expect(clippy::cast_possible_truncation)]
        let value = stack.check_integer(argument) as c_int;
        if !(min..=max).contains(&value) {
            let text = match (min, max) {
                (0, _) => c"expected integer between 0 and 2147483647",
                (_, c_int::MAX) => c"expected integer between 1 and 2147483647",
                _ => c"expected integer between 1 and 14",
            };
            stack.raise_argument(1, text);
        }
        *setting = value;
    }
    stack.push_integer(i64::from(*setting));
}

/// Sets and pushes an option: a boolean, or one of the names.
fn set_option(
    stack: Stack<'_>,
    argument: c_int,
    setting: &mut c_int,
    names: Option<&[&'static CStr; 3]>,
) {
    match stack.kind(argument) {
        Type::Nil => {}
        Type::Boolean => *setting = c_int::from(stack.boolean(argument)),
        _ => {
            *setting = match names {
                Some(names) => stack.check_option(argument, names),
                None => stack.check_option(argument, &[c"off", c"on"]),
            }
        }
    }
    match *setting {
        NULL => stack.push_bytes(b"null"),
        on => stack.push_boolean(on == ACCEPT),
    }
}
