//! The table against real servers: what `COMMAND INFO` and `COMMAND DOCS` of Redis 7.0.15 and
//! 8.0.6 answered, without their prose. The table means Redis 7.2, which lies between: it must
//! agree with 8.0 but for what is newer than 7.2, and with 7.0 but for what is listed here.

use ladon_command_docs::{Argument, BeginSearch, CommandDoc, FindKeys, KeySpec, all};
use serde_json::{Map, Value, json};

const REDIS_7_0: &str = include_str!("../fixtures/redis-7.0.15.json");
const REDIS_8_0: &str = include_str!("../fixtures/redis-8.0.6.json");

/// Ours alone: SET has Valkey's IFEQ, BITOP the operations of Redis 8.2, GEOSEARCH Valkey's
/// polygons, ZUNION and ZINTER what Redis 8.8 counts, XADD and XTRIM what Redis 8.2 does with
/// references, CLIENT KILL the MAXAGE of 7.4, XREAD what 8.10 bounds all streams with.
const OWN: &[(&str, &[&str])] = &[
    ("client|kill", &["history", "arguments"]),
    ("set", &["arguments", "history"]),
    ("bitop", &["arguments", "history"]),
    ("geosearch", &["arguments", "history"]),
    ("geosearchstore", &["arguments", "history"]),
    ("xadd", &["arguments", "history"]),
    ("xread", &["arguments", "history"]),
    ("xreadgroup", &["arguments", "history"]),
    ("xtrim", &["arguments", "history"]),
    ("zinter", &["arguments", "history"]),
    ("zinterstore", &["arguments", "history"]),
    ("zunion", &["arguments", "history"]),
    ("zunionstore", &["arguments", "history"]),
];

/// Ladon's own, and what is newer than Redis 8.0.
const NOT_RECORDED: &[&str] = &[
    "blmovem",
    "client|gate",
    "commandlog",
    "commandlog|get",
    "commandlog|help",
    "commandlog|len",
    "commandlog|reset",
    "delex",
    "delifeq",
    "digest",
    "hotkeys",
    "hotkeys|get",
    "hotkeys|help",
    "hotkeys|reset",
    "hotkeys|start",
    "hotkeys|stop",
    "increx",
    "ladon.backup",
    "ladon.backup|begin",
    "ladon.backup|end",
    "ladon.backup|help",
    "ladon.backup|read",
    "ladon.cluster",
    "ladon.cluster|add",
    "ladon.cluster|create",
    "ladon.cluster|help",
    "ladon.cluster|join",
    "ladon.cluster|lead",
    "ladon.cluster|number",
    "ladon.cluster|remove",
    "ladon.cluster|status",
    "ladon.fcall",
    "ladon.fcall_ro",
    "ladon.fiber",
    "ladon.fiber|help",
    "ladon.fiber|kill",
    "ladon.fiber|running",
    "ladon.read",
    "ladon.replica",
    "ladon.replica|frames",
    "ladon.replica|hello",
    "ladon.replica|help",
    "ladon.replica|position",
    "ladon.replica|takeover",
    "ladon.space",
    "ladon.space|delete",
    "ladon.space|get",
    "ladon.space|help",
    "ladon.space|insert",
    "ladon.space|list",
    "ladon.space|replace",
    "ladon.space|select",
    "ladon.space|update",
    "lmovem",
    "msetex",
    "saddex",
    "sdiffcard",
    "sentinel",
    "sentinel|ckquorum",
    "sentinel|failover",
    "sentinel|get-master-addr-by-name",
    "sentinel|help",
    "sentinel|master",
    "sentinel|masters",
    "sentinel|myid",
    "sentinel|replicas",
    "sentinel|sentinels",
    "sentinel|slaves",
    "sexpire",
    "sexpireat",
    "sexpiretime",
    "spersist",
    "spexpire",
    "spexpireat",
    "spexpiretime",
    "spttl",
    "sttl",
    "sunioncard",
    "xackdel",
    "xcfgset",
    "xdelex",
    "xnack",
];

/// Recorded from 7.0 only.
const NOT_RECORDED_IN_8_0: &[&str] = &[
    "acl|deluser",
    "acl|dryrun",
    "acl|genpass",
    "acl|load",
    "acl|log",
    "acl|save",
    "acl|setuser",
    "dump",
    "failover",
    "migrate",
    "psync",
    "replconf",
    "restore",
    "role",
    "sync",
];

