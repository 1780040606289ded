//! Whatever a script does, the host is asked again and again whether it may go on.
//!
//! Random scripts nest the functions of all libraries, with arguments that make them long. The host
//! says "end" after some looks, and each script has to end then. Between two looks lies processor
//! time of the thread, which other processes do not lengthen.

use crate::host::TestHost;
use ladon_lua::{Ended, Host, LogLevel, Stop, Vm, VmOptions, sha1_hex};
use ladon_resp::Proto;
use ladon_testkit::Random;
use std::time::Duration;

/// Longer than any single instruction of a machine with this memory takes without optimization, and
/// much shorter than what does not look.
const GAP_MAX: Duration = Duration::from_millis(400);
const MEMORY_BYTES: usize = 48 << 20;
const LOOKS: usize = 10;

/// Measures the time between two looks.
struct Looker {
    host: TestHost,
    last: Duration,
    longest: Duration,
}

impl Looker {
    fn new() -> Looker {
        let host = TestHost { ticks_left: Some(LOOKS), ..TestHost::default() };
        Looker { host, last: thread_time(), longest: Duration::ZERO }
    }

    fn look(&mut self) {
        let now = thread_time();
        self.longest = self.longest.max(now.saturating_sub(self.last));
        self.last = now;
    }
}

impl Host for Looker {
    fn call(&mut self, arguments: &[&[u8]], reply: &mut Vec<u8>) -> Result<(), Stop> {
        if arguments == [b"spin"] {
            let until = thread_time() + 2 * GAP_MAX;
            while thread_time() < until {}
            reply.extend_from_slice(b":1\r\n");
            return Ok(());
        }
        self.host.call(arguments, reply)
    }

