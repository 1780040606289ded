//! Where the lines of `log` go.
//!
//! The module (`lua/log.lua`) makes the text. A sink of the process takes it; without one the line
//! is written to the standard error, as Tarantool does before `box.cfg`.

use crate::stack::{State, check_bytes, push_functions, run_chunk};
use mlua::ffi::*;
use std::ffi::c_int;
use std::io::Write as _;
use std::sync::RwLock;

/// A line to log.
#[derive(Clone, Copy, Debug)]
pub struct LogRecord<'a> {
    /// Tarantool's numbers: 0 fatal, 1 syserror, 2 error, 3 crit, 4 warn, 5 info, 6 verbose, 7 debug.
    pub level: u8,
    /// The file of the program that logs, as Lua names it.
    pub file: &'a str,
    /// The line there; 0 if it is not known.
    pub line: u32,
    /// The message; if `fields` is true, a JSON object of what the program gave.
    pub text: &'a str,
    /// Whether `text` is an object.
    pub fields: bool,
    /// Whether the program asked for lines of JSON.
    pub json: bool,
}

/// What takes the lines. It must not touch a Lua state, nor raise an error.
pub type LogSink = fn(&LogRecord<'_>);

static SINK: RwLock<LogSink> = RwLock::new(to_standard_error);

/// Sends the lines of all states of the process to `sink` from now on.
pub fn set_log(sink: LogSink) {
    *SINK.write().unwrap_or_else(std::sync::PoisonError::into_inner) = sink;
}

fn to_standard_error(record: &LogRecord<'_>) {
    let mut out = std::io::stderr().lock();
    let name = NAMES[usize::from(record.level.min(7))];
    // There is no one to tell that the standard error is closed.
    let _ = if !record.json {
        writeln!(out, "{}", record.text)
    } else if record.fields && record.text.len() > 2 {
        writeln!(out, "{{\"level\": \"{name}\", {}", &record.text[1..])
    } else {
        let (file, line) = (quoted(record.file), record.line);
        let message = quoted(record.text);
        writeln!(
            out,
            "{{\"level\": \"{name}\", \"message\": {message}, \"file\": {file}, \"line\": {line}}}"
        )
    };
}

const NAMES: [&str; 8] = ["FATAL", "SYSERROR", "ERROR", "CRIT", "WARN", "INFO", "VERBOSE", "DEBUG"];

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            '\n' => quoted.push_str("\\n"),
            char if u32::from(char) < 32 => quoted.push_str(&format!("\\u{:04x}", u32::from(char))),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

/// `say(level, file, line, text, fields, json)`.
unsafe extern "C-unwind" fn say(state: State) -> c_int {
    // SAFETY: As for `stack`; all arguments are checked before anything is owned.
    unsafe {
        let level = luaL_checknumber(state, 1) as u8;
        let file = check_bytes(state, 2);
        let line = luaL_checknumber(state, 3).max(0.0) as u32;
        let text = check_bytes(state, 4);
        let (fields, json) = (lua_toboolean(state, 5) != 0, lua_toboolean(state, 6) != 0);
        let (file, text) = (String::from_utf8_lossy(file), String::from_utf8_lossy(text));
        let sink = *SINK.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        sink(&LogRecord { level, file: &file, line, text: &text, fields, json });
        0
    }
}

/// Pushes the module.
pub(crate) unsafe fn open(state: State) {
    // SAFETY: As for `stack`.
    unsafe {
        push_functions(state, &[(c"say", say)]);
        run_chunk(state, include_str!("../lua/log.lua"), c"@builtin/log.lua");
    }
}
