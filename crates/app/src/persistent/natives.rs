//! What `space.lua` and `persistent.lua` are built on here: the natives of a program that are about
//! tuples of spaces, asked of [`Reach`], with the same arguments.

use super::{Bench, raise_leave};
use crate::context::Context;
use crate::natives::{encode_key, not_array, raise_failed, raise_text, uint};
use crate::stack::{State, bytes};
use crate::values::{Types, ValueError};
use ladon_kernel::persistent::{Leave, Reach, Stopped};
use ladon_kernel::program::Failed;
use ladon_msgpack::take;
use ladon_space::{IteratorType, Selected, Statement};
use mlua::ffi::*;
use std::ffi::{CStr, c_int};

type Native = (&'static CStr, unsafe extern "C-unwind" fn(State) -> c_int);

const NATIVES: &[Native] = &[
    (c"select", select),
    (c"definitions", definitions),
    (c"get", get),
    (c"put", put),
    (c"update", update),
    (c"delete", delete),
    (c"upsert", upsert),
    (c"count", count),
    (c"len", len),
    (c"extreme", extreme),
    (c"begin", begin),
    (c"commit", commit),
    (c"rollback", rollback),
    (c"in_transaction", in_transaction),
    (c"savepoint", savepoint),
    (c"go_back", go_back),
    (c"schema_version", schema_version),
    (c"leave", leave),
    (c"look", look),
];

/// Lua counts fields from 1.
const INDEX_BASE: u32 = 1;

/// Puts the natives into the table at the top.
///
/// # Safety
/// As for [`crate::stack`]; bench and context outlive the state.
pub(super) unsafe fn push_all(state: State, bench: *const Bench, context: *const Context) {
    // SAFETY: As promised.
    unsafe {
        for (name, function) in NATIVES {
            lua_pushlightuserdata(state, bench.cast_mut().cast());
            lua_pushlightuserdata(state, context.cast_mut().cast());
            lua_pushcclosure(state, *function, 2);
            lua_setfield(state, -2, name.as_ptr());
        }
    }
}

/// What a native works on.
struct Here<'a> {
    bench: &'a Bench,
    context: &'a Context,
    types: Types,
}

/// Why a request has no values.
enum Refused {
    Stopped(Stopped),
    Value(ValueError),
}

impl From<Stopped> for Refused {
    fn from(stopped: Stopped) -> Refused {
        Refused::Stopped(stopped)
    }
}

impl From<ValueError> for Refused {
    fn from(error: ValueError) -> Refused {
        Refused::Value(error)
    }
}

impl From<ladon_msgpack::Error> for Refused {
    fn from(error: ladon_msgpack::Error) -> Refused {
        Refused::Value(error.into())
    }
}

impl From<ladon_space::BoxError> for Refused {
    fn from(error: ladon_space::BoxError) -> Refused {
        Refused::Stopped(error.into())
    }
}

