//! Libraries that scripts have beside Lua's own: `cjson`, `cmsgpack` and `struct`; and functions of
//! `string` and `table` that take the place of LuaJIT's.
//!
//! Their functions answer as those of Redis 7.2 do, error texts included: the conformance scripts
//! of `scripting` have what a real server answered.
//!
//! **Invariants.** Errors of Lua skip Rust frames, so no function here owns a value that has to be
//! dropped. Bytes that are put together are in a [`buffer::Buffer`], which is memory of the Lua
//! state: the collector frees it, and the machine's limit counts it. Loops whose length a script
//! chooses count their steps in a [`stack::Pace`]. Calls to Lua's API go through [`stack::Stack`].

pub(crate) mod bits;
pub(crate) mod buffer;
pub(crate) mod cjson;
mod cmsgpack;
pub(crate) mod pattern;
pub(crate) mod stack;
pub(crate) mod strings;
mod structs;
pub(crate) mod tables;

use crate::stack::State;
use std::ffi::{CStr, c_int};

/// Values may be nested so deep, whatever a script sets: each level is a call on the thread's
/// stack, and an IO thread has two megabytes.
const NESTING_MAX: c_int = 2000;

/// A library's name, and what leaves its table at the top.
pub(crate) type Entry = (&'static CStr, unsafe fn(State));

/// All of them.
pub(crate) const ALL: &[Entry] =
    &[(c"cjson", cjson::open), (c"cmsgpack", cmsgpack::open), (c"struct", structs::open)];
