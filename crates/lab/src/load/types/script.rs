//! A script of three lines that counts as `INCRBY` does, and caps what it counts.

use sha1::{Digest as _, Sha1};

use super::counter::{Count, Counters};
use crate::load::question::Question;
use crate::load::words::{NAME_BYTES, Word, array, bulk};

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
#[derive(Debug)]
pub struct Fill;

impl Fill {
    const fn script(about: u32) -> &'static str {
        if about == 0 { DECLARED } else { UNDECLARED }
    }
}

impl Question for Fill {
    fn count(&self) -> u32 {
        2
    }

    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        array(3, to);
        bulk(b"SCRIPT", to);
        bulk(b"LOAD", to);
        bulk(Self::script(about).as_bytes(), to);
    }

    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        bulk(sha(Self::script(about)).as_bytes(), to);
    }

    fn answer_bytes_max(&self) -> usize {
        64
    }
}

/// `EVALSHA` of a script that counts up any counter, declared as a key or not.
pub fn evalsha(counters: &mut Counters, is_declared: bool) -> Count<'_> {
    let (script, keys) = if is_declared { (DECLARED, "1") } else { (UNDECLARED, "0") };
    let sha = sha(script);
    let words = [
        Word::Is("EVALSHA"),
        Word::Is(&sha),
        Word::Is(keys),
        Word::Open(NAME_BYTES),
        Word::Is("1"),
    ];
    Count::by(counters, &words)
}