impl<'a> Here<'a> {
    /// # Safety
    /// The function's upvalues are those of [`push_all`].
    unsafe fn of(state: State) -> Here<'a> {
        // SAFETY: As promised.
        unsafe {
            let bench = &*lua_touserdata(state, lua_upvalueindex(1)).cast::<Bench>();
            let context = &*lua_touserdata(state, lua_upvalueindex(2)).cast::<Context>();
            Here { bench, context, types: context.types.get() }
        }
    }

    fn ask_reach<T>(
        &self,
        ask: impl FnOnce(&mut dyn Reach) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let none = || Err(Stopped::Leaves(Leave::Asks("data".to_owned())).into());
        self.bench.ask(ask).unwrap_or_else(none)
    }

    /// Asks with values of Lua: that at the first index is a key if it is negative, and 0 is none.
    /// Appended are tuples, in the buffer that follows.
    unsafe fn ask<T>(
        &self,
        state: State,
        indices: [c_int; 2],
        run: impl FnOnce(&mut dyn Reach, &[u8], &[u8], &mut Vec<u8>) -> Result<T, Refused>,
    ) -> Result<(T, Vec<u8>), Refused> {
        let mut buffer = self.context.take_buffer();
        let mut out = self.context.take_buffer();
        let done = (|| {
            let mut end = 0;
            for (at, index) in indices.into_iter().enumerate() {
                // SAFETY: As promised by the caller.
                unsafe {
                    match index {
                        0 => {}
                        1.. => self.types.encode(state, index, &mut buffer)?,
                        _ => encode_key(&self.types, state, -index, &mut buffer)?,
                    }
                }
                if at == 0 {
                    end = buffer.len();
                }
            }
            self.ask_reach(|reach| run(reach, &buffer[..end], &buffer[end..], &mut out))
        })();
        self.context.give_buffer(buffer);
        match done {
            Ok(done) => Ok((done, out)),
            Err(refused) => {
                self.context.give_buffer(out);
                Err(refused)
            }
        }
    }

    /// Raises what a request was refused for.
    ///
    /// # Safety
    /// As for [`crate::stack`]; the caller owns nothing else that has to be dropped.
    unsafe fn raise(&self, state: State, refused: Refused) -> c_int {
        // SAFETY: As promised.
        unsafe {
            match refused {
                Refused::Value(ValueError(text)) => raise_text(state, text),
                Refused::Stopped(Stopped::Error(error)) => {
                    let class = match error.code.0 {
                        ACCESS_DENIED => "AccessDeniedError",
                        _ => "ClientError",
                    };
                    raise_failed(state, Failed::new(error.code.0, error.message, class))
                }
                Refused::Stopped(Stopped::Leaves(why)) => {
                    self.bench.leave(why);
                    raise_leave(state)
                }
            }
        }
    }

    /// Pushes a tuple of a space, if there is one.
    unsafe fn show_tuple(
        &self,
        state: State,
        space: u32,
        asked: Result<(bool, Vec<u8>), Refused>,
    ) -> c_int {
        // SAFETY: As promised by the caller. An error of memory leaves the buffer behind.
        unsafe {
            match asked {
                Ok((is_there, out)) => {
                    if is_there {
                        self.types.push_tuple(state, &out, space);
                    }
                    self.context.give_buffer(out);
                    c_int::from(is_there)
                }
                Err(refused) => self.raise(state, refused),
            }
        }
    }

    unsafe fn show_number(&self, state: State, asked: Result<(u64, Vec<u8>), Refused>) -> c_int {
        // SAFETY: As promised by the caller.
        unsafe {
            match asked {
                Ok((number, out)) => {
                    self.context.give_buffer(out);
                    lua_pushnumber(state, number as f64);
                    1
                }
                Err(refused) => self.raise(state, refused),
            }
        }
    }
}

/// `ER_ACCESS_DENIED`.
const ACCESS_DENIED: u32 = 42;

fn selected(
    index: u32,
    iterator: u32,
    key: &[u8],
    (offset, limit): (u32, u32),
) -> Result<Selected, Refused> {
    let iterator = IteratorType::of_number(iterator.into())?;
    let (offset, limit) = (offset.into(), limit.into());
    Ok(Selected { index, iterator, key: key.into(), offset, limit, after: None })
}

/// `select(space, index, iterator, offset, limit, key, after) -> table of tuples`; `after` is a
/// tuple or nil.
unsafe extern "C-unwind" fn select(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let after = if lua_type(state, 7) > LUA_TNIL { 7 } else { 0 };
        select_by(state, after, |reach, space, selected, after, out| {
            let after = (!after.is_empty()).then_some(after);
            reach.select(space, selected, after, out)
        })
    }
}

/// `definitions(space, index, iterator, offset, limit, key) -> table of tuples`: of a space of the
/// system, whatever the user may see.
unsafe extern "C-unwind" fn definitions(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        select_by(state, 0, |reach, space, selected, _, out| reach.look(space, &selected, out))
    }
}

