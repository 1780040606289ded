//! Libraries of functions: what they register, and how it runs.

use crate::host::{TestHost, vm};
use ladon_lua::{Ended, Vm};
use ladon_resp::Proto;

fn call(vm: &mut Vm, function: &ladon_lua::RegisteredFunction, keys: &[&[u8]]) -> String {
    let (mut host, mut out) = (TestHost::default(), Vec::new());
    let ended = vm.run_function(
        &function.handle,
        &function.name,
        keys,
        &[b"arg"],
        Proto::Resp2,
        &mut host,
        &mut out,
    );
    assert_eq!(ended, Ended::Replied);
    String::from_utf8(out).unwrap()
}

#[test]
fn functions_are_registered_in_both_forms() {
    let mut vm = vm();
    let code = b"#!lua name=lib\n\
        local function f(keys, args) return {keys[1], args[1]} end\n\
        redis.register_function('first', f)\n\
        redis.register_function{function_name = 'second', callback = f, description = 'what', \
        flags = {'no-writes', 'allow-oom'}}";
    let library = vm.load_library(code, &mut TestHost::default()).unwrap();
    let names: Vec<_> = library.functions.iter().map(|function| &function.name[..]).collect();
    assert_eq!(names, [b"first".as_slice(), b"second"]);
    let second = &library.functions[1];
    assert_eq!(second.description.as_deref(), Some(b"what".as_slice()));
    assert_eq!(second.flags, [b"no-writes".to_vec(), b"allow-oom".to_vec()]);
    for function in &library.functions {
        assert_eq!(call(&mut vm, function, &[b"key"]), "*2\r\n$3\r\nkey\r\n$3\r\narg\r\n");
    }
    vm.unload_library(&library);
}

#[test]
fn a_library_that_is_wrong_registers_nothing() {
    let mut vm = vm();
    for (code, expected) in [
        ("x = 1", "Attempt to modify a readonly table"),
        (
            "return redis.call('get', 'x')",
            "ERR user_function:2: Script attempted to access nonexistent global variable 'call'",
        ),
        ("error('bad')", "Script attempted to access nonexistent global variable 'error'"),
        ("return math.floor(1)", "Script attempted to access nonexistent global variable 'math'"),
        ("redis.x = 1", "Attempt to modify a readonly table"),
        ("redis.register_function('a b', function() end)", "Library names can only contain"),
        ("redis.register_function('', function() end)", "Library names can only contain"),
        (
            "for _ = 1, 2 do redis.register_function('a', function() end) end",
            "Error registering functions: ERR Function already exists in the library",
        ),
        (
            "redis.register_function{function_name = 'a', callback = function() end, \
             flags = {'never'}}",
            "unknown flag given",
        ),
        ("redis.register_function{[{}] = 1}", "key given to redis.register_function is not a"),
        ("redis.register_function{1}", "unknown argument given"),
        ("redis.register_function{function_name = {}}", "function_name argument given to"),
        ("redis.register_function{description = {}}", "description argument given to"),
        ("redis.register_function{callback = 1}", "callback argument given to"),
        ("redis.register_function{flags = 1}", "flags argument to"),
        ("redis.register_function('a')", "with a single argument is only"),
        ("redis.register_function('a', 1)", "second argument"),
        ("redis.register_function{function_name = 'a'}", "must get a callback argument"),
        ("redis.register_function{callback = function() end}", "must get a function name"),
        ("redis.register_function{what = 1}", "unknown argument given"),
        ("redis.register_function(1, 2, 3)", "wrong number of arguments"),
        (
            "redis.register_function{function_name = 'a', callback = function() end, flags = {1}}",
            "unknown flag given",
        ),
        ("return (", "Error compiling function"),
    ] {
        let code = format!("#!lua name=lib\n{code}");
        let text = vm.load_library(code.as_bytes(), &mut TestHost::default()).unwrap_err();
        assert!(text.contains(expected), "{code}: {text}");
    }
    let mut host = TestHost { ticks_left: Some(2), ..TestHost::default() };
    let text = vm.load_library(b"while true do end", &mut host).unwrap_err();
    assert_eq!(text, "ERR Error registering functions: ERR FUNCTION LOAD timeout");
}

