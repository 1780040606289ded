//! Values on their way from Lua to a client, and from a command to Lua.

use crate::host::{TestHost, check, eval, eval3, reply_of, vm};
use ladon_lua::LogLevel;
use ladon_resp::Proto;

#[test]
fn what_a_script_returns_is_its_reply() {
    check(
        &[
            ("return", "$-1|"),
            ("return nil", "$-1|"),
            ("return true", ":1|"),
            ("return false", "$-1|"),
            ("return 3.99", ":3|"),
            ("return -3.99", ":-3|"),
            ("return 1e300", ":-9223372036854775808|"),
            ("return 'a\\r\\nb'", "$4|a|b|"),
            ("return {1, 'two', {3}, nil, 5}", "*3|:1|$3|two|*1|:3|"),
            ("return {ok = 'fine'}", "+fine|"),
            ("return {ok = 'on\\r\\ntwo'}", "+on  two|"),
            ("return {err = 'BAD luck'}", "-BAD luck|"),
            ("return {err = 'bare'}", "-bare|"),
            ("return {double = 1.5}", "$3|1.5|"),
            ("return {map = {a = 1}}", "*2|$1|a|:1|"),
            ("return {set = {a = true}}", "*1|$1|a|"),
            ("return {big_number = '123'}", "$3|123|"),
            ("return {verbatim_string = {format = 'txt', string = 'hi'}}", "$2|hi|"),
            ("return redis.status_reply('YES')", "+YES|"),
            ("return redis.error_reply('MY error')", "-MY error|"),
            ("return redis.error_reply('-MY error')", "-MY error|"),
            ("return redis.error_reply('oops')", "-ERR oops|"),
            ("return redis.error_reply(1)", "-ERR wrong number or type of arguments|"),
            ("return redis.sha1hex('')", "$40|da39a3ee5e6b4b0d3255bfef95601890afd80709|"),
            ("return function() end", "$-1|"),
        ],
        eval,
    );
}

#[test]
fn a_client_with_resp3_gets_the_types_of_resp3() {
    check(
        &[
            ("return nil", "_|"),
            ("return true", ":1|"),
            ("redis.setresp(3) return true", "#t|"),
            ("redis.setresp(3) return false", "#f|"),
            ("return {double = 1.5}", ",1.5|"),
            ("return {map = {a = 1}}", "%1|$1|a|:1|"),
            ("return {set = {a = true}}", "~1|$1|a|"),
            ("return {big_number = '123'}", "(123|"),
            ("return {verbatim_string = {format = 'txt', string = 'hi'}}", "=6|txt:hi|"),
        ],
        eval3,
    );
}

#[test]
fn replies_of_commands_become_values() {
    let prelude = "local function show(v) if type(v) ~= 'table' then return type(v) .. ':' .. \
                   tostring(v) end local parts = {} for k, x in pairs(v) do parts[#parts + 1] = \
                   tostring(k) .. '=' .. show(x) end table.sort(parts) return '{' .. \
                   table.concat(parts, ',') .. '}' end ";
    let shown = |raw: &str| {
        let body = format!("{prelude} redis.setresp(3) return show(redis.pcall('raw', ARGV[1]))");
        let mut host = TestHost::default();
        let args: &[&[u8]] = &[raw.as_bytes()];
        reply_of(&mut vm(), &mut host, &body, (&[], args), Proto::Resp2).unwrap()
    };
    for (raw, expected) in [
        (":42\r\n", "number:42"),
        (":-9223372036854775808\r\n", "number:-9.2233720368548e+18"),
        ("$2\r\nhi\r\n", "string:hi"),
        ("$-1\r\n", "boolean:false"),
        ("*-1\r\n", "boolean:false"),
        ("_\r\n", "nil:nil"),
        ("#t\r\n", "boolean:true"),
        ("+OK\r\n", "{ok=string:OK}"),
        ("-ERR no\r\n", "{err=string:ERR no,ignore_error_stats_update=boolean:true}"),
        ("*2\r\n:1\r\n$1\r\na\r\n", "{1=number:1,2=string:a}"),
        (",1.5\r\n", "{double=number:1.5}"),
        ("(123\r\n", "{big_number=string:123}"),
        ("%1\r\n+a\r\n:1\r\n", "{map={table"),
        ("~1\r\n$1\r\na\r\n", "{set={a=boolean:true}}"),
        ("=6\r\ntxt:hi\r\n", "{verbatim_string={format=string:txt,string=string:hi}}"),
    ] {
        let reply = shown(raw);
        let text = reply.split_once("\r\n").unwrap().1.trim_end();
        assert!(text.starts_with(expected), "{raw:?}: {text}");
    }
}

