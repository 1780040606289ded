//! Functions of `string` that may take long or call Lua: with steps that are counted, and a depth
//! that is checked. What they answer is what LuaJIT's own answer, error texts included.

use super::buffer::Buffer;
use super::pattern::{BYTES_PER_STEP, Captured, Fault, Look, Matcher, is_pattern};
use super::stack::{Stack, upvalue};
use crate::core::{Core, core};
use crate::pace::{STEPS, check_depth, may_go_on, spend};
use crate::run::raise_stop;
use crate::stack::{State, bytes, push_bytes, raise_where};
use mlua::ffi::*;
use std::ffi::{CStr, c_int};

/// Where functions keep the memory of their buffer from call to call.
const BUFFER: c_int = upvalue(1);

/// Bytes that are searched or copied at once.
const PIECE: usize = 256 << 10;

/// Replaces functions of the table at the top, LuaJIT's `string`.
///
/// # Safety
/// As for [`crate::stack`].
pub(crate) unsafe fn replace(state: State) {
    // SAFETY: As promised.
    unsafe {
        let functions: [(&CStr, lua_CFunction, c_int); 6] = [
            (c"find", find, 0),
            (c"match", match_, 0),
            (c"gmatch", gmatch, 0),
            (c"gsub", gsub, 1),
            (c"rep", rep, 1),
            (c"format", format, 0),
        ];
        lua_getfield(state, -1, c"format".as_ptr());
        (*core(state)).own_format = lua_tocfunction(state, -1);
        lua_settop(state, -2);
        for (name, function, upvalues) in functions {
            for _ in 0..upvalues {
                lua_pushnil(state);
            }
            lua_pushcclosure(state, function, upvalues);
            lua_setfield(state, -2, name.as_ptr());
        }
    }
}

/// Asks the host of a core.
#[derive(Clone, Copy)]
struct Asks(*mut Core);

impl Look for Asks {
    fn may_go_on(&mut self) -> (bool, u32) {
        // SAFETY: The core is that of the running state.
        (unsafe { may_go_on(self.0) }, STEPS as u32)
    }
}

/// Raises what is wrong with a match.
unsafe fn fail(state: State, fault: Fault) -> c_int {
    // SAFETY: As promised by the callers; nothing has to be dropped.
    unsafe {
        match fault {
            Fault::Stopped => raise_stop(state),
            Fault::Wrong(text) => raise_where(state, text.as_bytes()),
        }
    }
}

/// The bytes of an argument.
unsafe fn check_bytes<'a>(state: State, argument: c_int) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: As promised by the callers: the string stays on the stack.
    unsafe {
        let start = luaL_checklstring(state, argument, &raw mut length);
        std::slice::from_raw_parts(start.cast(), length)
    }
}

unsafe extern "C-unwind" fn find(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe { search(state, true) }
}

unsafe extern "C-unwind" fn match_(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe { search(state, false) }
}

/// `string.find` and `string.match`.
unsafe fn search(state: State, is_find: bool) -> c_int {
    // SAFETY: As promised by the callers. The arguments stay on the stack.
    unsafe {
        let (text, pattern) = (check_bytes(state, 1), check_bytes(state, 2));
        let core = core(state);
        let from = match luaL_optinteger(state, 3, 1) {
            from @ 1.. => from as usize - 1,
            0 => 0,
            from => text.len().saturating_sub(from.unsigned_abs() as usize),
        };
        let from = from.min(text.len());
        if is_find && (lua_toboolean(state, 4) != 0 || !is_pattern(pattern)) {
            let Some(at) = find_plain(state, core, text, pattern, from) else {
                lua_pushnil(state);
                return 1;
            };
            lua_pushnumber(state, at as f64 + 1.0);
            lua_pushnumber(state, (at + pattern.len()) as f64);
            return 2;
        }
        let (pattern, is_anchored) = match pattern.strip_prefix(b"^") {
            Some(rest) => (rest, true),
            None => (pattern, false),
        };
        let mut matcher = Matcher::new(text, pattern, (*core).steps_left, Asks(core));
        let found = if is_anchored {
            matcher.match_at(from).map(|end| end.map(|end| (from, end)))
        } else {
            matcher.search(from)
        };
        (*core).steps_left = matcher.left;
        let (start, end) = match found {
            Ok(Some(found)) => found,
            Ok(None) => {
                lua_pushnil(state);
                return 1;
            }
            Err(fault) => return fail(state, fault),
        };
        if !is_find {
            return push_captures(state, &matcher, (start, end), true);
        }
        lua_pushnumber(state, start as f64 + 1.0);
        lua_pushnumber(state, end as f64);
        push_captures(state, &matcher, (start, end), false) + 2
    }
}

