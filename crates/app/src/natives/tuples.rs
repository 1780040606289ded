//! What `tuple.lua` and `msgpack.lua` are built on.

use super::{Native, raise_failed, raise_text, uint};
use crate::context::Context;
use crate::stack::{State, bytes, push_bytes};
use crate::values::ValueError;
use ladon_kernel::program::Failed;
use ladon_msgpack::{Value, read, read_array, skip, take};
use ladon_space::{BoxError, update_tuple};
use mlua::ffi::*;
use std::ffi::c_int;

pub(super) const NATIVES: &[Native] = &[
    (c"tuple_new", tuple_new),
    (c"tuple_of_bytes", tuple_of_bytes),
    (c"tuple_bytes", tuple_bytes),
    (c"tuple_update", tuple_update),
    (c"tuple_len", tuple_len),
    (c"tuple_field", tuple_field),
    (c"tuple_values", tuple_values),
    (c"encode", encode),
    (c"decode", decode),
];

/// `tuple_new(table or tuple, space) -> tuple`.
unsafe extern "C-unwind" fn tuple_new(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let types = context.types.get();
        let mut buffer = context.take_buffer();
        let done =
            types.encode(state, 1, &mut buffer).and_then(
                |()| match ladon_iproto::request::is_array(&buffer) {
                    true => Ok(()),
                    false => Err(ValueError("A tuple or a table expected".to_owned())),
                },
            );
        match done {
            Ok(()) => {
                types.push_tuple(state, &buffer, uint(state, 2));
                context.give_buffer(buffer);
                1
            }
            Err(ValueError(text)) => {
                context.give_buffer(buffer);
                raise_text(state, text)
            }
        }
    }
}

/// `tuple_update(tuple, operations, is upsert) -> tuple`.
unsafe extern "C-unwind" fn tuple_update(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let types = context.types.get();
        let (tuple, space) = types.tuple(state, 1).unwrap_or((&[0x90], 0));
        let mut operations = context.take_buffer();
        let encoded = types.encode(state, 2, &mut operations);
        let is_upsert = lua_toboolean(state, 3) != 0;
        let done = encoded.map(|()| update_tuple(tuple, &operations, 1, is_upsert));
        context.give_buffer(operations);
        match done {
            Ok(Ok(updated)) => {
                types.push_tuple(state, &updated, space);
                1
            }
            Ok(Err(BoxError { code, message })) => {
                let class = "ClientError".to_owned();
                raise_failed(state, Failed::new(code.0, message, &class))
            }
            Err(ValueError(text)) => raise_text(state, text),
        }
    }
}

/// `tuple_of_bytes(string) -> tuple`: of MessagePack.
unsafe extern "C-unwind" fn tuple_of_bytes(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let data = bytes(state, 1).unwrap_or_default();
        Context::of(state).types.get().push_tuple(state, data, 0);
    }
    1
}

/// The tuple that is the first argument; an empty one of anything else.
unsafe fn tuple<'a>(state: State) -> (&'a [u8], u32) {
    // SAFETY: As promised by the caller; the argument stays on the stack.
    unsafe { Context::of(state).types.get().tuple(state, 1).unwrap_or((&[0x90], 0)) }
}

/// `tuple_bytes(tuple) -> string`.
unsafe extern "C-unwind" fn tuple_bytes(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe { push_bytes(state, tuple(state).0) };
    1
}

/// `tuple_len(tuple) -> number`.
unsafe extern "C-unwind" fn tuple_len(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let mut data = tuple(state).0;
        lua_pushnumber(state, f64::from(read_array(&mut data).unwrap_or(0)));
    }
    1
}

/// `tuple_field(tuple, number) -> value or nil`, from 1 on.
unsafe extern "C-unwind" fn tuple_field(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let (mut data, number) = (tuple(state).0, lua_tonumber(state, 2));
        let count = read_array(&mut data).unwrap_or(0);
        if !(number >= 1.0 && number <= f64::from(count) && number.fract() == 0.0) {
            lua_pushnil(state);
            return 1;
        }
        let mut push = || -> Result<(), ValueError> {
            for _ in 1..number as u32 {
                skip(&mut data)?;
            }
            Context::of(state).types.get().push(state, &mut data)
        };
        match push() {
            Ok(()) => 1,
            Err(ValueError(text)) => raise_text(state, text),
        }
    }
}

/// `tuple_values(tuple, table) -> count`: fills the table.
unsafe extern "C-unwind" fn tuple_values(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let mut data = tuple(state).0;
        let count = read_array(&mut data).unwrap_or(0);
        let types = Context::of(state).types.get();
        lua_settop(state, 2);
        let mut fill = || -> Result<(), ValueError> {
            for at in 1..=count {
                types.push(state, &mut data)?;
                lua_rawseti_(state, 2, at as c_int);
            }
            Ok(())
        };
        match fill() {
            Ok(()) => {
                lua_pushnumber(state, f64::from(count));
                1
            }
            Err(ValueError(text)) => raise_text(state, text),
        }
    }
}

/// `encode(value) -> string`: MessagePack.
unsafe extern "C-unwind" fn encode(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let mut buffer = context.take_buffer();
        let done = context.types.get().encode(state, 1, &mut buffer);
        if done.is_ok() {
            push_bytes(state, &buffer);
        }
        context.give_buffer(buffer);
        match done {
            Ok(()) => 1,
            Err(ValueError(text)) => raise_text(state, text),
        }
    }
}

/// `decode(string, position) -> value, position after it`, from 1 on. An array becomes a tuple if
/// `as_tuples` is true.
unsafe extern "C-unwind" fn decode(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let all = bytes(state, 1).unwrap_or_default();
        let start = (lua_tonumber(state, 2).max(1.0) as usize - 1).min(all.len());
        let as_tuples = lua_toboolean(state, 3) != 0;
        let types = Context::of(state).types.get();
        let mut rest = &all[start..];
        let is_array = as_tuples && matches!(read(&mut { rest }), Ok(Value::Array(_)));
        let done = match is_array {
            true => take(&mut rest)
                .map(|data| types.push_tuple(state, data, 0))
                .map_err(ValueError::from),
            false => types.push(state, &mut rest),
        };
        match done {
            Ok(()) => {
                lua_pushnumber(state, (all.len() - rest.len() + 1) as f64);
                2
            }
            Err(ValueError(text)) => raise_text(state, text),
        }
    }
}
