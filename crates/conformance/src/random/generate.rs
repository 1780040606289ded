//! A round of requests from a seed.

use super::grammar::{self, Family, Line, Node};
use super::guard;
use super::judge::Check;
use super::rng::Rng;
use crate::reply::quote;

/// A command with how its reply is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The command and its arguments.
    pub words: Vec<Vec<u8>>,
    /// How the reply is compared.
    pub check: Check,
    /// On which of the round's connections.
    pub connection: usize,
}

impl Request {
    /// A request of plain words.
    pub fn new(check: Check, words: &[&[u8]]) -> Request {
        Request { words: words.iter().map(|it| it.to_vec()).collect(), check, connection: 0 }
    }

    /// Whether it is of this command, in capitals.
    pub fn is(&self, command: &[u8]) -> bool {
        self.words[0].eq_ignore_ascii_case(command)
    }

    /// As a line of a script of this crate.
    pub fn line(&self) -> String {
        let plain = |word: &[u8]| {
            !word.is_empty()
                && word.iter().all(|byte| byte.is_ascii_graphic() && !b"\"'\\#@$".contains(byte))
        };
        let words: Vec<String> = self
            .words
            .iter()
            .map(
                |word| if plain(word) { String::from_utf8_lossy(word).into() } else { quote(word) },
            )
            .collect();
        words.join(" ")
    }
}

/// What both servers are asked, beginning empty.
#[derive(Clone, Debug)]
pub struct Round {
    /// 2 or 3.
    pub protocol: u8,
    /// `CONFIG SET`s: names and values. Those that a server does not know are left out there.
    pub settings: Vec<(&'static str, String)>,
    /// The requests, in order.
    pub requests: Vec<Request>,
    /// How many requests go out before their replies are read; with several connections, one.
    pub pipeline: usize,
    /// How many connections there are.
    pub connections: usize,
    /// Whether the servers write and read their data in the end, after which it is compared again.
    pub reload: bool,
}

/// Thresholds that decide encodings, what is notified, and the values that a round may have for
/// them.
const THRESHOLDS: [(&str, &[&str]); 11] = [
    ("notify-keyspace-events", &["", "KEA", "KEA", "EAnm", "Kg$lx", "Etdsz", "KEAnm"]),
    ("hll-sparse-max-bytes", &["0", "60", "300", "3000"]),
    ("stream-node-max-entries", &["2", "100"]),
    ("hash-max-listpack-entries", &["4", "8", "128"]),
    ("hash-max-listpack-value", &["8", "64"]),
    ("list-max-listpack-size", &["-2", "-1", "4", "128"]),
    ("set-max-intset-entries", &["4", "512"]),
    ("set-max-listpack-entries", &["4", "128"]),
    ("set-max-listpack-value", &["8", "64"]),
    ("zset-max-listpack-entries", &["4", "128"]),
    ("zset-max-listpack-value", &["8", "64"]),
];

impl Round {
    /// The round of this seed: about `length` requests of these families.
    pub fn new(seed: u64, length: usize, families: &[Family]) -> Round {
        let mut rng = Rng::new(seed);
        let settings = THRESHOLDS
            .iter()
            .map(|(name, values)| (*name, (*rng.pick(values)).to_string()))
            .collect();
        let protocol = if rng.percent(50) { 2 } else { 3 };
        let only_crowd = families.iter().all(|family| family.crowd);
        let is_crowd = only_crowd || rng.percent(20);
        let connections = if is_crowd { 2 + rng.below(3) } else { 1 };
        let pipeline = if is_crowd { 1 } else { *rng.pick(&[1, 2, 16, 64]) };
        // Redis 7.0 notes other keys than 7.2 as read by a script.
        let takes_part = |it: &&Family| if is_crowd { it.name != "script" } else { !it.crowd };
        let families: Vec<&Family> = families.iter().filter(takes_part).collect();
        let mut requests = Vec::with_capacity(length);
        if rng.percent(10) && !is_crowd {
            requests.extend(large_values(&mut rng));
        }
        let chosen = chosen(&mut rng, &families, is_crowd);
        let mut connection = 0;
        while requests.len() < length {
            let family = match rng.below(20) {
                0 => *rng.pick(&families),
                _ => *rng.pick(&chosen),
            };
            if family.name == "generic" && rng.percent(50)
                || family.name == "transaction" && rng.percent(60)
            {
                continue;
            }
            if rng.percent(60) {
                connection = rng.below(connections);
            }
            let line = rng.pick(&family.lines);
            let made = made_of(line, &mut rng, is_crowd);
            requests.extend(made.into_iter().map(|it| Request { connection, ..it }));
        }
        // Its TODENSE is a change like any other here, and Redis tells nobody of it.
        let is_told = is_crowd || requests.iter().any(|it| it.is(b"WATCH"));
        requests.retain(|it| !(is_told && it.is(b"PFDEBUG")));
        let reload = rng.percent(20);
        Round { protocol, settings, requests, pipeline, connections, reload }
    }
}

/// A few families at a time, so that their keys are used again before they are gone.
fn chosen<'a>(rng: &mut Rng, families: &[&'a Family], is_crowd: bool) -> Vec<&'a Family> {
    let mut chosen: Vec<&Family> = (0..1 + rng.below(3)).map(|_| *rng.pick(families)).collect();
    if is_crowd {
        let crowd: Vec<&Family> = families.iter().filter(|it| it.crowd).copied().collect();
        for _ in 0..1 + rng.below(2) {
            if !crowd.is_empty() {
                chosen.push(*rng.pick(&crowd));
            }
        }
        chosen.extend(families.iter().find(|it| it.name == "transaction"));
    }
    chosen
}

