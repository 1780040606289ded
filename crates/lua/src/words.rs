//! How a script or a function gets its keys and arguments.

use crate::core::Core;
use crate::stack::{State, push_bytes};
use mlua::ffi::*;
use std::ffi::{CStr, c_int};

/// Where a script or a function finds its keys and arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// Two tables, which are its arguments.
    Arguments,
    /// The globals `KEYS` and `ARGV`, new tables.
    Globals,
    /// The same of the direct globals, which are the same tables each time: the script can neither
    /// keep nor change them.
    Reused,
}

/// State of the tables that are used again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reused {
    /// Elements that they may have.
    counts: [usize; 2],
    /// The elements of `ARGV`: most calls of a script have the same.
    args: [Kept; REUSED_WORDS_MAX],
    /// Tables for one run replace them.
    are_replaced: bool,
}

/// A copy of a short word that is in a table.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// [`Kept::NONE`] if the word is not kept.
    length: u8,
    bytes: [u8; Kept::BYTES_MAX],
}

impl Default for Kept {
    fn default() -> Kept {
        Kept { length: Kept::NONE, bytes: [0; Kept::BYTES_MAX] }
    }
}

impl Kept {
    const BYTES_MAX: usize = 15;
    const NONE: u8 = u8::MAX;

    #[inline]
    fn is(&self, word: &[u8]) -> bool {
        usize::from(self.length) == word.len() && self.bytes.get(..word.len()) == Some(word)
    }

    fn keep(&mut self, word: &[u8]) {
        self.length = Kept::NONE;
        if let Some(place) = self.bytes.get_mut(..word.len()) {
            place.copy_from_slice(word);
            self.length = word.len() as u8;
        }
    }
}

/// The tables are used again for up to this many words each,
pub(crate) const REUSED_WORDS_MAX: usize = 16;

/// and this many bytes: they keep the words of the last run.
const REUSED_BYTES_MAX: usize = 4096;

const NAMES: [&CStr; 2] = [c"KEYS", c"ARGV"];

/// Passes the keys and the arguments to the function at the top. Returns how many arguments it has
/// now.
///
/// # Safety
/// As for [`crate::stack`], and `core` is the state's.
pub(crate) unsafe fn pass(state: State, core: *mut Core, to: Words, words: [&[&[u8]]; 2]) -> c_int {
    // SAFETY: As promised.
    unsafe {
        if to != Words::Globals && std::mem::take(&mut (*core).has_keys) {
            forget_keys(state, (*core).places.globals);
        }
        if std::mem::take(&mut (*core).reused.are_replaced) {
            for table in [(*core).places.reused_keys, (*core).places.reused_argv] {
                lua_rawgeti_(state, LUA_REGISTRYINDEX, table);
            }
            set_direct(state, core);
        }
        match to {
            Words::Arguments => {
                words.iter().for_each(|words| push_all(state, words));
                return 2;
            }
            Words::Globals => {
                (*core).has_keys = true;
                lua_rawgeti_(state, LUA_REGISTRYINDEX, (*core).places.globals);
                for (name, words) in [(*core).places.keys, (*core).places.argv].iter().zip(words) {
                    lua_rawgeti_(state, LUA_REGISTRYINDEX, *name);
                    push_all(state, words);
                    lua_rawset(state, -3);
                }
                lua_settop(state, -2);
            }
            Words::Reused if fit(words) => fill_both(state, core, words),
            Words::Reused => {
                (*core).reused.are_replaced = true;
                words.iter().for_each(|words| push_all(state, words));
                set_direct(state, core);
            }
        }
    }
    0
}

/// Whether the tables that are used again have room for the words.
fn fit(words: [&[&[u8]]; 2]) -> bool {
    let are_few = words.iter().all(|words| words.len() <= REUSED_WORDS_MAX);
    let bytes =
        || words.iter().flat_map(|words| words.iter()).map(|word| word.len()).sum::<usize>();
    are_few && bytes() <= REUSED_BYTES_MAX
}

