//! Scripts: what clients run, and what it means.
//!
//! A script is one step, whatever it does: its changes are in the log together or not at all, and
//! nobody sees a part of them. Some declare their keys, others reach for keys that they are given
//! as arguments. Where the plan has it, each script runs twice, and the first run is taken back.
//!
//! Some run by their hashes. The node remembers scripts until it is told to forget them, or
//! crashes: then it may answer that it knows none, and the client sends the script itself.

use crate::history::Operation;
use crate::oracle_commands::{Call, State, apply};
use crate::{functions, streams};
use ladon_resp::client::Value;
use ladon_testkit::Random;
use std::sync::LazyLock;

const ERROR: &str = "ERR half way";

static FLUSH: LazyLock<Call> = LazyLock::new(|| vec![b"SCRIPT".to_vec(), b"FLUSH".to_vec()]);

/// The scripts: one line each, without double quotes, as `MONITOR` shows them.
const TRANSFER: &str = "local n = redis.call('incrby', KEYS[1], '-3') \
                        redis.call('incrby', KEYS[2], '3') return n";
const TRANSFER_UNDECLARED: &str = "local n = redis.call('incrby', ARGV[1], '-3') \
                                   redis.call('incrby', ARGV[2], '3') return n";
/// What it has written by then stays.
const HALF_WAY: &str = "redis.call('incrby', KEYS[1], '7') redis.call('set', KEYS[2], ARGV[1]) \
                        return redis.error_reply('ERR half way')";
/// Somebody may wait for the list, which is not declared.
const PUSH: &str = "redis.call('set', KEYS[1], ARGV[1]) \
                    redis.call('rpush', ARGV[2], ARGV[1], ARGV[1]) return redis.call('get', KEYS[1])";
const READ: &str = "return {redis.call('get', KEYS[1]), redis.call('get', ARGV[1])}";
const COPY: &str = "local v = redis.call('get', KEYS[1]) \
                    if v then redis.call('set', ARGV[1], v) redis.call('del', KEYS[1]) return 1 end \
                    return 0";
const PUBLISH: &str = "redis.call('set', KEYS[1], ARGV[2]) \
                       return redis.call('publish', ARGV[1], ARGV[2])";

const ALL: [&str; 7] = [TRANSFER, TRANSFER_UNDECLARED, HALF_WAY, PUSH, READ, COPY, PUBLISH];

/// Their hashes, in hexadecimal digits.
static HASHES: LazyLock<[Vec<u8>; 7]> =
    LazyLock::new(|| ALL.map(|body| ladon_lua::sha1_hex(body.as_bytes()).to_vec()));

/// A script with keys and arguments, or what the node is to remember; `value` is unlike any other.
pub(crate) fn call(random: &mut Random, value: &str) -> Call {
    match random.below(24) {
        0 | 1 => {
            let body = ALL[random.below(ALL.len() as u64) as usize];
            return ["SCRIPT", "LOAD", body].map(|word| word.as_bytes().to_vec()).to_vec();
        }
        2 => return ["SCRIPT", "FLUSH"].map(|word| word.as_bytes().to_vec()).to_vec(),
        _ => {}
    }
    let call = new_eval(random, value);
    if random.chance(1, 2) { by_hash(call) } else { call }
}

fn new_eval(random: &mut Random, value: &str) -> Call {
    let key = |random: &mut Random| format!("k{}", random.below(4));
    let (a, b) = (key(random), key(random));
    let list = if random.chance(1, 2) { "w0" } else { "l0" };
    let (from, to) = if random.chance(1, 2) { ("n0", "n1") } else { ("n1", "n0") };
    let words: Vec<&str> = match random.below(6) {
        0 => vec![TRANSFER, "2", from, to],
        1 => vec![TRANSFER_UNDECLARED, "0", from, to],
        2 => vec![HALF_WAY, "2", from, &a, value],
        3 => vec![PUSH, "1", &a, value, list],
        4 => vec![READ, "1", &a, &b],
        _ => vec![COPY, "1", &a, &b],
    };
    eval(&words)
}

