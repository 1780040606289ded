//! Streams: what clients do with them.
//!
//! Entries are added with ids that only grow, by one group of consumers they are read, waited for and
//! acknowledged. Each consumer is a client, and no entry may go to two of them, whatever crashes.

use crate::oracle_commands::Call;
use ladon_resp::client::Value;
use ladon_testkit::Random;

/// A call on a stream; `consumer` is the client's own.
pub(crate) fn call(random: &mut Random, consumer: u64, value: &str) -> Call {
    let key = format!("x{}", random.below(2));
    let consumer = format!("c{consumer}");
    let ms = 1 + random.below(3);
    let (new, old) = (format!("{ms}-*"), format!("{ms}-{}", random.below(4)));
    let words: Vec<&str> = match random.below(12) {
        0..4 => vec!["XADD", &key, &new, "f", value],
        4 => vec!["XGROUP", "CREATE", &key, "g", "0", "MKSTREAM"],
        5 => vec!["XREADGROUP", "GROUP", "g", &consumer, "COUNT", "2", "STREAMS", &key, ">"],
        6 | 7 => {
            let wait = if random.chance(1, 3) { "3" } else { "100" };
            let head = ["XREADGROUP", "GROUP", "g", &consumer, "COUNT", "1", "BLOCK", wait];
            let words = head.into_iter().chain(["STREAMS", &key, ">"]);
            return words.map(|word| word.as_bytes().to_vec()).collect();
        }
        8 => vec!["XACK", &key, "g", &old],
        9 => vec!["XPENDING", &key, "g"],
        10 => vec!["XDEL", &key, &old],
        _ if random.chance(1, 3) => vec!["XTRIM", &key, "MAXLEN", "6"],
        _ => vec!["XRANGE", &key, "-", "+"],
    };
    words.into_iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// Whether it waits for an entry.
pub(crate) fn may_wait(call: &Call) -> bool {
    call[0] == b"XREADGROUP" && call.iter().any(|word| word == b"BLOCK")
}

/// One text for a group that was missing from the start, and one that went while a client waited.
pub(crate) fn in_order(call: &Call, reply: Value) -> Value {
    match reply {
        Value::Error(text) if call[0] == b"XREADGROUP" && text.starts_with(b"NOGROUP") => {
            Value::Error(b"NOGROUP".to_vec())
        }
        reply => reply,
    }
}
