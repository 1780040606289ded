//! Expressions without effect: values of every kind, and what the libraries make of them.

use super::text::{literal, one_of};
use crate::random::pool::Hole;
use crate::random::rng::Rng;

/// Any expression.
pub(super) fn value(rng: &mut Rng, depth: usize) -> String {
    match rng.below(20) {
        0..=2 => number(rng),
        3..=5 => string(rng),
        6 => one_of(rng, &["true", "false", "nil"]).into(),
        7 | 8 if depth > 0 => table(rng, depth - 1),
        9..=11 => of_strings(rng),
        12 => of_numbers(rng),
        13 => of_tables(rng),
        14 => of_cjson(rng),
        15 => of_cmsgpack(rng),
        16 => of_struct(rng),
        17 => of_bits(rng),
        18 => of_redis(rng),
        _ => of_types(rng),
    }
}

pub(super) fn number(rng: &mut Rng) -> String {
    match rng.below(4) {
        0 => one_of(
            rng,
            &[
                "3.99",
                "-3.99",
                "0.1",
                "1e15",
                "1e16",
                "123456789012",
                "2^53",
                "-2^63",
                "2^63",
                "1/0",
                "-1/0",
                "1e308*10",
                "0x10",
                "-0.5",
                "100000000000000000000",
                "3.0",
                "1e-7",
            ],
        )
        .into(),
        _ => (rng.below(200) as i64 - 50).to_string(),
    }
}

pub(super) fn string(rng: &mut Rng) -> String {
    match rng.below(6) {
        0 => literal(&Hole::Value.word(rng)),
        1 => "ARGV[1]".into(),
        2 => one_of(rng, &["ARGV[2]", "ARGV[9]", "KEYS[1]", "KEYS[2]", "KEYS[9]"]).into(),
        _ => one_of(rng, &["''", "'abc'", "'hello world'", "'10'", "' 7 '", "'a,b,,c'", "'x=1'"])
            .into(),
    }
}

/// A string, never nil: with holes in it, a table has no definite length.
fn present(rng: &mut Rng) -> String {
    let text = string(rng);
    if text.starts_with("KEYS") || text.starts_with("ARGV") { "'b'".into() } else { text }
}

/// A text without the bytes at which C's strings end.
pub(super) fn words(rng: &mut Rng) -> String {
    one_of(rng, &["''", "'abc'", "'hello world'", "'ERR x'", "'-X y'", "'WRONG'", "5"]).into()
}

/// A table that may be a reply.
pub(super) fn table(rng: &mut Rng, depth: usize) -> String {
    match rng.below(14) {
        0 => format!("{{ok={}}}", words(rng)),
        1 => {
            format!("{{err={}}}", one_of(rng, &["'ERR x'", "'x'", "'-X y'", "''", "1", "'WRONG'"]))
        }
        2 => format!("{{double={}}}", number(rng)),
        3 => format!("{{map={{[{}]={}}}}}", scalar(rng), value(rng, depth)),
        4 => format!("{{set={{[{}]=true}}}}", scalar(rng)),
        5 => format!("{{big_number={}}}", one_of(rng, &["'12345678901234567890'", "'x'", "1"])),
        6 => format!("{{verbatim_string={{string={}, format='txt'}}}}", string(rng)),
        7 => format!("{{x={}}}", scalar(rng)),
        8 => "{}".into(),
        _ => list_of(rng, depth),
    }
}

/// A table of a few elements, or of one field: more than one have no order.
fn list(rng: &mut Rng) -> String {
    match rng.below(5) {
        0 => format!("{{x={}}}", scalar(rng)),
        1 => format!("{{[{}]={}}}", scalar(rng), scalar(rng)),
        _ => list_of(rng, 0),
    }
}

fn list_of(rng: &mut Rng, depth: usize) -> String {
    let count = 1 + rng.below(4);
    let items: Vec<String> = (0..count).map(|_| value(rng, depth)).collect();
    format!("{{{}}}", items.join(", "))
}

fn scalar(rng: &mut Rng) -> String {
    if rng.percent(50) { present(rng) } else { (rng.below(9) + 1).to_string() }
}

fn pattern(rng: &mut Rng) -> &'static str {
    one_of(
        rng,
        &[
            "'%a+'",
            "'(%w+)=(%w+)'",
            "'[^,]*'",
            "'.'",
            "'^h'",
            "'o$'",
            "'%s*(.-)%s*$'",
            "'%d+'",
            "'l+'",
            "'()l'",
            "'%b()'",
            "'[a-c]'",
            "'%f[%w]%w+'",
            "''",
            "'%'",
            "'['",
            "'(a'",
            "'x*'",
        ],
    )
}

