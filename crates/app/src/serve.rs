//! A client's request: the function is called in a fiber of its own, and what it returns or raises
//! is the answer.

use crate::context::Context;
use crate::stack::{State, bytes, push_bytes};
use crate::values::{Types, ValueError};
use ladon_kernel::program::{Answer, Failed, Kind, Request, Returned, User};
use ladon_msgpack::{read_array, take};
use mlua::ffi::*;
use std::ffi::c_int;

/// Registry's numbers of what a request begins with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    /// [`enter`],
    enter: c_int,
    /// and `ladon.call`.
    call: c_int,
}

impl Entry {
    /// Of a state that has run its own files.
    ///
    /// # Safety
    /// As for [`crate::stack`].
    pub(crate) unsafe fn of(state: State) -> Entry {
        // SAFETY: As promised.
        unsafe {
            lua_pushcclosure(state, enter, 0);
            let enter = luaL_ref(state, LUA_REGISTRYINDEX);
            lua_getfield(state, LUA_REGISTRYINDEX, c"ladon.call".as_ptr());
            Entry { enter, call: luaL_ref(state, LUA_REGISTRYINDEX) }
        }
    }
}

/// Runs a request on a Lua thread of its own, in the running fiber.
///
/// # Safety
/// As for [`crate::stack`]; `main` is the context's state, and nothing else runs on `thread`.
pub(crate) unsafe fn serve(
    context: &Context,
    thread: State,
    entry: Entry,
    request: &Request,
) -> Answer {
    // What is called for sessions is the program's own.
    let is_own = !request.kind.may_wait();
    context.change_seat(|seat| seat.user = if is_own { User::ADMIN } else { request.user });
    // SAFETY: As promised.
    let mut result = unsafe { call(context, thread, entry, request) };
    if context.seat().in_transaction {
        context.leave_seat();
        result = result.and(Err(Failed::transaction_left_open()));
    }
    Answer { result, depends: context.seat().depends }
}

unsafe fn call(
    context: &Context,
    thread: State,
    entry: Entry,
    request: &Request,
) -> Result<Returned, Failed> {
    let types = context.types.get();
    let version = context.data.borrow().as_ref().map(|data| data.schema_version());
    let fiber = context.scheduler.current();
    // SAFETY: As promised by the caller. What may raise an error runs in protected calls.
    unsafe {
        let mut frame = Frame { types, call: entry.call, fiber, version, request, failed: None };
        lua_rawgeti_(thread, LUA_REGISTRYINDEX, entry.enter);
        lua_pushlightuserdata(thread, (&raw mut frame).cast());
        let status = lua_pcall(thread, 1, LUA_MULTRET, 0);
        if let Some(ValueError(text)) = frame.failed.take() {
            lua_settop(thread, 0);
            return Err(of_lua(text));
        }
        if status != LUA_OK {
            let failed = failed_of(thread);
            lua_settop(thread, 0);
            return Err(failed);
        }
        let mut returned = Returned { values: Vec::new(), count: 0 };
        let encoded = encode(&types, thread, request.kind, &mut returned);
        lua_settop(thread, 0);
        encoded.map_err(|ValueError(text)| of_lua(text))?;
        Ok(returned)
    }
}

/// What [`enter`] gets.
struct Frame<'r> {
    types: Types,
    call: c_int,
    fiber: u64,
    version: Option<u64>,
    request: &'r Request,
    failed: Option<ValueError>,
}

/// Calls `ladon.call(fiber, version or nil, kind or nil, name, arguments...)`; without a kind it is a
/// call. Errors of the arguments are left in the frame.
unsafe extern "C-unwind" fn enter(state: State) -> c_int {
    // SAFETY: The frame is on the stack of who has called this; nothing here owns memory.
    unsafe {
        let frame = lua_touserdata(state, 1).cast::<Frame<'_>>();
        lua_settop(state, 0);
        let request = (*frame).request;
        lua_rawgeti_(state, LUA_REGISTRYINDEX, (*frame).call);
        lua_pushnumber(state, (*frame).fiber as f64);
        match (*frame).version {
            Some(version) => lua_pushnumber(state, version as f64),
            None => lua_pushnil(state),
        }
        let kind: &[u8] = match request.kind {
            Kind::Call | Kind::Call16 => b"",
            Kind::Eval => b"eval",
            Kind::Statement => b"statement",
            Kind::Connect => b"connect",
            Kind::Auth => b"auth",
            Kind::Disconnect => b"disconnect",
            Kind::Denied => b"denied",
        };
        match kind {
            b"" => lua_pushnil(state),
            kind => push_bytes(state, kind),
        }
        push_bytes(state, &request.name);
        let mut input = request.arguments.as_slice();
        let count = if input.is_empty() { 0 } else { read_array(&mut input).unwrap_or(0) };
        for _ in 0..count {
            if lua_checkstack(state, 8) == 0 {
                (*frame).failed = Some(ValueError("too many arguments".to_owned()));
                return 0;
            }
            let types = &(*frame).types;
            if let Err(error) = push_argument(types, state, request.kind, &mut input) {
                (*frame).failed = Some(error);
                return 0;
            }
        }
        lua_call(state, count as c_int + 4, LUA_MULTRET);
        lua_gettop(state)
    }
}