/// The words of a request for data whose reply is defined to the byte, for a script to call.
pub(super) fn plain_request(rng: &mut Rng) -> Vec<Vec<u8>> {
    loop {
        let family = rng.pick(grammar::data_families());
        let line = rng.pick(&family.lines);
        if line.check != Check::Exact {
            continue;
        }
        let mut maker = Maker { rng, words: Vec::new(), keys: Vec::new(), last_count: 1 };
        maker.sequence(&line.nodes);
        let words = maker.words;
        // A map has no order where it is a table; encodings are compared outside of scripts.
        if words[0] == b"LCS" || words[0] == b"OBJECT" {
            continue;
        }
        // Redis 7.0 lets no script call what may wait.
        let waits = words[0].starts_with(b"B") || words[0] == b"WAIT";
        let waits = waits || words.iter().any(|word| word.eq_ignore_ascii_case(b"BLOCK"));
        if !waits && guard::may_be_sent(&words, false, false) {
            return words;
        }
    }
}

/// The request, and sometimes a query of how its keys are encoded now.
fn made_of(line: &Line, rng: &mut Rng, is_crowd: bool) -> Vec<Request> {
    let mut maker = Maker { rng, words: Vec::new(), keys: Vec::new(), last_count: 1 };
    maker.sequence(&line.nodes);
    let Maker { mut words, keys, .. } = maker;
    let mut check = line.check;
    let mut changed = false;
    if rng.percent(6) {
        let name = words[0].clone();
        spoil(&mut words, rng);
        changed = true;
        check = match check {
            _ if words.first() != Some(&name) => Check::Kind,
            Check::Scan | Check::ScanPairs => Check::Kind,
            Check::Unordered | Check::Pairs => Check::Shape,
            other => other,
        };
    } else if rng.percent(1) {
        words.splice(0..0, [b"COMMAND".to_vec(), b"GETKEYS".to_vec()]);
        check = Check::Exact;
    } else if rng.percent(5) {
        words[0] = words[0].to_ascii_lowercase();
    }
    if !guard::may_be_sent(&words, changed, is_crowd) {
        return Vec::new();
    }
    let mut requests = vec![Request { words, check, connection: 0 }];
    if let Some(key) = keys.first()
        && rng.percent(30)
    {
        requests.push(Request::new(Check::Exact, &[b"OBJECT", b"ENCODING", key]));
    }
    requests
}

