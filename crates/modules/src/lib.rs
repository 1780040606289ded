//! The modules that programs for Tarantool `require`, except those that need a database, sockets or
//! fibers.
//!
//! ```text
//!   preload(state) ── package.preload.json, .yaml, .fio ...   loaded by the first `require`
//!   extend(state)  ── string.split, table.deepcopy, os.setenv, package.searchroot, tonumber64 ...
//! ```
//!
//! A module is one `src/NAME.rs`, one `lua/NAME.lua`, or both: Rust where bytes are worked on, Lua
//! where values are. Names, arguments, results and error texts are those of Tarantool 2.6
//! (`docs/compat/tarantool.md` lists them; the transcripts in `tests/` are recorded beside the real
//! one).
//!
//! # Invariants
//!
//! - **Errors of Lua skip Rust frames**: a function that Lua calls owns nothing that has to be
//!   dropped while it calls anything that may raise an error (`stack.rs`).
//! - **Depth is bounded**: encoders and decoders nest no deeper than 512 levels, whatever their
//!   options say.
//! - **No sockets, no fibers, no box.** What a module needs of them it asks for by `require`, when
//!   it is called.

mod base64;
mod blocking;
mod cdata;
mod cipher;
mod datetime;
mod decimal;
mod digest;
mod errno;
mod fio;
mod hashes;
mod json;
mod log;
mod msgpack;
mod numbers;
mod pickle;
mod serializer;
mod stack;
mod table;
mod tail_calls;
mod tarantool;
mod utf8;
mod uuid;
mod yaml;

pub use blocking::{BlockingRunner, set_blocking_runner};
pub use cdata::Integer;
pub use datetime::{
    DATETIME_BYTES_MAX, INTERVAL_BYTES_MAX, datetime_to_payload, interval_to_payload,
    push_datetime_payload, push_interval_payload,
};
pub use decimal::{PAYLOAD_BYTES_MAX, decimal_to_payload, push_decimal_payload};
pub use log::{LogRecord, LogSink, set_log};
pub use table::{Module, extend, module_names, preload};
pub use tarantool::VERSION as TARANTOOL_VERSION;
pub use uuid::{push_uuid, uuid_to_bytes};

use mlua::ffi::lua_State;
use std::ffi::c_int;

/// Whether the value at `index` is `box.NULL`: a null pointer as a cdata.
///
/// # Safety
/// The state has to be live, with the types of [`preload`], and the index valid.
pub unsafe fn is_null(state: *mut lua_State, index: c_int) -> bool {
    // SAFETY: As promised.
    unsafe { cdata::is_null(state, index) }
}

/// The integer of 64 bits at `index`, if there is a cdata of an integer type.
///
/// # Safety
/// As for [`is_null`].
pub unsafe fn cdata_integer(state: *mut lua_State, index: c_int) -> Option<Integer> {
    // SAFETY: As promised.
    unsafe { cdata::integer_of_cdata(state, index) }
}

/// Pushes an integer: a number as far as numbers are exact for certain, else a `uint64_t`.
///
/// # Safety
/// As for [`push_null`]. May raise an error of Lua.
pub unsafe fn push_u64(state: *mut lua_State, value: u64) {
    // SAFETY: As promised.
    unsafe { cdata::push_u64(state, value) }
}

/// Pushes an integer: a number as far as numbers are exact for certain, else an `int64_t`.
///
/// # Safety
/// As for [`push_null`]. May raise an error of Lua.
pub unsafe fn push_i64(state: *mut lua_State, value: i64) {
    // SAFETY: As promised.
    unsafe { cdata::push_i64(state, value) }
}

/// Pushes `box.NULL`, which is the same value each time.
///
/// # Safety
/// The state has to be live, with the types of [`preload`].
pub unsafe fn push_null(state: *mut lua_State) {
    // SAFETY: As promised.
    unsafe { cdata::push_null(state) }
}