/// Pushes an argument; what a statement has stays as it is, as a tuple.
unsafe fn push_argument(
    types: &Types,
    state: State,
    kind: Kind,
    input: &mut &[u8],
) -> Result<(), ValueError> {
    // SAFETY: As promised by the caller.
    unsafe {
        if kind == Kind::Statement && ladon_iproto::request::is_array(input) {
            types.push_tuple(state, take(input)?, 0);
            return Ok(());
        }
        types.push(state, input)
    }
}

/// Appends what the function has returned.
pub(crate) unsafe fn encode(
    types: &Types,
    state: State,
    kind: Kind,
    returned: &mut Returned,
) -> Result<(), ValueError> {
    // SAFETY: As promised by the caller.
    unsafe {
        let count = lua_gettop(state);
        let out = &mut returned.values;
        if kind == Kind::Call16 && count == 1 && lua_type(state, 1) == LUA_TTABLE {
            returned.count = encode_tuples(types, state, out)?;
            return Ok(());
        }
        for at in 1..=count {
            match kind {
                Kind::Call16 => encode_tuple(types, state, at, out)?,
                _ => types.encode(state, at, out)?,
            }
            returned.count += 1;
        }
    }
    Ok(())
}

/// Appends a value as a tuple: what is no array is its only field.
unsafe fn encode_tuple(
    types: &Types,
    state: State,
    at: c_int,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let start = out.len();
    // SAFETY: As promised by the caller.
    unsafe { types.encode(state, at, out)? };
    if !matches!(out.get(start), Some(0x90..=0x9f | 0xdc | 0xdd)) {
        out.insert(start, 0x91);
    }
    Ok(())
}

/// A table of tables or tuples is so many tuples; another one is one.
unsafe fn encode_tuples(types: &Types, state: State, out: &mut Vec<u8>) -> Result<u32, ValueError> {
    // SAFETY: As promised by the caller.
    unsafe {
        let length = lua_objlen(state, 1) as u32;
        lua_rawgeti_(state, 1, 1);
        let has_rows = lua_type(state, -1) == LUA_TTABLE || types.tuple(state, -1).is_some();
        lua_settop(state, 1);
        if !has_rows {
            encode_tuple(types, state, 1, out)?;
            return Ok(1);
        }
        for at in 1..=length {
            lua_rawgeti_(state, 1, at as c_int);
            encode_tuple(types, state, 2, out)?;
            lua_settop(state, 1);
        }
        Ok(length)
    }
}

/// `ER_PROC_LUA`.
pub(crate) fn of_lua(message: String) -> Failed {
    let place = place_of(&message);
    Failed { place, ..Failed::new(32, message, "LuajitError") }
}

/// What is in front of a message of Lua: `FILE:LINE: ...`.
fn place_of(message: &str) -> Option<(String, u32)> {
    let (place, _) = message.split_once(": ")?;
    let (file, line) = place.rsplit_once(':')?;
    Some((file.to_owned(), line.parse().ok()?))
}

/// What a client is told that an error came of, at most.
const CAUSES_MAX: usize = 15;

/// The error at the top of the stack.
pub(crate) unsafe fn failed_of(state: State) -> Failed {
    // SAFETY: As promised by the caller; what may raise an error is called protected.
    unsafe {
        if lua_type(state, -1) == LUA_TSTRING {
            return of_lua(String::from_utf8_lossy(bytes(state, -1).unwrap_or_default()).into());
        }
        let failed = parts_of(state);
        let mut causes = Vec::new();
        // What it came of is on top of the stack.
        while causes.len() < CAUSES_MAX && lua_type(state, -1) != LUA_TNIL {
            causes.push(parts_of(state));
        }
        let behind = |cause, failed| Some(Box::new(Failed { cause, ..failed }));
        Failed { cause: causes.into_iter().rev().fold(None, behind), ..failed }
    }
}

/// The error at the top of the stack, in whose place is then what it came of, or nil.
unsafe fn parts_of(state: State) -> Failed {
    // SAFETY: As promised by the caller; what may raise an error is called protected.
    unsafe {
        lua_getfield(state, LUA_REGISTRYINDEX, c"ladon.parts".as_ptr());
        lua_insert(state, -2);
        if lua_pcall(state, 1, 7, 0) != LUA_OK {
            lua_pop(state, 1);
            lua_pushnil(state);
            return of_lua("an error that cannot be shown".to_owned());
        }
        let text =
            |index| String::from_utf8_lossy(bytes(state, index).unwrap_or_default()).into_owned();
        let mut failed = Failed::new(lua_tonumber(state, -7) as u32, text(-6), &text(-5));
        failed.place = match bytes(state, -4) {
            Some(file) => {
                Some((String::from_utf8_lossy(file).into(), lua_tonumber(state, -3) as u32))
            }
            None => place_of(&failed.message),
        };
        failed.fields = bytes(state, -2).map(<[u8]>::to_vec);
        // What it came of takes the place of the seven.
        lua_replace(state, -7);
        lua_pop(state, 5);
        failed
    }
}
