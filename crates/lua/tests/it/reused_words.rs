//! `KEYS` and `ARGV` of scripts that only index them are the same tables each time: nothing of one
//! run may be seen by another.

use crate::host::{TestHost, reply_of, vm};
use ladon_lua::Vm;
use ladon_resp::Proto;

fn run(vm: &mut Vm, body: &str, keys: &[&[u8]], args: &[&[u8]]) -> String {
    let reply = reply_of(vm, &mut TestHost::default(), body, (keys, args), Proto::Resp2);
    reply.unwrap_or_default().replace("\r\n", "|")
}

type Words<'a> = &'a [&'a [u8]];

/// Of all kinds: one that only indexes, one that has the tables, and one that goes another way.
const LENGTHS: [&str; 4] = [
    "return #KEYS .. ' ' .. #ARGV .. ' ' .. tostring(KEYS[1]) .. ' ' .. tostring(ARGV[2])",
    "local k, a = KEYS, ARGV
     return #k .. ' ' .. #a .. ' ' .. tostring(k[1]) .. ' ' .. tostring(a[2])",
    "return #_G.KEYS .. ' ' .. #_G.ARGV .. ' ' .. tostring(_G.KEYS[1]) .. ' ' .. tostring(ARGV[2])",
    "return loadstring([[return #KEYS .. ' ' .. #ARGV .. ' ' .. tostring(KEYS[1]) .. ' ' ..
     tostring(ARGV[2])]])()",
];

#[test]
fn each_run_has_its_own_words() {
    let long = vec![b'x'; 10_000];
    let many = vec![&b"m"[..]; 100];
    let runs: [(Words<'_>, Words<'_>, &str); 11] = [
        (&[b"k"], &[b"1", b""], "1 2 k "),
        (&[b"k"], &[b"", b"fifteen letters"], "1 2 k fifteen letters"),
        (&[b"k"], &[b"1", b"sixteen letters!"], "1 2 k sixteen letters!"),
        (&[b"k"], &[b"1", b"sixteen letters?"], "1 2 k sixteen letters?"),
        (&[b"k"], &[b"1", b"2"], "1 2 k 2"),
        (&[], &[], "0 0 nil nil"),
        (&[b"a", b"b", b"c"], &[b"1"], "3 1 a nil"),
        (&[b"a"], &[&long, b"y"], "1 2 a y"),
        (&[b"z"], &[], "1 0 z nil"),
        (&many, &many, "100 100 m m"),
        (&[], &[b"1", b"2", b"3"], "0 3 nil 2"),
    ];
    let mut vm = vm();
    let all = || LENGTHS.iter().flat_map(|body| runs.iter().map(move |run| (body, run)));
    for (first, second) in all().flat_map(|first| all().map(move |second| (first, second))) {
        for (body, (keys, args, shown)) in [first, second] {
            let reply = run(&mut vm, body, keys, args);
            assert_eq!(reply, format!("${}|{shown}|", shown.len()), "{body} after {}", first.0);
        }
    }
}

#[test]
fn what_a_script_does_to_its_words_ends_with_it() {
    let mut vm = vm();
    for body in [
        "KEYS[1] = 'changed' KEYS[3] = 'x' KEYS.x = 1 ARGV[2] = nil return 1",
        "setmetatable(KEYS, {__index = function() return 'x' end}) return 1",
        "table.insert(ARGV, 'x') table.remove(KEYS) return 1",
        "local k = KEYS for i = 1, 100 do k[i] = i end return 1",
        "rawset(ARGV, 2, 'x') KEYS[0] = 'x' return 1",
    ] {
        assert_eq!(run(&mut vm, body, &[b"k"], &[b"a", b"b"]), ":1|", "{body}");
        let after = "return tostring(KEYS[1]) .. tostring(KEYS[2]) .. tostring(KEYS[3]) ..
                     tostring(KEYS.x) .. tostring(KEYS[0]) .. tostring(ARGV[1]) .. #ARGV";
        assert_eq!(run(&mut vm, after, &[b"k"], &[b"a", b"b"]), "$15|knilnilnilnila2|", "{body}");
    }
}

#[test]
fn reading_and_setting_globals_fails_as_ever() {
    let mut vm = vm();
    for body in
        ["return nothing", "local x = KEYS[1] return nothing", "local g = _G return nothing"]
    {
        let reply = run(&mut vm, body, &[b"k"], &[]);
        let text =
            "user_script:1: Script attempted to access nonexistent global variable 'nothing'";
        assert!(reply.contains(text), "{body}: {reply}");
    }
    for body in ["redis.call = nil", "KEYS = {}", "local f = function() redis = nil end f()"] {
        let reply = run(&mut vm, body, &[b"k"], &[]);
        assert!(reply.contains("Attempt to modify a readonly table"), "{body}: {reply}");
    }
    assert_eq!(run(&mut vm, "return redis.call('echo', KEYS[1])", &[b"k"], &[]), "*1|$1|k|");
}

#[test]
fn words_of_a_run_are_freed() {
    let mut vm = vm();
    let long = vec![b'x'; 100 << 20];
    for body in LENGTHS {
        run(&mut vm, body, &[b"k"], &[&long]);
        run(&mut vm, LENGTHS[0], &[b"k"], &[b"short"]);
        vm.collect();
        let bytes = vm.memory_bytes();
        assert!(bytes < 1 << 20, "{bytes} after {body}");
    }
    // The other way round.
    run(&mut vm, LENGTHS[0], &[b"k"], &[&long]);
    run(&mut vm, LENGTHS[1], &[b"k"], &[b"short"]);
    vm.collect();
    assert!(vm.memory_bytes() < 1 << 20);
}