#[test]
fn functions_do_not_see_the_keys_of_scripts() {
    let mut vm = vm();
    let code = b"redis.register_function('f', function() return KEYS end)\n\
                 redis.register_function('g', function() return ARGV end)";
    let library = vm.load_library(code, &mut TestHost::default()).unwrap();
    for function in &library.functions {
        let script = vm.load(b"0000000000000000000000000000000000000000", b"return KEYS").unwrap();
        let (mut host, mut out) = (TestHost::default(), Vec::new());
        vm.run(&script, &[b"secret"], &[b"secret"], Proto::Resp2, &mut host, &mut out);
        assert_eq!(out, b"*1\r\n$6\r\nsecret\r\n");
        let text = call(&mut vm, function, &[]);
        assert!(text.contains("nonexistent global variable"), "{text}");
    }
}

/// Names, flags and fields as Redis takes them: numbers are names, and case does not matter.
#[test]
fn what_is_registered_may_be_spelt_in_several_ways() {
    let mut vm = vm();
    let code = b"redis.register_function(15, function() return math.floor(1.5) end)\n\
        redis.register_function{FUNCTION_NAME = 2, Callback = function() return 1 end,\n\
        flags = {'NO-WRITES', 'allow-OOM'}, description = 3}\n\
        redis.register_function{function_name = 'f', callback = function() end, flags = {a = 1}}";
    let library = vm.load_library(code, &mut TestHost::default()).unwrap();
    let [first, second, third] = &library.functions[..] else { panic!("three functions") };
    assert_eq!((&first.name[..], &second.name[..]), (&b"15"[..], &b"2"[..]));
    assert_eq!(second.flags, [b"no-writes".to_vec(), b"allow-oom".to_vec()]);
    assert_eq!(second.description.as_deref(), Some(&b"3"[..]));
    assert!(third.flags.is_empty());
    assert_eq!(call(&mut vm, first, &[]), ":1\r\n", "it sees all globals when it runs");
    assert_eq!(call(&mut vm, second, &[]), ":1\r\n");
}

#[test]
fn functions_are_registered_only_while_the_library_is_loaded() {
    let mut vm = vm();
    let code = b"local r = redis redis.register_function('f', function() return \
                 tostring(redis.register_function) end) redis.register_function('g', function() \
                 return redis.call('echo', 'x') end)";
    let library = vm.load_library(code, &mut TestHost::default()).unwrap();
    assert_eq!(call(&mut vm, &library.functions[0], &[]), "$3\r\nnil\r\n");
    assert_eq!(call(&mut vm, &library.functions[1], &[]), "*1\r\n$1\r\nx\r\n");
    // Who kept what the code saw while it was loaded has it still.
    for kept in ["local register = redis.register_function", "local lib = redis"] {
        let called = if kept.contains("lib") { "lib.register_function" } else { "register" };
        let code = format!(
            "{kept} redis.register_function('f', function() {called}('g', function() end) end)"
        );
        let library = vm.load_library(code.as_bytes(), &mut TestHost::default()).unwrap();
        let text = call(&mut vm, &library.functions[0], &[]);
        assert!(text.contains("can only be called on FUNCTION LOAD command"), "{text}");
    }
}

/// Libraries that were replaced leave nothing.
#[test]
fn what_is_unloaded_can_be_collected() {
    let mut vm = vm();
    vm.collect();
    let before = vm.memory_bytes();
    let text = "x".repeat(1 << 20);
    for number in 0..20 {
        let code = format!(
            "local text = '{text}{number}' redis.register_function('f', function() return #text end)"
        );
        let library = vm.load_library(code.as_bytes(), &mut TestHost::default()).unwrap();
        assert!(call(&mut vm, &library.functions[0], &[]).starts_with(":10485"));
        assert!(vm.memory_bytes() > before + (1 << 20));
        vm.unload_library(&library);
    }
    vm.collect();
    let after = vm.memory_bytes();
    assert!(after < before + 10_000, "{before} bytes before, {after} after");
}