/// A script that publishes a message.
pub(crate) fn publish(random: &mut Random, channel: &str, payload: &str) -> Call {
    let call = eval(&[PUBLISH, "1", "k0", channel, payload]);
    if random.chance(1, 2) { by_hash(call) } else { call }
}

/// Instead of the script, its hash.
fn by_hash(mut call: Call) -> Call {
    let at = ALL.iter().position(|body| body.as_bytes() == call[1]).expect("one of these");
    call[0] = b"EVALSHA".to_vec();
    call[1].clone_from(&HASHES[at]);
    call
}

/// Whether a script or a function runs with this call.
pub(crate) fn is_run(call: &Call) -> bool {
    matches!(call[0].as_slice(), b"EVAL" | b"EVALSHA") || functions::is_run(call)
}

/// The script that a call runs or brings.
fn body(call: &Call) -> Option<&str> {
    match call[0].as_slice() {
        b"EVAL" => std::str::from_utf8(&call[1]).ok(),
        b"EVALSHA" => Some(ALL[HASHES.iter().position(|hash| *hash == call[1])?]),
        b"SCRIPT" => std::str::from_utf8(call.get(2)?).ok(),
        _ => None,
    }
}

/// Whether the node says that it does not know this call's script.
pub(crate) fn is_unknown(call: &Call, reply: &Value) -> bool {
    call[0] == b"EVALSHA" && matches!(reply, Value::Error(text) if text.starts_with(b"NOSCRIPT"))
}

/// The same call with the script itself, once its hash was not known. A message may not be sent by
/// two calls, even if one of them has not run.
pub(crate) fn retry(call: &Call) -> Option<Call> {
    let body = body(call).filter(|body| *body != PUBLISH)?;
    let mut call = call.clone();
    (call[0], call[1]) = (b"EVAL".to_vec(), body.as_bytes().to_vec());
    Some(call)
}

/// What `SCRIPT` does to the data: nothing.
pub(crate) fn remember(call: &Call) -> Value {
    match body(call).and_then(|body| ALL.iter().position(|it| *it == body)) {
        Some(at) => Value::Bulk(HASHES[at].clone()),
        None => Value::Simple(b"OK".to_vec()),
    }
}

/// What is wrong with what the node remembered at this operation, if anything. `history`: since the
/// node's start, when it knew nothing.
pub(crate) fn forgotten(operation: &Operation, history: &[Operation]) -> Option<String> {
    let end_of = |it: &Operation| it.end.as_ref().map_or(u64::MAX, |(end, _)| *end);
    let end = end_of(operation);
    let wrong = |(call, reply): &(&Call, &Value)| {
        let Some(body) = body(call).filter(|_| call[0] == b"EVALSHA") else { return false };
        // As much as it has to be remembered, or may be.
        let brings = |it: &&Operation| {
            let brings = |call: &Call| call[0] != b"EVALSHA" && self::body(call) == Some(body);
            it.calls.iter().any(brings)
        };
        let flushes = |it: &&Operation| it.calls.iter().any(|call| call[..] == FLUSH[..]);
        let mut bringers = history.iter().filter(brings);
        if is_unknown(call, reply) {
            bringers.any(|bringer| {
                end_of(bringer) < operation.begin
                    && bringer.end.is_some()
                    && !bringer.was_refused()
                    && !history
                        .iter()
                        .filter(flushes)
                        .any(|flush| end_of(flush) >= bringer.begin && flush.begin <= end)
            })
        } else {
            // A refusal comes before the script is looked for.
            !matches!(reply, Value::Error(text) if text != ERROR.as_bytes())
                && !bringers.any(|bringer| {
                    bringer.begin <= end
                        && !history.iter().filter(flushes).any(|flush| {
                            flush.begin > end_of(bringer)
                                && end_of(flush) < operation.begin
                                && !flush.was_refused()
                        })
                })
        }
    };
    let is_wrong = operation.answered().iter().any(wrong);
    is_wrong.then(|| format!("the node's memory of scripts is wrong: {}", operation.show()))
}

