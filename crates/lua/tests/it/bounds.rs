//! Scripts that would run or grow without end.

use crate::host::{TestHost, reply_of, vm};
use ladon_lua::{Ended, Vm, VmOptions, sha1_hex};
use ladon_resp::Proto;

fn stopped(vm: &mut Vm, body: &str, ticks: usize) {
    let mut host = TestHost { ticks_left: Some(ticks), ..TestHost::default() };
    let reply = reply_of(vm, &mut host, body, (&[], &[]), Proto::Resp2);
    assert_eq!(reply, None, "{body}");
    // The machine is as good as before.
    let mut host = TestHost::default();
    let reply = reply_of(vm, &mut host, "return 'well'", (&[], &[]), Proto::Resp2);
    assert_eq!(reply.unwrap(), "$4\r\nwell\r\n", "after {body}");
}

#[test]
fn no_script_goes_on_after_a_stop() {
    let mut vm = vm();
    for body in [
        "while true do end",
        "repeat until false",
        "local function f() return f() end f()",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "coroutine.wrap(function() while true do end end)()",
        "local function f() return pcall(f) end while true do f() end",
        "local function f() return (pcall(f)) end while true do f() end",
        "local function f() return xpcall(f, f) end while true do f() end",
        "while true do local c = coroutine.create(function() while true do end end) \
         coroutine.resume(c) end",
        "while true do pcall(redis.call, 'nothing') end",
        "setmetatable({}, {__index = function() while true do end end}).x()",
        "local t = {} for i = 1, 100000 do t[i] = i end while true do table.insert(t, 1, 0) \
         table.remove(t, 1) end",
        "table.insert({}, -2000000000, 1)",
        "for k in ('x'):rep(1000000):gmatch('x') do local n = 0 while true do n = n + 1 end end",
        "('x'):gsub('x', function() while true do end end)",
        "table.sort({3, 2, 1}, function() while true do end end)",
    ] {
        stopped(&mut vm, body, 3);
    }
}

#[test]
fn a_command_can_end_the_script() {
    let mut vm = vm();
    for body in [
        "redis.call('stop')",
        "pcall(redis.call, 'stop') return 'went on'",
        "redis.pcall('stop') return 'went on'",
        "coroutine.wrap(function() pcall(redis.call, 'stop') end)() return 'went on'",
        "xpcall(function() redis.call('stop') end, function() return 'no' end) return 'went on'",
    ] {
        stopped(&mut vm, body, usize::MAX);
    }
    let mut host = TestHost::default();
    let body = "for i = 1, 10 do pcall(redis.call, 'stop') end";
    assert_eq!(reply_of(&mut vm, &mut host, body, (&[], &[]), Proto::Resp2), None);
    assert_eq!(host.calls, 1, "after a stop no command is run");
}

/// Short scripts run without the hook that stops others.
#[test]
fn nothing_else_runs_as_short_scripts_do() {
    let mut vm = vm();
    let run_short = |vm: &mut Vm| {
        for _ in 0..100 {
            let mut host = TestHost::default();
            let reply = reply_of(vm, &mut host, "return #KEYS", (&[], &[]), Proto::Resp2);
            assert_eq!(reply.unwrap(), ":0\r\n");
        }
    };
    for body in [
        "while true do end",
        "::again:: goto again",
        "local function f() return f() end f()",
        "return loadstring('while true do end')()",
        "coroutine.wrap(function() while true do end end)()",
        "local t = {} for i = 1, 5000 do t[i] = 'x' end while true do table.foreach(t, type) end",
    ] {
        run_short(&mut vm);
        stopped(&mut vm, body, 3);
    }
    for body in ["redis.call('stop') return 1", "redis.pcall('stop') return redis.call('stop')"] {
        run_short(&mut vm);
        stopped(&mut vm, body, 0);
    }
}