/// Where the bytes begin; the first ones from `from` on.
unsafe fn find_plain(
    state: State,
    core: *mut Core,
    text: &[u8],
    wanted: &[u8],
    from: usize,
) -> Option<usize> {
    let mut at = from;
    loop {
        // Pieces overlap, so that one of them has the whole of what is wanted.
        let end = text.len().min(at + PIECE.max(2 * wanted.len()));
        if let Some(found) = memchr::memmem::find(&text[at..end], wanted) {
            return Some(at + found);
        }
        // SAFETY: As promised by the caller. Nothing has to be dropped.
        unsafe { spend(state, core, (end - at) / BYTES_PER_STEP) };
        if end == text.len() {
            return None;
        }
        at = end + 1 - wanted.len();
    }
}

/// Pushes what a match has captured; the match itself if there are no captures and it is wanted.
/// Returns how many these are.
unsafe fn push_captures(
    state: State,
    matcher: &Matcher<'_, Asks>,
    found: (usize, usize),
    is_whole: bool,
) -> c_int {
    let count = if is_whole { matcher.count().max(1) } else { matcher.count() };
    // SAFETY: As promised by the callers.
    unsafe {
        luaL_checkstack_(state, count as c_int, c"too many captures".as_ptr());
        for number in 0..count {
            push_capture(state, matcher, number, found);
        }
    }
    count as c_int
}

unsafe fn push_capture(
    state: State,
    matcher: &Matcher<'_, Asks>,
    number: usize,
    found: (usize, usize),
) {
    // SAFETY: As promised by the callers.
    unsafe {
        match matcher.capture(number, found) {
            Ok(Captured::Bytes(bytes)) => push_bytes(state, bytes),
            Ok(Captured::Position(position)) => lua_pushnumber(state, position as f64),
            Err(fault) => drop(fail(state, fault)),
        }
    }
}

/// `string.gmatch`.
unsafe extern "C-unwind" fn gmatch(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        check_bytes(state, 1);
        check_bytes(state, 2);
        lua_settop(state, 2);
        lua_pushnumber(state, 0.0);
        lua_pushcclosure(state, next_match, 3);
    }
    1
}

/// The iterator of [`gmatch`], whose upvalues are the text, the pattern, and where to go on.
unsafe extern "C-unwind" fn next_match(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state. The upvalues keep the strings.
    unsafe {
        let text = bytes(state, lua_upvalueindex(1)).unwrap_or_default();
        let pattern = bytes(state, lua_upvalueindex(2)).unwrap_or_default();
        let from = lua_tonumber(state, lua_upvalueindex(3)) as usize;
        if from > text.len() {
            return 0;
        }
        let core = core(state);
        let mut matcher = Matcher::new(text, pattern, (*core).steps_left, Asks(core));
        let found = matcher.search(from);
        (*core).steps_left = matcher.left;
        match found {
            Ok(Some((start, end))) => {
                // After an empty match, a byte is passed over.
                let next = if end == start { end + 1 } else { end };
                lua_pushnumber(state, next as f64);
                lua_replace(state, lua_upvalueindex(3));
                push_captures(state, &matcher, (start, end), true)
            }
            Ok(None) => 0,
            Err(fault) => fail(state, fault),
        }
    }
}

/// `string.gsub`.
unsafe extern "C-unwind" fn gsub(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state. The arguments stay on the stack; nothing here has to
    // be dropped.
    unsafe {
        let (text, pattern) = (check_bytes(state, 1), check_bytes(state, 2));
        let kind = lua_type(state, 3);
        if !matches!(kind, LUA_TNUMBER | LUA_TSTRING | LUA_TFUNCTION | LUA_TTABLE) {
            let expected = c"string/function/table expected";
            return luaL_argerror(state, 3, expected.as_ptr());
        }
        let count_max = luaL_optinteger(state, 4, text.len() as lua_Integer + 1);
        let core = core(state);
        if matches!(kind, LUA_TFUNCTION | LUA_TTABLE) {
            check_depth(state, core);
        }
        lua_settop(state, 3);
        let (pattern, is_anchored) = match pattern.strip_prefix(b"^") {
            Some(rest) => (rest, true),
            None => (pattern, false),
        };
        let mut matcher = Matcher::new(text, pattern, (*core).steps_left, Asks(core));
        // There is none before the first match.
        let mut result = None;
        // What is before `copied` is in the result.
        let (mut at, mut copied, mut count) = (0, 0, 0);
        while count < count_max {
            let found = matcher.match_at(at);
            (*core).steps_left = matcher.left;
            match found {
                Ok(Some(end)) => {
                    count += 1;
                    let result =
                        result.get_or_insert_with(|| Buffer::take(Stack::of(state), BUFFER));
                    result.add(&text[copied..at]);
                    add_replacement(state, &matcher, (at, end), kind, result);
                    matcher.left = (*core).steps_left;
                    copied = end;
                    at = if end > at { end } else { at + 1 };
                }
                Ok(None) => at += 1,
                Err(fault) => return fail(state, fault),
            }
            if at > text.len() || is_anchored {
                break;
            }
        }
        if let Some(mut result) = result {
            result.add(&text[copied..]);
            spend(state, core, result.bytes().len() / BYTES_PER_STEP);
            result.push();
            result.keep(BUFFER);
        } else {
            lua_pushvalue(state, 1);
        }
        lua_pushnumber(state, count as f64);
    }
    2
}

