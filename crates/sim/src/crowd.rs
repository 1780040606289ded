//! A crowd that publishes faster than anybody can deliver: is one of them left behind, and does what
//! is undelivered stay bounded?
//!
//! Its own small world: a node without faults, subscribers of each thread, and publishers whose
//! messages soon make the others wait: a few large ones, or more small ones with a low bound. Some
//! send one request at a time, others several, which publish, change keys of which the node
//! notifies, or only ask. At times a subscriber of each thread takes in nothing.
//!
//! What has to hold:
//! - Undelivered messages weigh at most the bound and what one request adds: a request that begins
//!   below the bound is not cut short.
//! - While one request waits, another publisher is answered a few times at most, and in the end all
//!   are answered. What is measured depends on no clock.
//! - Replies of a connection have the order of its requests.
//! - All subscribers see one order on the channel, in which each publisher's messages have theirs,
//!   and nothing is missing. Nor is an event of a key.
//! - Who takes in nothing holds up nobody, and is closed once it owes too much.

use crate::clock::SimClock;
use crate::node::SimNode;
use crate::plan::{Canary, Plan};
use crate::run::Trouble;
use ladon_net::ConnId;
use ladon_resp::client::{Decoder, Value, write_request};
use ladon_sim_disk::SimDisk;
use ladon_testkit::Random;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Requests that are sent in all.
const REQUESTS: u64 = 150;

/// How often another publisher of the same thread may be answered while one waits: for a request
/// that came before, for one of the same turn, and for one that came just as enough was delivered.
/// Each of these may be several requests that came together.
const OVERTAKEN_MAX: u64 = 3;

/// Bytes of messages that close a subscriber that takes in nothing (`client-output-buffer-limit
/// pubsub`): what it may owe, and some that are on their way.
const CLOSING_BYTES: u64 = 34 << 20;

/// How a crowd is congested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Congestion {
    /// Weight of undelivered messages above which publishers wait; `None`: the server's own.
    pub(crate) bound: Option<usize>,
    /// Bytes of a message: some ten of them are more than may be on their way.
    pub(crate) message_bytes: usize,
    /// Requests that a publisher sends together, at most.
    pub(crate) burst: u64,
    /// A subscriber of each thread takes in nothing.
    pub(crate) stalled: bool,
}

/// A run without trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// How often another publisher of the same thread was answered while one waited, at most.
    pub overtaken: u64,
    /// Turns in which somebody waited and nobody was answered.
    pub congested_turns: u64,
    /// The largest weight of undelivered messages.
    pub undelivered: usize,
    /// Subscribers that were closed because they took in nothing.
    pub closed: u64,
}

/// What a request is answered with.
#[derive(Debug)]
enum Expected {
    Receivers,
    Stored,
    Echo(Vec<u8>),
}

impl Expected {
    fn is(&self, reply: &Value) -> bool {
        match (self, reply) {
            (Expected::Receivers, Value::Integer(1..)) => true,
            (Expected::Stored, Value::Simple(text)) => text == b"OK",
            (Expected::Echo(text), Value::Bulk(reply)) => text == reply,
            _ => false,
        }
    }
}

/// What comes back on a connection.
#[derive(Default)]
struct Replies {
    input: Vec<u8>,
    decoder: Decoder,
}

impl Replies {
    fn take(&mut self, bytes: &[u8]) -> Result<Vec<Value>, String> {
        self.input.extend_from_slice(bytes);
        let (mut values, mut consumed) = (Vec::new(), 0);
        loop {
            let decoded = self.decoder.decode(&self.input[consumed..]);
            let decoded = decoded.map_err(|error| format!("a reply that is none: {error}"))?;
            consumed += decoded.consumed;
            let Some(value) = decoded.value else { break };
            values.push(value);
        }
        self.input.drain(..consumed);
        Ok(values)
    }
}

