//! What the fuzz target `commands` checks; the ordinary tests replay the kept corpus through the
//! same code.
//!
//! Any bytes as requests of one client: a byte picks the command, among those that read or write
//! data and do not wait, and those of transactions; a byte says how many words follow; each word is
//! a byte that picks one of [`WORDS`], or says how many bytes of the input are the word itself. One
//! value of the command's byte lets time pass instead.
//!
//! No command panics, each request is answered by one well-formed reply, the log gives back what
//! the node holds, and memory is accounted for to the byte, before everything is deleted and after.

use super::common::{TestClient, TestNode};
use ladon_engine::{Locks, Scratch};
use ladon_kernel::command::flags::Flags;
use ladon_kernel::command::spec::Handler;
use ladon_resp::client::Decoder;
use ladon_settings::Settings;

/// Words that commands understand: keys, elements, numbers at the bounds, options.
const WORDS: [&str; 112] = [
    "a",
    "b",
    "c",
    "d",
    "a",
    "b",
    "x",
    "y",
    "zz",
    "m1",
    "m2",
    "field",
    "",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "-2",
    "5",
    "10",
    "100",
    "1000",
    "3.5",
    "-0.25",
    "1e3",
    "inf",
    "-inf",
    "nan",
    "01",
    " 1",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "1700000000",
    "1800000000",
    "1700000001000",
    "NX",
    "XX",
    "GT",
    "LT",
    "CH",
    "INCR",
    "EX",
    "PX",
    "EXAT",
    "PXAT",
    "KEEPTTL",
    "GET",
    "PERSIST",
    "WITHSCORES",
    "WITHSCORE",
    "WITHVALUES",
    "LIMIT",
    "BYSCORE",
    "BYLEX",
    "REV",
    "COUNT",
    "MATCH",
    "*",
    "[ab]*",
    "TYPE",
    "string",
    "hash",
    "STORE",
    "ALPHA",
    "BY",
    "ASC",
    "DESC",
    "nosort",
    "w_*",
    "#",
    "[a",
    "(a",
    "+",
    "-",
    "(1",
    "(2.5",
    "AND",
    "OR",
    "XOR",
    "NOT",
    "DIFF",
    "ONE",
    "BYTE",
    "BIT",
    "LEFT",
    "RIGHT",
    "BEFORE",
    "AFTER",
    "FIELDS",
    "FNX",
    "FXX",
    "u8",
    "i5",
    "u63",
    "i64",
    "#1",
    "OVERFLOW",
    "SAT",
    "WRAP",
    "FAIL",
    "SET",
    "INCRBY",
    "RANK",
    "MAXLEN",
    "IDX",
    "WEIGHTS",
    "AGGREGATE",
    "MIN",
    "REPLACE",
    "a longer text than any small value has room for: 1234567890 1234567890",
];

/// Requests of one input: more would say little more.
const REQUESTS_MAX: usize = 200;

/// One input.
pub fn check(mut data: &[u8]) {
    let node = TestNode::with_settings(settings());
    let mut client = node.client();
    let commands = commands(&node);
    for _ in 0..REQUESTS_MAX {
        let [command, count, rest @ ..] = data else { break };
        data = rest;
        if *command == 255 {
            node.clock.advance(u64::from(*count) * 100);
            continue;
        }
        let mut words: Vec<Vec<u8>> = commands[usize::from(*command) % commands.len()].clone();
        for _ in 0..count % 12 {
            let [word, rest @ ..] = data else { break };
            data = rest;
            words.push(match WORDS.get(usize::from(*word)) {
                Some(word) => word.as_bytes().to_vec(),
                None => {
                    let (raw, rest) = data.split_at((usize::from(*word) - 112).min(data.len()));
                    data = rest;
                    raw.to_vec()
                }
            });
        }
        let args: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let (reply, _) = node.request(&mut client, &args);
        let decoded = Decoder::default().decode(&reply).expect("a well-formed reply");
        assert!(decoded.value.is_some(), "no whole reply to {}", show_words(&words));
        assert_eq!(decoded.consumed, reply.len(), "more than one reply to {}", show_words(&words));
    }
    node.run(&mut client, "DISCARD");
    let dump = node.dump();
    assert_eq!(node.replayed(), dump, "the log gives back what the node holds");
    check_account(&node, &mut client);
    for (number, key) in dump.keys() {
        let number = number.to_string();
        node.request(&mut client, &[b"SELECT", number.as_bytes()]);
        node.request(&mut client, &[b"DEL", key]);
    }
    check_account(&node, &mut client);
    assert!(node.dump().is_empty());
}

/// Settings under which a few elements are a list of several pieces, of which some are compressed.
fn settings() -> Settings {
    let settings = Settings::new();
    let of_lists = [("list-max-listpack-size", "3"), ("list-compress-depth", "1")];
    settings.set_many(&of_lists).expect("these settings");
    settings
}

/// Names of what is run, those of subcommands with their container's.
fn commands(node: &TestNode) -> Vec<Vec<Vec<u8>>> {
    let mut names: Vec<Vec<Vec<u8>>> = Vec::new();
    let wanted = |flags: Flags| {
        (flags.has(Flags::WRITE) || flags.has(Flags::READONLY))
            && !flags.has(Flags::BLOCKING)
            && !flags.has(Flags::ADMIN)
    };
    for (_, entry) in node.node.table.iter() {
        if matches!(entry.spec.handler, Handler::Run(_)) && wanted(entry.spec.flags) {
            names.push(entry.full_name.split('|').map(|word| word.as_bytes().to_vec()).collect());
        }
    }
    for name in ["MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH", "SELECT"] {
        names.push(vec![name.as_bytes().to_vec()]);
    }
    names.sort();
    names
}

/// What was accounted for while the data changed is what it takes.
fn check_account(node: &TestNode, client: &mut TestClient) {
    let keyspace = &node.node.keyspace;
    keyspace.add_used_bytes(std::mem::take(&mut client.scratch.counters.bytes_delta));
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::All, &mut scratch, 0);
    let counted: u64 = (0..keyspace.databases()).map(|db| tx.recount(db)).sum();
    assert_eq!(keyspace.used_bytes(), counted, "memory is accounted for");
}

fn show_words(words: &[Vec<u8>]) -> String {
    let words = words.iter().map(|word| format!("\"{}\"", word.escape_ascii()));
    words.collect::<Vec<_>>().join(" ")
}
