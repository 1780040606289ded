//! What a text is to Lua, without running it.

use mlua::ffi::*;
use std::ffi::CStr;

/// Whether a text of a console is the beginning of a statement: what follows may make it one. A command,
/// which begins with a backslash, is a line.
pub fn is_unfinished(text: &[u8]) -> bool {
    if text.starts_with(b"\\") {
        return false;
    }
    // SAFETY: The state is this function's own, and nothing runs in it.
    unsafe {
        let state = luaL_newstate();
        if state.is_null() {
            return false;
        }
        let load = |text: &[u8]| {
            let name = c"=text".as_ptr();
            let status = luaL_loadbuffer(state, text.as_ptr().cast(), text.len(), name);
            let why = match status {
                LUA_OK => None,
                _ => Some(CStr::from_ptr(lua_tostring(state, -1)).to_string_lossy().into_owned()),
            };
            lua_settop(state, 0);
            why
        };
        let is_unfinished = load(&[b"return ", text].concat()).is_some()
            && load(text).is_some_and(|why| why.contains("near '<eof>'"));
        lua_close(state);
        is_unfinished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_read_to_its_end() {
        for text in ["for i = 1, 3 do", "function f()", "box.cfg{", "return (", "x ="] {
            assert!(is_unfinished(text.as_bytes()), "{text}");
        }
        for text in
            ["1", "x = 1", "box.cfg{}", "for i = 1, 3 do end", "end", "1 2", "\"a\nb", "\\set"]
        {
            assert!(!is_unfinished(text.as_bytes()), "{text}");
        }
    }
}
