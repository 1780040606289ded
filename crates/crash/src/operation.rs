//! A lane's operations: each follows from the seed, the lane and its number alone.

use crate::random::Random;
use ladon_resp::client::write_request;

/// Keys that hold strings.
pub const TEXTS: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];
/// Keys that hold integers.
pub const COUNTERS: [&str; 4] = ["c0", "c1", "c2", "c3"];
/// Keys that hold sets.
pub const SETS: [&str; 4] = ["t0", "t1", "t2", "t3"];

/// Some day in 2096: a time that passes through log and checkpoint and does not come.
const FAR_FUTURE_S: u64 = 4_000_000_000;

/// One command, on the lane's own names of keys.
#[derive(Clone, Debug)]
pub enum Command {
    Get(&'static str),
    /// SET for one pair, MSET for more.
    Set(Vec<(&'static str, Vec<u8>)>),
    Append(&'static str, Vec<u8>),
    IncrBy(&'static str, i64),
    Sadd(&'static str, Vec<u64>),
    Srem(&'static str, u64),
    Smove(&'static str, &'static str, u64),
    SunionStore(&'static str, &'static str, &'static str),
    Del(Vec<&'static str>),
    Rename(&'static str, &'static str),
    ExpireAt(&'static str, u64),
}

/// What is acknowledged, and kept or lost, as a whole.
#[derive(Clone, Debug)]
pub enum Operation {
    /// One command.
    One(Command),
    /// MULTI, these, EXEC.
    Transaction(Vec<Command>),
}

impl Operation {
    /// Operation `number` of a lane.
    pub fn nth(seed: u64, lane: u64, number: u64) -> Operation {
        let mut random = Random::new(seed ^ lane << 48, number);
        if random.below(8) != 0 {
            return Operation::One(command(&mut random, number));
        }
        let commands = 2 + random.below(4);
        Operation::Transaction((0..commands).map(|_| command(&mut random, number)).collect())
    }

    /// Appends the requests; how many replies come before the one that counts.
    pub fn write(&self, lane: u64, out: &mut Vec<u8>) -> usize {
        match self {
            Operation::One(command) => {
                command.write(lane, out);
                0
            }
            Operation::Transaction(commands) => {
                write_request(out, &["MULTI"]);
                commands.iter().for_each(|command| command.write(lane, out));
                write_request(out, &["EXEC"]);
                commands.len() + 1
            }
        }
    }
}

fn command(random: &mut Random, number: u64) -> Command {
    let text = |random: &mut Random| random.pick(&TEXTS);
    let set = |random: &mut Random| random.pick(&SETS);
    match random.below(16) {
        0..3 => Command::Set(vec![(text(random), value(random, number))]),
        3 => Command::Append(text(random), format!("+{number}").into_bytes()),
        4..7 => Command::IncrBy(random.pick(&COUNTERS), 1 + random.below(9) as i64),
        7 | 8 => {
            let count = 1 + random.below(4);
            Command::Sadd(set(random), (0..count).map(|_| random.below(300)).collect())
        }
        9 => Command::Srem(set(random), random.below(300)),
        10 => Command::Smove(set(random), set(random), random.below(300)),
        11 => {
            let first = random.below(8) as usize;
            let pairs = (0..3).map(|at| TEXTS[(first + at) % 8]);
            Command::Set(pairs.map(|key| (key, number.to_string().into_bytes())).collect())
        }
        12 => match random.below(3) {
            0 => Command::SunionStore(set(random), set(random), set(random)),
            1 => Command::Del(vec![set(random)]),
            _ => {
                let first = random.below(8) as usize;
                Command::Del(vec![TEXTS[first], TEXTS[(first + 3) % 8]])
            }
        },
        13 => Command::Rename(text(random), text(random)),
        14 => {
            let far = FAR_FUTURE_S + number % 1000;
            let keys = [text(random), set(random), random.pick(&COUNTERS)];
            Command::ExpireAt(random.pick(&keys), far)
        }
        _ => Command::Get(text(random)),
    }
}

/// Mostly short, now and then longer than a page, rarely longer than the log's chunks.
fn value(random: &mut Random, number: u64) -> Vec<u8> {
    let length = match random.below(256) {
        0 => 300_000,
        1..8 => 10_000,
        _ => 1 + random.below(60),
    };
    number.to_string().bytes().cycle().take(length as usize).collect()
}

impl Command {
    fn write(&self, lane: u64, out: &mut Vec<u8>) {
        let name = |key: &str| format!("lane{lane}:{key}").into_bytes();
        let number = |n: u64| n.to_string().into_bytes();
        let mut words: Vec<Vec<u8>> = Vec::new();
        let mut say = |word: &str| words.push(word.as_bytes().to_vec());
        match self {
            Command::Get(key) => {
                say("GET");
                words.push(name(key));
            }
            Command::Set(pairs) => {
                say(if pairs.len() == 1 { "SET" } else { "MSET" });
                words.extend(pairs.iter().flat_map(|(key, text)| [name(key), text.clone()]));
            }
            Command::Append(key, more) => {
                say("APPEND");
                words.extend([name(key), more.clone()]);
            }
            Command::IncrBy(key, amount) => {
                say("INCRBY");
                words.extend([name(key), amount.to_string().into_bytes()]);
            }
            Command::Sadd(key, members) => {
                say("SADD");
                words.push(name(key));
                words.extend(members.iter().map(|&member| number(member)));
            }
            Command::Srem(key, member) => {
                say("SREM");
                words.extend([name(key), number(*member)]);
            }
            Command::Smove(from, to, member) => {
                say("SMOVE");
                words.extend([name(from), name(to), number(*member)]);
            }
            Command::SunionStore(to, first, second) => {
                say("SUNIONSTORE");
                words.extend([name(to), name(first), name(second)]);
            }
            Command::Del(keys) => {
                say("DEL");
                words.extend(keys.iter().map(|key| name(key)));
            }
            Command::Rename(from, to) => {
                say("RENAME");
                words.extend([name(from), name(to)]);
            }
            Command::ExpireAt(key, at) => {
                say("EXPIREAT");
                words.extend([name(key), number(*at)]);
            }
        }
        write_request(out, &words);
    }
}
