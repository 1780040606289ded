//! What `http.lua` is built on: the head of a request of HTTP/1.

use super::{Native, raise_text};
use crate::stack::{State, bytes, push_bytes};
use httparse::{EMPTY_HEADER, Header, Request, Response, Status};
use mlua::ffi::*;
use std::ffi::c_int;

pub(super) const NATIVES: &[Native] =
    &[(c"http_head", http_head), (c"http_reply_head", http_reply_head)];

const HEADERS_MAX: usize = 96;

/// `http_head(text) -> length, method, target, minor version, headers`: headers by their names in
/// lower case; of several with one name, the values with commas between them. Nothing if the head is
/// not whole yet; an error if it is none (RFC 9112), or has a name twice that may be there once.
unsafe extern "C-unwind" fn http_head(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls; nothing here owns memory but a text that is raised.
    unsafe {
        let text = bytes(state, 1).unwrap_or_default();
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut request = Request::new(&mut headers);
        let length = match request.parse(text) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) => return 0,
            Err(error) => return raise_text(state, error.to_string()),
        };
        lua_pushnumber(state, length as f64);
        push_bytes(state, request.method.unwrap_or_default().as_bytes());
        push_bytes(state, request.path.unwrap_or_default().as_bytes());
        lua_pushnumber(state, f64::from(request.version.unwrap_or(1)));
        match push_headers(state, request.headers, SINGLE) {
            Ok(()) => 5,
            Err(text) => raise_text(state, text.to_owned()),
        }
    }
}

/// `http_reply_head(text) -> length, status, reason, minor version, headers, cookies`: as
/// [`http_head`], but of a reply; cookies are a list.
unsafe extern "C-unwind" fn http_reply_head(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls; nothing here owns memory but a text that is raised.
    unsafe {
        let text = bytes(state, 1).unwrap_or_default();
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut reply = Response::new(&mut headers);
        let length = match reply.parse(text) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) => return 0,
            Err(error) => return raise_text(state, error.to_string()),
        };
        lua_pushnumber(state, length as f64);
        lua_pushnumber(state, f64::from(reply.code.unwrap_or(0)));
        push_bytes(state, reply.reason.unwrap_or_default().as_bytes());
        lua_pushnumber(state, f64::from(reply.version.unwrap_or(1)));
        if let Err(text) = push_headers(state, reply.headers, SINGLE_OF_REPLY) {
            return raise_text(state, text.to_owned());
        }
        lua_createtable(state, 0, 0);
        let mut place = 0;
        for header in reply.headers.iter() {
            if header.name.eq_ignore_ascii_case("set-cookie") {
                place += 1;
                push_bytes(state, header.value);
                lua_rawseti_(state, -2, place);
            }
        }
        6
    }
}

/// Headers that are there once at most.
const SINGLE: &[&[u8]] = &[b"content-length", b"transfer-encoding", b"host"];
const SINGLE_OF_REPLY: &[&[u8]] = &[b"content-length", b"transfer-encoding"];

/// Pushes a table of the headers by their names in lower case. Fails, with the table at the top, if
/// one of `single` is there twice.
unsafe fn push_headers(
    state: State,
    headers: &[Header<'_>],
    single: &[&[u8]],
) -> Result<(), &'static str> {
    // SAFETY: As promised by the caller.
    unsafe {
        lua_createtable(state, 0, headers.len() as c_int);
        for header in headers {
            if header.name.len() > NAME_BYTES_MAX {
                return Err("a header's name is too long");
            }
            let mut name = [0u8; NAME_BYTES_MAX];
            let name = &mut name[..header.name.len()];
            name.copy_from_slice(header.name.as_bytes());
            name.make_ascii_lowercase();
            push_bytes(state, name);
            lua_pushvalue(state, -1);
            lua_rawget(state, -3);
            if lua_type(state, -1) == LUA_TNIL {
                lua_settop(state, -2);
                push_bytes(state, header.value);
            } else if single.contains(&&*name) {
                return Err("a header is there twice");
            } else {
                push_bytes(state, b", ");
                push_bytes(state, header.value);
                lua_concat(state, 3);
            }
            lua_rawset(state, -3);
        }
        Ok(())
    }
}

const NAME_BYTES_MAX: usize = 256;