/// Adds what replaces a match: the value at 3 says so.
unsafe fn add_replacement(
    state: State,
    matcher: &Matcher<'_, Asks>,
    found: (usize, usize),
    kind: c_int,
    result: &mut Buffer<'_>,
) {
    // SAFETY: As promised by `gsub`.
    unsafe {
        match kind {
            LUA_TFUNCTION => {
                lua_pushvalue(state, 3);
                let arguments = push_captures(state, matcher, found, true);
                lua_call(state, arguments, 1);
            }
            LUA_TTABLE => {
                push_capture(state, matcher, 0, found);
                lua_gettable_(state, 3);
            }
            _ => return add_template(state, matcher, found, result),
        }
        if lua_toboolean(state, -1) == 0 {
            lua_settop(state, -2);
            push_capture_of_match(state, matcher, found);
        } else if lua_isstring(state, -1) == 0 {
            let kind = luaL_typename(state, -1);
            luaL_error(state, c"invalid replacement value (a %s)".as_ptr(), kind);
        }
        result.add(bytes(state, -1).unwrap_or_default());
        lua_settop(state, -2);
    }
}

unsafe fn push_capture_of_match(
    state: State,
    matcher: &Matcher<'_, Asks>,
    (start, end): (usize, usize),
) {
    // SAFETY: As promised by the caller.
    unsafe { push_bytes(state, &matcher.text()[start..end]) }
}

/// Adds the string at 3, with captures in the place of `%1` and so on.
unsafe fn add_template(
    state: State,
    matcher: &Matcher<'_, Asks>,
    found: (usize, usize),
    result: &mut Buffer<'_>,
) {
    // SAFETY: As promised by the caller.
    unsafe {
        let mut rest = bytes(state, 3).unwrap_or_default();
        while let Some(at) = memchr::memchr(b'%', rest) {
            result.add(&rest[..at]);
            // A zero byte follows each string.
            let letter = rest.get(at + 1).copied().unwrap_or(0);
            rest = rest.get(at + 2..).unwrap_or_default();
            match letter {
                b'0' => result.add(&matcher.text()[found.0..found.1]),
                b'1'..=b'9' => match matcher.capture(usize::from(letter - b'1'), found) {
                    Ok(Captured::Bytes(bytes)) => result.add(bytes),
                    Ok(Captured::Position(position)) => {
                        lua_pushnumber(state, position as f64);
                        result.add(bytes(state, -1).unwrap_or_default());
                        lua_settop(state, -2);
                    }
                    Err(fault) => drop(fail(state, fault)),
                },
                letter => result.add_byte(letter),
            }
        }
        result.add(rest);
    }
}

/// `string.rep`, with LuaJIT's separator.
unsafe extern "C-unwind" fn rep(state: State) -> c_int {
    /// LuaJIT has no longer strings.
    const BYTES_MAX: usize = 0x7fff_ff00;
    /// Put together without a buffer.
    const SHORT: usize = 128;
    // SAFETY: Lua calls it with a live state. The arguments stay on the stack.
    unsafe {
        let text = check_bytes(state, 1);
        let count = usize::try_from(luaL_checkinteger(state, 2)).unwrap_or(0);
        let between = if lua_type(state, 3) <= LUA_TNIL { &[] } else { check_bytes(state, 3) };
        let unit = text.len() + between.len();
        let length = unit.saturating_mul(count).saturating_sub(between.len());
        if length > BYTES_MAX {
            push_bytes(state, b"not enough memory");
            lua_error(state);
        }
        if count == 0 || length == 0 {
            push_bytes(state, b"");
            return 1;
        }
        let core = core(state);
        if length <= SHORT {
            let mut short = [0; SHORT];
            let mut rest = &mut short[..length];
            while rest.len() > text.len() {
                let (one, others) = rest.split_at_mut(unit);
                one[..text.len()].copy_from_slice(text);
                one[text.len()..].copy_from_slice(between);
                rest = others;
            }
            rest[..text.len()].copy_from_slice(text);
            push_bytes(state, &short[..length]);
            return 1;
        }
        lua_settop(state, 3);
        let mut result = Buffer::take(Stack::of(state), BUFFER);
        result.reserve(length);
        result.add(text);
        result.add(&between[..between.len().min(length - text.len())]);
        while result.bytes().len() < length {
            let more = result.bytes().len().min(length - result.bytes().len());
            // Whole units, so that each piece goes on where the last one ends.
            let piece = if more <= PIECE { more } else { more.min(PIECE.max(unit)) / unit * unit };
            result.add_own(piece);
            spend(state, core, piece / BYTES_PER_STEP);
        }
        result.push();
        result.keep(BUFFER);
    }
    1
}

/// `string.format`: LuaJIT's own, which calls `__tostring`.
unsafe extern "C-unwind" fn format(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state, and LuaJIT's function finds what it was called with.
    unsafe {
        let core = core(state);
        check_depth(state, core);
        let Some(own) = (*core).own_format else { return 0 };
        let results = own(state);
        spend(state, core, lua_objlen(state, -1) / BYTES_PER_STEP);
        results
    }
}