fn eval(words: &[&str]) -> Call {
    let words = ["EVAL"].iter().chain(words);
    words.map(|word| word.as_bytes().to_vec()).collect()
}

/// The message that it publishes, and its channel.
pub(crate) fn publication(call: &Call) -> Option<(&[u8], &[u8])> {
    match call.as_slice() {
        [_, _, _, _, channel, payload] if body(call) == Some(PUBLISH) => Some((channel, payload)),
        _ => None,
    }
}

/// Runs a script on the data, command by command.
pub(crate) fn run(state: &mut State, call: &Call) -> Value {
    let body = body(call).unwrap_or_default();
    let mut run = |words: &[&[u8]]| apply(state, &words.iter().map(|word| word.to_vec()).collect());
    let (first, second) = (&call[3], &call[4]);
    match body {
        TRANSFER | TRANSFER_UNDECLARED => {
            let left = run(&[b"INCRBY", first, b"-3"]);
            run(&[b"INCRBY", second, b"3"]);
            left
        }
        HALF_WAY => {
            run(&[b"INCRBY", first, b"7"]);
            run(&[b"SET", second, &call[5]]);
            Value::Error(ERROR.into())
        }
        PUSH => {
            run(&[b"SET", first, second]);
            run(&[b"RPUSH", &call[5], second, second]);
            run(&[b"GET", first])
        }
        READ => Value::Array(vec![run(&[b"GET", first]), run(&[b"GET", second])]),
        COPY => match run(&[b"GET", first]) {
            Value::Bulk(value) => {
                run(&[b"SET", second, &value]);
                run(&[b"DEL", first]);
                Value::Integer(1)
            }
            _ => Value::Integer(0),
        },
        PUBLISH => {
            run(&[b"SET", first, &call[5]]);
            run(&[b"PUBLISH", second, &call[5]])
        }
        streams::ADD => run(&[b"XADD", first, second, b"f", &call[5]]),
        _ => unreachable!("{body} is not modelled"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(call: Call, begin: u64, end: u64, reply: Value) -> Operation {
        Operation { end: Some((end, reply)), ..Operation::new(vec![call], begin) }
    }

    fn words(words: &[&str]) -> Call {
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    fn unknown() -> Value {
        Value::Error(b"NOSCRIPT No matching script. Please use EVAL.".to_vec())
    }

    #[test]
    fn a_script_is_known_from_its_load_to_a_flush() {
        let load = words(&["SCRIPT", "LOAD", READ]);
        let load = operation(load.clone(), 1, 3, remember(&load));
        let call = by_hash(eval(&[READ, "1", "k0", "k1"]));
        let trouble = |begin, reply, flushed: Option<(u64, u64)>| {
            let mut history = vec![load.clone(), operation(call.clone(), begin, 9, reply)];
            let ok = Value::Simple(b"OK".to_vec());
            history.extend(flushed.map(|(begin, end)| operation(FLUSH.clone(), begin, end, ok)));
            forgotten(&history[1], &history).is_some()
        };
        let found = || Value::Array(vec![Value::Null, Value::Null]);
        assert!(trouble(4, unknown(), None) && !trouble(4, found(), None));
        assert!(!trouble(2, unknown(), None), "the load may have come later");
        assert!(!trouble(7, unknown(), Some((4, 6))) && trouble(7, found(), Some((4, 6))));
        assert!(!trouble(5, unknown(), Some((4, 6))) && !trouble(5, found(), Some((4, 6))));
        let alone = operation(call.clone(), 0, 9, found());
        assert!(forgotten(&alone, &[]).is_some(), "nobody has brought it");
    }

    #[test]
    fn a_hash_stands_for_its_script() {
        let by_hash = by_hash(eval(&[READ, "1", "k0", "k1"]));
        assert_eq!(body(&by_hash), Some(READ));
        assert_eq!(retry(&by_hash), Some(eval(&[READ, "1", "k0", "k1"])));
        assert!(is_unknown(&by_hash, &unknown()) && !is_unknown(&by_hash, &Value::Null));
    }
}
