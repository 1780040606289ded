//! What scripts can reach, and that they share nothing.

use crate::host::{TestHost, check, eval, reply_of, vm};
use ladon_resp::Proto;

#[test]
fn nothing_dangerous_is_there() {
    for name in [
        "print", "dofile", "loadfile", "require", "module", "package", "io", "debug", "getfenv",
        "setfenv", "newproxy", "jit", "ffi",
    ] {
        let text = eval(&format!("return {name}"));
        assert!(text.contains(&format!("nonexistent global variable '{name}'")), "{text}");
    }
    check(
        &[
            ("return type(os.clock()) .. type(os.time)", "$9|numbernil|"),
            ("return type(getmetatable(_G))", "$5|table|"),
            ("return tostring(getmetatable(redis))", "$3|nil|"),
            ("local f = load('return 7') return f()", ":7|"),
            ("local f = loadstring('return 7') return f()", ":7|"),
            ("return _VERSION", "$7|Lua 5.1|"),
        ],
        eval,
    );
    for body in ["return loadstring(string.dump(function() end))()", "string.dump(string.format)"] {
        assert!(eval(body).starts_with("-ERR"), "{body}");
    }
    let bytecode = "return tostring(loadstring('\\27LJ\\2'))";
    assert_eq!(eval(bytecode), "$3\r\nnil\r\n");
}

/// Valkey 8's name for `redis`.
#[test]
fn server_is_redis() {
    check(
        &[
            ("return tostring(server == redis)", "$4|true|"),
            ("return server.sha1hex('')", "$40|da39a3ee5e6b4b0d3255bfef95601890afd80709|"),
            (
                "local s = server return s.sha1hex('')",
                "$40|da39a3ee5e6b4b0d3255bfef95601890afd80709|",
            ),
            ("return server.status_reply(ARGV and 'ok')", "+ok|"),
        ],
        eval,
    );
}

#[test]
fn shared_tables_cannot_be_changed() {
    for body in [
        "x = 1",
        "_G.x = 1",
        "KEYS = 1",
        "redis.call = 1",
        "redis.x = 1",
        "server.x = 1",
        "string.x = 1",
        "math.random = 1",
        "bit.band = 1",
        "rawset(_G, 'x', 1)",
        "rawset(redis, 'call', 1)",
        "setmetatable(_G, {})",
        "setmetatable(redis, {})",
        "table.insert(_G, 1)",
        "table.insert(redis, 1)",
        "table.remove(redis, 1)",
        "getmetatable('').__index = {}",
        "getmetatable(_G).__index = {}",
        "rawset(getmetatable(_G), '__index', {})",
        "rawset(getmetatable(''), '__index', {})",
        "setmetatable(getmetatable(''), {})",
        "getmetatable('').__index.upper = 1",
        "local t = coroutine t.wrap = 1",
    ] {
        let text = eval(body);
        assert!(text.contains("Attempt to modify a readonly table"), "{body}: {text}");
    }
}

#[test]
fn shared_tables_can_be_read_in_every_way() {
    check(
        &[
            ("return type(rawget(redis, 'call'))", "$8|function|"),
            ("return type(rawget(_G, 'redis'))", "$5|table|"),
            (
                "local n = 0 for k, v in pairs(math) do if k == 'floor' then n = n + 1 end end \
                 return n",
                ":1|",
            ),
            ("for k, v in pairs(redis) do if k == 'call' then return k end end", "$4|call|"),
            ("return type(next(redis))", "$6|string|"),
            ("return ('x'):rep(3)", "$3|xxx|"),
            ("return getmetatable('').__index.upper('x')", "$1|X|"),
        ],
        eval,
    );
}

#[test]
fn own_tables_work_as_in_lua() {
    check(
        &[
            (
                "local t = {1, 2} table.insert(t, 1, 0) table.insert(t, 3) return t",
                "*4|:0|:1|:2|:3|",
            ),
            (
                "local t = {1, 2, 3} return {table.remove(t, 1), table.remove(t), #t}",
                "*3|:1|:3|:1|",
            ),
            ("local t = setmetatable({}, {__index = function() return 5 end}) return t.x", ":5|"),
            ("local t = {} rawset(t, 'a', 1) return rawget(t, 'a')", ":1|"),
            ("local s = 0 for k, v in pairs({a = 1, b = 2, 3}) do s = s + v end return s", ":6|"),
            (
                "local ok, e = pcall(table.insert, {}, 1, 2, 3) return e",
                "$37|wrong number of arguments to 'insert'|",
            ),
            (
                "local co = coroutine.wrap(function() coroutine.yield(1) return 2 end) return \
                 {co(), co()}",
                "*2|:1|:2|",
            ),
            ("return select('#', unpack({1, 2, 3}))", ":3|"),
            ("local t = {3, 1, 2} table.sort(t) return t", "*3|:1|:2|:3|"),
            ("return table.getn({1, 2})", ":2|"),
            ("return math.mod(7, 4)", ":3|"),
        ],
        eval,
    );
}

/// Whatever one script does to what it can reach, the next one sees nothing of it.
#[test]
fn scripts_share_nothing() {
    let (mut vm, mut host) = (vm(), TestHost::default());
    let mut run = |body: &str| reply_of(&mut vm, &mut host, body, (&[], &[]), Proto::Resp2);
    run("local t = KEYS t.left = 1 ARGV.left = 2 KEYS[1] = 'x'");
    assert_eq!(run("return {#KEYS, tostring(KEYS.left)}").unwrap(), "*2\r\n:0\r\n$3\r\nnil\r\n");
    run("pcall(function() string.upper = nil end)");
    run("collectgarbage('stop')");
    assert_eq!(run("return type(string.upper)").unwrap(), "$8\r\nfunction\r\n");
}
