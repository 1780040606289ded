//! Values of LuaJIT's FFI: which type they have, and how Rust makes them.
//!
//! LuaJIT's C API has no function for either. The payload of a cdata is what `lua_topointer`
//! answers. Its type's number is in the header, a `u16` six bytes before the payload (`GCcdata` of
//! `lj_obj.h`, with 64-bit references); [`install`] checks that on a value of each type, and if it
//! does not hold, asks `ffi.typeof` each time.
//!
//! # Safety
//! As for [`crate::stack`]; [`install`] has to come first.

use crate::stack::State;
use mlua::ffi::*;
use std::ffi::{c_int, c_void};

/// `lua_type` of a cdata.
pub(crate) const LUA_TCDATA: c_int = 10;

/// From where in a cdata's header, counted back from its payload, its type's number is.
const TYPE_BEFORE_PAYLOAD: usize = 6;

/// Where the registry has `box.NULL`.
pub(crate) const NULL_KEY: &std::ffi::CStr = c"ladon.null";

/// The types that Rust knows, in the order of `lua/types.lua`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(usize)]
pub(crate) enum Type {
    Bool,
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float,
    Double,
    VoidPointer,
    ConstCharPointer,
    CharPointer,
    Uuid,
    Decimal,
    Char,
    Datetime,
    Interval,
}

const TYPES: [Type; 19] = [
    Type::Bool,
    Type::Int8,
    Type::Uint8,
    Type::Int16,
    Type::Uint16,
    Type::Int32,
    Type::Uint32,
    Type::Int64,
    Type::Uint64,
    Type::Float,
    Type::Double,
    Type::VoidPointer,
    Type::ConstCharPointer,
    Type::CharPointer,
    Type::Uuid,
    Type::Decimal,
    Type::Char,
    Type::Datetime,
    Type::Interval,
];

/// A state's types: their numbers, and references to the ctypes that make values.
pub(crate) struct Types {
    ids: [u32; TYPES.len()],
    references: [c_int; TYPES.len()],
    type_of: c_int,
    header_is_known: bool,
}

/// The address of this is the key of [`Types`] in the registry.
static TYPES_KEY: u8 = 0;

/// Makes the types known to the state, and `NULL`, unless they are.
pub(crate) unsafe fn install(state: State) {
    // SAFETY: As for the module. `Types` owns no memory, so the userdata needs no `__gc`.
    unsafe {
        if !types_or_null(state).is_null() {
            return;
        }
        lua_pushlightuserdata(state, (&raw const TYPES_KEY).cast_mut().cast::<c_void>());
        let types = lua_newuserdata(state, size_of::<Types>()).cast::<Types>();
        types.write(Types {
            ids: [0; TYPES.len()],
            references: [LUA_NOREF; TYPES.len()],
            type_of: LUA_NOREF,
            header_is_known: true,
        });
        let source = include_str!("../lua/types.lua");
        let name = c"@builtin/types.lua".as_ptr();
        if luaL_loadbuffer(state, source.as_ptr().cast(), source.len(), name) != 0 {
            lua_error(state);
        }
        lua_call(state, 0, 3);
        keep_null(state);
        (*types).type_of = luaL_ref(state, LUA_REGISTRYINDEX);
        for place in 0..TYPES.len() {
            lua_rawgeti_(state, -1, place as c_int + 1);
            (*types).ids[place] = lua_topointer(state, -1).cast::<u32>().read();
            (*types).references[place] = luaL_ref(state, LUA_REGISTRYINDEX);
        }
        lua_settop(state, -2);
        lua_rawset(state, LUA_REGISTRYINDEX);
        check_header(state, &mut *types);
    }
}

/// Takes `NULL` from the top into the registry, unless the state has one.
unsafe fn keep_null(state: State) {
    // SAFETY: As for the module.
    unsafe {
        lua_getfield_(state, LUA_REGISTRYINDEX, NULL_KEY.as_ptr());
        let absent = lua_type(state, -1) == LUA_TNIL;
        lua_settop(state, -2);
        if absent {
            lua_setfield(state, LUA_REGISTRYINDEX, NULL_KEY.as_ptr());
        } else {
            lua_settop(state, -2);
        }
    }
}

