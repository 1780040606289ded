//! A client: sends requests on its connection, some pipelined, and notes what comes back.

use crate::history::{AskedGate, Operation};
use crate::oracle_commands::Call;
use crate::plan::Plan;
use crate::streams::Reader;
use crate::{functions, producers, scripts, subscriber, waits};
use ladon_net::ConnId;
use ladon_record::Gate;
use ladon_resp::client::{Decoder, Value, write_request};
use ladon_testkit::Random;
use std::collections::VecDeque;

/// How a server whose disk fails to sync answers requests that wait for that sync.
const UNKNOWN_OUTCOME: &[u8] = b"MISCONF It is not known";

/// Few keys, so that clients meet.
const KEYS: u64 = 4;
/// Maximum number of a client's requests in flight.
const PIPELINE_MAX: usize = 4;

/// A request without a reply yet.
enum Awaited {
    /// It belongs to an operation, and its reply may be the operation's.
    Operation { operation: usize, is_last: bool },
    /// `CLIENT GATE`.
    OwnGate,
    /// `CONFIG SET gate`.
    DefaultGate(Gate),
}

pub(crate) struct Client {
    pub(crate) conn: ConnId,
    pub(crate) worker: usize,
    awaited: VecDeque<Awaited>,
    /// Operations that the node has not reported as run, in the order in which they were sent.
    to_run: VecDeque<usize>,
    /// All of its operations.
    sent: Vec<usize>,
    /// Where its waits come from, if it ever waits.
    waits: Option<Random>,
    /// Where its messages come from, if it ever publishes.
    talks: Option<Random>,
    /// Where its scripts come from, if there are any.
    scripts: Option<Random>,
    /// A script that the node did not know by its hash.
    retry: Option<Call>,
    /// Where its functions come from, if there are any.
    functions: Option<Random>,
    /// Where its calls on streams come from, if there are any.
    streams: Option<Reader>,
    /// The producer that sends on this connection, if there is one.
    producer: Option<producers::Shared>,
    /// The last operation that the node has said to have run.
    last_ran: Option<usize>,
    /// How many of its calls the node has run of the transaction that it has begun.
    in_multi: Option<usize>,
    input: Vec<u8>,
    decoder: Decoder,
    /// Whether it mostly works on a queue.
    queues: bool,
    /// It asks for nothing more before its last request is answered: others may then answer that
    /// past its worker.
    rests: bool,
    /// The gates that it asks for.
    own_gates: &'static [Gate],
    /// The gate that it has asked for; `None`: the default.
    gate: Option<Gate>,
    /// The default that it has set and heard so.
    default_set: Option<Gate>,
    /// The end of a request of which a part is on its way.
    unsent: Vec<u8>,
    /// Makes values unlike any other's.
    serial: u64,
    name: u64,
}

impl Client {
    pub(crate) fn new(
        name: u64,
        conn: ConnId,
        worker: usize,
        plan: &Plan,
        producer: Option<producers::Shared>,
    ) -> Client {
        if let Some(producer) = &producer {
            producer.borrow_mut().reconnects();
        }
        Client {
            producer,
            conn,
            worker,
            awaited: VecDeque::new(),
            to_run: VecDeque::new(),
            sent: Vec::new(),
            waits: plan.waits.map(|seed| Random::new(seed ^ name)),
            talks: plan.listens.map(|seed| Random::new(seed ^ name)),
            scripts: plan.scripts.map(|seed| Random::new(seed ^ name)),
            functions: plan.functions.map(|seed| Random::new(seed ^ name)),
            streams: plan.streams.map(|seed| Reader::new(Random::new(seed ^ name), name)),
            retry: None,
            last_ran: None,
            in_multi: None,
            input: Vec::new(),
            decoder: Decoder::default(),
            queues: plan.queues,
            rests: false,
            own_gates: plan.own_gates,
            gate: None,
            default_set: None,
            unsent: Vec::new(),
            serial: 0,
            name,
        }
    }

