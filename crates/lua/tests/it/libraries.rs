//! `cjson`, `cmsgpack` and `struct`, with what nobody sends by accident. What they answer to the rest
//! is compared with a real server (`crates/conformance/scripts/scripting/libraries.txt`).

use crate::host::{TestHost, check, eval, reply_of};
use ladon_lua::{Vm, VmOptions};
use ladon_resp::Proto;

#[test]
fn values_come_back_as_they_were() {
    check(
        &[
            (
                "local t = cjson.decode('{\"a\\\\n\":[\"\\\\u00e9\",{\"\\\\t\":\"\\\\r\"}],\"b\":\"x\"}') \
                 return {t['a\\n'][1], t['a\\n'][2]['\\t'], t.b}",
                "*3|$2|\u{c3}\u{a9}|$1|\r|$1|x|",
            ),
            (
                "local text = '{\"a\":[1,2.5,\"x\",true,null,{\"b\":[]}]}' local t = cjson.decode(text) \
                 return cjson.encode(t)",
                "$36|{\"a\":[1,2.5,\"x\",true,null,{\"b\":{}}]}|",
            ),
            (
                "local t = {1, -1, 300, -70000, 2^40, 0.1, 'text', true, {a = {1}}} \
                 local u = cmsgpack.unpack(cmsgpack.pack(t)) \
                 for i = 1, 8 do if t[i] ~= u[i] then return i end end return u[9].a[1]",
                ":1|",
            ),
            (
                "return {struct.unpack('>I2<i4sBc0', struct.pack('>I2<i4sBc0', 1, -2, 'a', 1, 'z'))}",
                "*5|:1|:-2|$1|a|$1|z|:11|",
            ),
        ],
        eval,
    );
}

/// Random bytes, and valid ones with some of them changed: each is answered, and nothing is left.
#[test]
fn garbage_is_refused() {
    let mut vm = Vm::new(VmOptions { memory_bytes_max: 16 << 20, ..VmOptions::default() });
    let mut state = 1_u64;
    let mut random = move |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % bound
    };
    let seeds: [&[u8]; 4] = [
        b"{\"a\":[1,2.5,\"\\u00e9\\n\",true,null,{\"b\":[]}]}",
        b"\x83\xa1a\x01\xa1b\x93\x01\xca\x3f\xc0\x00\x00\xa5hello\xa1c\xcf\0\0\0\0\0\0\0\x01",
        b"\xdd\xff\xff\xff\xff\xdf\xff\xff\xff\xff\x01",
        b"!8>i3<I16sBc0fd xhlT",
    ];
    let calls = [
        "cjson.decode(ARGV[1])",
        "cmsgpack.unpack(ARGV[1])",
        "cmsgpack.unpack_limit(ARGV[1], 3, 1)",
        "struct.unpack(ARGV[1], ARGV[2])",
        "struct.pack(ARGV[1], 1, 2, 3, 'x', 'y', 4)",
        "struct.size(ARGV[1])",
    ];
    let bodies = calls.map(|call| format!("pcall(function() return {call} end) return 'well'"));
    for round in 0..6000 {
        let mut word = seeds[random(4)].to_vec();
        for _ in 0..random(4) {
            let at = random(word.len());
            match random(3) {
                0 => word[at] = random(256) as u8,
                1 => word.insert(at, random(256) as u8),
                _ => word.truncate(at.max(1)),
            }
        }
        let data: Vec<u8> = (0..random(40)).map(|_| random(256) as u8).collect();
        let args: &[&[u8]] = &[&word, &data];
        let body = &bodies[round % bodies.len()];
        let reply = reply_of(&mut vm, &mut TestHost::default(), body, (&[], args), Proto::Resp2);
        assert_eq!(reply.as_deref(), Some("$4\r\nwell\r\n"), "{body} {args:?}");
    }
    assert!(vm.memory_bytes() < 4 << 20, "{}", vm.memory_bytes());
}

/// What is nested, long or announced as long is an error at the most.
#[test]
fn libraries_are_bounded() {
    let mut vm = Vm::new(VmOptions { memory_bytes_max: 32 << 20, ..VmOptions::default() });
    for body in [
        "cjson.decode_max_depth(1000000) return cjson.decode(('['):rep(1000000))",
        "cjson.encode_max_depth(1000000) local t = {} t[1] = t return cjson.encode(t)",
        "return cmsgpack.unpack(('\\145'):rep(1000000))",
        "return cmsgpack.unpack(('\\129'):rep(1000000))",
        "return cmsgpack.unpack(('\\1'):rep(1000000))",
        "return cmsgpack.unpack('\\221\\255\\255\\255\\255\\1')",
        "return cmsgpack.unpack('\\219\\255\\255\\255\\255x')",
        "local s = ('x'):rep(10000000) return cmsgpack.pack(s, s, s, s)",
        "local s = ('x'):rep(10000000) return cjson.encode({s, s, s, s})",
        "return struct.pack(('c0'):rep(100), 'x')",
        "return struct.pack('c2147483647', 'x')",
        "return struct.unpack(('x'):rep(1000) .. 'c2147483647', ('y'):rep(2000))",
        "cjson.encode_sparse_array(false, 0) local t = {} t[2^31 - 1] = 1 return cjson.encode(t)",
    ] {
        let mut host = TestHost { ticks_left: Some(100_000), ..TestHost::default() };
        let reply = reply_of(&mut vm, &mut host, body, (&[], &[]), Proto::Resp2);
        assert!(reply.is_none_or(|reply| reply.starts_with("-ERR")), "{body}");
        assert!(vm.memory_bytes() <= 32 << 20);
    }
}
