//! `box.resp.call`: commands of Redis, and their replies as values of Lua.

use super::{Native, raise_failed, raise_text};
use crate::context::Context;
use crate::stack::{State, bytes, push_bytes};
use ladon_kernel::program::Failed;
use mlua::ffi::*;
use std::ffi::c_int;

pub(super) const NATIVES: &[Native] = &[(c"command", command)];

/// Levels of arrays in a reply.
const DEPTH_MAX: u32 = 64;
/// Arguments of a command: Lua's stack ends before Redis' own limit.
const ARGUMENTS_MAX: c_int = 7_000;

/// `command(user's name, name, ...) -> value`: an error in the reply is raised.
unsafe extern "C-unwind" fn command(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls; the arguments stay on the stack, and texts there.
    unsafe {
        let context = Context::of(state);
        let count = lua_gettop(state);
        if !(2..=ARGUMENTS_MAX).contains(&count) {
            return raise_text(state, "box.resp.call takes a command and its arguments".into());
        }
        super::before_switch(state);
        let mut reply = context.take_buffer();
        let asked = ask(state, context, count, &mut reply);
        let pushed = asked.and_then(|()| {
            let mut rest = reply.as_slice();
            push_reply(state, &mut rest, 0).map_err(|Refused(text)| of_redis(text))
        });
        context.give_buffer(reply);
        match pushed {
            Ok(()) => 1,
            Err(failed) => raise_failed(state, failed),
        }
    }
}

unsafe fn ask(
    state: State,
    context: &Context,
    count: c_int,
    reply: &mut Vec<u8>,
) -> Result<(), Failed> {
    let mut args = Vec::with_capacity(count as usize);
    for at in 1..=count {
        // SAFETY: As promised by the caller. A number becomes a text on the stack.
        match unsafe { bytes(state, at) } {
            Some(text) => args.push(text),
            None => {
                let why = "box.resp.call: arguments must be strings or numbers";
                return Err(Failed::new(0, why, "LuajitError"));
            }
        }
    }
    let name = std::str::from_utf8(args[0]).unwrap_or_default();
    context.command(name, &args[1..], reply)
}

/// An error of Redis: `ER_PROC_LUA`, whose text begins with Redis' code.
fn of_redis(text: String) -> Failed {
    Failed::new(32, text, "RedisError")
}

/// What a reply has in place of a value.
struct Refused(String);

fn damaged() -> Refused {
    Refused("ERR the reply is damaged".to_owned())
}

/// A line, without its end.
fn line<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Refused> {
    let end = rest.windows(2).position(|two| two == b"\r\n").ok_or_else(damaged)?;
    let (line, after) = (&rest[..end], &rest[end + 2..]);
    *rest = after;
    Ok(line)
}

fn number(text: &[u8]) -> Result<i64, Refused> {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or_else(damaged)
}

/// So many bytes, which an end of a line follows.
fn text<'a>(rest: &mut &'a [u8], length: i64) -> Result<&'a [u8], Refused> {
    let length = usize::try_from(length).map_err(|_| damaged())?;
    let (text, after) = rest.split_at_checked(length).ok_or_else(damaged)?;
    *rest = after.get(2..).ok_or_else(damaged)?;
    Ok(text)
}

/// Pushes the value of a reply (RESP3, <https://redis.io/docs/latest/develop/reference/protocol-spec/>):
/// nulls are nil, in a table `box.NULL`; numbers beyond 2^53 and verbatim texts are texts.
unsafe fn push_reply(state: State, rest: &mut &[u8], depth: u32) -> Result<(), Refused> {
    let whole = line(rest)?;
    let (kind, head) = whole.split_first().ok_or_else(damaged)?;
    // SAFETY: As promised by the caller; room is made on the stack.
    unsafe {
        if depth > DEPTH_MAX || lua_checkstack(state, 4) == 0 {
            return Err(Refused("ERR the reply is nested too deep".to_owned()));
        }
        match kind {
            b'-' => return Err(Refused(String::from_utf8_lossy(head).into_owned())),
            b'!' => {
                let why = text(rest, number(head)?)?;
                return Err(Refused(String::from_utf8_lossy(why).into_owned()));
            }
            b'+' | b'(' => push_bytes(state, head),
            b':' => push_integer(state, number(head)?),
            b'_' => push_null(state, depth),
            b'#' => lua_pushboolean(state, c_int::from(head == b"t")),
            b',' => {
                let text = std::str::from_utf8(head).map_err(|_| damaged())?;
                lua_pushnumber(state, text.parse().map_err(|_| damaged())?);
            }
            b'$' | b'*' if head == b"-1" => push_null(state, depth),
            b'$' => push_bytes(state, text(rest, number(head)?)?),
            b'=' => push_bytes(state, text(rest, number(head)?)?.get(4..).unwrap_or_default()),
            b'*' | b'~' | b'>' => push_list(state, rest, number(head)?, depth)?,
            b'%' => push_map(state, rest, number(head)?, depth)?,
            _ => return Err(damaged()),
        }
    }
    Ok(())
}

unsafe fn push_null(state: State, depth: u32) {
    // SAFETY: As promised by the caller.
    unsafe {
        if depth == 0 {
            lua_pushnil(state);
        } else {
            lua_getfield(state, LUA_REGISTRYINDEX, c"ladon.null".as_ptr());
        }
    }
}

unsafe fn push_integer(state: State, number: i64) {
    const EXACT_MAX: u64 = 1 << 53;
    // SAFETY: As promised by the caller.
    unsafe {
        if number.unsigned_abs() <= EXACT_MAX {
            lua_pushnumber(state, number as f64);
        } else {
            push_bytes(state, number.to_string().as_bytes());
        }
    }
}

unsafe fn push_list(state: State, rest: &mut &[u8], count: i64, depth: u32) -> Result<(), Refused> {
    // SAFETY: As promised by the caller.
    unsafe {
        lua_createtable(state, count.clamp(0, 1 << 20) as c_int, 0);
        for at in 1..=count {
            push_reply(state, rest, depth + 1)?;
            lua_rawseti_(state, -2, at as c_int);
        }
    }
    Ok(())
}

unsafe fn push_map(state: State, rest: &mut &[u8], count: i64, depth: u32) -> Result<(), Refused> {
    // SAFETY: As promised by the caller. No key is nil, as deep as it is.
    unsafe {
        lua_createtable(state, 0, count.clamp(0, 1 << 20) as c_int);
        for _ in 0..count {
            push_reply(state, rest, depth + 1)?;
            push_reply(state, rest, depth + 1)?;
            lua_rawset(state, -3);
        }
    }
    Ok(())
}
