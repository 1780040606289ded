//! Libraries that scripts have beside Lua's own.

use crate::stack::State;
use std::ffi::CStr;

/// A library's name, and what leaves its table at the top.
pub(crate) type Entry = (&'static CStr, unsafe fn(State));

/// All of them.
pub(crate) const ALL: &[Entry] = &[];