    pub(crate) fn may_send(&self) -> bool {
        self.awaited.is_empty() || !self.rests && self.awaited.len() < PIPELINE_MAX
    }

    /// Keeps a part of its last request for another step.
    pub(crate) fn keep_unsent(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
    }

    /// Takes the kept part, if any.
    pub(crate) fn take_unsent(&mut self) -> Option<Vec<u8>> {
        (!self.unsent.is_empty()).then(|| std::mem::take(&mut self.unsent))
    }

    /// The operation that its next reply belongs to, unless one that was sent may wait for a key.
    pub(crate) fn owed(&self, history: &[Operation]) -> Option<usize> {
        let operations = || {
            self.awaited.iter().filter_map(|awaited| match awaited {
                Awaited::Operation { operation, .. } => Some(*operation),
                _ => None,
            })
        };
        let waits = operations().any(|operation| history[operation].may_wait());
        operations().next().filter(|_| !waits)
    }

    /// The default gate that it has set, once it has heard so.
    pub(crate) fn take_default_set(&mut self) -> Option<Gate> {
        self.default_set.take()
    }

    /// Asks for another default gate.
    pub(crate) fn set_default(&mut self, gate: Gate) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_request(&mut bytes, &["CONFIG", "SET", "gate", gate.name()]);
        self.awaited.push_back(Awaited::DefaultGate(gate));
        bytes
    }

    /// The bytes of a new operation, which is recorded in the history; `default`: the laxest
    /// default gate that may be in force.
    pub(crate) fn send(
        &mut self,
        random: &mut Random,
        (step, now_us): (u64, u64),
        default: Gate,
        history: &mut Vec<Operation>,
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(call) = self.lone_call() {
            write_request(&mut bytes, &call);
            self.awaited.push_back(Awaited::Operation { operation: history.len(), is_last: true });
            let sent = Operation { sent_us: now_us, ..Operation::new(vec![call], step) };
            self.note(sent, default, history);
            return bytes;
        }
        if !self.own_gates.is_empty() && random.chance(1, 8) {
            // One more: the default.
            let choice = random.below(self.own_gates.len() as u64 + 1);
            self.gate = self.own_gates.get(choice as usize).copied();
            let name = self.gate.map_or("default", Gate::name);
            write_request(&mut bytes, &["CLIENT", "GATE", name]);
            self.awaited.push_back(Awaited::OwnGate);
        }
        let operation = history.len();
        let atomic = random.chance(1, 8);
        let mut calls: Vec<Call> = (0..if atomic { 2 + random.below(2) } else { 1 })
            .map(|_| self.call(random, atomic))
            .collect();
        if let Some(waits) = self.waits.as_mut().filter(|_| atomic)
            && waits.chance(1, 4)
        {
            calls.push(waits::call(waits));
        }
        if let Some(scripts) = self.scripts.as_mut().filter(|_| atomic)
            && scripts.chance(1, 3)
        {
            self.serial += 1;
            add(&mut calls, scripts::call(scripts, &format!("{}:{}", self.name, self.serial)));
        }
        if let Some(functions) = self.functions.as_mut().filter(|_| atomic)
            && functions.chance(1, 3)
        {
            self.serial += 1;
            let value = format!("{}:{}", self.name, self.serial);
            add(&mut calls, functions::call(functions, &value));
        }
        if let Some(streams) = self.streams.as_mut().filter(|_| atomic)
            && streams.wants()
        {
            self.serial += 1;
            let value = format!("{}:{}", self.name, self.serial);
            add(&mut calls, streams.call(&value));
        }
        if let Some(talks) = self.talks.as_mut().filter(|_| atomic)
            && talks.chance(2, 3)
        {
            calls.push(subscriber::publish(talks, self.name, &mut self.serial, false));
        }
        if atomic {
            write_request(&mut bytes, &["MULTI"]);
            self.awaited.push_back(Awaited::Operation { operation, is_last: false });
        }
        for call in &calls {
            write_request(&mut bytes, call);
            self.awaited.push_back(Awaited::Operation { operation, is_last: !atomic });
        }
        if atomic {
            write_request(&mut bytes, &["EXEC"]);
            self.awaited.push_back(Awaited::Operation { operation, is_last: true });
        }
        let sent = Operation { atomic, sent_us: now_us, ..Operation::new(calls, step) };
        self.rests = sent.may_wait() && random.chance(2, 3);
        self.note(sent, default, history);
        bytes
    }

    /// At times, a wait, a message, a script or a call on a stream.
    fn lone_call(&mut self) -> Option<Call> {
        if let Some(retry) = self.retry.take() {
            return Some(retry);
        }
        if let Some(call) = self.producer.as_ref().and_then(|it| it.borrow_mut().call()) {
            return Some(call);
        }
        if let Some(waits) = &mut self.waits
            && waits.chance(1, 6)
        {
            return Some(waits::call(waits));
        }
        if let Some(talks) = &mut self.talks
            && talks.chance(1, 5)
        {
            let in_script = self.scripts.as_mut().is_some_and(|scripts| scripts.chance(1, 2));
            return Some(subscriber::publish(talks, self.name, &mut self.serial, in_script));
        }
        if let Some(scripts) = &mut self.scripts
            && scripts.chance(1, 3)
        {
            self.serial += 1;
            return Some(scripts::call(scripts, &format!("{}:{}", self.name, self.serial)));
        }
        if let Some(functions) = &mut self.functions
            && functions.chance(1, 3)
        {
            self.serial += 1;
            return Some(functions::call(functions, &format!("{}:{}", self.name, self.serial)));
        }
        let streams = self.streams.as_mut()?;
        streams.wants().then(|| {
            self.serial += 1;
            streams.call(&format!("{}:{}", self.name, self.serial))
        })
    }

    /// An operation is on its way.
    fn note(&mut self, mut sent: Operation, default: Gate, history: &mut Vec<Operation>) {
        sent.gate = self.gate.map_or(AskedGate::Default(default), AskedGate::Own);
        self.to_run.push_back(history.len());
        self.sent.push(history.len());
        history.push(sent);
    }

    /// The node has run this call; the operation that it completes. Operations before that one
    /// were refused.
    pub(crate) fn ran(&mut self, call: &Call, history: &[Operation]) -> Option<usize> {
        if call[0] == b"CLIENT" {
            return None;
        }
        if call[0] == b"MULTI" {
            self.in_multi = Some(0);
            return None;
        }
        let ends_multi = call[0] == b"EXEC";
        let mut was_aborted = false;
        if let Some(calls) = self.in_multi.take() {
            let transaction = self.to_run.iter().map(|&at| &history[at]).find(|op| op.atomic);
            let next = transaction.and_then(|transaction| transaction.calls.get(calls));
            if next == Some(call) {
                self.in_multi = Some(calls + 1);
                return None;
            }
            // If it is neither its next call nor its end, its EXEC was refused.
            was_aborted = ends_multi && next.is_some();
        }
        while let Some(at) = self.to_run.pop_front() {
            let operation = &history[at];
            // It did not run, although a repetition of the same call may have.
            if operation.was_refused() {
                continue;
            }
            if operation.atomic == ends_multi && (ends_multi || operation.calls[0] == *call) {
                self.last_ran = (!was_aborted).then_some(at);
                return self.last_ran;
            }
        }
        None
    }

    /// The operation that it waits with, if it waits: nothing of a client runs meanwhile.
    pub(crate) fn last_ran(&self) -> Option<usize> {
        self.last_ran
    }

    /// Notes the replies in what came back.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        (step, now_us): (u64, u64),
        history: &mut [Operation],
    ) -> Result<(), String> {
        self.input.extend_from_slice(bytes);
        loop {
            let decoded = self
                .decoder
                .decode(&self.input)
                .map_err(|error| format!("a reply that is none: {error}"))?;
            self.input.drain(..decoded.consumed);
            let Some(value) = decoded.value else { return Ok(()) };
            let awaited =
                self.awaited.pop_front().ok_or_else(|| format!("an unasked reply: {value:?}"))?;
            if matches!(&value, Value::Error(text) if text.starts_with(UNKNOWN_OUTCOME)) {
                // Neither done nor not done: the connection ends here.
                self.awaited.clear();
                return Ok(());
            }
            let (operation, is_last) = match awaited {
                Awaited::Operation { operation, is_last } => (operation, is_last),
                _ if value != Value::Simple(b"OK".to_vec()) => {
                    return Err(format!("a gate was refused: {value:?}"));
                }
                Awaited::OwnGate => continue,
                Awaited::DefaultGate(gate) => {
                    self.default_set = Some(gate);
                    continue;
                }
            };
            let is_refusal = |text: &[u8]| text.starts_with(b"MISCONF") || text.starts_with(b"OOM");
            if is_last {
                if !history[operation].atomic
                    && let Some(call) = history[operation].calls.first()
                    && scripts::is_unknown(call, &value)
                {
                    self.retry = scripts::retry(call);
                }
                history[operation].end = Some((step, value));
                history[operation].end_us = now_us;
                if let Some(streams) = &mut self.streams {
                    let answered = history[operation].answered().into_iter();
                    answered.for_each(|(call, reply)| streams.learns(call, reply));
                }
                if let Some(producer) = &self.producer {
                    let answered = history[operation].answered().into_iter();
                    let mut producer = producer.borrow_mut();
                    answered.for_each(|(call, reply)| producer.learns(call, reply));
                }
                if let Some(what) = scripts::forgotten(&history[operation], history) {
                    return Err(what);
                }
                if let Some(what) = history[operation].wrong_wait(now_us) {
                    return Err(what);
                }
                if history[operation].says_durable() {
                    self.is_durable_before(operation, history);
                }
            } else if let Value::Error(text) = value
                && !is_refusal(&text)
            {
                return Err(format!("an error while queueing: {}", text.escape_ascii()));
            }
        }
    }

    /// A subscriber has got the message of this operation, if it is one of this client's.
    pub(crate) fn shown(&self, operation: usize, history: &mut [Operation]) {
        if self.sent.contains(&operation) {
            self.is_durable_before(operation, history);
        }
    }

    /// Whether it was told that everything it wrote before this operation is on the disk.
    fn is_durable_before(&self, operation: usize, history: &mut [Operation]) {
        for &at in self.sent.iter().take_while(|&&at| at < operation) {
            let wrote = history[at].surely_wrote();
            history[at].is_durable |= wrote;
        }
    }

    fn call(&mut self, random: &mut Random, atomic: bool) -> Call {
        self.serial += 1;
        let key = |random: &mut Random| format!("k{}", random.below(KEYS));
        let value = format!("{}:{}", self.name, self.serial);
        let (a, b) = (key(random), key(random));
        let member = format!("m{}", random.below(6));
        let hash = format!("h{}", random.below(2));
        let sorted = format!("z{}", random.below(2));
        let counter = format!("n{}", random.below(2));
        // A long value crosses the thresholds of representations and of the log's chunks.
        let long = "x".repeat(random.below(40) as usize * 100) + &value;
        let words: Vec<String> = match random.below(60) {
            _ if self.queues && random.chance(2, 3) => queue_call(random, &value),
            0..4 => {
                let mut words =
                    vec!["SET".into(), a, if random.chance(1, 8) { long } else { value }];
                if random.chance(1, 3) {
                    // Far in the future: such a key may be evicted where only expiring keys may.
                    words.extend(["PXAT", "4000000000000"].map(str::to_owned));
                }
                words
            }
            4..8 => vec!["GET".into(), a],
            8..10 => vec!["INCR".into(), counter],
            10 => vec!["DEL".into(), a],
            11 => vec!["APPEND".into(), a, value],
            12 => vec!["MSET".into(), a, value.clone(), b, value],
            13 => vec!["MGET".into(), a, b, counter],
            14 => vec!["RENAME".into(), a, b],
            15 | 16 => vec!["SADD".into(), format!("s{}", random.below(2)), member, value],
            17 => vec!["SREM".into(), format!("s{}", random.below(2)), member],
            18 => vec!["SCARD".into(), format!("s{}", random.below(2))],
            19 => vec!["SMOVE".into(), "s0".into(), "s1".into(), member],
            20 => vec!["DBSIZE".into()],
            21 | 22 => vec!["HSET".into(), hash, member.clone(), value, "n".into(), "5".into()],
            23 => vec!["HGET".into(), hash, member],
            24 => vec!["HDEL".into(), hash, member],
            25 => vec!["HLEN".into(), hash],
            26 => vec!["HINCRBY".into(), hash, "n".into(), "1".into()],
            28 | 29 => {
                let score = random.below(9).to_string();
                vec!["ZADD".into(), sorted, score.clone(), member, score, value]
            }
            30 => vec!["ZINCRBY".into(), sorted, "3".into(), member],
            31 => vec!["ZREM".into(), sorted, member],
            32 => vec!["ZRANK".into(), sorted, member],
            33 => vec!["ZPOPMIN".into(), sorted],
            27 => {
                let at = if random.chance(1, 3) { "1" } else { "4000000000000" };
                let set = format!("s{}", random.below(2));
                let words = match random.chance(1, 2) {
                    true => ["HPEXPIREAT", &hash, at, "FIELDS", "1", &member],
                    false => ["SPEXPIREAT", &set, at, "MEMBERS", "1", &member],
                };
                words.map(str::to_owned).to_vec()
            }
            47 => vec!["SMEMBERS".into(), format!("s{}", random.below(2))],
            48 => vec!["HGETALL".into(), hash],
            50 => match random.below(3) {
                0 => vec!["GETDEL".into(), a],
                1 => vec!["GETSET".into(), a, if random.chance(1, 2) { long } else { value }],
                _ => ["GETRANGE", &a, "3", "-5"].map(str::to_owned).to_vec(),
            },
            49 => ["ZRANGE", &sorted, "0", "-1", "WITHSCORES"].map(str::to_owned).to_vec(),
            34..42 => list_call(random, value, long, atomic),
            42..45 => bitmap_call(random),
            45 | 46 => sort_call(random),
            52..60 => algebra_call(random),
            _ if random.chance(1, 20) => vec!["FLUSHALL".into()],
            _ => vec!["SISMEMBER".into(), "s0".into(), member],
        };
        words.into_iter().map(String::into_bytes).collect()
    }
}