struct Publisher {
    worker: usize,
    conn: ConnId,
    name: String,
    replies: Replies,
    awaited: VecDeque<Expected>,
    /// Messages and changes so far.
    messages: u64,
    changes: u64,
    /// How often it was answered.
    answered: u64,
    /// How often each of the crowd had been when its oldest request without an answer was sent, or
    /// came to be the oldest.
    waits_since: Vec<u64>,
}

impl Publisher {
    /// Some requests.
    fn ask(&mut self, random: &mut Random, congestion: Congestion, requests: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..requests {
            match random.below(if congestion.burst == 1 { 3 } else { 5 }) {
                0..3 => {
                    self.messages += 1;
                    let mut message = format!("{}:{}:", self.name, self.messages).into_bytes();
                    message.resize(congestion.message_bytes, b'x');
                    write_request(&mut bytes, &[&b"PUBLISH"[..], b"c", &message]);
                    self.awaited.push_back(Expected::Receivers);
                }
                3 => {
                    self.changes += 1;
                    write_request(&mut bytes, &["SET", &self.name, &self.changes.to_string()]);
                    self.awaited.push_back(Expected::Stored);
                }
                _ => {
                    let text = format!("{}:{}", self.messages, self.changes).into_bytes();
                    write_request(&mut bytes, &[b"ECHO", &text[..]]);
                    self.awaited.push_back(Expected::Echo(text));
                }
            }
        }
        bytes
    }

    fn hears(&mut self, bytes: &[u8]) -> Result<(), String> {
        for reply in self.replies.take(bytes)? {
            match self.awaited.pop_front() {
                Some(expected) if expected.is(&reply) => self.answered += 1,
                expected => {
                    return Err(format!(
                        "{} got {reply:?} in the place of {expected:?}",
                        self.name
                    ));
                }
            }
        }
        Ok(())
    }
}

struct Subscriber {
    worker: usize,
    conn: ConnId,
    /// It takes in nothing.
    is_stalled: bool,
    replies: Replies,
    is_closed: bool,
    messages: Vec<Vec<u8>>,
    /// Events by their channel.
    events: BTreeMap<Vec<u8>, u64>,
}

