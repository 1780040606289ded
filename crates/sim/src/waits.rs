//! `WAIT` and `WAITAOF`: what their replies report, and what they promise.
//!
//! There are no replicas, so a client that wants one waits until the deadline. `WAITAOF` reports
//! for this node whether everything that the connection wrote before is on the disk. No crash may
//! take back what it reported so, whatever the gate.

use crate::oracle_commands::Call;
use ladon_resp::client::Value;
use ladon_testkit::Random;

/// The oracle's placeholder for a reply that cannot be predicted.
pub(crate) fn waited() -> Value {
    Value::Simple(b"waited".to_vec())
}

/// A call that waits for the log or for replicas.
pub(crate) fn call(random: &mut Random) -> Call {
    let timeout = (1 + random.below(40)).to_string();
    let words: Vec<&str> = match random.below(8) {
        0..4 => vec!["WAITAOF", "1", "0", "0"],
        4 => vec!["WAITAOF", "1", "0", &timeout],
        5 => vec!["WAITAOF", "1", "1", &timeout],
        6 => vec!["WAITAOF", "0", "0", "0"],
        _ => vec!["WAIT", "1", &timeout],
    };
    words.into_iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// Whether it is one of these.
pub(crate) fn is_wait(call: &Call) -> bool {
    matches!(call[0].as_slice(), b"WAIT" | b"WAITAOF")
}

/// Whether it waits for more than the log: until its time is over.
pub(crate) fn wants_replicas(call: &Call) -> bool {
    call[0] == b"WAIT" || call[0] == b"WAITAOF" && call[2] != b"0"
}

/// What a reply of `WAITAOF` reports for this node's disk; `None` if it is not such a reply.
pub(crate) fn says_durable(reply: &Value) -> Option<bool> {
    match reply {
        Value::Array(said) => match said[..] {
            [Value::Integer(local @ 0..=1), Value::Integer(0)] => Some(local == 1),
            _ => None,
        },
        _ => None,
    }
}

/// Whether this reply is allowed after `waited_ms`; `in_exec`: as part of a transaction, where
/// nothing waits.
pub(crate) fn may_be_answered(call: &Call, reply: &Value, waited_ms: u64, in_exec: bool) -> bool {
    let timeout_ms = call.last().and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
    let timeout_ms: u64 = timeout_ms.unwrap_or(0);
    let may_give_up = in_exec || timeout_ms != 0 && waited_ms >= timeout_ms;
    if call[0] == b"WAIT" {
        return *reply == Value::Integer(0) && may_give_up;
    }
    let Some(is_durable) = says_durable(reply) else { return false };
    let is_served = (call[1] == b"0" || is_durable) && !wants_replicas(call);
    is_served || may_give_up
}

/// Whether a call with this reply has certainly changed data. Returns false for one that may have
/// found the data as it would leave it.
pub(crate) fn surely_wrote(call: &Call, reply: &Value) -> bool {
    let counted = matches!(reply, Value::Integer(1..));
    match call[0].as_slice() {
        b"SET" | b"MSET" => *reply == Value::Simple(b"OK".to_vec()),
        b"RENAME" => *reply == Value::Simple(b"OK".to_vec()) && call[1] != call[2],
        b"INCR" | b"HINCRBY" => matches!(reply, Value::Integer(_)),
        b"FUNCTION" => crate::functions::surely_wrote(call, reply),
        b"ZINCRBY" | b"XADD" => matches!(reply, Value::Bulk(_)),
        b"GETSET" => matches!(reply, Value::Bulk(_) | Value::Null),
        b"GETDEL" => matches!(reply, Value::Bulk(_)),
        b"APPEND" | b"DEL" | b"SADD" | b"SREM" | b"HDEL" | b"ZADD" | b"ZREM" | b"RPUSH"
        | b"LPUSH" | b"LREM" | b"LINSERT" | b"RENAMENX" | b"SUNIONSTORE" | b"SINTERSTORE"
        | b"SDIFFSTORE" | b"ZUNIONSTORE" | b"ZINTERSTORE" => counted,
        // Each client's values are its own, so one that is set was not there.
        b"HSET" => matches!(reply, Value::Integer(_)),
        b"SMOVE" => counted && call[1] != call[2],
        b"BLPOP" | b"ZPOPMIN" => matches!(reply, Value::Array(popped) if !popped.is_empty()),
        _ => false,
    }
}