/// Looks whether the type's number is where it is expected, in a new value of each type.
unsafe fn check_header(state: State, types: &mut Types) {
    for place in 0..TYPES.len() {
        // SAFETY: As for the module; a cdata has a header of 16 bytes.
        unsafe {
            lua_rawgeti_(state, LUA_REGISTRYINDEX, types.references[place]);
            lua_call(state, 0, 1);
            let found = lua_topointer(state, -1).byte_sub(TYPE_BEFORE_PAYLOAD).cast::<u16>().read();
            types.header_is_known &= u32::from(found) == types.ids[place];
            lua_settop(state, -2);
        }
    }
}

unsafe fn types_or_null(state: State) -> *const Types {
    // SAFETY: As for the module; the userdata stays in the registry as long as the state lives.
    unsafe {
        lua_pushlightuserdata(state, (&raw const TYPES_KEY).cast_mut().cast::<c_void>());
        lua_rawget_(state, LUA_REGISTRYINDEX);
        let types = lua_touserdata(state, -1).cast_const().cast::<Types>();
        lua_settop(state, -2);
        types
    }
}

/// The state's types.
pub(crate) unsafe fn types<'a>(state: State) -> &'a Types {
    // SAFETY: As for the module.
    unsafe {
        let types = types_or_null(state);
        assert!(!types.is_null(), "the state has the types of `install`");
        &*types
    }
}

/// The payload and the type of the cdata at `index`. `None` if the value is no cdata, or one of
/// another type.
pub(crate) unsafe fn look(
    state: State,
    types: &Types,
    index: c_int,
) -> Option<(Type, *const c_void)> {
    // SAFETY: As for the module.
    unsafe {
        if lua_type(state, index) != LUA_TCDATA {
            return None;
        }
        let payload = lua_topointer(state, index);
        let id = if types.header_is_known {
            u32::from(payload.byte_sub(TYPE_BEFORE_PAYLOAD).cast::<u16>().read())
        } else {
            slow_id(state, types, index)
        };
        let place = types.ids.iter().position(|known| *known == id)?;
        Some((TYPES[place], payload))
    }
}

/// Whether the value at `index` is a type of FFI, and no value of one.
pub(crate) unsafe fn is_ctype(state: State, types: &Types, index: c_int) -> bool {
    // SAFETY: As for the module.
    unsafe {
        if lua_type(state, index) != LUA_TCDATA || !types.header_is_known {
            return false;
        }
        let id_of = |index| lua_topointer(state, index).byte_sub(TYPE_BEFORE_PAYLOAD).cast::<u16>();
        lua_rawgeti_(state, LUA_REGISTRYINDEX, types.references[0]);
        let is_one = id_of(index).read() == id_of(-1).read();
        lua_settop(state, -2);
        is_one
    }
}

unsafe fn slow_id(state: State, types: &Types, index: c_int) -> u32 {
    let index = if index < 0 && index > LUA_REGISTRYINDEX { index - 1 } else { index };
    // SAFETY: As for the module; the payload of a ctype is its number.
    unsafe {
        lua_rawgeti_(state, LUA_REGISTRYINDEX, types.type_of);
        lua_pushvalue(state, index);
        lua_call(state, 1, 1);
        let id = lua_topointer(state, -1).cast::<u32>().read();
        lua_settop(state, -2);
        id
    }
}

/// The payload of the cdata at `index`, if it has this type.
pub(crate) unsafe fn payload(state: State, index: c_int, of: Type) -> Option<*const c_void> {
    // SAFETY: As for the module.
    match unsafe { look(state, types(state), index) } {
        Some((found, payload)) if found == of => Some(payload),
        _ => None,
    }
}

