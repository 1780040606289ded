//! The libraries that Redis gives to scripts beside Lua's own: `cjson`, `cmsgpack` and `struct`.
//!
//! The functions answer as those of Redis 7.2 do, error texts included.
//!
//! # Invariants
//!
//! LuaJIT raises errors like `longjmp`: Rust frames are left without running destructors. So no
//! function here holds a value with a destructor. Bytes that are put together live in a
//! [`buffer::Buffer`], which is memory of the Lua state: the collector frees it, and the state's
//! memory limit counts it. Calls to Lua's API go through [`stack::Stack`].

mod buffer;
mod cjson;
mod cmsgpack;
mod stack;
mod structs;

use crate::stack::State;
use std::ffi::CStr;

/// Values nest no deeper than this, whatever a script asks for: the functions that read and write
/// them call themselves.
const NESTING_MAX: usize = 1000;

/// A library's name, and what leaves its table at the top.
pub(crate) type Entry = (&'static CStr, unsafe fn(State));

/// All of them.
pub(crate) const ALL: &[Entry] =
    &[(c"cjson", cjson::open), (c"cmsgpack", cmsgpack::open), (c"struct", structs::open)];
