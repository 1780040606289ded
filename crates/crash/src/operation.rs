//! A lane's operations: each follows from the seed, the lane and its number alone.

use ladon_resp::client::write_request;
use ladon_testkit::Random;

/// Keys that hold strings.
pub const TEXTS: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];
/// Keys that hold integers.
pub const COUNTERS: [&str; 4] = ["c0", "c1", "c2", "c3"];
/// Keys that hold sets.
pub const SETS: [&str; 4] = ["t0", "t1", "t2", "t3"];

/// Keys that hold lists.
pub const LISTS: [&str; 3] = ["l0", "l1", "l2"];
/// Keys that hold hashes.
pub const HASHES: [&str; 3] = ["h0", "h1", "h2"];
/// Keys that hold sorted sets.
pub const SORTED_SETS: [&str; 3] = ["z0", "z1", "z2"];
/// Keys that hold bitmaps.
pub const BITMAPS: [&str; 2] = ["b0", "b1"];

/// A lane's key as the server knows it.
pub fn full_name(lane: u64, key: &str) -> Vec<u8> {
    format!("lane{lane}:{key}").into_bytes()
}

/// Every key of a lane.
pub fn keys() -> impl Iterator<Item = &'static str> {
    let strings = TEXTS.into_iter().chain(COUNTERS).chain(BITMAPS);
    strings.chain(SETS).chain(LISTS).chain(HASHES).chain(SORTED_SETS)
}

/// One of a list's ends, as commands name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

