//! `cjson`, `cmsgpack` and `struct`: bounds, and what was written read again. What they answer is
//! compared with the real server in `crates/conformance/scripts/scripting`.

use crate::host::{TestHost, check, eval, reply_of, vm};
use ladon_lua::{Vm, VmOptions};
use ladon_resp::Proto;

#[test]
fn the_libraries_are_read_only() {
    for body in ["cjson.x = 1", "cmsgpack.pack = 1", "rawset(struct, 'x', 1)"] {
        assert!(eval(body).starts_with("-ERR"), "{body}");
    }
}

/// Whatever depth a script allows: each level is a call on the thread's stack.
#[test]
fn nesting_is_bounded() {
    for body in [
        "cjson.decode_max_depth(1e9) return cjson.decode(('['):rep(1e6))",
        "cjson.decode_max_depth(1e9) return cjson.decode(('{\"a\":'):rep(1e6))",
        "cjson.encode_max_depth(1e9) local t = {} for i = 1, 1e5 do t = {t} end \
         return cjson.encode(t)",
        "cjson.encode_max_depth(1e9) local t = {} t.a = t return cjson.encode(t)",
        "return cmsgpack.unpack(('\\145'):rep(1e6))",
        "return cmsgpack.unpack(('\\129\\1'):rep(1e6))",
        "return cmsgpack.unpack(('\\129'):rep(1e6))",
        "return cmsgpack.unpack(('\\1'):rep(1e6))",
        "return cmsgpack.unpack_limit(('\\1'):rep(1e6), 2 ^ 31 - 1)",
        "return struct.unpack(('b'):rep(1e6), ('x'):rep(1e6))",
    ] {
        let reply = eval(body);
        assert!(reply.starts_with("-ERR"), "{body}: {}", &reply[..100.min(reply.len())]);
    }
}

#[test]
fn memory_is_bounded() {
    let options = VmOptions { memory_bytes_max: 16 << 20, ..VmOptions::default() };
    let mut vm = Vm::new(options);
    for body in [
        "return cjson.decode('[' .. ('[],'):rep(1e6) .. '1]')",
        "return cmsgpack.unpack('\\221\\0\\15\\66\\64' .. ('\\144'):rep(1e6))",
        "return cmsgpack.unpack('\\221\\255\\255\\255\\255' .. ('\\144'):rep(1e6))",
        "local s = ('\\1'):rep(1e6) local t = {} for i = 1, 100 do t[i] = s end \
         return cjson.encode(t)",
        "local s = ('\\1'):rep(1e6) local t = {} for i = 1, 100 do t[i] = s end \
         return cmsgpack.pack(t)",
        "local s = ('x'):rep(1e6) return struct.pack(('s'):rep(50), s, s, s, s, s, s, s, s, s, s, \
         s, s, s, s, s, s, s, s, s, s)",
    ] {
        let mut host = TestHost::default();
        let reply = reply_of(&mut vm, &mut host, body, (&[], &[]), Proto::Resp2).unwrap();
        assert!(reply.starts_with("-ERR"), "{body}: {}", &reply[..100.min(reply.len())]);
        assert!(vm.memory_bytes() <= 16 << 20);
        let reply = reply_of(&mut vm, &mut host, "return 1", (&[], &[]), Proto::Resp2).unwrap();
        assert_eq!(reply, ":1\r\n", "after {body}");
    }
}

/// No instruction of Lua runs meanwhile.
#[test]
fn one_long_call_can_be_stopped() {
    let mut vm = vm();
    for body in [
        "cjson.decode('[' .. ('1,'):rep(100000) .. '1]')",
        "cmsgpack.unpack('\\221\\0\\1\\134\\160' .. ('\\1'):rep(100000))",
        "struct.pack(('x'):rep(100000))",
        "struct.unpack(('x'):rep(100000), ('x'):rep(100000))",
        "struct.size(('x'):rep(100000))",
    ] {
        let mut host = TestHost { ticks_left: Some(2), ..TestHost::default() };
        assert_eq!(reply_of(&mut vm, &mut host, body, (&[], &[]), Proto::Resp2), None, "{body}");
    }
    let long = "local t = cmsgpack.unpack('\\221\\0\\1\\134\\160' .. ('\\1'):rep(100000)) ";
    for body in
        [format!("{long} return #cjson.encode(t)"), format!("{long} return #cmsgpack.pack(t)")]
    {
        // Some 24 ticks are used for the table.
        let mut host = TestHost { ticks_left: Some(26), ..TestHost::default() };
        assert_eq!(reply_of(&mut vm, &mut host, &body, (&[], &[]), Proto::Resp2), None, "{body}");
    }
}

/// Values of a generator that begins with a seed, written and read.
#[test]
fn what_was_written_is_read_again() {
    let body = r#"
        math.randomseed(7)
        local function word()
            local bytes = {}
            for i = 1, math.random(0, 40) do bytes[i] = string.char(math.random(0, 255)) end
            return table.concat(bytes)
        end
        local function value(depth)
            local kind = math.random(1, depth > 5 and 4 or 6)
            if kind == 1 then return math.random(-1000, 1000) end
            if kind == 2 then return math.random(1, 2 ^ 31 - 1) * 2 ^ math.random(-10, 20) end
            if kind == 3 then return math.random(0, 1) == 1 end
            if kind == 4 then return word() end
            local t = {}
            for i = 1, math.random(0, 20) do
                t[kind == 5 and i or 'k' .. word()] = value(depth + 1)
            end
            return t
        end
        local function same(a, b)
            if type(a) ~= 'table' or type(b) ~= 'table' then return a == b end
            for k, v in pairs(a) do if not same(v, b[k]) then return false end end
            for k in pairs(b) do if a[k] == nil then return false end end
            return true
        end
        local json = cjson.new()
        for i = 1, 300 do
            local v = value(0)
            if not same(v, cmsgpack.unpack(cmsgpack.pack(v))) then return 'cmsgpack ' .. i end
            local text = json.encode(v)
            if json.encode(json.decode(text)):len() ~= text:len() then return 'cjson ' .. i end
        end
        local letters = {b = 7, B = 8, h = 15, H = 16, i = 31, I = 32, l = 50, L = 50, i3 = 23}
        local names = {'b', 'B', 'h', 'H', 'i', 'I', 'l', 'L', 'i3'}
        for i = 1, 2000 do
            local name = names[math.random(#names)]
            local number = math.random(0, 2 ^ 31 - 2) % 2 ^ letters[name]
            local format = (i % 2 == 0 and '>' or '<') .. (i % 3 == 0 and '!' or '') .. 'b' .. name
            local text = struct.pack(format .. 's', 1, number, 'x')
            local one, got, x, rest = struct.unpack(format .. 's', text)
            if one ~= 1 or got ~= number or x ~= 'x' or rest ~= #text + 1 then
                return format .. ' ' .. number
            end
        end
        return 'well'
    "#;
    check(&[(body, "$4|well|")], eval);
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