#[test]
fn arguments_are_strings_and_numbers() {
    check(
        &[
            (
                "return redis.call('echo', 'a', 1, 1.5, -0.1, 1e15, 2^53, 1e100, 3.0)",
                "*8|$1|a|$1|1|$3|1.5|$4|-0.1|$16|1000000000000000|$16|9007199254740992|$6|1e+100|\
                 $1|3|",
            ),
            (
                "return redis.call('echo', 2^53 + 1, -2^53, 1e17, 2^62, 2^63 - 1024, -2^63)",
                "*6|$16|9007199254740992|$17|-9007199254740992|$18|100000000000000000|\
                 $19|4611686018427387904|$19|9223372036854774784|$20|-9223372036854775808|",
            ),
            (
                "return redis.call('echo', 2^63, -2^64, 1e21, 1.5e300, -0, 1/0, -1/0, 0/0)",
                "*8|$22|9.2233720368547758e+18|$23|-1.8446744073709552e+19|$5|1e+21|\
                 $23|1.5000000000000001e+300|$1|0|$3|inf|$4|-inf|$3|nan|",
            ),
            (
                "local r = redis.pcall('echo', {}) return r.err",
                "$63|ERR Lua redis lib command arguments must be strings or integers|",
            ),
            (
                "return redis.pcall().err",
                "$64|ERR Please specify at least one argument for this redis lib call|",
            ),
        ],
        eval,
    );
    let many: Vec<String> = (0..5000).map(|number| format!("{number}")).collect();
    let body = format!("return #redis.call('echo', {})", many.join(","));
    // Lua has at most 255 registers in a function.
    assert!(eval(&body).starts_with("-ERR Error compiling script"));
    let body = "local t = {} for i = 1, 5000 do t[i] = i end return redis.call('echo', unpack(t))";
    assert!(eval(body).ends_with("$4\r\n5000\r\n"));
}

#[test]
fn keys_and_arguments_are_there() {
    let mut vm = vm();
    let body = "return {KEYS[1], KEYS[2], #KEYS, ARGV[1], #ARGV}";
    let mut host = TestHost::default();
    let words: (&[&[u8]], &[&[u8]]) = (&[b"k1", b"k\0\xff"], &[b"a"]);
    let reply = reply_of(&mut vm, &mut host, body, words, Proto::Resp2).unwrap();
    assert_eq!(reply, "*5\r\n$2\r\nk1\r\n$3\r\nk\0\u{ff}\r\n:2\r\n$1\r\na\r\n:1\r\n");
    let reply = reply_of(&mut vm, &mut host, "return {#KEYS, #ARGV}", (&[], &[]), Proto::Resp2);
    assert_eq!(reply.unwrap(), "*2\r\n:0\r\n:0\r\n", "those of the run before are gone");
}

#[test]
fn the_protocol_is_2_again_for_the_next_script() {
    let (mut vm, mut host) = (vm(), TestHost::default());
    let mut run = |host: &mut TestHost, body| {
        reply_of(&mut vm, host, body, (&[], &[]), Proto::Resp3).unwrap()
    };
    assert_eq!(run(&mut host, "redis.setresp(3) return redis.call('proto')"), ":3\r\n");
    assert_eq!(run(&mut host, "redis.setresp(3) return true"), "#t\r\n");
    assert_eq!(run(&mut host, "return true"), ":1\r\n");
}

#[test]
fn lines_are_logged() {
    let (mut vm, mut host) = (vm(), TestHost::default());
    let body = "redis.log(redis.LOG_WARNING, 'a', 1, 'b')";
    reply_of(&mut vm, &mut host, body, (&[], &[]), Proto::Resp2);
    assert_eq!(host.logged, [(LogLevel::Warning, b"a 1 b".to_vec())]);
}

/// Recorded from Redis 7.0.15.
#[test]
fn random_numbers_are_those_of_redis() {
    let (mut vm, mut host) = (vm(), TestHost::default());
    let mut run = |body| reply_of(&mut vm, &mut host, body, (&[], &[]), Proto::Resp2).unwrap();
    assert_eq!(run("return tostring(math.random())"), "$16\r\n0.39646477363839\r\n");
    assert_eq!(run("return tostring(math.random())"), "$16\r\n0.84048536971234\r\n");
    let seeded = "math.randomseed(7) return {math.random(1000), math.random(5, 9)}";
    let first = run(seeded);
    assert_eq!(run(seeded), first);
}

#[test]
fn commands_are_asked_for() {
    check(
        &[
            ("return redis.acl_check_cmd('echo', 'x')", ":1|"),
            ("return redis.acl_check_cmd('stop')", "$-1|"),
        ],
        eval,
    );
    assert!(eval("redis.acl_check_cmd('x')").starts_with("-ERR Invalid command passed to"));
}
