//! Patterns and the other functions that are not LuaJIT's own, beside LuaJIT's.

use crate::check_patterns;
use ladon_testkit::Random;

/// Random patterns of what patterns consist of, in texts that they are likely to match.
#[test]
fn patterns_are_those_of_luajit() {
    const PARTS: [&str; 40] = [
        "a", "b", "1", ".", "%a", "%d", "%s", "%w", "%W", "%x", "%p", "%c", "%l", "%U", "%z", "%g",
        "[", "]", "[ab]", "[^a]", "[a-c]", "[%d_]", "[]]", "[^%s]", "(", ")", "()", "(a*)", "%b()",
        "%bab", "%f[a]", "%f[%W]", "%1", "%2", "*", "+", "-", "?", "^", "$",
    ];
    const LETTERS: &[u8] = b"aaabbc1_ ().,\0\xff";
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let mut pattern = String::new();
        for _ in 0..=random.below(6) {
            pattern.push_str(random.pick(&PARTS));
        }
        pattern.truncate(16);
        let mut data = vec![pattern.len() as u8];
        data.extend_from_slice(pattern.as_bytes());
        data.extend((0..random.below(14)).map(|_| random.pick(LETTERS)));
        println!("seed {seed}");
        check_patterns::pattern(&data);
    }
}

/// What is long enough for the parts of the code that look at the host, and what is empty.
#[test]
fn strings_are_those_of_luajit() {
    same(&[
        "local s = ('x'):rep(300000) return s:find('y', 1, true), s:find('xx', 299999), s:find('')",
        "return (('x'):rep(600000) .. 'needle' .. ('x'):rep(9)):find('needle')",
        "return ('ab'):rep(1000001) == ('abab'):rep(500000) .. 'ab'",
        "local s = ('ab'):rep(500001, ', ') return #s, s:sub(-9), s:sub(1, 9), s:match('^[ab, ]+$') == s",
        "return ('ab'):rep(3, '-'), ('ab'):rep(1, '-'), ('ab'):rep(0, '-'), ('ab'):rep(-1)",
        "return (''):rep(2^40), (''):rep(3, ','), ('x'):rep('3'), string.rep(12, 2)",
        "return pcall(string.rep, {}, 1)",
        "return ('a.b'):gsub('%.', '%%')",
        "return ('abc'):gsub('', '-')",
        "return ('abc'):gsub('b*', '-')",
        "return ('abc'):gsub('.', {a = 1, b = false}, 2)",
        "return ('abc'):gsub('^.', string.upper)",
        "return pcall(string.gsub, 'a', 'a', function() return {} end)",
        "return pcall(string.gsub, 'a', 'a')",
        "return pcall(string.gsub, 'a', 'a', '%9')",
        "return string.find(12345, 34), string.find('a', 'a', 10), string.find('a', '', 10)",
        "return pcall(string.find, 'a')",
        "return string.gsub(('ab'):rep(200000), 'a(b)', '%1%1') == ('bb'):rep(200000)",
    ]);
}

#[test]
fn tables_are_those_of_luajit() {
    same(&[
        "local t = {} for i = 1, 5000 do t[i] = i end return table.concat(t, ','), table.concat(t, 1, 7)",
        "local t = {} for i = 1, 5000 do t[i] = i end t[4000] = {} return pcall(table.concat, t)",
        "local t = {} for i = 1, 5000 do t[i] = i end return table.concat(t, '-', 100, 4000)",
        "return pcall(table.concat, {1}, ',', 1, 5000)",
        "return table.concat({}), table.concat({}, 'x'), table.concat({1, 2}, 'x', 2)",
        "return pcall(table.concat)",
        "local t = {} for i = 1, 999 do t[i] = i * 7919 % 100 + i / 1000 end table.sort(t) \
         return table.concat(t, ',')",
        // What is equal keeps an order that depends on the algorithm.
        "local t = {} for i = 1, 999 do t[i] = {i * 7919 % 10, i} end \
         table.sort(t, function(a, b) return a[1] < b[1] end) \
         for i = 1, 999 do t[i] = t[i][2] end return table.concat(t, ',')",
        "local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return unpack(t)",
        "return pcall(table.sort, {1, 2, 3, 4, 5}, function() return true end)",
        "return pcall(table.sort, {1, 'x'})",
        "return pcall(table.sort, {1, 2}, 3)",
        "return pcall(table.sort)",
    ]);
}