impl Subscriber {
    fn hears(&mut self, bytes: &[u8]) -> Result<(), String> {
        for value in self.replies.take(bytes)? {
            let Value::Array(parts) = &value else { return Err(format!("{value:?}")) };
            let parts: Vec<&[u8]> = parts.iter().map(|it| it.as_bytes().unwrap_or(b"")).collect();
            match parts[..] {
                [b"message", _, message] => {
                    let end = message.iter().rposition(|&byte| byte == b':').unwrap_or(0);
                    self.messages.push(message[..end].to_vec());
                }
                [b"pmessage", _, channel, _] => {
                    *self.events.entry(channel.to_vec()).or_default() += 1;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

struct World {
    node: SimNode,
    congestion: Congestion,
    workers: usize,
    crowd: Vec<Publisher>,
    subscribers: Vec<Subscriber>,
    report: Crowd,
}

/// Runs the crowd of a seed.
///
/// # Errors
/// A publisher that others overtake again and again, or that gets no answer at all; too much that is
/// undelivered; messages in another order.
pub fn run_crowd(seed: u64, canary: Canary) -> Result<Crowd, Trouble> {
    run(&mut Random::new(seed), canary).map_err(|what| Trouble { seed, what })
}

fn run(random: &mut Random, canary: Canary) -> Result<Crowd, String> {
    let (plan, congestion) = Plan::of_crowd(random);
    let (disk, clock) = (SimDisk::new(random.next_u64()), Arc::new(SimClock::new()));
    let node = SimNode::start(&disk, &clock, &plan, random, canary)?;
    let mut world = World::new(node, &plan, congestion, random);
    let mut sent = 0;
    // Far more turns than it takes.
    for _ in 0..REQUESTS * 100 {
        let answers = world.answers();
        for publisher in &mut world.crowd {
            if publisher.awaited.is_empty() && sent < REQUESTS && random.chance(3, 4) {
                let requests = 1 + random.below(congestion.burst);
                let bytes = publisher.ask(random, congestion, requests);
                world.node.threads.receive(publisher.worker, publisher.conn, &bytes);
                publisher.waits_since.clone_from(&answers);
                sent += requests;
            }
        }
        clock.advance_us(random.below(500));
        world.node.threads.write();
        for worker in 0..plan.workers {
            world.node.threads.turn(worker, false);
            world.deliver(worker)?;
        }
        world.node.ran();
        world.note_answers(&answers)?;
        let all_answered = world.crowd.iter().all(|it| it.awaited.is_empty());
        if sent >= REQUESTS && all_answered && world.node.undelivered() == 0 {
            return world.end();
        }
    }
    Err("a publisher got no answer, or a subscriber no message".to_owned())
}

impl World {
    fn new(node: SimNode, plan: &Plan, congestion: Congestion, random: &mut Random) -> World {
        let workers = plan.workers;
        let report = Crowd { overtaken: 0, congested_turns: 0, undelivered: 0, closed: 0 };
        let (crowd, subscribers) = (Vec::new(), Vec::new());
        let mut world = World { node, congestion, workers, crowd, subscribers, report };
        let mut slot = 0;
        let mut connect = |node: &mut SimNode, worker| {
            slot += 1;
            node.connect(worker, slot - 1)
        };
        for worker in 0..workers {
            for is_stalled in [false, true] {
                if is_stalled && !congestion.stalled {
                    continue;
                }
                let conn = connect(&mut world.node, worker);
                world.node.threads.receive(worker, conn, b"SUBSCRIBE c\r\n");
                if !is_stalled {
                    world.node.threads.receive(worker, conn, b"PSUBSCRIBE __keyspace@0__:*\r\n");
                    world.node.threads.wire(worker).keeps_up.insert(conn.slot);
                }
                world.subscribers.push(Subscriber {
                    worker,
                    conn,
                    is_stalled,
                    replies: Replies::default(),
                    is_closed: false,
                    messages: Vec::new(),
                    events: BTreeMap::new(),
                });
            }
        }
        for at in 0..plan.clients {
            let worker = random.below(workers as u64) as usize;
            let conn = connect(&mut world.node, worker);
            world.crowd.push(Publisher {
                worker,
                conn,
                name: format!("p{at}"),
                replies: Replies::default(),
                awaited: VecDeque::new(),
                messages: 0,
                changes: 0,
                answered: 0,
                waits_since: Vec::new(),
            });
        }
        // The subscriptions are there before anybody publishes.
        for worker in 0..workers {
            world.node.threads.turn(worker, false);
        }
        world
    }

    fn answers(&self) -> Vec<u64> {
        self.crowd.iter().map(|it| it.answered).collect()
    }

    /// Takes what a worker has sent, and looks at what is left.
    fn deliver(&mut self, worker: usize) -> Result<(), String> {
        let (taken, sent, closed) = {
            let mut wire = self.node.threads.wire(worker);
            let taken = std::mem::take(&mut wire.taken);
            (taken, std::mem::take(&mut wire.sent), std::mem::take(&mut wire.closed))
        };
        for (conn, bytes) in taken {
            let mut subscribers = self.subscribers.iter_mut();
            let it = subscribers.find(|it| (it.worker, it.conn) == (worker, conn));
            it.ok_or("a message for nobody")?.hears(&bytes)?;
        }
        for (conn, bytes) in sent {
            let is_its = |there: (usize, ConnId)| there == (worker, conn);
            if let Some(it) = self.subscribers.iter_mut().find(|it| is_its((it.worker, it.conn))) {
                if it.is_stalled {
                    // Its socket takes no more.
                    continue;
                }
                it.hears(&bytes)?;
            } else if let Some(it) = self.crowd.iter_mut().find(|it| is_its((it.worker, it.conn))) {
                it.hears(&bytes)?;
            }
            self.node.threads.worker(worker).sent(conn, bytes);
        }
        for conn in closed {
            let mut subscribers = self.subscribers.iter_mut();
            match subscribers.find(|it| (it.worker, it.conn) == (worker, conn)) {
                Some(it) if it.is_stalled => it.is_closed = true,
                _ => return Err(format!("worker {worker} hung up on {conn:?}")),
            }
            self.node.threads.worker(worker).closed(conn);
            self.report.closed += 1;
        }
        self.look_at_undelivered()
    }

    fn look_at_undelivered(&mut self) -> Result<(), String> {
        let undelivered = self.node.undelivered();
        self.report.undelivered = self.report.undelivered.max(undelivered);
        let bound = self.congestion.bound.unwrap_or(ladon_commands::CONGESTED_WEIGHT);
        // A message to the subscribers of each thread, or two events.
        let of_bytes = self.workers * (self.congestion.message_bytes / 1024);
        let one = (self.subscribers.len() + of_bytes).max(2 * self.workers);
        if undelivered > bound + one {
            return Err(format!("{undelivered} undelivered, more than {bound} and {one} for one"));
        }
        Ok(())
    }

    /// Notes who was answered in this turn, and how often others were meanwhile.
    fn note_answers(&mut self, before: &[u64]) -> Result<(), String> {
        let answers = self.answers();
        let workers: Vec<usize> = self.crowd.iter().map(|it| it.worker).collect();
        let waiting = self.crowd.iter().filter(|it| !it.awaited.is_empty()).count();
        for (at, publisher) in self.crowd.iter_mut().enumerate() {
            if publisher.waits_since.is_empty() {
                continue;
            }
            for (other, &worker) in workers.iter().enumerate() {
                if other != at && worker == publisher.worker {
                    let overtaken = answers[other] - publisher.waits_since[other];
                    self.report.overtaken = self.report.overtaken.max(overtaken);
                }
            }
            if answers[at] > before[at] {
                publisher.waits_since.clone_from(&answers);
            }
            if publisher.awaited.is_empty() {
                publisher.waits_since.clear();
            }
        }
        let overtaken = self.report.overtaken;
        if overtaken > OVERTAKEN_MAX * self.congestion.burst {
            return Err(format!("a publisher was overtaken {overtaken} times by another"));
        }
        self.report.congested_turns += u64::from(waiting != 0 && answers == before);
        Ok(())
    }

    /// Everything was answered and delivered: what subscribers have seen.
    fn end(self) -> Result<Crowd, String> {
        let mut listening = self.subscribers.iter().filter(|it| !it.is_stalled);
        let first = listening.next().ok_or("nobody listens")?;
        if let Some(other) = listening.find(|it| it.messages != first.messages) {
            let (one, other) = (first.messages.len(), other.messages.len());
            return Err(format!("subscribers saw different orders, of {one} and {other} messages"));
        }
        let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
        for message in &first.messages {
            let text = std::str::from_utf8(message).map_err(|error| error.to_string())?;
            let (name, number) = text.split_once(':').ok_or("a message that nobody sent")?;
            let last = seen.entry(name).or_default();
            *last += 1;
            if number != last.to_string() {
                return Err(format!("{text} is not the next of {name}, which is {last}"));
            }
        }
        for publisher in &self.crowd {
            let messages = seen.get(publisher.name.as_str()).copied().unwrap_or_default();
            let channel = format!("__keyspace@0__:{}", publisher.name).into_bytes();
            let events = first.events.get(&channel).copied().unwrap_or_default();
            if (messages, events) != (publisher.messages, publisher.changes) {
                return Err(format!(
                    "{messages} of {} messages of {} came, {events} of {} events",
                    publisher.messages, publisher.name, publisher.changes
                ));
            }
        }
        let bytes = first.messages.len() as u64 * self.congestion.message_bytes as u64;
        let is_owing = |it: &&Subscriber| it.is_stalled && !it.is_closed;
        if bytes > CLOSING_BYTES && self.subscribers.iter().any(|it| is_owing(&it)) {
            return Err(format!("a subscriber owes {bytes} bytes, and is not closed"));
        }
        Ok(self.report)
    }
}