/// As `select`, asked in this way; `after` is an index on the stack, or 0.
unsafe fn select_by(
    state: State,
    after: c_int,
    ask: impl FnOnce(&mut dyn Reach, u32, Selected, &[u8], &mut Vec<u8>) -> Result<u32, Stopped>,
) -> c_int {
    // SAFETY: As promised by the callers.
    unsafe {
        let here = Here::of(state);
        let (space, index, iterator) = (uint(state, 1), uint(state, 2), uint(state, 3));
        let range = (uint(state, 4), uint(state, 5));
        let asked = here.ask(state, [6, after], |reach, key, after, out| {
            Ok(ask(reach, space, selected(index, iterator, key, range)?, after, out)?)
        });
        let (count, out) = match asked {
            Ok(asked) => asked,
            Err(refused) => return here.raise(state, refused),
        };
        // An error of memory leaves the buffer behind.
        lua_createtable(state, count.min(1 << 10) as c_int, 0);
        let mut rest = out.as_slice();
        for at in 1..=count {
            let Ok(tuple) = take(&mut rest) else { break };
            here.types.push_tuple(state, tuple, space);
            lua_rawseti_(state, -2, at as c_int);
        }
        here.context.give_buffer(out);
        1
    }
}

/// `get(space, index, key) -> tuple or nothing`.
unsafe extern "C-unwind" fn get(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let here = Here::of(state);
        let (space, index) = (uint(state, 1), uint(state, 2));
        let asked =
            here.ask(state, [-3, 0], |reach, key, _, out| Ok(reach.get(space, index, key, out)?));
        here.show_tuple(state, space, asked)
    }
}

/// `put(space, tuple, replaces) -> tuple`.
unsafe extern "C-unwind" fn put(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let here = Here::of(state);
        if lua_type(state, 2) != LUA_TTABLE && here.types.tuple(state, 2).is_none() {
            return raise_failed(state, not_array());
        }
        let (space, replaces) = (uint(state, 1), lua_toboolean(state, 3) != 0);
        let asked = here.ask(state, [2, 0], |reach, tuple, _, out| {
            let statement =
                if replaces { Statement::Replace(tuple) } else { Statement::Insert(tuple) };
            Ok(reach.write(space, statement, out)?)
        });
        here.show_tuple(state, space, asked)
    }
}

/// `update(space, index, key, operations) -> tuple or nothing`.
unsafe extern "C-unwind" fn update(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let here = Here::of(state);
        let (space, index) = (uint(state, 1), uint(state, 2));
        let asked = here.ask(state, [-3, 4], |reach, key, operations, out| {
            let update = Statement::Update { index, key, operations, index_base: INDEX_BASE };
            Ok(reach.write(space, update, out)?)
        });
        here.show_tuple(state, space, asked)
    }
}

/// `delete(space, index, key) -> tuple or nothing`.
unsafe extern "C-unwind" fn delete(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let here = Here::of(state);
        let (space, index) = (uint(state, 1), uint(state, 2));
        let asked = here.ask(state, [-3, 0], |reach, key, _, out| {
            Ok(reach.write(space, Statement::Delete { index, key }, out)?)
        });
        here.show_tuple(state, space, asked)
    }
}

/// `upsert(space, tuple, operations)`.
unsafe extern "C-unwind" fn upsert(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let here = Here::of(state);
        let space = uint(state, 1);
        let asked = here.ask(state, [2, 3], |reach, tuple, operations, out| {
            let upsert = Statement::Upsert { tuple, operations, index_base: INDEX_BASE };
            Ok(reach.write(space, upsert, out)?)
        });
        here.show_tuple(state, space, asked)
    }
}

