//! What the fuzz targets `hyperloglog`, `function_payload`, `restore_payload`, `geo_options`,
//! `stream_options` and `shebang` check; the ordinary tests replay the kept corpora through the same
//! code.

use super::common::TestNode;
use ladon_resp::client::Decoder;

/// Any bytes as a HyperLogLog: an even first byte makes the rest the runs of a sparse one, an odd
/// one makes it the whole string.
///
/// No command panics, all agree on whether the registers are damaged, and the log gives back what
/// the node holds.
pub fn hyperloglog(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let mut value = Vec::new();
    if first % 2 == 0 {
        value.extend_from_slice(b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80");
    }
    value.extend_from_slice(rest);
    let node = TestNode::new();
    let mut client = node.client();
    let mut run = |args: &[&[u8]]| {
        let (reply, _) = node.request(&mut client, args);
        assert_is_one(&reply);
        reply
    };
    run(&[b"SET", b"a", &value]);
    run(&[b"PFDEBUG", b"DECODE", b"a"]);
    let counted = run(&[b"PFCOUNT", b"a", b"none"]);
    let merged = run(&[b"PFMERGE", b"b", b"a"]);
    assert_eq!(counted[0] == b'-', merged[0] == b'-');
    run(&[b"SET", b"c", &value]);
    run(&[b"PFDEBUG", b"TODENSE", b"c"]);
    if counted[0] != b'-' {
        assert_eq!(run(&[b"PFCOUNT", b"c", b"none"]), counted, "both encodings count the same");
        assert_eq!(run(&[b"PFCOUNT", b"b", b"none"]), counted, "a copy counts the same");
    }
    for element in [&b"x"[..], b"y", b"", b"another element", rest] {
        run(&[b"PFADD", b"a", element]);
    }
    run(&[b"PFCOUNT", b"a"]);
    run(&[b"PFCOUNT", b"a"]);
    run(&[b"PFMERGE", b"a", b"b", b"c"]);
    run(&[b"PFDEBUG", b"GETREG", b"a"]);
    assert_eq!(node.replayed(), node.dump());
}

/// Any bytes as what `FUNCTION RESTORE` gets: an even first byte makes the rest a body without a
/// checksum, which is not checked; an odd one makes it the code of a library.
///
/// No command panics. What was restored is in the log, is called, and its dump restores the same.
pub fn function_payload(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let node = TestNode::new();
    let mut client = node.client();
    let mut run = |args: &[&[u8]]| {
        let (reply, _) = node.request(&mut client, args);
        assert_is_one(&reply);
        reply
    };
    let restored = if first % 2 == 0 {
        let mut payload = rest.to_vec();
        ladon_rdb::payload::seal(&mut payload, ladon_rdb::Version::Redis10);
        run(&[b"FUNCTION", b"RESTORE", &payload])
    } else {
        // The clock of this node does not move: nothing would end a loop.
        let loops = [&b"while"[..], b"repeat", b"for", b"function", b"rep"];
        if loops.iter().any(|word| rest.windows(word.len()).any(|part| part == *word)) {
            return;
        }
        run(&[b"FUNCTION", b"LOAD", &[b"#!lua name=x\n", rest].concat()])
    };
    let listed = run(&[b"FUNCTION", b"LIST", b"WITHCODE"]);
    assert!(restored[0] != b'-' || listed == b"*0\r\n", "all libraries or none");
    let dump = run(&[b"FUNCTION", b"DUMP"]);
    let start = dump.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let payload = &dump[start..dump.len() - 2];
    assert_eq!(run(&[b"FUNCTION", b"RESTORE", payload, b"FLUSH"]), b"+OK\r\n");
    assert_eq!(run(&[b"FUNCTION", b"LIST", b"WITHCODE"]), listed, "a dump restores the same");
}

/// Any bytes as the body of what `RESTORE` gets, with a checksum that is right: of Valkey if the
/// first byte is odd, of Redis otherwise.
///
/// No command panics. What was restored is in the log, is read and changed as any other value, and
/// its dump restores the same.
pub fn restore_payload(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let odd = first % 2 == 1;
    let version = if odd { ladon_rdb::Version::Valkey80 } else { ladon_rdb::Version::Redis12 };
    let mut payload = rest.to_vec();
    ladon_rdb::payload::seal(&mut payload, version);
    let node = TestNode::new();
    let mut client = node.client();
    let mut run = |args: &[&[u8]]| {
        let (reply, _) = node.request(&mut client, args);
        assert_is_one(&reply);
        reply
    };
    if run(&[b"RESTORE", b"a", b"0", &payload]) != b"+OK\r\n" {
        assert_eq!(run(&[b"DBSIZE"]), b":0\r\n", "all of a value or nothing");
        return;
    }
    // Elements that have expired are no part of it any more.
    if run(&[b"EXISTS", b"a"]) != b":1\r\n" {
        return;
    }
    let again = run(&[b"DUMP", b"a"]);
    let start = again.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let copied = run(&[b"RESTORE", b"b", b"0", &again[start..again.len() - 2]]);
    assert_eq!(copied, b"+OK\r\n", "a dump restores");
    assert_eq!(run(&[b"DUMP", b"b"]), again, "a dump restores the same");
    for words in [
        &["OBJECT", "ENCODING"][..],
        &["LRANGE", "0", "-1"],
        &["SMEMBERS"],
        &["HGETALL"],
        &["ZRANGE", "0", "-1"],
        &["XINFO", "STREAM", "FULL"],
        &["SADD", "m", "1"],
        &["HSET", "f", "v"],
        &["ZADD", "1", "m"],
        &["RPUSH", "e"],
        &["XTRIM", "MAXLEN", "1"],
        &["APPEND", "x"],
        &["COPY", "c"],
        &["DEL"],
    ] {
        // The key stands behind the command, or behind its subcommand.
        let at = if matches!(words[0], "OBJECT" | "XINFO") { 2 } else { 1 };
        let mut args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        args.insert(at, b"a");
        run(&args);
    }
    assert_eq!(node.replayed(), node.dump());
}

/// Words that the geo commands understand.
const WORDS: [&str; 48] = [
    "g",
    "h",
    "none",
    "m1",
    "m2",
    "m3",
    "0",
    "1",
    "3",
    "4",
    "-1",
    "13.4",
    "38.1",
    "179.9",
    "-179.9",
    "85",
    "-85.05112878",
    "86",
    "100",
    "5000",
    "inf",
    "nan",
    "1e300",
    "m",
    "km",
    "FT",
    "mi",
    "WITHDIST",
    "WITHHASH",
    "WITHCOORD",
    "ANY",
    "ASC",
    "DESC",
    "COUNT",
    "STORE",
    "STOREDIST",
    "FROMMEMBER",
    "FROMLONLAT",
    "BYRADIUS",
    "BYBOX",
    "BYPOLYGON",
    "NX",
    "XX",
    "CH",
    "x",
    "",
    "10",
    "40",
];

/// The beginnings of requests.
const BEGINNINGS: [&[&str]; 12] = [
    &["GEOADD", "g"],
    &["GEOSEARCH", "g"],
    &["GEOSEARCH", "g", "FROMLONLAT", "13", "38", "BYRADIUS", "1000", "km"],
    &["GEOSEARCHSTORE", "d", "g"],
    &["GEORADIUS", "g", "13", "38", "1000", "km"],
    &["GEORADIUS", "g"],
    &["GEORADIUS_RO", "g", "13", "38", "1000", "km"],
    &["GEORADIUSBYMEMBER", "g", "m1", "1000", "km"],
    &["GEORADIUSBYMEMBER", "none"],
    &["GEORADIUSBYMEMBER_RO", "g", "m1"],
    &["GEODIST", "g"],
    &["ZADD", "g"],
];

/// Any bytes as requests: one picks the beginning, one says how many words follow, each of them a
/// byte.
///
/// No command panics, each is answered by one reply, and the log gives back what the node holds.
pub fn geo_options(data: &[u8]) {
    let first = "GEOADD g 13.361389 38.115556 m1 15.087269 37.502669 m2 -179.99 84.9 m3";
    requests(data, &[first], &BEGINNINGS, &WORDS);
}

/// Words that the stream commands understand. Nothing waits.
const STREAM_WORDS: [&str; 64] = [
    "x",
    "y",
    "none",
    "g",
    "h",
    "c",
    "d",
    "f",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "100",
    "10000",
    "-",
    "+",
    "$",
    ">",
    "*",
    "5-*",
    "5-1",
    "(1-1",
    "(5",
    "1-1",
    "1-2",
    "2-0",
    "3-7",
    "0-0",
    "9-9",
    "18446744073709551615",
    "18446744073709551615-18446744073709551615",
    "18446744073709551616-0",
    "-1-1",
    "1-",
    "-1",
    "1-1-1",
    "",
    "MAXLEN",
    "MINID",
    "=",
    "~",
    "LIMIT",
    "NOMKSTREAM",
    "COUNT",
    "STREAMS",
    "GROUP",
    "NOACK",
    "KEEPREF",
    "DELREF",
    "ACKED",
    "IDS",
    "FORCE",
    "JUSTID",
    "IDLE",
    "TIME",
    "RETRYCOUNT",
    "LASTID",
    "MKSTREAM",
    "ENTRIESREAD",
    "ENTRIESADDED",
    "MAXDELETEDID",
    "FULL",
    "CLAIM",
];

const STREAM_BEGINNINGS: [&[&str]; 24] = [
    &["XADD", "x"],
    &["XADD", "y"],
    &["XADD", "x", "MAXLEN"],
    &["XRANGE", "x"],
    &["XREVRANGE", "x"],
    &["XREAD", "STREAMS", "x"],
    &["XREAD", "COUNT"],
    &["XREADGROUP", "GROUP", "g", "c"],
    &["XREADGROUP", "GROUP", "g", "d", "COUNT", "1", "STREAMS", "x"],
    &["XTRIM", "x"],
    &["XDEL", "x"],
    &["XDELEX", "x"],
    &["XACK", "x", "g"],
    &["XACKDEL", "x", "g"],
    &["XNACK", "x", "g"],
    &["XPENDING", "x"],
    &["XPENDING", "x", "g"],
    &["XCLAIM", "x", "g", "d"],
    &["XAUTOCLAIM", "x", "g", "d"],
    &["XGROUP", "CREATE"],
    &["XGROUP", "SETID", "x", "g"],
    &["XGROUP", "DELCONSUMER", "x", "g"],
    &["XSETID", "x"],
    &["XINFO", "STREAM", "x"],
];

/// As [`geo_options`], with the stream commands.
pub fn stream_options(data: &[u8]) {
    let first = [
        "XADD x 1-1 a 1",
        "XADD x 1-2 a 2 b 3",
        "XADD x 3-7 c 4",
        "XGROUP CREATE x g 0",
        "XREADGROUP GROUP g c COUNT 2 STREAMS x >",
    ];
    requests(data, &first, &STREAM_BEGINNINGS, &STREAM_WORDS);
}

/// Runs the `first` requests, then those that the bytes pick.
fn requests(mut data: &[u8], first: &[&str], beginnings: &[&[&str]], words: &[&str]) {
    let node = TestNode::new();
    let mut client = node.client();
    for request in first {
        node.run(&mut client, request);
    }
    while let [beginning, count, rest @ ..] = data {
        let beginning = beginnings[usize::from(*beginning) % beginnings.len()];
        let (picked, rest) = rest.split_at(usize::from(count % 20).min(rest.len()));
        data = rest;
        let picked = picked.iter().map(|word| words[usize::from(*word) % words.len()]);
        let args: Vec<&[u8]> = beginning.iter().copied().chain(picked).map(str::as_bytes).collect();
        assert_is_one(&node.request(&mut client, &args).0);
    }
    assert_eq!(node.replayed(), node.dump());
}

/// Any bytes as the first line of a script, behind `#!`.
///
/// `EVAL` and `SCRIPT LOAD` agree on whether it is one, and with a plainer reading of it; a script
/// that says so does not write.
pub fn shebang(data: &[u8]) {
    const FLAGS: [&[u8]; 5] =
        [b"no-writes", b"allow-oom", b"allow-stale", b"no-cluster", b"allow-cross-slot-keys"];
    let line = data.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let options = words[1..].iter().filter(|word| !word.is_empty());
    let flags: Option<Vec<&[u8]>> = options.map(|word| word.strip_prefix(b"flags=")).collect();
    let names: Option<Vec<&[u8]>> = flags.map(|flags| {
        let names = flags.iter().flat_map(|names| names.split(|&byte| byte == b','));
        names.filter(|name| !name.is_empty()).collect()
    });
    let names =
        names.filter(|names| words[0] == b"lua" && names.iter().all(|name| FLAGS.contains(name)));

    let node = TestNode::new();
    let mut client = node.client();
    let body = [b"#!", line, b"\nreturn redis.call('set', 'k', 'v')"].concat();
    let reply = node.request(&mut client, &[b"EVAL", &body, b"0"]).0;
    let loaded = node.request(&mut client, &[b"SCRIPT", b"LOAD", &body]).0;
    assert_is_one(&reply);
    match names {
        None => assert!(reply.starts_with(b"-ERR ") && reply == loaded, "{:?}", reply.as_slice()),
        Some(names) => {
            let is_read_only = names.contains(&FLAGS[0]);
            let begins: &[u8] =
                if is_read_only { b"-ERR Write commands are not allowed" } else { b"+OK\r\n" };
            assert!(reply.starts_with(begins), "{:?}", reply.as_slice());
            assert!(loaded.starts_with(b"$40\r\n"));
        }
    }
    assert_eq!(node.replayed(), node.dump());
}

fn assert_is_one(reply: &[u8]) {
    let decoded = Decoder::default().decode(reply).expect("a well-formed reply");
    assert!(decoded.value.is_some() && decoded.consumed == reply.len(), "one reply");
}
