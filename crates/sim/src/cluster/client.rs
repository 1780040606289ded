//! Clients: each has a connection to one node at a time, and notes what it asked and heard.
//!
//! Lists tell an order: what is appended to one gets its place in the reply, and who reads one sees all
//! that was appended before. Lists `q` are used at the gate quorum alone, lists `w` at laxer ones, and
//! the keys `p` are always set together.

use ladon_net::ConnId;
use ladon_record::Gate;
use ladon_resp::client::{Decoder, Value, write_request};
use ladon_testkit::Random;
use std::collections::VecDeque;

/// Lists of each kind.
const LISTS: u64 = 2;
/// Requests of a client in flight.
const PIPELINE_MAX: usize = 3;

/// What a client asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The value is appended to the list.
    Append { list: String, value: String },
    /// The whole list.
    Read { list: String },
    /// Both keys are set.
    SetPair(String),
    /// Both keys.
    Pair,
    /// How many members have everything.
    Wait,
    /// Something else.
    Other(Vec<String>),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Length(u64),
    List(Vec<String>),
    Pair(Option<String>, Option<String>),
    Count(u64),
    Done,
    /// Nothing has happened.
    Refused(String),
    /// It may have happened.
    Unknown,
}

/// A request, and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) client: usize,
    /// The connection's number.
    pub(super) connection: u64,
    pub(super) place: usize,
    pub(super) gate: Gate,
    pub(super) asked: Asked,
    pub(super) begin: u64,
    pub(super) end: Option<(u64, Outcome)>,
    /// The reign of its node when it was sent, and when the reply came.
    pub(super) reign: (Option<u64>, Option<u64>),
    /// Its node has only ever followed in this life: all that it shows is committed.
    pub(super) by_follower: bool,
    /// A wait has said that enough members have it.
    pub(super) is_firm: bool,
}

impl Operation {
    /// A line for somebody who looks for a bug.
    pub(super) fn show(&self) -> String {
        let Operation { client, place, gate, asked, begin, reign, by_follower, is_firm, .. } = self;
        let end = match &self.end {
            Some((at, outcome)) => format!("{at}: {outcome:?}"),
            None => "never".to_owned(),
        };
        let follower = if *by_follower { ", by a follower" } else { "" };
        let firm = if *is_firm { ", firm" } else { "" };
        format!(
            "[{begin} .. {end}] client {client} at {place}, {gate}, {asked:?}, {reign:?}{follower}{firm}"
        )
    }
}

/// Where a client is connected.
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) place: usize,
    pub(super) life: u64,
    pub(super) worker: usize,
    pub(super) conn: ConnId,
    input: Vec<u8>,
    decoder: Decoder,
    /// Replies that are awaited: how many come before an operation's own, and which operation.
    awaited: VecDeque<(usize, Option<usize>)>,
}

pub(super) struct Client {
    pub(super) number: usize,
    pub(super) gate: Gate,
    pub(super) connection: Option<Connection>,
    serial: u64,
    /// So many other members make most of the group.
    others: u64,
    /// It changes nothing, so that no change of its own holds up what it hears.
    pub(super) only_reads: bool,
    /// It goes to any node, and not mostly to one that leads.
    pub(super) is_anywhere: bool,
}

impl Client {
    pub(super) fn new(number: usize, gate: Gate, others: u64) -> Client {
        Client {
            number,
            gate,
            connection: None,
            serial: 0,
            others,
            only_reads: false,
            is_anywhere: false,
        }
    }

    /// One that reads lists at the gate quorum.
    pub(super) fn reader(number: usize, others: u64) -> Client {
        Client { only_reads: true, ..Client::new(number, Gate::Quorum, others) }
    }

    /// The same at any node: those that follow have to ask the leader.
    pub(super) fn reader_anywhere(number: usize, others: u64) -> Client {
        Client { is_anywhere: true, ..Client::reader(number, others) }
    }