/// As [`pass`] for [`Words::Reused`], where nothing but the tables' elements has to be exchanged, and
/// without raising an error: what the words take may exceed the machine's limit. Whether that
/// was so.
///
/// # Safety
/// As for [`pass`].
pub(crate) unsafe fn refill(state: State, core: *mut Core, words: [&[&[u8]]; 2]) -> bool {
    // SAFETY: As promised.
    unsafe {
        if (*core).has_keys || (*core).reused.are_replaced || !fit(words) {
            return false;
        }
        let max = std::mem::replace(&mut (*core).memory.max, usize::MAX);
        fill_both(state, core, words);
        (*core).memory.max = max;
    }
    true
}

unsafe fn fill_both(state: State, core: *mut Core, [keys, args]: [&[&[u8]]; 2]) {
    // SAFETY: As promised by the callers. No part of the core is borrowed during a call.
    unsafe {
        fill(state, (*core).places.reused_keys, keys, &raw mut (*core).reused.counts[0], None);
        let kept = Some(&raw mut (*core).reused.args);
        fill(state, (*core).places.reused_argv, args, &raw mut (*core).reused.counts[1], kept);
    }
}

/// Replaces a table's elements, of which it has `count`, and of which some are in `kept`.
unsafe fn fill(
    state: State,
    table: c_int,
    words: &[&[u8]],
    count: *mut usize,
    kept: Option<*mut [Kept; REUSED_WORDS_MAX]>,
) {
    // SAFETY: As promised by the caller. A string that there is no memory for ends this: until then
    // the table has the elements of both, and none is kept that the table does not have.
    unsafe {
        lua_rawgeti_(state, LUA_REGISTRYINDEX, table);
        let before = *count;
        *count = before.max(words.len());
        for (index, word) in words.iter().enumerate() {
            let mut kept = kept.map(|kept| &mut (*kept)[index]);
            if kept.as_ref().is_some_and(|kept| kept.is(word)) {
                continue;
            }
            if let Some(kept) = &mut kept {
                kept.length = Kept::NONE;
            }
            push_bytes(state, word);
            lua_rawseti_(state, -2, index as c_int + 1);
            if let Some(kept) = kept {
                kept.keep(word);
            }
        }
        for index in words.len()..before {
            if let Some(kept) = kept {
                (*kept)[index].length = Kept::NONE;
            }
            lua_pushnil(state);
            lua_rawseti_(state, -2, index as c_int + 1);
        }
        *count = words.len();
        lua_settop(state, -2);
    }
}

/// Makes the two tables at the top the `KEYS` and `ARGV` of the direct globals.
unsafe fn set_direct(state: State, core: *mut Core) {
    // SAFETY: As promised by the callers. The fields are there, so that nothing is allocated.
    unsafe {
        lua_rawgeti_(state, LUA_REGISTRYINDEX, (*core).places.direct_globals);
        lua_insert(state, -3);
        lua_setfield(state, -3, NAMES[1].as_ptr());
        lua_setfield(state, -2, NAMES[0].as_ptr());
        lua_settop(state, -2);
    }
}

/// Removes `KEYS` and `ARGV` of the script that ran before: functions do not see any, and nobody
/// else would free them.
unsafe fn forget_keys(state: State, globals: c_int) {
    // SAFETY: As promised by the caller.
    unsafe {
        lua_rawgeti_(state, LUA_REGISTRYINDEX, globals);
        for name in NAMES {
            lua_pushnil(state);
            lua_setfield(state, -2, name.as_ptr());
        }
        lua_settop(state, -2);
    }
}

/// Pushes a list of strings.
unsafe fn push_all(state: State, all: &[&[u8]]) {
    // SAFETY: As promised by the callers.
    unsafe {
        lua_createtable(state, c_int::try_from(all.len()).unwrap_or(0), 0);
        for (index, word) in all.iter().enumerate() {
            push_bytes(state, word);
            lua_rawseti_(state, -2, index as c_int + 1);
        }
    }
}