/// Adds a call to a transaction; no second script, so that the node's report says which changed
/// something.
fn add(calls: &mut Vec<Call>, call: Call) {
    if !scripts::is_run(&call) || !calls.iter().any(scripts::is_run) {
        calls.push(call);
    }
}

/// A call on lists. Inserted and removed elements match only by chance.
fn list_call(random: &mut Random, value: String, long: String, atomic: bool) -> Vec<String> {
    let list = format!("l{}", random.below(2));
    let element = if random.chance(1, 6) { long } else { value };
    let common = format!("e{}", random.below(4));
    let end = |random: &mut Random| if random.chance(1, 2) { "LEFT" } else { "RIGHT" };
    let (from, to) = if random.chance(1, 2) { ("l0", "l1") } else { ("l1", "l0") };
    let timeout = if random.chance(1, 3) { "0.003" } else { "0.1" };
    let words = match random.below(14) {
        13 => vec!["LPOS", &list, &common],
        // In a transaction it would not wait, and its null be another.
        12 if !atomic => vec!["BLMOVE", from, to, end(random), end(random), timeout],
        0 | 1 => vec!["RPUSH", &list, &element, &common],
        2 => vec!["LPUSH", &list, &common, &element],
        3 => vec!["LPOP", &list],
        4 => vec!["RPOP", &list],
        5 | 6 => vec!["BLPOP", &list, timeout],
        7 => vec!["LMOVE", "l0", "l1", end(random), end(random)],
        8 => vec!["LRANGE", &list, "0", "-1"],
        9 => vec!["LREM", &list, "0", &common],
        10 => vec!["LINSERT", &list, "BEFORE", &common, &element],
        _ => vec!["LTRIM", &list, "0", "5"],
    };
    words.into_iter().map(str::to_owned).collect()
}

