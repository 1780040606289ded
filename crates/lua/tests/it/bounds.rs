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
        "load(function() while true do end end)",
        "while true do pcall(load, function() while true do end end) end",
        "while true do load(function() error('x') end) end",
        "load(function() return 'local a = 1 ' end)",
        "return string.find(string.rep('a', 60), string.rep('a?', 60) .. string.rep('a', 60))",
        "return string.match(string.rep('a', 60), string.rep('a?', 60) .. string.rep('a', 60))",
        "return string.gsub(string.rep('a', 60), string.rep('a?', 60) .. string.rep('a', 60), '')",
        "string.gmatch(string.rep('a', 60), string.rep('a?', 60) .. string.rep('a', 60))()",
        "return string.find(string.rep('a', 100000), string.rep('.-', 20) .. 'b')",
        "return string.find(string.rep('(', 100000), '%b()')",
        "local t = {} for i = 1, 100000 do t[i] = i % 2 end table.sort(t)",
        "local s = ('x'):rep(2000000) while s < s .. 'x' do end",
        "local t = {} for i = 1, 200000 do t[i] = '' end while true do table.concat(t) end",
        "while true do redis.sha1hex(('x'):rep(1000000)) end",
        "while true do collectgarbage() end",
        "pcall(tostring, setmetatable({}, {__tostring = tostring})) while true do end",
        "local t = setmetatable({}, {__index = tostring, __tostring = tostring}) while true do \
         pcall(function() return t.x end) end",
        "local t = {} for i = 1, 100000 do t[i] = i end for i = 1, 99999 do t[i] = nil end \
         while true do next(t) end",
    ] {
        stopped(&mut vm, body, 3);
    }
}

/// A script that was stopped leaves the hook as it was, wherever it was stopped.
#[test]
fn each_script_after_a_stop_can_be_stopped() {
    let mut vm = vm();
    for body in [
        "load(function() while true do end end) return 1",
        "pcall(load, function() while true do end end) while true do end",
        "load(function() local f = load(function() while true do end end) return 'x' end)",
        "xpcall(function() while true do end end, function() while true do end end)",
        "string.gsub('x', 'x', function() load(function() while true do end end) end)",
        "table.sort({1, 2}, function() load(function() while true do end end) end)",
        "coroutine.wrap(function() load(function() while true do end end) end)()",
        "local c = coroutine.create(function() coroutine.yield(load(function() while true do end \
         end)) end) coroutine.resume(c)",
        "setmetatable({}, {__index = function() while true do end end}).x()",
        "string.format('%s', setmetatable({}, {__tostring = function() while true do end end}))",
        "local t = setmetatable({}, {__tostring = function() while true do end end}) return _G[t]",
    ] {
        stopped(&mut vm, body, 3);
        stopped(&mut vm, "while true do end", 3);
    }
}

/// Ways to call a function from C, each of which takes some of the thread's stack.
const CALLS: [&str; 16] = [
    "string.gsub('x', 'x', f)",
    "string.gsub('x', '(x)', setmetatable({}, {__index = f}))",
    "coroutine.wrap(f)()",
    "coroutine.resume(coroutine.create(f))",
    "xpcall(f, f)",
    "xpcall(error, f)",
    "pcall(f)",
    "load(f)",
    "loadstring('return ...')(f())",
    "table.sort({1, 2, 3}, f)",
    "table.sort({setmetatable({}, {__lt = f}), setmetatable({}, {__lt = f})})",
    "tostring(setmetatable({}, {__tostring = f}))",
    "string.format('%s', setmetatable({}, {__tostring = f}))",
    "local _ = _G[setmetatable({}, {__tostring = f})]",
    "pcall(error, setmetatable({}, {__index = f}))",
    "error(setmetatable({}, {__tostring = f}))",
];

/// As deep as Lua's own limit allows it at least, and then no deeper.
#[test]
fn calls_from_c_are_bounded() {
    let run = |body: &str| {
        let mut host = TestHost { ticks_left: Some(200), ..TestHost::default() };
        let mut vm = vm();
        let options = reply_of(&mut vm, &mut host, body, (&[], &[]), Proto::Resp2);
        // The machine is as good as before.
        let mut host = TestHost::default();
        let reply = reply_of(&mut vm, &mut host, "return 1", (&[], &[]), Proto::Resp2);
        assert_eq!(reply.unwrap(), ":1\r\n", "after {body}");
        options
    };
    for call in CALLS {
        let body = format!("local f function f() {call} return 'x' end f() return 'well'");
        run(&body);
        let body = format!(
            "local f function f() pcall(function() {call} end) return 'x' end f() return 1"
        );
        run(&body);
        if call.starts_with("xpcall(error") || call.starts_with("error(") {
            // Lua calls no handler within a handler.
            continue;
        }
        let counted = format!(
            "local n = 0 local f function f() n = n + 1 if n < 200 then {call} end return '' end \
             pcall(f) return n"
        );
        let reached = run(&counted).unwrap();
        let number: u64 = reached.trim_start_matches(':').trim_end().parse().unwrap();
        assert!(number >= 199, "{call}: {reached}");
    }
    for one in CALLS {
        for other in CALLS {
            run(&format!(
                "local f, g function f() local f = g {one} return 'x' end \
                 function g() local f = f {other} return 'x' end f() return 1"
            ));
        }
    }
    let body = "local n = 0 local f function f() n = n + 1 string.gsub('x', 'x', f) end f()";
    assert!(run(body).unwrap().contains("C stack overflow"));
}

/// What a script sets of the libraries lasts until its end.
#[test]
fn settings_last_for_a_script() {
    let mut vm = vm();
    let mut run = |body: &str| {
        let mut host = TestHost::default();
        reply_of(&mut vm, &mut host, body, (&[], &[]), Proto::Resp2).unwrap()
    };
    for (set, use_) in [
        ("cjson.encode_number_precision(3)", "return cjson.encode(1.23456789)"),
        ("cjson.encode_max_depth(1)", "return cjson.encode({{1}})"),
        ("cjson.decode_max_depth(1)", "return cjson.encode(cjson.decode('[[1]]'))"),
        ("cjson.encode_sparse_array(true)", "return cjson.encode({[1000] = 1})"),
        ("cjson.encode_invalid_numbers('null')", "return cjson.encode(0/0)"),
        ("cjson.decode_invalid_numbers(false)", "return tostring(cjson.decode('0x10'))"),
        ("cjson.encode_keep_buffer(false)", "return tostring(cjson.encode_keep_buffer())"),
        ("math.randomseed(7)", "math.randomseed(9) return tostring(math.random())"),
    ] {
        let before = run(use_);
        let within = run(&format!("{set} {use_}"));
        assert_eq!(run(use_), before, "{set}");
        assert!(within != before || set.contains("randomseed"), "{set} did nothing");
        run(&format!("{set} error('x')"));
        assert_eq!(run(use_), before, "{set}, then an error");
    }
    let numbers: Vec<String> = (0..3).map(|_| run("return tostring(math.random())")).collect();
    let mut other = crate::host::vm();
    let mut run = |body: &str| {
        let mut host = TestHost::default();
        reply_of(&mut other, &mut host, body, (&[], &[]), Proto::Resp2).unwrap()
    };
    for number in numbers {
        // As if nobody had chosen a seed.
        assert_eq!(run("return tostring(math.random())"), number);
        run("math.randomseed(3) math.random()");
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