#[test]
fn calls_are_those_of_luajit() {
    same(&[
        "return load('return 1, 2')()",
        "return loadstring('return ...', 'name')(7)",
        "local n = 0 local f = load(function() n = n + 1 return ({'return', ' 4', '2'})[n] end) \
         return f()",
        "local n = 0 return load(function() n = n + 1 return ({'return 1', '', ' + 2'})[n] end)()",
        "return load(function() error('no') end)",
        "return load(function() error({}) end) == nil",
        "return load(function() return {} end)",
        "return load('x x')",
        "return load('x x', '=mine')",
        "return load(function() return nil end)()",
        "return loadstring('x = ')",
        "return pcall(load, {})",
        "return pcall(load)",
        "local co = coroutine.create(function(a, b) local c = coroutine.yield(a + b) error('e' .. c) end) \
         local a, b = coroutine.resume(co, 1, 2) local c, d = coroutine.resume(co, 'x') \
         local e, f = coroutine.resume(co) return a, b, c, d, e, f, coroutine.status(co)",
        "local f = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) \
         local t = {} for i in f do t[#t + 1] = i end return unpack(t)",
        "local co co = coroutine.create(function() return coroutine.resume(co) end) \
         return coroutine.resume(co)",
        "local co co = coroutine.create(function() \
         local other = coroutine.create(function() return coroutine.resume(co) end) \
         return coroutine.resume(other) end) return coroutine.resume(co)",
        "return pcall(coroutine.wrap(function() error({}) end)) == false",
        "return pcall(coroutine.wrap(function() error('x') end))",
        "local f = coroutine.wrap(function() end) f() return pcall(f)",
        "return pcall(coroutine.resume, 1)",
        "return pcall(coroutine.wrap, 1)",
        "return coroutine.wrap(function() return pcall(function() return coroutine.yield(5) end) end)()",
        "return coroutine.wrap(function(...) return select('#', ...) end)(nil, nil, nil)",
        "return xpcall(function() error('x', 0) end, function(e) return e .. 'y' end)",
        "return xpcall(function() return 1, 2 end, error)",
    ]);
}

/// Compares what bodies return in a machine and in a state of LuaJIT.
fn same(bodies: &[&str]) {
    for body in bodies {
        let body = format!(
            "local function all(...) local t = {{}} \
             for i = 1, select('#', ...) do t[i] = tostring((select(i, ...))) end \
             return table.concat(t, '|') end return all((function(...) {body} end)(...))"
        );
        let (here, there) =
            (check_patterns::of_vm(&body, &[]), check_patterns::of_luajit(&body, &[]));
        assert_eq!(here, there, "{body}");
    }
}

/// How long functions take beside LuaJIT's, in nanoseconds of the thread:
/// `cargo test -p ladon-lua --profile fast --test it speed -- --ignored --nocapture`.
#[test]
#[ignore = "prints figures"]
fn speed_beside_luajit() {
    for (name, call) in [
        ("find", "string.find('user:1234:name', ':%d+:')"),
        ("find plain", "string.find('user:1234:name', 'name', 1, true)"),
        ("match", "string.match('user:1234:name', '^(%a+):(%d+)')"),
        ("gsub", "string.gsub('hello world foo bar', '%w+', '<%0>')"),
        ("gsub of nothing", "string.gsub('hello world foo bar', '%d+', '')"),
        ("gsub with a function", "string.gsub('hello world foo bar', '%w+', string.upper)"),
        ("gmatch", "string.gmatch('a,b,c,d', '[^,]+')()"),
        ("format", "string.format('%s:%d:%.2f', 'k', i, 1.5)"),
        ("rep", "string.rep('ab', 10)"),
        ("tostring", "tostring(i % 100)"),
        ("concat", "table.concat({'a', 'b', 'c', 'd'}, ',')"),
        ("sort", "table.sort({3, 1, 4, 1, 5, 9, 2, 6})"),
    ] {
        let body = format!("for i = 1, 300000 do local x = {call} end return ''");
        let time = |run: &dyn Fn() -> String| {
            let begin = crate::looks::thread_time();
            run();
            crate::looks::thread_time() - begin
        };
        let (mut here, mut there) = (std::time::Duration::MAX, std::time::Duration::MAX);
        for _ in 0..7 {
            here = here.min(time(&|| check_patterns::of_vm(&body, &[])));
            there = there.min(time(&|| check_patterns::of_luajit(&body, &[])));
        }
        let each = |time: std::time::Duration| time.as_nanos() / 300_000;
        println!("{name}: {} ns, LuaJIT's own {} ns", each(here), each(there));
    }
}