    /// A new connection to this life of a node, and what is sent first.
    pub(super) fn connect(
        &mut self,
        (number, place, life): (u64, usize, u64),
        worker: usize,
    ) -> (ConnId, Vec<u8>) {
        // The node may not have closed the one before yet.
        let conn = ConnId { slot: number as u32, generation: 0 };
        let awaited = VecDeque::from([(0, None)]);
        let (input, decoder) = (Vec::new(), Decoder::default());
        self.connection =
            Some(Connection { number, place, life, worker, conn, input, decoder, awaited });
        let mut bytes = Vec::new();
        write_request(&mut bytes, &["CLIENT", "GATE", self.gate.name()]);
        (conn, bytes)
    }

    /// Whether it may ask for more.
    pub(super) fn may_send(&self) -> bool {
        self.connection.as_ref().is_some_and(|it| it.awaited.len() < PIPELINE_MAX)
    }

    /// Whether it waits for anything.
    pub(super) fn waits(&self) -> bool {
        self.connection.as_ref().is_some_and(|it| !it.awaited.is_empty())
    }

    /// A request, and its bytes; `operation` is its place in the history.
    pub(super) fn ask(&mut self, random: &mut Random, operation: usize) -> (Asked, Vec<u8>) {
        self.serial += 1;
        let value = format!("{}.{}", self.number, self.serial);
        let kind = if self.gate == Gate::Quorum { 'q' } else { 'w' };
        let list = format!("{kind}{}", random.below(LISTS));
        let asked = match random.below(20) {
            _ if self.only_reads => Asked::Read { list },
            0..8 => Asked::Append { list, value },
            8..12 => Asked::Read { list },
            12..14 => Asked::SetPair(value),
            14..17 => Asked::Pair,
            17 if self.gate != Gate::Quorum => Asked::Wait,
            _ => Asked::Other(other(random, value)),
        };
        let (requests, before): (Vec<Vec<String>>, usize) = match &asked {
            Asked::Append { list, value } => (vec![words(&["RPUSH", list, value])], 0),
            Asked::Read { list } => (vec![words(&["LRANGE", list, "0", "-1"])], 0),
            Asked::SetPair(value) => {
                let set = |key| words(&["SET", key, value]);
                (vec![words(&["MULTI"]), set("p0"), set("p1"), words(&["EXEC"])], 3)
            }
            Asked::Pair => {
                let get = |key| words(&["GET", key]);
                (vec![words(&["MULTI"]), get("p0"), get("p1"), words(&["EXEC"])], 3)
            }
            Asked::Wait => (vec![words(&["WAIT", &self.others.to_string(), "40"])], 0),
            Asked::Other(words) => (vec![words.clone()], 0),
        };
        let mut bytes = Vec::new();
        requests.iter().for_each(|request| write_request(&mut bytes, request));
        if let Some(connection) = &mut self.connection {
            connection.awaited.push_back((before, Some(operation)));
        }
        (asked, bytes)
    }

    /// The connection has ended: what comes of what it waits for is not known.
    pub(super) fn hang_up(&mut self, step: u64, history: &mut [Operation]) {
        let Some(connection) = self.connection.take() else { return };
        for operation in connection.awaited.into_iter().filter_map(|(_, operation)| operation) {
            history[operation].end = Some((step, Outcome::Unknown));
        }
    }