fn of_strings(rng: &mut Rng) -> String {
    let (text, other) = (string(rng), string(rng));
    let (first, last) = (rng.below(9) as i64 - 4, rng.below(9) as i64 - 4);
    match rng.below(16) {
        0 => format!("({text}):sub({first}, {last})"),
        1 => format!("string.upper({text})"),
        2 => format!("({text}):len()"),
        3 => format!("string.rep({text}, {})", rng.below(4)),
        4 => format!("string.reverse({text})"),
        5 => format!("{{string.byte({text}, {first}, {last})}}"),
        6 => format!("{{string.find({text}, {}, {})}}", pattern(rng), rng.below(3)),
        7 => format!("{{string.find({text}, {other}, 1, true)}}"),
        8 => format!("{{string.match({text}, {})}}", pattern(rng)),
        9 => format!(
            "{{string.gsub({text}, {}, {})}}",
            pattern(rng),
            one_of(
                rng,
                &["'<%0>'", "'%1'", "''", "'%%'", "{a='1', l=false}", "string.upper", "'%9'"]
            )
        ),
        10 => format!("({text}) .. ({other})"),
        11 => format!("({text}) < ({other})"),
        12 => format!("({text}) == ({other})"),
        13 => format!("string.char({}, {})", rng.below(256), rng.below(300)),
        14 => format!(
            "(function() local t = {{}} for w in string.gmatch({text}, '%w+') do t[#t+1] = w end return t end)()"
        ),
        _ => format(rng),
    }
}

fn format(rng: &mut Rng) -> String {
    let how = one_of(
        rng,
        &[
            "%d", "%5d", "%05.1f", "%.3f", "%g", "%e", "%x", "%X", "%o", "%c", "%q", "%s", "%10s",
            "%-5s|", "%i", "%u", "%%", "%5.2s", "%.14g", "%y", "%",
        ],
    );
    let argument = match rng.below(3) {
        0 => present(rng),
        1 => (rng.below(300) as i64 - 20).to_string(),
        _ => one_of(rng, &["3.75", "0.1", "65", "1/3"]).into(),
    };
    format!("string.format('{how}', {argument})")
}

fn of_numbers(rng: &mut Rng) -> String {
    let (one, other) = (number(rng), number(rng));
    match rng.below(12) {
        0 => format!("{one} + {other}"),
        1 => format!("({one}) * ({other})"),
        2 => format!("({one}) % ({other})"),
        3 => format!("({one}) / ({other})"),
        4 => format!("tostring({one})"),
        5 => format!("tostring(({one}) * ({other}))"),
        6 => format!("tonumber({})", string(rng)),
        // Of a negative one, C's and LuaJIT's ideas differ.
        7 => {
            format!("tonumber('{}', {})", one_of(rng, &["10", "ff", "z", " 7 ", ""]), rng.below(38))
        }
        8 => format!("math.floor({one})"),
        9 => format!("math.max({one}, {other})"),
        10 => format!("({one}) < ({other})"),
        _ => format!(
            "{}({one})",
            one_of(rng, &["math.ceil", "math.abs", "math.sqrt", "-", "not ", "#", "math.exp"])
        ),
    }
}

fn of_tables(rng: &mut Rng) -> String {
    let items: Vec<String> = (0..rng.below(4)).map(|_| scalar(rng)).collect();
    let table = format!("{{{}}}", items.join(", "));
    match rng.below(10) {
        0 => format!("#{table}"),
        1 => format!("table.concat({table}, {})", one_of(rng, &["','", "''", "1", "nil"])),
        2 => format!("(function() local t = {table} table.insert(t, 1, 'new') return t end)()"),
        3 => format!("(function() local t = {table} return {{table.remove(t), t}} end)()"),
        4 => "(function() local t = {3, 1, 2} table.sort(t) return t end)()".into(),
        5 => "(function() local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) \
              return t end)()"
            .into(),
        6 => format!("{{unpack({table})}}"),
        7 => format!("select('#', unpack({table}))"),
        8 => format!(
            "(function() local n = 0 for _ in pairs({table}) do n = n + 1 end return n end)()"
        ),
        _ => format!("{{next({table})}}"),
    }
}