/// Words of short scripts are passed without a protected call.
#[test]
fn a_full_machine_survives_words() {
    let options = VmOptions { memory_bytes_max: 2 << 20, ..VmOptions::default() };
    let mut vm = Vm::new(options);
    let short = b"local x = ARGV[1] .. KEYS[1] return redis.call('echo', x)";
    let short = vm.load(&sha1_hex(short), short).unwrap();
    let is_full = (0..100_000).any(|number| {
        let body = format!("return {{{number}, 'x{number}', {{'y{number}'}}}}");
        vm.load(&sha1_hex(body.as_bytes()), body.as_bytes()).is_err()
    });
    assert!(is_full);
    let mut replies = Vec::new();
    for number in 0..1000 {
        let word = vec![b'a' + number as u8 % 26; number * 2];
        let mut out = Vec::new();
        let words: [&[u8]; 2] = [&word, b"y"];
        let host = &mut TestHost::default();
        let ended = vm.run(&short, &words, &words, Proto::Resp2, host, &mut out);
        assert_eq!(ended, Ended::Replied);
        let is_refused = out.starts_with(b"-ERR not enough memory");
        assert!(is_refused || out.starts_with(b"*1\r\n$"), "{}", out.escape_ascii());
        assert!(vm.memory_bytes() < (2 << 20) + (1 << 18), "{}", vm.memory_bytes());
        replies.push(is_refused);
    }
    assert!(replies.contains(&true), "the machine was not full");
}

#[test]
fn memory_is_bounded() {
    let options = VmOptions { memory_bytes_max: 8 << 20, ..VmOptions::default() };
    let mut vm = Vm::new(options);
    for body in [
        "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end",
        "local s = 'x' while true do s = s .. s end",
        "return ('x'):rep(1000000000)",
        "local t = {} local s = ('x'):rep(100000) for i = 1, 1000 do t[i] = s end \
         return table.concat(t)",
        "local function f(n) return {f(n + 1)} end return f(1)",
        "local co = {} while true do co[#co + 1] = coroutine.create(function() end) end",
    ] {
        let mut host = TestHost::default();
        let reply = reply_of(&mut vm, &mut host, body, (&[], &[]), Proto::Resp2).unwrap();
        assert!(reply.starts_with("-ERR"), "{body}: {reply}");
        assert!(vm.memory_bytes() <= 8 << 20);
        let reply = reply_of(&mut vm, &mut host, "return 1", (&[], &[]), Proto::Resp2).unwrap();
        assert_eq!(reply, ":1\r\n", "after {body}");
    }
}

#[test]
fn nesting_is_bounded() {
    let mut vm = vm();
    let mut run = |body: &str| {
        let mut host = TestHost::default();
        reply_of(&mut vm, &mut host, body, (&[], &[]), Proto::Resp2).unwrap()
    };
    let text = run("local t = {} for i = 1, 100000 do t = {t} end return t");
    assert!(text.contains("reached lua stack limit"), "{}", &text[..100.min(text.len())]);
    let text = run("local t = {} t[1] = t return t");
    assert!(text.contains("reached lua stack limit"));
    let nested = "*1\r\n".repeat(100_000);
    let body = format!("return redis.call('raw', '{}')", nested.replace("\r\n", "\\r\\n"));
    assert!(run(&body).contains("reached lua stack limit"));
    assert!(run("local function f() return 1 + f() end return f()").contains("stack overflow"));
    assert!(run(&format!("return {}1{}", "(".repeat(10_000), ")".repeat(10_000))).starts_with('-'));
}

/// Replies that are no replies do no harm.
#[test]
fn broken_replies_are_survived() {
    let mut vm = vm();
    for raw in ["", "*", "*5\\r\\n", "$100\\r\\nx", "%3\\r\\n", "?", "=2\\r\\nx", "*99999999\\r\\n"]
    {
        let body = format!("return tostring(redis.pcall('raw', '{raw}'))");
        let mut host = TestHost::default();
        reply_of(&mut vm, &mut host, &body, (&[], &[]), Proto::Resp2).unwrap();
    }
}

#[test]
fn scripts_that_were_unloaded_give_their_memory_back() {
    let mut vm = vm();
    let mut host = TestHost::default();
    let mut run = |vm: &mut Vm, number: usize| {
        let body = format!("local t = {{{number}}} return t[1] .. '{}'", "x".repeat(1000));
        reply_of(vm, &mut host, &body, (&[], &[]), Proto::Resp2).unwrap();
    };
    for number in 0..1000 {
        run(&mut vm, number);
    }
    let before = vm.memory_bytes();
    for number in 1000..20_000 {
        run(&mut vm, number);
    }
    let after = vm.memory_bytes();
    assert!(after < before + (4 << 20), "{before} -> {after}");
}