/// Commands that Redis 7.0 did not have.
const NEW_SINCE_7_0: &[&str] = &[
    "client|no-touch",
    "client|setinfo",
    "waitaof",
    // Of 7.4 and 8.0.
    "hexpire",
    "hexpireat",
    "hexpiretime",
    "hgetdel",
    "hgetex",
    "hpersist",
    "hpexpire",
    "hpexpireat",
    "hpexpiretime",
    "hpttl",
    "hsetex",
    "httl",
];

/// Where Redis 7.2 says something else than 7.0.15.
const CHANGED_IN_7_2: &[(&str, &[&str])] = &[
    // Now deprecated, or now said to have long been.
    ("quit", &["doc_flags", "deprecated_since"]),
    ("setex", &["doc_flags", "deprecated_since"]),
    ("psetex", &["doc_flags", "deprecated_since"]),
    ("setnx", &["doc_flags", "deprecated_since"]),
    // Arguments that are named or grouped otherwise.
    ("hello", &["arguments"]),
    ("client|unblock", &["arguments"]),
    ("client|reply", &["arguments"]),
    ("mset", &["arguments"]),
    ("hset", &["arguments"]),
    ("hmset", &["arguments"]),
    ("lcs", &["arguments"]),
    ("sort", &["arguments"]),
    ("sort_ro", &["arguments"]),
    ("bitcount", &["arguments"]),
    ("bitfield", &["arguments"]),
    ("bitfield_ro", &["arguments"]),
    ("bitpos", &["arguments"]),
    ("flushdb", &["arguments"]),
    ("flushall", &["arguments"]),
    ("function|flush", &["arguments"]),
    ("script|flush", &["arguments"]),
    ("config|get", &["arguments"]),
    ("config|set", &["arguments"]),
    ("shutdown", &["arguments"]),
    ("client|list", &["arguments", "history"]),
    ("geoadd", &["arguments"]),
    ("geohash", &["arguments"]),
    ("geopos", &["arguments"]),
    ("georadius", &["arguments"]),
    ("georadius_ro", &["arguments", "history"]),
    ("georadiusbymember", &["arguments", "history"]),
    ("georadiusbymember_ro", &["arguments", "history"]),
    ("pfmerge", &["arguments"]),
    ("migrate", &["arguments"]),
    ("bzpopmax", &["flags"]),
    ("bzpopmin", &["flags"]),
    ("zadd", &["arguments"]),
    ("zrange", &["arguments"]),
    ("zrangebylex", &["arguments"]),
    ("zrangebyscore", &["arguments"]),
    ("zrangestore", &["arguments"]),
    ("zrank", &["arity", "history", "arguments"]),
    ("zrevrangebylex", &["arguments"]),
    ("zrevrangebyscore", &["arguments"]),
    ("zrevrank", &["arity", "history", "arguments"]),
    ("xclaim", &["arguments"]),
    ("xgroup|create", &["arguments"]),
    ("xgroup|createconsumer", &["arguments"]),
    ("xgroup|delconsumer", &["arguments"]),
    ("xgroup|destroy", &["arguments"]),
    ("xgroup|setid", &["arguments"]),
    ("xinfo|consumers", &["history", "arguments"]),
    ("xinfo|stream", &["history", "arguments"]),
    ("xsetid", &["arguments"]),
    // A command without arguments may be asked about.
    ("command|getkeys", &["arguments", "arity"]),
    ("command|getkeysandflags", &["arguments", "arity"]),
    ("psubscribe", &["arguments"]),
    // Users, the cluster, replication.
    ("acl|cat", &["arguments"]),
    ("acl|log", &["history"]),
    ("cluster|addslotsrange", &["arguments"]),
    ("cluster|delslotsrange", &["arguments"]),
    ("cluster|meet", &["arguments"]),
    ("cluster|reset", &["arguments"]),
    ("cluster|setslot", &["arguments"]),
    ("cluster|shards", &["flags"]),
    ("cluster|slots", &["flags"]),
    // What a proxy in front of a cluster does with them.
    ("client|setname", &["tips"]),
    ("msetnx", &["arguments", "tips"]),
    ("scan", &["tips"]),
    ("randomkey", &["tips"]),
    ("config|resetstat", &["tips"]),
    ("config|rewrite", &["tips"]),
    ("latency|reset", &["tips"]),
    // Allowed in scripts, where it does not block.
    ("wait", &["flags", "acl_categories"]),
    ("blmove", &["flags"]),
    ("blpop", &["flags"]),
    ("brpop", &["flags"]),
    ("brpoplpush", &["flags"]),
    // The destination is overwritten, not read.
    ("sinterstore", &["key_specs"]),
    // NOVALUES, which 8.0 does not date.
    ("hscan", &["arguments"]),
    // The version that had it first is no longer a development version.
    ("client|pause", &["since"]),
];