struct Maker<'a> {
    rng: &'a mut Rng,
    words: Vec<Vec<u8>>,
    keys: Vec<Vec<u8>>,
    last_count: usize,
}

impl Maker<'_> {
    fn sequence(&mut self, nodes: &[Node]) {
        for node in nodes {
            self.node(node);
        }
    }

    fn one_of(&mut self, all: &[Vec<Node>]) {
        let index = self.rng.below(all.len());
        self.sequence(&all[index]);
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Word(word) => self.words.push(word.clone().into_bytes()),
            Node::Hole(hole) => {
                let word = hole.word(self.rng);
                if hole.is_key() {
                    self.keys.push(word.clone());
                }
                self.words.push(word);
            }
            Node::One(all) => self.one_of(all),
            Node::Maybe(all) => {
                if self.rng.percent(50) {
                    self.one_of(all);
                }
            }
            Node::Repeat(least, usual, all) => {
                let more = if self.rng.percent(4) { 40 } else { usual - least + 1 };
                for _ in 0..least + self.rng.below(more) {
                    self.one_of(all);
                }
            }
            Node::Counted(all) => {
                let count = 1 + self.rng.below(4);
                self.last_count = count;
                let said = match self.rng.below(60) {
                    0 => count + 1,
                    1 => count - 1,
                    _ => count,
                };
                let said = match self.rng.below(100) {
                    0 => (*self.rng.pick(&["-1", "a", "9223372036854775807", "4294967297", "0"]))
                        .into(),
                    _ => said.to_string(),
                };
                self.words.push(said.into());
                for _ in 0..count {
                    self.one_of(all);
                }
            }
            Node::Same(all) => {
                for _ in 0..self.last_count {
                    self.one_of(all);
                }
            }
        }
    }
}

/// Usually turns a well-formed request into an ill-formed one.
fn spoil(words: &mut Vec<Vec<u8>>, rng: &mut Rng) {
    use super::pool::Hole;
    for _ in 0..1 + rng.below(2) {
        let at = rng.below(words.len());
        match rng.below(6) {
            0 if words.len() > 1 => {
                words.remove(at.max(1));
            }
            1 => words.truncate(at.max(1)),
            2 => words.insert(at.max(1), words[at].clone()),
            3 if at > 0 => words[at] = Hole::Junk.word(rng),
            4 if at > 0 => words[at] = Hole::Int.word(rng),
            _ => words.push(Hole::Junk.word(rng)),
        }
    }
}

/// Values so large that they are not packed, not copied at once and not replied to in one piece.
fn large_values(rng: &mut Rng) -> Vec<Request> {
    let mut requests = Vec::new();
    for (command, key) in [
        ("RPUSH", "l1"),
        ("SADD", "s1"),
        ("SADD", "s2"),
        ("ZADD", "z1"),
        ("HSET", "h1"),
        ("APPEND", "b1"),
    ] {
        let pieces = rng.below(3) * rng.below(8);
        for _ in 0..pieces {
            let mut words: Vec<Vec<u8>> = vec![command.into(), key.into()];
            let count = if command == "APPEND" { 1 } else { 1000 };
            for _ in 0..count {
                match command {
                    "ZADD" => words.push(rng.below(500).to_string().into()),
                    "HSET" => words.push(format!("f{}", rng.below(20_000)).into()),
                    _ => {}
                }
                words.push(match command {
                    "APPEND" => (0..20_000).map(|_| rng.bits() as u8).collect(),
                    _ => format!("m{}", rng.below(20_000)).into(),
                });
            }
            requests.push(Request { words, check: Check::Exact, connection: 0 });
        }
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_round() {
        let families = grammar::families("redis-8.0").expect("grammar");
        let once = Round::new(7, 300, &families);
        assert_eq!(once.requests, Round::new(7, 300, &families).requests);
        assert_ne!(once.requests, Round::new(8, 300, &families).requests);
    }
}
