//! What `tls.lua` is built on: connections with TLS, whose bytes go by sockets of Lua.

use super::{Native, uint};
use crate::context::Context;
use crate::stack::{State, bytes, push_bytes};
use ladon_tls::{Client, ClientOptions, Trust};
use mlua::ffi::*;
use rustls::ClientConnection;
use std::collections::HashMap;
use std::ffi::c_int;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::PathBuf;

pub(super) const NATIVES: &[Native] = &[
    (c"tls_new", new),
    (c"tls_output", output),
    (c"tls_input", input),
    (c"tls_write", write),
    (c"tls_is_handshaking", is_handshaking),
    (c"tls_close", close),
];

/// Connections that a program may have.
const CONNECTIONS_MAX: usize = 10_000;

/// Connections by number.
#[derive(Default)]
pub(crate) struct TlsConnections {
    last: u32,
    open: HashMap<u32, ClientConnection>,
    /// What connections that name no files begin with: the system's authorities take long to read.
    usual: Option<Client>,
}

impl TlsConnections {
    fn begin(&mut self, host: &str, options: &ClientOptions) -> Result<u32, String> {
        if self.open.len() >= CONNECTIONS_MAX {
            return Err(format!("a program may have {CONNECTIONS_MAX} connections with TLS"));
        }
        let text = |error: &dyn std::error::Error| error.to_string();
        let names_files = options.cacert.is_some()
            || options.cacertdir.is_some()
            || options.cert.is_some()
            || !matches!(options.trust, Trust::Name);
        let client = match &self.usual {
            Some(usual) if !names_files => usual.clone(),
            _ => options.client().map_err(|error| text(&error))?,
        };
        let mut connection = client.begin(host).map_err(|error| text(&error))?;
        // The caller sends what it has written before it writes on.
        connection.set_buffer_limit(None);
        if !names_files {
            self.usual = Some(client);
        }
        self.last = self.last.wrapping_add(1);
        self.open.insert(self.last, connection);
        Ok(self.last)
    }
}

unsafe fn path(state: State, index: c_int) -> Option<PathBuf> {
    // SAFETY: As promised by the callers.
    let text = unsafe { bytes(state, index) }?;
    Some(PathBuf::from(String::from_utf8_lossy(text).into_owned()))
}

/// `tls_new(host, ca file, ca path, certificate, key, trust) -> number`, or nil and why not. Trust is
/// `name`, `authority` or `anybody`.
unsafe extern "C-unwind" fn new(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls; nothing is owned when texts are pushed.
    unsafe {
        let begun = {
            let host = String::from_utf8_lossy(bytes(state, 1).unwrap_or_default()).into_owned();
            let trust = match bytes(state, 6) {
                Some(b"anybody") => Trust::Anybody,
                Some(b"authority") => Trust::Authority,
                _ => Trust::Name,
            };
            let cert = path(state, 4);
            // A key may be in the same file.
            let key = path(state, 5).or_else(|| cert.clone());
            let options = ClientOptions {
                cacert: path(state, 2),
                cacertdir: path(state, 3),
                cert: cert.zip(key),
                trust,
                ..ClientOptions::default()
            };
            Context::of(state).tls.borrow_mut().begin(&host, &options)
        };
        match begun {
            Ok(number) => {
                lua_pushnumber(state, f64::from(number));
                1
            }
            Err(why) => refuse(state, why),
        }
    }
}

/// Pushes nil and a text.
unsafe fn refuse(state: State, why: String) -> c_int {
    // SAFETY: As promised by the callers. An error of memory leaves the text behind.
    unsafe {
        lua_pushnil(state);
        push_bytes(state, why.as_bytes());
        drop(why);
        2
    }
}

/// Does something with the connection whose number is the first argument.
unsafe fn with<T>(state: State, with: impl FnOnce(&mut ClientConnection) -> T) -> Option<T> {
    // SAFETY: As promised by the callers.
    let context = unsafe { Context::of(state) };
    // SAFETY: As above.
    let number = unsafe { uint(state, 1) };
    context.tls.borrow_mut().open.get_mut(&number).map(with)
}

/// `tls_output(number) -> text` that is to be sent; empty if there is none.
unsafe extern "C-unwind" fn output(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let out = with(state, |connection| {
            let mut out = Vec::new();
            while connection.wants_write() && connection.write_tls(&mut out).is_ok() {}
            out
        });
        push_bytes(state, out.as_deref().unwrap_or_default());
    }
    1
}

/// What has come, deciphered; and whether the other side has said that this is all.
fn take_in(connection: &mut ClientConnection, mut text: &[u8]) -> Result<(Vec<u8>, bool), String> {
    let mut plain = Vec::new();
    loop {
        connection.read_tls(&mut text).map_err(|error| error.to_string())?;
        connection.process_new_packets().map_err(|error| error.to_string())?;
        let mut piece = [0; 16 << 10];
        loop {
            match connection.reader().read(&mut piece) {
                Ok(0) => return Ok((plain, true)),
                Ok(count) => plain.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return Err("the connection ended in the middle".to_owned()),
            }
        }
        if text.is_empty() {
            return Ok((plain, false));
        }
    }
}

/// `tls_input(number, text) -> plain text, is over`, or nil and why not. An empty text is the end of
/// the connection.
unsafe extern "C-unwind" fn input(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls; the text stays on the stack.
    unsafe {
        let text = bytes(state, 2).unwrap_or_default();
        let closed = || Err("the connection is closed".to_owned());
        match with(state, |connection| take_in(connection, text)).unwrap_or_else(closed) {
            Ok((plain, is_over)) => {
                push_bytes(state, &plain);
                drop(plain);
                lua_pushboolean(state, c_int::from(is_over));
                2
            }
            Err(why) => refuse(state, why),
        }
    }
}

/// `tls_write(number, text) -> boolean`.
unsafe extern "C-unwind" fn write(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls; the text stays on the stack.
    unsafe {
        let text = bytes(state, 2).unwrap_or_default();
        let is_written = with(state, |connection| connection.writer().write_all(text).is_ok());
        lua_pushboolean(state, c_int::from(is_written == Some(true)));
    }
    1
}

/// `tls_is_handshaking(number) -> boolean`.
unsafe extern "C-unwind" fn is_handshaking(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let is_handshaking = with(state, |connection| connection.is_handshaking());
        lua_pushboolean(state, c_int::from(is_handshaking == Some(true)));
    }
    1
}

/// `tls_close(number) -> text`: the last bytes to be sent.
unsafe extern "C-unwind" fn close(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        with(state, |connection| connection.send_close_notify());
        let count = output(state);
        Context::of(state).tls.borrow_mut().open.remove(&uint(state, 1));
        count
    }
}