/// A call on a list on which more is waited for than comes.
fn queue_call(random: &mut Random, value: &str) -> Vec<String> {
    let words = if random.chance(3, 5) { ["BLPOP", "w0", "5"] } else { ["RPUSH", "w0", value] };
    words.map(str::to_owned).to_vec()
}

/// A call on bitmaps; far bits make long ones.
fn bitmap_call(random: &mut Random) -> Vec<String> {
    let key = format!("b{}", random.below(2));
    let bits = if random.chance(1, 6) { 30_000 } else { 64 };
    let offset = random.below(bits).to_string();
    let words = match random.below(6) {
        4 => vec!["BITPOS", &key, "1"],
        5 => vec!["BITOP", "OR", if random.chance(1, 2) { "b2" } else { "b0" }, "b0", "b1"],
        0 | 1 => vec!["SETBIT", &key, &offset, if random.chance(2, 3) { "1" } else { "0" }],
        2 => {
            vec!["BITFIELD", &key, "INCRBY", "u4", &offset, "7", "GET", "u4", &offset]
        }
        _ => vec!["BITCOUNT", &key],
    };
    words.into_iter().map(str::to_owned).collect()
}

/// A value computed from others.
fn algebra_call(random: &mut Random) -> Vec<String> {
    let name = ["SUNION", "SINTER", "SDIFF"][random.below(3) as usize];
    let (sets, sorted) = (format!("s{}", random.below(3)), format!("z{}", random.below(3)));
    let words = match random.below(10) {
        // A waiting client may be served by a list that is renamed to its key.
        8 => {
            let pairs = [("s0", "s2"), ("z2", "z0"), ("h0", "h1"), ("l1", "l0"), ("b2", "b1")];
            let (from, to) = pairs[random.below(5) as usize];
            vec!["RENAME", from, to]
        }
        9 => vec!["RENAMENX", "s2", "s1"],
        0 => vec![name, "s0", "s1"],
        1..4 => {
            let words = [&format!("{name}STORE"), &sets, "s0", "s1"];
            return words.map(str::to_owned).to_vec();
        }
        4 => vec!["ZUNIONSTORE", &sorted, "2", "z0", "z1"],
        5 => vec!["ZINTERSTORE", &sorted, "2", "z0", "s0"],
        6 => {
            let pairs = [("s0", "s1"), ("z0", "z1"), ("h0", "h1"), ("b0", "b1")];
            let (from, to) = pairs[random.below(4) as usize];
            let words = ["COPY", from, to, "REPLACE"];
            words[..if random.chance(1, 2) { 4 } else { 3 }].to_vec()
        }
        _ => vec!["SORT", ["l0", "s0", "z0"][random.below(3) as usize], "ALPHA"],
    };
    words.into_iter().map(str::to_owned).collect()
}

/// A sorted copy; of a list into a list that others may wait for.
fn sort_call(random: &mut Random) -> Vec<String> {
    let (from, to) = match random.below(4) {
        0 => ("l0", "l1"),
        1 => ("l1", "o0"),
        2 => ("s0", "o0"),
        _ => ("z1", "o1"),
    };
    ["SORT", from, "ALPHA", "STORE", to].map(str::to_owned).to_vec()
}