    fn set_resp(&mut self, proto: Proto) {
        self.host.set_resp(proto);
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn may_run(&mut self, arguments: &[&[u8]]) -> Result<bool, String> {
        self.host.may_run(arguments)
    }

    fn tick(&mut self) -> Result<(), Stop> {
        self.look();
        self.host.tick()
    }
}

/// Processor time of this thread.
pub fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: The time has room for the answer.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Runs a script until it is ended. Returns how, and the longest time without a look.
fn run(vm: &mut Vm, body: &str) -> (Ended, Duration) {
    let script = vm.load(&sha1_hex(body.as_bytes()), body.as_bytes()).expect(body);
    let mut host = Looker::new();
    let mut out = Vec::new();
    let ended = vm.run(&script, &[], &[], Proto::Resp2, &mut host, &mut out);
    host.look();
    vm.unload(&script);
    (ended, host.longest)
}

fn vm() -> Vm {
    Vm::new(VmOptions { memory_bytes_max: MEMORY_BYTES, ..VmOptions::default() })
}

/// Expressions. `S`, `N`, `T`, `F` and `V` stand for a string, a number, a table, a function and
/// any of them.
const EXPRESSIONS: [&str; 78] = [
    "string.find(S, S)",
    "string.find(S, S, N, true)",
    "string.match(S, S)",
    "string.gsub(S, S, S)",
    "string.gsub(S, S, F)",
    "string.gsub(S, S, T)",
    "string.gmatch(S, S)()",
    "string.rep(S, N)",
    "string.rep(S, N, S)",
    "string.format('%s %q %d %.3f', S, S, 5, 1.5)",
    "string.format(S, S, N)",
    "string.byte(S, N, N)",
    "string.char(N, 65)",
    "string.sub(S, N, N)",
    "string.upper(S)",
    "string.lower(S)",
    "string.reverse(S)",
    "string.len(S)",
    "table.concat(T, S)",
    "table.concat(T, S, N, N)",
    "table.sort(T)",
    "table.sort(T, F)",
    "table.insert(T, N, V)",
    "table.insert(T, V)",
    "table.remove(T, N)",
    "table.remove(T)",
    "table.maxn(T)",
    "table.foreach(T, F)",
    "table.foreachi(T, F)",
    "table.getn(T)",
    "unpack(T)",
    "unpack(T, N, N)",
    "cjson.encode(T)",
    "cjson.encode(S)",
    "cjson.decode(S)",
    "cjson.decode('[' .. S .. ']')",
    "cjson.decode(('['):rep(N))",
    "cmsgpack.pack(T, S, N)",
    "cmsgpack.unpack(S)",
    "cmsgpack.unpack(cmsgpack.pack(T))",
    "struct.pack(S, N, S)",
    "struct.unpack(S, S)",
    "struct.size(S)",
    "struct.pack('!' .. N .. 'i', N)",
    "bit.band(N, N)",
    "bit.tohex(N, N)",
    "tonumber(S)",
    "tonumber(S, 36)",
    "tostring(V)",
    "select(N, V, V)",
    "next(T)",
    "pairs(T)",
    "load(S)",
    "load(F)",
    "loadstring(S)",
    "pcall(F, V)",
    "xpcall(F, F)",
    "coroutine.wrap(F)(V)",
    "coroutine.resume(coroutine.create(F), V)",
    "error(V)",
    "math.floor(N)",
    "math.random(N)",
    "redis.sha1hex(S)",
    "redis.error_reply(S)",
    "redis.pcall('echo', S, N)",
    "redis.pcall('raw', S)",
    "rawget(T, V)",
    "rawset(T, V, V)",
    "rawequal(V, V)",
    "#T",
    "S .. S",
    "S < S",
    "S + 0",
    "T[V]",
    "setmetatable(T, {__index = F, __lt = F, __concat = F, __call = F, __tostring = F})",
    "getmetatable(T)",
    "collectgarbage()",
    "collectgarbage('step')",
];

fn string(random: &mut Random, depth: u32) -> String {
    match random.below(10) {
        0 => format!("('ab'):rep({})", random.pick(&[10, 1000, 500_000, 3_000_000])),
        1 => format!(
            "('{}'):rep({})",
            random.pick(&["a?", ".-", "(.-)", "%b()", "[^a]*", "a"]),
            random.pick(&[1, 8, 60, 1000])
        ),
        2 => format!(
            "('{}'):rep({})",
            random.pick(&["i4", "!4", "c9", "\\147", "[1],", "\\\"", " "]),
            random.pick(&[1, 100, 100_000, 2_000_000])
        ),
        3 => format!("tostring({})", value(random, depth)),
        4..7 => "(s or 'x')".to_owned(),
        7 => "'.-b'".to_owned(),
        _ => "('a'):rep(40)".to_owned(),
    }
}

fn number(random: &mut Random) -> String {
    let choices = [
        "0",
        "1",
        "-1",
        "3",
        "7",
        "1000",
        "100000",
        "2^31 - 1",
        "-2^31",
        "2^53",
        "1/0",
        "0/0",
        "#(s or '')",
        "-100000",
        "0.5",
    ];
    random.pick(&choices).to_owned()
}

fn table(random: &mut Random) -> String {
    random
        .pick(&[
            "(t or {})",
            "({})",
            "({1, 'x', {}})",
            "made(1000)",
            "made(200000)",
            "sparse()",
            "deep()",
        ])
        .to_owned()
}

fn function(random: &mut Random, depth: u32) -> String {
    match random.below(5) {
        0 => random
            .pick(&["tostring", "string.len", "redis.pcall", "pcall", "next", "math.max", "load"])
            .to_owned(),
        1 => "(f or tostring)".to_owned(),
        2 => "function() while true do end end".to_owned(),
        _ => format!("function(a, b) local v = {} return v end", value(random, depth)),
    }
}

fn value(random: &mut Random, depth: u32) -> String {
    if depth == 0 {
        return match random.below(4) {
            0 => string(random, 0),
            1 => number(random),
            2 => table(random),
            _ => function(random, 0),
        };
    }
    let mut text = String::new();
    for letter in random.pick(&EXPRESSIONS).chars() {
        match letter {
            'S' => text.push_str(&string(random, depth - 1)),
            'N' => text.push_str(&format!("({})", number(random))),
            'T' => text.push_str(&table(random)),
            'F' => text.push_str(&function(random, depth - 1)),
            'V' => text.push_str(&value(random, depth - 1)),
            other => text.push(other),
        }
    }
    format!("({text})")
}

/// A script without end.
fn script(random: &mut Random) -> String {
    let mut text = "local s, t, f \
        local function made(n) local t = {} for i = 1, n do t[i] = i * 7919 % n end return t end \
        local function sparse() local t = {} for i = 1, 60000 do t[i] = i end \
            for i = 1, 59999 do t[i] = nil end return t end \
        local function deep() local t = {} for i = 1, 900 do t = {t} end return t end \
        local function keep(x) if type(x) == 'string' then s = x elseif type(x) == 'table' then t = x \
            elseif type(x) == 'function' then f = x end end \
        while true do "
        .to_owned();
    for _ in 0..=random.below(4) {
        let depth = 1 + random.below(3) as u32;
        let value = value(random, depth);
        text.push_str(&format!("pcall(function() keep({value}) end) "));
    }
    text + "end"
}

#[test]
fn every_script_looks_again_and_again() {
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let body = script(&mut random);
        println!("seed {seed}: {body}");
        let (ended, longest) = run(&mut vm(), &body);
        assert_eq!(ended, Ended::Stopped, "seed {seed}: {body}");
        assert!(longest < GAP_MAX, "seed {seed}: no look for {longest:?}: {body}");
    }
}

/// What the test above would say of a function that does not look.
#[test]
fn a_function_that_does_not_look_is_noticed() {
    let (_, longest) = run(&mut vm(), "redis.call('spin')");
    assert!(longest >= GAP_MAX, "{longest:?}");
    let (ended, _) = run(&mut vm(), "return 1");
    assert_eq!(ended, Ended::Replied, "what ends by itself is told from what is stopped");
}