    /// Notes the replies in what came; returns the operations that are answered.
    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        step: u64,
        history: &mut [Operation],
    ) -> Result<Vec<usize>, String> {
        let mut answered = Vec::new();
        let Some(connection) = &mut self.connection else { return Ok(answered) };
        connection.input.extend_from_slice(bytes);
        loop {
            let decoded = connection.decoder.decode(&connection.input);
            let decoded = decoded.map_err(|error| format!("a reply that is none: {error}"))?;
            connection.input.drain(..decoded.consumed);
            let Some(value) = decoded.value else { return Ok(answered) };
            let is_unknown = matches!(&value, Value::Error(text) if is_unknown(text));
            let awaited = connection.awaited.front_mut();
            let (before, operation) = match awaited {
                Some(awaited) => awaited,
                None if is_unknown => continue,
                None => return Err(format!("an unasked reply: {value:?}")),
            };
            if is_unknown {
                // The number of replies that it stands for is not known: the connection ends here.
                self.hang_up(step, history);
                return Ok(answered);
            }
            if *before > 0 {
                *before -= 1;
                continue;
            }
            let operation = *operation;
            connection.awaited.pop_front();
            let Some(at) = operation else {
                if value != Value::Simple(b"OK".to_vec()) {
                    return Err(format!("the gate was refused: {value:?}"));
                }
                continue;
            };
            let outcome = outcome(&history[at].asked, value)?;
            history[at].end = Some((step, outcome));
            answered.push(at);
        }
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Commands of all kinds, whose changes all members have to make alike.
fn other(random: &mut Random, value: String) -> Vec<String> {
    let member = format!("m{}", random.below(5));
    let at = if random.chance(1, 2) { "1700000009000" } else { "4000000000000" };
    let number = random.below(9).to_string();
    let words = match random.below(17) {
        0 => vec!["SADD", "s", &member, &number],
        1 => vec!["SPOP", "s"],
        2 => vec!["HSET", "h", &member, &value],
        3 => vec!["HDEL", "h", &member],
        4 => vec!["HPEXPIREAT", "h", at, "FIELDS", "1", &member],
        5 => vec!["ZADD", "z", &number, &member],
        6 => vec!["ZINCRBY", "z", "3", &member],
        7 => vec!["ZPOPMIN", "z"],
        8 => vec!["INCR", "n"],
        9 => vec!["APPEND", "t", &value],
        10 => vec!["SETRANGE", "t", &number, &value],
        11 => vec!["PEXPIREAT", "t", at],
        12 => vec!["XADD", "x", "*", "f", &value],
        13 => vec!["LPUSH", "l", &value],
        14 => vec!["LPOP", "l"],
        15 => vec!["RENAME", "l", "k"],
        _ => vec!["DEL", "k", "t"],
    };
    words.into_iter().map(str::to_owned).collect()
}

fn is_unknown(text: &[u8]) -> bool {
    text.starts_with(b"UNKNOWNOUTCOME") || text.starts_with(b"MISCONF It is not known")
}

fn outcome(asked: &Asked, value: Value) -> Result<Outcome, String> {
    let text =
        |value: &Value| value.as_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    const REFUSALS: [&str; 7] =
        ["READONLY", "NOQUORUM", "CLUSTERDOWN", "EXECABORT", "MISCONF", "LOADING", "UNBLOCKED"];
    if let Value::Error(bytes) = &value {
        let told = String::from_utf8_lossy(bytes).into_owned();
        let is_refusal = REFUSALS.iter().any(|refusal| told.starts_with(refusal));
        return match asked {
            _ if is_refusal => Ok(Outcome::Refused(told)),
            // Only a leader has members to wait for.
            Asked::Wait => Ok(Outcome::Refused(told)),
            // A key of another type, or none.
            Asked::Other(_) => Ok(Outcome::Done),
            _ => Err(format!("an unexpected error: {told}")),
        };
    }
    Ok(match (asked, &value) {
        (Asked::Append { .. }, Value::Integer(length)) => Outcome::Length(*length as u64),
        (Asked::Read { .. }, Value::Array(values)) => {
            Outcome::List(values.iter().filter_map(text).collect())
        }
        (Asked::Pair, Value::Array(values)) if values.len() == 2 => {
            Outcome::Pair(text(&values[0]), text(&values[1]))
        }
        (Asked::SetPair(_), Value::Array(_)) => Outcome::Done,
        (Asked::Wait, Value::Integer(count)) => Outcome::Count(*count as u64),
        (Asked::Other(_), _) => Outcome::Done,
        (asked, value) => return Err(format!("{asked:?} was answered {value:?}")),
    })
}
