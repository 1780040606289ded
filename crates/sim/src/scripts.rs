//! Scripts: what clients run, and what it means.
//!
//! A script is one step, whatever it does: its changes are in the log together or not at all, and
//! nobody sees a part of them. Some declare their keys, others reach for keys that they are given as
//! arguments. Where the plan has it, each script runs twice, and the first run is taken back.

use crate::oracle_commands::{Call, State, apply};
use ladon_resp::client::Value;
use ladon_testkit::Random;

const ERROR: &str = "ERR half way";

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

/// A script with keys and arguments; `value` is unlike any other.
pub(crate) fn call(random: &mut Random, value: &str) -> Call {
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
pub(crate) fn publish(channel: &str, payload: &str) -> Call {
    eval(&[PUBLISH, "1", "k0", channel, payload])
}

fn eval(words: &[&str]) -> Call {
    let words = ["EVAL"].iter().chain(words);
    words.map(|word| word.as_bytes().to_vec()).collect()
}

/// The message that it publishes, and its channel.
pub(crate) fn publication(call: &Call) -> Option<(&[u8], &[u8])> {
    match call.as_slice() {
        [_, body, _, _, channel, payload] if body == PUBLISH.as_bytes() => Some((channel, payload)),
        _ => None,
    }
}

/// Runs a script on the data, command by command.
pub(crate) fn run(state: &mut State, call: &Call) -> Value {
    let body = std::str::from_utf8(&call[1]).unwrap_or_default();
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
        _ => unreachable!("{body} is not modelled"),
    }
}
