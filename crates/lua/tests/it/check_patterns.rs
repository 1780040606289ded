//! What the fuzz target `lua_patterns` checks; the ordinary tests replay the kept corpus through
//! the same code. LuaJIT's own functions are the model.

use super::host::{TestHost, reply_of};
use ladon_lua::Vm;
use ladon_resp::Proto;
use mlua::ffi::*;
use std::cell::RefCell;
use std::ffi::CStr;

/// All that a script can ask about a pattern and a text, its two arguments, in one string.
const ASK: &str = "local p, s = ... \
    local function all(...) \
        local t = {} \
        for i = 1, select('#', ...) do t[i] = tostring((select(i, ...))) end \
        return table.concat(t, ',') \
    end \
    local function each(s, p) \
        local t = {} \
        for a, b in string.gmatch(s, p) do t[#t + 1] = all(a, b) if #t == 30 then break end end \
        return table.concat(t, ';') \
    end \
    return table.concat({ \
        all(pcall(string.find, s, p)), all(pcall(string.find, s, p, 3)), \
        all(pcall(string.find, s, p, -2)), all(pcall(string.find, s, p, 1, true)), \
        all(pcall(string.match, s, p)), all(pcall(string.match, s, p, -4)), \
        all(pcall(string.gsub, s, p, '<%0%1>')), all(pcall(string.gsub, s, p, '%2%%', 2)), \
        all(pcall(string.gsub, s, p, {a = 'A', b = false, ['1'] = 1})), \
        all(pcall(string.gsub, s, p, function(a, b) return b or a ~= 'a' and '.' end)), \
        all(pcall(each, s, p)), \
    }, '|')";

/// Longer ones would take LuaJIT too long.
const BYTES_MAX: usize = 16;

/// The first byte chooses how many of the others are the pattern; the rest is the text.
pub fn pattern(data: &[u8]) {
    let Some((&length, rest)) = data.split_first() else { return };
    let (pattern, text) = rest.split_at(rest.len().min(usize::from(length) % (BYTES_MAX + 1)));
    let text = &text[..text.len().min(BYTES_MAX)];
    let args = [pattern, text];
    assert_eq!(
        of_vm(ASK, &args),
        of_luajit(ASK, &args),
        "of {:?} in {:?}",
        pattern.escape_ascii().to_string(),
        text.escape_ascii().to_string()
    );
}

/// The string that a body returns in a machine.
pub fn of_vm(body: &str, args: &[&[u8]]) -> String {
    thread_local! {
        static VM: RefCell<Vm> = RefCell::new(super::host::vm());
    }
    let body = format!("return (function(...) {body} end)(unpack(ARGV))");
    let reply = VM.with_borrow_mut(|vm| {
        reply_of(vm, &mut TestHost::default(), &body, (&[], args), Proto::Resp2)
    });
    let reply = reply.expect("nobody stops it");
    let (head, rest) = reply.split_once("\r\n").expect("a reply has a line");
    assert!(head.starts_with('$'), "{reply}");
    rest.trim_end_matches("\r\n").replace("user_script:1: ", "")
}

unsafe extern "C-unwind" fn ignore(_: *mut lua_State, _: *mut lua_Debug) {}

/// The string that a body returns in LuaJIT itself.
pub fn of_luajit(body: &str, args: &[&[u8]]) -> String {
    let name = c"@user_script";
    // SAFETY: The state is live until it is closed, and so are the strings; errors end in `pcall`.
    unsafe {
        let state = luaL_newstate();
        // As in a machine: without compiled code, and with a hook that counts.
        let libraries: [(lua_CFunction, &CStr); 3] =
            [(luaopen_base, c""), (luaopen_table, c"table"), (luaopen_string, c"string")];
        for (open, name) in libraries {
            lua_pushcclosure(state, open, 0);
            lua_pushstring_(state, name.as_ptr());
            lua_call(state, 1, 0);
        }
        lua_sethook(state, Some(ignore), LUA_MASKCOUNT, 4096);
        let loaded = luaL_loadbuffer(state, body.as_ptr().cast(), body.len(), name.as_ptr());
        assert_eq!(loaded, LUA_OK);
        for argument in args {
            lua_pushlstring_(state, argument.as_ptr().cast(), argument.len());
        }
        assert_eq!(
            lua_pcall(state, args.len() as std::ffi::c_int, 1, 0),
            LUA_OK,
            "{:?}",
            CStr::from_ptr(lua_tostring(state, -1))
        );
        let mut length = 0;
        let start = lua_tolstring(state, -1, &raw mut length);
        let bytes = std::slice::from_raw_parts(start.cast::<u8>(), length);
        let answer: String = bytes.iter().map(|&byte| char::from(byte)).collect();
        lua_close(state);
        answer.trim_end_matches("\r\n").replace("user_script:1: ", "")
    }
}