fn of_cjson(rng: &mut Rng) -> String {
    match rng.below(4) {
        0 => format!("cjson.encode({})", list(rng)),
        1 => format!("cjson.encode({})", value(rng, 0)),
        2 => format!("cjson.encode(cjson.decode({}))", json(rng)),
        _ => format!("cjson.decode({})", json(rng)),
    }
}

fn json(rng: &mut Rng) -> &'static str {
    one_of(
        rng,
        &[
            r#"'[1, 2.5, "x", null, true]'"#,
            r#"'{"a": [1]}'"#,
            "'[]'",
            "'{}'",
            r#"'"\\u00e9"'"#,
            "'1e3'",
            "'[1'",
            "''",
            "'nul'",
            "'[1,]'",
            r#"'{"a" 1}'"#,
            "'\"a'",
            "' 12 '",
            "'[[[]]]'",
            "'-0'",
            "'12345678901234567890'",
            r#"'"\\ud800"'"#,
            "'NaN'",
            "'tru e'",
            "ARGV[1]",
        ],
    )
}

fn of_cmsgpack(rng: &mut Rng) -> String {
    match rng.below(4) {
        0 => format!("cmsgpack.pack({})", value(rng, 1)),
        1 => format!("cmsgpack.unpack(cmsgpack.pack({}))", list(rng)),
        2 => format!("{{cmsgpack.unpack({})}}", string(rng)),
        _ => format!("cmsgpack.pack({}, {})", number(rng), string(rng)),
    }
}

fn of_struct(rng: &mut Rng) -> String {
    let how = one_of(
        rng,
        &[
            "'>I2'",
            "'<i4'",
            "'>I2s'",
            "'<d'",
            "'bB'",
            "'>hH'",
            "'c3'",
            "'!4 b i4'",
            "'x'",
            "'z'",
            "''",
        ],
    );
    match rng.below(3) {
        0 => format!("struct.pack({how}, {}, {})", number(rng), string(rng)),
        1 => format!("{{struct.unpack({how}, {})}}", string(rng)),
        _ => format!("struct.size({how})"),
    }
}

fn of_bits(rng: &mut Rng) -> String {
    let (one, other) = (number(rng), rng.below(40));
    match rng.below(4) {
        0 => format!("bit.band({one}, {other})"),
        1 => format!("bit.tohex({one}, {})", rng.below(9)),
        2 => format!("bit.bnot({one})"),
        _ => format!(
            "bit.{}({one}, {other})",
            one_of(rng, &["bor", "bxor", "lshift", "rshift", "arshift", "rol", "ror"])
        ),
    }
}

fn of_redis(rng: &mut Rng) -> String {
    match rng.below(8) {
        0 => format!("redis.sha1hex({})", string(rng)),
        1 => format!("redis.error_reply({})", words(rng)),
        2 => format!("redis.status_reply({})", words(rng)),
        3 => "redis.LOG_WARNING".into(),
        4 => "redis.REPL_ALL".into(),
        5 => format!("redis.acl_check_cmd({}, 'k')", one_of(rng, &["'get'", "'nothing'", "'set'"])),
        6 => "redis.set_repl(redis.REPL_ALL)".into(),
        _ => one_of(rng, &["redis.sha1hex()", "redis.log()", "redis.x", "redis.setresp(4)"]).into(),
    }
}

fn of_types(rng: &mut Rng) -> String {
    match rng.below(10) {
        0 => format!("type({})", value(rng, 0)),
        1 => format!("({}) and ({})", value(rng, 0), value(rng, 0)),
        2 => format!("({}) or ({})", value(rng, 0), value(rng, 0)),
        3 => format!("({}) == ({})", value(rng, 0), value(rng, 0)),
        4 => format!("{{pcall(function() return {} end)}}", value(rng, 0)),
        5 => format!("setmetatable({{}}, {{__index=function(_, k) return k end}}).{}", "abc"),
        6 => "tostring(setmetatable({}, {__tostring=function() return 'named' end}))".into(),
        7 => format!(
            "(function() local c = coroutine.wrap(function(x) coroutine.yield(x) return 'end' end) \
             return {{c({}), c()}} end)()",
            scalar(rng)
        ),
        8 => format!(
            "{{xpcall(function() return {} end, function(e) return 'h' end)}}",
            value(rng, 0)
        ),
        _ => format!("select({}, 'a', 'b')", rng.below(5) as i64 - 1),
    }
}