/// `count(space, index, iterator, key) -> number`.
unsafe extern "C-unwind" fn count(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let here = Here::of(state);
        let (space, index, iterator) = (uint(state, 1), uint(state, 2), uint(state, 3));
        let asked = here.ask(state, [4, 0], |reach, key, _, _| {
            Ok(reach.count(space, &selected(index, iterator, key, (0, u32::MAX))?)?)
        });
        here.show_number(state, asked)
    }
}

/// `len(space, index) -> number`.
unsafe extern "C-unwind" fn len(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let here = Here::of(state);
        let (space, index) = (uint(state, 1), uint(state, 2));
        let asked = here.ask(state, [0, 0], |reach, _, _, _| Ok(reach.len(space, index)?));
        here.show_number(state, asked)
    }
}

/// `extreme(space, index, is last, key) -> tuple or nothing`.
unsafe extern "C-unwind" fn extreme(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let here = Here::of(state);
        let (space, index) = (uint(state, 1), (uint(state, 2), lua_toboolean(state, 3) != 0));
        let asked = here
            .ask(state, [4, 0], |reach, key, _, out| Ok(reach.extreme(space, index, key, out)?));
        here.show_tuple(state, space, asked)
    }
}

/// Does something that leaves nothing to show but a number.
unsafe fn about_transaction(
    state: State,
    run: impl FnOnce(&mut dyn Reach) -> Result<u64, Refused>,
) -> Option<u64> {
    // SAFETY: As promised by the callers.
    unsafe {
        let here = Here::of(state);
        match here.ask_reach(run) {
            Ok(number) => Some(number),
            Err(refused) => {
                here.raise(state, refused);
                None
            }
        }
    }
}

/// `begin()`.
unsafe extern "C-unwind" fn begin(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe { about_transaction(state, |reach| Ok((reach.begin(), 0).1)) };
    0
}

/// `commit()`.
unsafe extern "C-unwind" fn commit(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe { about_transaction(state, |reach| Ok((reach.commit(), 0).1)) };
    0
}

/// `rollback()`.
unsafe extern "C-unwind" fn rollback(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe { about_transaction(state, |reach| Ok(reach.roll_back().map(|()| 0)?)) };
    0
}

/// `in_transaction() -> boolean`.
unsafe extern "C-unwind" fn in_transaction(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let is_in = about_transaction(state, |reach| Ok(reach.is_in_transaction().into()));
        lua_pushboolean(state, c_int::from(is_in == Some(1)));
    }
    1
}

/// `savepoint() -> number`.
unsafe extern "C-unwind" fn savepoint(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let number = about_transaction(state, |reach| Ok(reach.savepoint()));
        lua_pushnumber(state, number.unwrap_or(0) as f64);
    }
    1
}

/// `go_back(savepoint) -> boolean`: whether there is such a one.
unsafe extern "C-unwind" fn go_back(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let to = lua_tonumber(state, 1) as u64;
        let has_gone = about_transaction(state, |reach| Ok(reach.go_back(to)?.into()));
        lua_pushboolean(state, c_int::from(has_gone == Some(1)));
    }
    1
}

/// `schema_version() -> number`.
unsafe extern "C-unwind" fn schema_version(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let number = about_transaction(state, |reach| Ok(reach.version().1));
        lua_pushnumber(state, number.unwrap_or(0) as f64);
    }
    1
}

/// `leave(what or nil)`: the function asks for this, or takes too long.
unsafe extern "C-unwind" fn leave(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let here = Here::of(state);
        here.bench.leave(match bytes(state, 1) {
            Some(what) => Leave::Asks(String::from_utf8_lossy(what).into_owned()),
            None => Leave::Late,
        });
        raise_leave(state)
    }
}

/// `look()`: leaves if there is no time left.
unsafe extern "C-unwind" fn look(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let is_late = about_transaction(state, |reach| Ok(reach.is_late().into()));
        if is_late == Some(1) {
            Here::of(state).bench.leave(Leave::Late);
            return raise_leave(state);
        }
    }
    0
}