impl Side {
    fn letter(self) -> &'static str {
        if self == Side::Left { "L" } else { "R" }
    }

    fn word(self) -> &'static str {
        if self == Side::Left { "LEFT" } else { "RIGHT" }
    }
}

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
    /// LPUSH, RPUSH.
    Push(&'static str, Side, Vec<u64>),
    /// LPOP, RPOP with a count.
    Pop(&'static str, Side, u64),
    /// BLPOP, BRPOP with a timeout, which expires on an empty list because no other client pushes
    /// there.
    BlockingPop(&'static str, Side),
    Lmove(&'static str, &'static str, Side, Side),
    /// LREM of all that are equal.
    Lrem(&'static str, u64),
    /// LTRIM to so many from the front.
    Ltrim(&'static str, u64),
    Hset(&'static str, Vec<(u64, u64)>),
    Hincrby(&'static str, u64, i64),
    Hdel(&'static str, u64),
    Zadd(&'static str, Vec<(u64, i64)>),
    Zincrby(&'static str, u64, i64),
    Zpopmin(&'static str, u64),
    /// ZUNIONSTORE with the higher of two scores: sums would exceed the integers that a double
    /// represents.
    ZunionStore(&'static str, &'static str, &'static str),
    Setbit(&'static str, u64, bool),
    /// BITFIELD INCRBY of an unsigned byte, which wraps.
    BitfieldIncr(&'static str, u64, i64),
    /// BITOP XOR.
    Bitxor(&'static str, &'static str, &'static str),
}

/// Operations that are acknowledged, and kept or lost, as a whole.
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
        let mut random = Random::stream(seed ^ lane << 48, number);
        if random.below(8) != 0 {
            return Operation::One(command(&mut random, number));
        }
        let commands = 2 + random.below(4);
        Operation::Transaction((0..commands).map(|_| command(&mut random, number)).collect())
    }

    /// Appends the requests; returns how many replies precede the one that counts.
    pub fn write(&self, lane: u64, out: &mut Vec<u8>) -> usize {
        match self {
            Operation::One(command) => {
                write_request(out, &command.words(lane));
                0
            }
            Operation::Transaction(commands) => {
                write_request(out, &["MULTI"]);
                commands.iter().for_each(|command| write_request(out, &command.words(lane)));
                write_request(out, &["EXEC"]);
                commands.len() + 1
            }
        }
    }
}

fn command(random: &mut Random, number: u64) -> Command {
    let text = |random: &mut Random| random.pick(&TEXTS);
    let set = |random: &mut Random| random.pick(&SETS);
    match random.below(30) {
        16..30 => collection(random),
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
            1 => {
                let all: Vec<_> = SETS.into_iter().chain(LISTS).chain(HASHES).collect();
                let key = all.iter().chain(&SORTED_SETS).chain(&BITMAPS);
                Command::Del(vec![random.pick(&key.copied().collect::<Vec<_>>())])
            }
            _ => {
                let first = random.below(8) as usize;
                Command::Del(vec![TEXTS[first], TEXTS[(first + 3) % 8]])
            }
        },
        13 => Command::Rename(text(random), text(random)),
        14 => {
            let far = FAR_FUTURE_S + number % 1000;
            Command::ExpireAt(random.pick(&keys().collect::<Vec<_>>()), far)
        }
        _ => Command::Get(text(random)),
    }
}

/// Commands on lists, hashes, sorted sets and bitmaps.
fn collection(random: &mut Random) -> Command {
    let side = |random: &mut Random| random.pick(&[Side::Left, Side::Right]);
    let list = |random: &mut Random| random.pick(&LISTS);
    let hash = |random: &mut Random| random.pick(&HASHES);
    let sorted = |random: &mut Random| random.pick(&SORTED_SETS);
    let bitmap = |random: &mut Random| random.pick(&BITMAPS);
    match random.below(14) {
        0 | 1 => {
            // Now and then enough for a list of several chunks.
            let count = if random.below(24) == 0 { 1500 } else { 1 + random.below(4) };
            let elements = (0..count).map(|_| random.below(1000)).collect();
            Command::Push(list(random), side(random), elements)
        }
        2 => Command::Pop(list(random), side(random), 1 + random.below(5)),
        3 if random.below(8) == 0 => Command::BlockingPop(list(random), side(random)),
        3 => Command::Lmove(list(random), list(random), side(random), side(random)),
        4 if random.below(4) == 0 => Command::Ltrim(list(random), random.below(2000)),
        4 => Command::Lrem(list(random), random.below(1000)),
        5 | 6 => {
            let count = 1 + random.below(4);
            let key = hash(random);
            let pairs = (0..count).map(|_| (random.below(400), random.below(1_000_000)));
            Command::Hset(key, pairs.collect())
        }
        7 => Command::Hincrby(hash(random), random.below(400), random.below(100) as i64 - 50),
        8 => Command::Hdel(hash(random), random.below(400)),
        9 => {
            let count = 1 + random.below(4);
            let key = sorted(random);
            let pairs = (0..count).map(|_| (random.below(300), random.below(1000) as i64 - 500));
            Command::Zadd(key, pairs.collect())
        }
        10 => Command::Zincrby(sorted(random), random.below(300), random.below(20) as i64 - 10),
        11 => match random.below(2) {
            0 => Command::Zpopmin(sorted(random), 1 + random.below(3)),
            _ => Command::ZunionStore(sorted(random), sorted(random), sorted(random)),
        },
        12 => Command::Setbit(bitmap(random), random.below(40_000), random.below(2) == 1),
        _ => match random.below(2) {
            0 => Command::BitfieldIncr(bitmap(random), random.below(40_000), 100),
            _ => Command::Bitxor(bitmap(random), bitmap(random), bitmap(random)),
        },
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
    /// The request, with the lane's names of the keys.
    #[expect(clippy::too_many_lines, reason = "one arm for each command")]
    pub fn words(&self, lane: u64) -> Vec<Vec<u8>> {
        let name = |key: &str| full_name(lane, key);
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
            Command::Push(key, side, elements) => {
                say(&format!("{}PUSH", side.letter()));
                words.push(name(key));
                words.extend(elements.iter().map(|&element| number(element)));
            }
            Command::Pop(key, side, count) => {
                say(&format!("{}POP", side.letter()));
                words.extend([name(key), number(*count)]);
            }
            Command::BlockingPop(key, side) => {
                say(&format!("B{}POP", side.letter()));
                words.extend([name(key), b"0.001".to_vec()]);
            }
            Command::Lmove(from, to, side, end) => {
                say("LMOVE");
                words.extend([name(from), name(to)]);
                words.extend([side.word().into(), end.word().into()]);
            }
            Command::Lrem(key, element) => {
                say("LREM");
                words.extend([name(key), number(0), number(*element)]);
            }
            Command::Ltrim(key, count) => {
                say("LTRIM");
                let last = *count as i64 - 1;
                // Up to -1 would be all.
                let (first, last) = if last < 0 { (1, 0) } else { (0, last) };
                words.extend([name(key), number(first), last.to_string().into_bytes()]);
            }
            Command::Hset(key, pairs) => {
                say("HSET");
                words.push(name(key));
                words.extend(
                    pairs.iter().flat_map(|&(field, value)| [number(field), number(value)]),
                );
            }
            Command::Hincrby(key, field, by) => {
                say("HINCRBY");
                words.extend([name(key), number(*field), by.to_string().into_bytes()]);
            }
            Command::Hdel(key, field) => {
                say("HDEL");
                words.extend([name(key), number(*field)]);
            }
            Command::Zadd(key, pairs) => {
                say("ZADD");
                words.push(name(key));
                let words_of = |&(member, score): &(u64, i64)| {
                    [score.to_string().into_bytes(), number(member)]
                };
                words.extend(pairs.iter().flat_map(words_of));
            }
            Command::Zincrby(key, member, by) => {
                say("ZINCRBY");
                words.extend([name(key), by.to_string().into_bytes(), number(*member)]);
            }
            Command::Zpopmin(key, count) => {
                say("ZPOPMIN");
                words.extend([name(key), number(*count)]);
            }
            Command::ZunionStore(to, first, second) => {
                say("ZUNIONSTORE");
                words.extend([name(to), number(2), name(first), name(second)]);
                words.extend([b"AGGREGATE".to_vec(), b"MAX".to_vec()]);
            }
            Command::Setbit(key, offset, on) => {
                say("SETBIT");
                words.extend([name(key), number(*offset), number(u64::from(*on))]);
            }
            Command::BitfieldIncr(key, offset, by) => {
                say("BITFIELD");
                words.extend([name(key), b"INCRBY".to_vec(), b"u8".to_vec(), number(*offset)]);
                words.push(by.to_string().into_bytes());
            }
            Command::Bitxor(to, first, second) => {
                say("BITOP");
                words.extend([b"XOR".to_vec(), name(to), name(first), name(second)]);
            }
        }
        words
    }
}