fn facts(doc: &CommandDoc) -> Map<String, Value> {
    let sorted = |words: &[&str], prefix: &str| {
        let mut words: Vec<String> = words.iter().map(|word| format!("{prefix}{word}")).collect();
        words.sort();
        words
    };
    let arguments: Vec<Value> = doc.arguments().iter().map(argument).collect();
    let keys = doc.key_range();
    let value = json!({
        "arity": doc.arity,
        "flags": sorted(&doc.flags, ""),
        "keys": [keys.0, keys.1, keys.2],
        "acl_categories": sorted(&doc.acl_categories, "@"),
        "tips": doc.tips,
        "key_specs": doc.key_specs.iter().map(key_spec).collect::<Vec<_>>(),
        "since": doc.since,
        "group": doc.group,
        "doc_flags": doc.doc_flags,
        "deprecated_since": doc.deprecated.map(|(since, _)| since),
        "history": doc.history.iter().map(|(version, _)| version).collect::<Vec<_>>(),
        "arguments": arguments,
    });
    match value {
        Value::Object(facts) => facts,
        _ => unreachable!(),
    }
}

fn key_spec(spec: &KeySpec) -> Value {
    let begin_search = match spec.begin_search {
        BeginSearch::Index(index) => json!({ "type": "index", "spec": { "index": index } }),
        BeginSearch::Keyword { keyword, from } => {
            json!({ "type": "keyword", "spec": { "keyword": keyword, "startfrom": from } })
        }
        BeginSearch::Unknown => json!({ "type": "unknown", "spec": {} }),
    };
    let find_keys = match spec.find_keys {
        FindKeys::Range { last_key, key_step, limit } => json!({
            "type": "range",
            "spec": { "lastkey": last_key, "keystep": key_step, "limit": limit },
        }),
        FindKeys::Unknown => json!({ "type": "unknown", "spec": {} }),
        FindKeys::KeyNumber { key_number_index, first_key, key_step } => json!({
            "type": "keynum",
            "spec": {
                "keynumidx": key_number_index, "firstkey": first_key, "keystep": key_step,
            },
        }),
    };
    json!({
        "flags": spec.flags,
        "begin_search": begin_search,
        "find_keys": find_keys,
    })
}

fn argument(argument: &Argument) -> Value {
    let mut value = json!({ "name": argument.name, "type": argument.kind.name() });
    let mut put = |field: &str, content: Option<Value>| {
        if let Some(content) = content {
            value[field] = content;
        }
    };
    put("display_text", argument.display_text.as_deref().map(Value::from));
    put("key_spec_index", argument.key_spec_index.map(Value::from));
    put("token", argument.token.as_deref().map(Value::from));
    put("since", argument.since.as_deref().map(Value::from));
    put("deprecated_since", argument.deprecated_since.as_deref().map(Value::from));
    let flags: Vec<&str> = argument.flags().collect();
    put("flags", (!flags.is_empty()).then(|| flags.into()));
    let arguments: Vec<Value> = argument.arguments.iter().map(self::argument).collect();
    put("arguments", (!arguments.is_empty()).then(|| arguments.into()));
    value
}

fn recorded_ones() -> impl Iterator<Item = &'static CommandDoc> {
    all().filter(|doc| !NOT_RECORDED.contains(&doc.name))
}

fn recorded(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).expect("a recording")
}

/// Whether a version of Redis is newer than 7.2.
fn is_newer(version: &Value) -> bool {
    let version = version.as_str().expect("a version");
    let parts: Vec<u32> = version.split('.').map(|part| part.parse().unwrap()).collect();
    parts > vec![7, 2, 99]
}

