//! A script of three lines that counts as `INCRBY` does, and caps what it counts.

use sha1::{Digest as _, Sha1};

use super::counter::{Counters, count_up};
use crate::load::question::{Question, ask};
use crate::load::words::Word::{Is, Open};
use crate::load::words::{NAME_BYTES, bulk, bulks};

/// Counts up to a number that no measurement reaches.
const DECLARED: &str = "local count = redis.call('INCRBY', KEYS[1], ARGV[1])
if count > 2000000000 then redis.call('SET', KEYS[1], '0') end
return count";

/// The same of a key that the request does not name as one.
const UNDECLARED: &str = "local count = redis.call('INCRBY', ARGV[1], ARGV[2])
if count > 2000000000 then redis.call('SET', ARGV[1], '0') end
return count";

fn sha(script: &str) -> String {
    Sha1::digest(script).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `SCRIPT LOAD` of both.
pub fn fill() -> impl Question {
    let scripts = [DECLARED, UNDECLARED];
    ask(
        scripts,
        2,
        |scripts, about, to| bulks(&[b"SCRIPT", b"LOAD", scripts[about as usize].as_bytes()], to),
        |scripts, about, to| bulk(sha(scripts[about as usize]).as_bytes(), to),
    )
    .answer_bytes_max(64)
}

/// `EVALSHA` of a script that counts up any counter, declared as a key or not.
pub fn evalsha(counters: &mut Counters, is_declared: bool) -> impl Question {
    let (script, keys) = if is_declared { (DECLARED, "1") } else { (UNDECLARED, "0") };
    let sha = sha(script);
    count_up(counters, &[Is("EVALSHA"), Is(&sha), Is(keys), Open(NAME_BYTES), Is("1")])
}