/// Pushes a zeroed value of a type and returns its payload.
pub(crate) unsafe fn push_new(state: State, of: Type) -> *mut c_void {
    // SAFETY: As for the module. The payload is the program's to change, so Rust may too.
    unsafe {
        let reference = types(state).references[of as usize];
        lua_rawgeti_(state, LUA_REGISTRYINDEX, reference);
        lua_call(state, 0, 1);
        lua_topointer(state, -1).cast_mut()
    }
}

/// Numbers up to this far from zero are plain ones; cdata beyond, as in Tarantool
/// (`luaL_pushint64`).
const PLAIN_MAX: u64 = 99_999_999_999_999;

/// Pushes an unsigned integer: a number where Tarantool makes one, else a `uint64_t`.
pub(crate) unsafe fn push_u64(state: State, value: u64) {
    // SAFETY: As for the module.
    unsafe {
        if value <= PLAIN_MAX {
            lua_pushnumber(state, value as f64);
        } else {
            push_new(state, Type::Uint64).cast::<u64>().write(value);
        }
    }
}

/// Pushes a signed integer: a number where Tarantool makes one, else an `int64_t`.
pub(crate) unsafe fn push_i64(state: State, value: i64) {
    // SAFETY: As for the module.
    unsafe {
        if value.unsigned_abs() <= PLAIN_MAX {
            lua_pushnumber(state, value as f64);
        } else {
            push_new(state, Type::Int64).cast::<i64>().write(value);
        }
    }
}

/// Whether the value at `index` is `box.NULL`, or another null `void *`.
pub(crate) unsafe fn is_null(state: State, index: c_int) -> bool {
    // SAFETY: As for the module; a pointer's payload is the pointer.
    unsafe {
        payload(state, index, Type::VoidPointer)
            .is_some_and(|pointer| pointer.cast::<*const c_void>().read().is_null())
    }
}

/// Pushes `box.NULL`, of which a state has one.
pub(crate) unsafe fn push_null(state: State) {
    // SAFETY: As for the module.
    unsafe { lua_getfield_(state, LUA_REGISTRYINDEX, NULL_KEY.as_ptr()) }
}

/// A number with 64 bits, as arguments have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Integer {
    /// Of a signed type.
    Signed(i64),
    /// Of an unsigned type.
    Unsigned(u64),
}

/// The integer at `index`: a whole number, or a cdata of an integer type. `None` of anything else.
pub(crate) unsafe fn integer(state: State, index: c_int) -> Option<Integer> {
    // SAFETY: As for the module; the payload has the type that was found.
    unsafe {
        if lua_type(state, index) == LUA_TNUMBER {
            return whole(lua_tonumber(state, index));
        }
        integer_of_cdata(state, index)
    }
}

/// The integer at `index`, if it is a cdata of an integer type.
pub(crate) unsafe fn integer_of_cdata(state: State, index: c_int) -> Option<Integer> {
    // SAFETY: As for the module; the payload has the type that was found.
    unsafe {
        let (found, payload) = look(state, types(state), index)?;
        Some(match found {
            Type::Int8 => Integer::Signed(payload.cast::<i8>().read().into()),
            Type::Uint8 | Type::Char => Integer::Unsigned(payload.cast::<u8>().read().into()),
            Type::Int16 => Integer::Signed(payload.cast::<i16>().read().into()),
            Type::Uint16 => Integer::Unsigned(payload.cast::<u16>().read().into()),
            Type::Int32 => Integer::Signed(payload.cast::<i32>().read().into()),
            Type::Uint32 => Integer::Unsigned(payload.cast::<u32>().read().into()),
            Type::Int64 => Integer::Signed(payload.cast::<i64>().read()),
            Type::Uint64 => Integer::Unsigned(payload.cast::<u64>().read()),
            _ => return None,
        })
    }
}

/// A whole double within 64 bits as an integer.
pub(crate) fn whole(number: f64) -> Option<Integer> {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if number.floor() != number {
        None
    } else if (0.0..TWO_TO_63 * 2.0).contains(&number) {
        Some(Integer::Unsigned(number as u64))
    } else if (-TWO_TO_63..0.0).contains(&number) {
        Some(Integer::Signed(number as i64))
    } else {
        None
    }
}