/// Drops what is newer than 7.2.
fn as_of_7_2(value: &mut Value) {
    if let Value::Array(values) = value {
        values.retain(|value| !value.get("since").is_some_and(is_newer));
        values.iter_mut().for_each(as_of_7_2);
    } else if let Some(arguments) = value.get_mut("arguments") {
        as_of_7_2(arguments);
    }
}

/// 7.0 did not say what to show for an argument.
fn without_display_text(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(without_display_text),
        Value::Object(fields) => {
            fields.remove("display_text");
            fields.values_mut().for_each(without_display_text);
        }
        _ => {}
    }
}

fn lists(list: &[(&str, &[&str])], name: &str, field: &str) -> bool {
    list.iter().any(|(listed, fields)| *listed == name && fields.contains(&field))
}

#[test]
fn facts_are_those_of_redis_8_0_but_for_what_is_newer() {
    let recording = recorded(REDIS_8_0);
    for doc in recorded_ones() {
        let Some(real) = recording.get(doc.name) else {
            assert!(NOT_RECORDED_IN_8_0.contains(&doc.name), "{} is not listed", doc.name);
            continue;
        };
        for (field, ours) in facts(doc) {
            let mut expected = real[&field].clone();
            match field.as_str() {
                "arguments" => as_of_7_2(&mut expected),
                "history" => expected.as_array_mut().unwrap().retain(|version| !is_newer(version)),
                _ => {}
            }
            let own = lists(OWN, doc.name, &field);
            assert_eq!(ours == expected, !own, "{} {field}: {ours} vs {expected}", doc.name);
        }
    }
}

#[test]
fn facts_are_those_of_redis_7_0_but_for_the_listed() {
    let recording = recorded(REDIS_7_0);
    for doc in recorded_ones() {
        let Some(real) = recording.get(doc.name) else {
            assert!(NEW_SINCE_7_0.contains(&doc.name), "{} is not listed as new", doc.name);
            continue;
        };
        assert!(!NEW_SINCE_7_0.contains(&doc.name), "{} is not new", doc.name);
        for (field, mut ours) in facts(doc) {
            if field == "arguments" {
                without_display_text(&mut ours);
            }
            let listed = lists(OWN, doc.name, &field) || lists(CHANGED_IN_7_2, doc.name, &field);
            let expected = &real[&field];
            assert_eq!(ours == *expected, !listed, "{} {field}: {ours} vs {expected}", doc.name);
        }
    }
}

#[test]
fn every_syntax_text_is_well_formed() {
    for doc in all() {
        let parsed = std::panic::catch_unwind(|| doc.arguments());
        assert!(parsed.is_ok(), "{}: its syntax text cannot be parsed", doc.name);
    }
}

#[test]
fn table_is_complete_and_in_our_own_words() {
    let recording = recorded(REDIS_8_0);
    for name in recording.keys() {
        assert_eq!(ladon_command_docs::find(name).map(|doc| doc.name), Some(name.as_str()));
    }
    assert_eq!(recorded_ones().count(), recording.len() + NOT_RECORDED_IN_8_0.len());
    let recorded_in_7_0 = recorded(REDIS_7_0);
    for doc in recorded_ones() {
        let recording =
            if recording.contains_key(doc.name) { &recording } else { &recorded_in_7_0 };
        assert!(doc.summary.ends_with(['.', '?']), "{}", doc.name);
        assert!(doc.summary.len() < 100, "{}", doc.name);
        let orders: Vec<&str> = recording[doc.name]["complexity"]
            .as_array()
            .unwrap()
            .iter()
            .map(|order| order.as_str().unwrap())
            .collect();
        let first = doc.complexity.split_inclusive(')').next().unwrap_or_default();
        assert_eq!(first.starts_with("O("), !orders.is_empty(), "{}", doc.name);
        assert!(orders.is_empty() || orders.contains(&first), "{} {first}", doc.name);
        if let Some(parent) = doc.parent() {
            let parent = ladon_command_docs::find(parent).expect("the command itself");
            assert!(parent.subcommands().any(|subcommand| subcommand.name == doc.name));
        }
        for argument in doc.arguments() {
            let index = argument.key_spec_index.map_or(0, usize::from);
            assert!(index < doc.key_specs.len().max(1), "{}", doc.name);
        }
    }
    assert!(ladon_command_docs::find("SET").is_some());
    assert!(ladon_command_docs::find("nothing").is_none());
}
