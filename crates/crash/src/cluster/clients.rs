//! Clients that work on few things at once, follow the leader, and write down what they saw.

use super::nodes::{Nodes, connect, until};
use super::things::{Action, Answer, Kind, State};
use super::wire::{self, Outcome};
use crate::client::Client;
use ladon_history::{Operation, Refusal, Verdict, judge};
use ladon_resp::client::Value;
use ladon_testkit::Random;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Pairs of operations done and state that a judgement may try.
const POSITIONS_MAX: usize = 2_000_000;
/// Numbers of clients that only read, at any node.
const READERS_FROM: u64 = 1_000;
/// Pipelines of such a client before it goes elsewhere.
const READS_MAX: u64 = 60;
/// Operations that a report shows around the one that cannot be.
const SHOWN: usize = 25;

/// An operation, who did it and at which node.
#[derive(Clone, Debug)]
struct Seen {
    client: u64,
    node: usize,
    operation: Operation<Action>,
}

/// A thing, and what was done to it.
struct Thing {
    kind: Kind,
    key: String,
    seen: Mutex<Vec<Seen>>,
    /// A value that it had lately.
    value: AtomicU64,
}

/// Ends the clients when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// What clients do while faults happen.
pub(crate) struct Work<'a> {
    nodes: &'a Nodes,
    gate: &'a str,
    /// Clients that only read, at any node.
    readers: u64,
    things: Vec<Thing>,
    began: Instant,
    fresh: AtomicU64,
    over: AtomicBool,
    leader: AtomicU64,
    /// Replies other than answers: their first words, and how often they came.
    refusals: Mutex<BTreeMap<String, u64>>,
    /// When an operation was acknowledged last, and the longest time without one, in nanoseconds.
    last: AtomicU64,
    longest: AtomicU64,
    /// Reads that followers have answered.
    by_followers: AtomicU64,
}

/// What came of some work.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Operations with an answer.
    pub known: u64,
    /// Reads among them that followers have answered.
    pub by_followers: u64,
    /// Operations of which nobody knows whether they were done.
    pub unknown: u64,
    /// Things whose history was too hard to judge.
    pub undecided: u64,
    /// The longest time in which nobody got an answer.
    pub pause: Duration,
    /// Replies other than answers, by their first word.
    pub refusals: BTreeMap<String, u64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl<'a> Work<'a> {
    /// Things of every kind, whose keys begin with `name`, at a gate.
    pub(crate) fn new(nodes: &'a Nodes, name: &str, gate: &'a str) -> Work<'a> {
        let twice = Kind::ALL.iter().chain(&[Kind::Text, Kind::Text, Kind::Number]);
        let thing = |(at, &kind): (usize, &Kind)| Thing {
            kind,
            key: format!("{name}:{at}"),
            seen: Mutex::default(),
            value: AtomicU64::new(0),
        };
        Work {
            nodes,
            gate,
            readers: 0,
            things: twice.enumerate().map(thing).collect(),
            began: Instant::now(),
            // Members of sets are smaller.
            fresh: AtomicU64::new(1000),
            over: AtomicBool::new(false),
            leader: AtomicU64::new(0),
            refusals: Mutex::default(),
            last: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            by_followers: AtomicU64::new(0),
        }
    }

    /// The same with so many clients more, which only read: at any node, so that followers have to ask
    /// the leader.
    pub(crate) fn with_readers(self, readers: u64) -> Work<'a> {
        Work { readers, ..self }
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Runs so many clients while `meanwhile` runs.
    pub(crate) fn during<T>(
        &self,
        clients: u64,
        seed: u64,
        meanwhile: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        thread::scope(|threads| {
            let run = |client| threads.spawn(move || self.follow_leader(client, seed));
            let read =
                |reader| threads.spawn(move || self.read_anywhere(READERS_FROM + reader, seed));
            let running: Vec<_> =
                (0..clients).map(run).chain((0..self.readers).map(read)).collect();
            let done = {
                // The scope waits for the clients, also if this thread panics.
                let _over = Over(&self.over);
                meanwhile()
            };
            for client in running {
                client.join().map_err(|_| "a client panicked")??;
            }
            done
        })
    }

    fn follow_leader(&self, client: u64, seed: u64) -> Result<(), String> {
        let mut random = Random::stream(seed, 1000 + client);
        while !self.over.load(Relaxed) {
            // Mostly where somebody was answered, sometimes anywhere: nobody may answer what is old.
            let node = match random.chance(4, 5) {
                true => self.leader.load(Relaxed),
                false => random.below(self.nodes.count() as u64),
            } as usize;
            let patience = Duration::from_millis(300 + random.below(2500));
            let Ok(mut connection) = connect(self.nodes.address(node), patience) else {
                thread::sleep(Duration::from_millis(5));
                self.leader.store(random.below(self.nodes.count() as u64), Relaxed);
                continue;
            };
            let gate = connection.call(&["CLIENT", "GATE", self.gate]);
            if !matches!(gate, Ok(Value::Simple(_))) {
                continue;
            }
            self.use_connection(&mut connection, (client, node), &mut random)?;
            thread::sleep(Duration::from_millis(random.below(20)));
        }
        Ok(())
    }

    fn read_anywhere(&self, client: u64, seed: u64) -> Result<(), String> {
        let mut random = Random::stream(seed, client);
        while !self.over.load(Relaxed) {
            let node = random.below(self.nodes.count() as u64) as usize;
            let patience = Duration::from_millis(300 + random.below(2500));
            let Ok(mut connection) = connect(self.nodes.address(node), patience) else {
                thread::sleep(Duration::from_millis(5));
                continue;
            };
            let gate = connection.call(&["CLIENT", "GATE", self.gate]);
            let role = connection.call(&["ROLE"]);
            let (Ok(Value::Simple(_)), Ok(Value::Array(role))) = (gate, role) else { continue };
            let follows = role.first().and_then(Value::as_bytes) == Some(&b"slave"[..]);
            for _ in 0..READS_MAX {
                let depth = 1 + random.below(4);
                let reads = |_| {
                    let at = random.below(self.things.len() as u64) as usize;
                    (at, self.things[at].kind.read())
                };
                let asked: Vec<(usize, Action)> = (0..depth).map(reads).collect();
                if self.over.load(Relaxed)
                    || !self.pipeline(&mut connection, (client, node), &asked)?
                {
                    break;
                }
                self.by_followers.fetch_add(if follows { depth } else { 0 }, Relaxed);
                thread::sleep(Duration::from_micros(random.below(4000)));
            }
        }
        Ok(())
    }

    /// Works on a connection until it ends or the node refuses.
    fn use_connection(
        &self,
        connection: &mut Client,
        who: (u64, usize),
        random: &mut Random,
    ) -> Result<(), String> {
        while !self.over.load(Relaxed) {
            let depth = if random.chance(1, 4) { 1 + random.below(6) } else { 1 };
            let asked: Vec<(usize, Action)> = (0..depth).map(|_| self.draw(random)).collect();
            let goes_on = match &asked[..] {
                [(thing, Action::Watched(value))] => {
                    self.watched(connection, who, &self.things[*thing], *value)?
                }
                _ => self.pipeline(connection, who, &asked)?,
            };
            if !goes_on {
                return Ok(());
            }
            thread::sleep(Duration::from_micros(random.below(4000)));
        }
        Ok(())
    }

    fn draw(&self, random: &mut Random) -> (usize, Action) {
        let at = random.below(self.things.len() as u64) as usize;
        let thing = &self.things[at];
        let value = thing.value.load(Relaxed);
        let fresh = self.fresh.fetch_add(1, Relaxed);
        let seen = (value != 0 || random.chance(1, 8)).then_some(value).filter(|&it| it != 0);
        (at, thing.kind.draw(random, fresh, seen))
    }

    /// Sends all, takes all replies; returns whether this is the place to go on.
    fn pipeline(
        &self,
        connection: &mut Client,
        who: (u64, usize),
        asked: &[(usize, Action)],
    ) -> Result<bool, String> {
        // Two round trips would be needed.
        let asked: Vec<_> =
            asked.iter().filter(|(_, action)| !matches!(action, Action::Watched(_))).collect();
        let mut bytes = Vec::new();
        let mut counts = Vec::new();
        for (thing, action) in &asked {
            let requests = wire::requests(action, &self.things[*thing].key);
            counts.push(requests.len());
            for request in requests {
                ladon_resp::client::write_request(&mut bytes, &request);
            }
        }
        let began = self.now();
        let mut is_open = connection.send(&bytes).is_ok();
        let mut goes_on = is_open;
        for ((thing, action), count) in asked.into_iter().zip(counts) {
            let thing = &self.things[*thing];
            let mut last = None;
            for _ in 0..count {
                last = is_open.then(|| connection.reply().ok()).flatten();
                is_open &= last.is_some();
            }
            let outcome = match last {
                Some(reply) => wire::outcome(thing.kind, action, &reply)
                    .map_err(|error| format!("{}: {error}", thing.key))?,
                None => Outcome::Unknown("no reply".to_owned()),
            };
            goes_on &= matches!(outcome, Outcome::Known(_));
            self.note(thing, who, (began, action.clone()), outcome);
        }
        Ok(goes_on && is_open)
    }

    /// Reads under `WATCH`, then writes if nobody else has.
    fn watched(
        &self,
        connection: &mut Client,
        who: (u64, usize),
        thing: &Thing,
        value: u64,
    ) -> Result<bool, String> {
        let began = self.now();
        let read = Action::Watched(value);
        let mut last = None;
        for request in wire::requests(&read, &thing.key) {
            last = connection.call(&request).ok();
            // What comes too late would be taken for the next one's.
            if last.is_none() {
                break;
            }
        }
        let Some(reply) = last else { return Ok(false) };
        let was = match wire::outcome(thing.kind, &read, &reply)? {
            Outcome::Known(Answer::Text(was)) => was,
            outcome => {
                self.note(thing, who, (began, Action::Get), outcome);
                return Ok(false);
            }
        };
        self.note(thing, who, (began, Action::Get), Outcome::Known(Answer::Text(was)));
        let (began, swap) = (self.now(), Action::Swap(was, value));
        let mut last = None;
        for request in wire::write_watched(&thing.key, value) {
            last = connection.call(&request).ok();
            if last.is_none() {
                break;
            }
        }
        let outcome = match last {
            None => Outcome::Unknown("no reply".to_owned()),
            // Somebody else has changed it.
            Some(Value::NullArray | Value::Null) => return Ok(true),
            Some(Value::Array(_)) => Outcome::Known(Answer::Text(was)),
            Some(reply) => wire::outcome(thing.kind, &swap, &reply)?,
        };
        let goes_on = matches!(outcome, Outcome::Known(_));
        self.note(thing, who, (began, swap), outcome);
        Ok(goes_on)
    }

    fn note(
        &self,
        thing: &Thing,
        (client, node): (u64, usize),
        (began, call): (u64, Action),
        outcome: Outcome,
    ) {
        let now = self.now();
        let ended = match outcome {
            // Whoever reads anywhere does not tell who leads.
            Outcome::Known(answer) if client >= READERS_FROM => Some((now, answer)),
            Outcome::Known(answer) => {
                self.leader.store(node as u64, Relaxed);
                let last = self.last.fetch_max(now, Relaxed);
                if last > 0 {
                    self.longest.fetch_max(now.saturating_sub(last), Relaxed);
                }
                if let Answer::Text(Some(value)) = &answer {
                    thing.value.store(*value, Relaxed);
                }
                Some((now, answer))
            }
            Outcome::Refused(text) => return self.refused(&text, (client, node)),
            Outcome::Unknown(text) => {
                self.refused(&text, (client, node));
                None
            }
        };
        // A read without an answer says nothing.
        if ended.is_some() || !call.only_reads() {
            let operation = Operation { call, began, ended };
            lock(&thing.seen).push(Seen { client, node, operation });
        }
    }

    fn refused(&self, text: &str, (client, node): (u64, usize)) {
        let word = if text == "no reply" { text } else { first_word(text) };
        *lock(&self.refusals).entry(word.to_owned()).or_default() += 1;
        if client >= READERS_FROM {
            return;
        }
        // Somebody has to look elsewhere first.
        let next = (node as u64 + 1) % self.nodes.count() as u64;
        let _ = self.leader.compare_exchange(node as u64, next, Relaxed, Relaxed);
    }

    /// Reads all things at the leader, as the last operations of the history.
    pub(crate) fn read_all(&self) -> Result<(), String> {
        for thing in &self.things {
            let action = thing.kind.read();
            until(&format!("an answer about {}", thing.key), || {
                let node = self.nodes.leader_now()?;
                let patience = Duration::from_secs(5);
                let mut connection = connect(self.nodes.address(node), patience).ok()?;
                connection.call(&["CLIENT", "GATE", "quorum"]).ok()?;
                let began = self.now();
                let mut last = None;
                for request in wire::requests(&action, &thing.key) {
                    last = connection.call(&request).ok();
                }
                let outcome = wire::outcome(thing.kind, &action, &last?);
                let is_known = matches!(outcome, Ok(Outcome::Known(_)));
                self.note(thing, (u64::MAX, node), (began, action.clone()), outcome.ok()?);
                is_known.then_some(())
            })?;
        }
        Ok(())
    }

    /// Judges all histories.
    pub(crate) fn judge(&self) -> Result<Tally, String> {
        let mut tally = Tally {
            pause: Duration::from_nanos(self.longest.load(Relaxed)),
            refusals: lock(&self.refusals).clone(),
            by_followers: self.by_followers.load(Relaxed),
            ..Tally::default()
        };
        for thing in &self.things {
            let seen = lock(&thing.seen);
            let operations: Vec<_> = seen.iter().map(|seen| seen.operation.clone()).collect();
            let known = operations.iter().filter(|operation| operation.ended.is_some()).count();
            tally.known += known as u64;
            tally.unknown += (operations.len() - known) as u64;
            match judge(&thing.kind.initial(), &operations, POSITIONS_MAX) {
                Verdict::Linearizable => {}
                Verdict::Undecided => tally.undecided += 1,
                Verdict::Refused(refusal) => return Err(told(thing, &seen, &refusal)),
            }
        }
        Ok(tally)
    }
}

/// What cannot be, with what happened around it.
fn told(thing: &Thing, seen: &[Seen], refusal: &Refusal<State>) -> String {
    let (explained, of) = refusal.explained;
    let mut text = format!(
        "the history of {} is not linearizable: {explained} of {of} operations in the best order, \
         then it is {:?}, and this cannot be:\n",
        thing.key, refusal.state
    );
    let stuck = &seen[refusal.stuck].operation;
    let end_of = |seen: &Seen| seen.operation.ended.as_ref().map_or(u64::MAX, |(end, _)| *end);
    let mut near: Vec<&Seen> = seen.iter().collect();
    near.sort_by_key(|seen| seen.operation.began);
    let at = near.iter().position(|seen| seen.operation.began == stuck.began).unwrap_or(0);
    let from = at.saturating_sub(SHOWN);
    for (place, seen) in near.iter().enumerate() {
        let is_near = (from..at + SHOWN).contains(&place);
        let is_open = place < at && end_of(seen) > stuck.began;
        if is_near || is_open {
            let Operation { call, began, ended } = &seen.operation;
            let ended = match ended {
                Some((end, answer)) => format!("{:>10} {answer:?}", end / 1000),
                None => "         ? ".to_owned(),
            };
            let mark = if place == at { ">>>" } else { "   " };
            let client =
                if seen.client == u64::MAX { "end".to_owned() } else { seen.client.to_string() };
            let _ = writeln!(
                text,
                "{mark} client {client:>3} node {} us {:>10} to {ended}: {call:?}",
                seen.node,
                began / 1000
            );
        }
    }
    text
}

/// What kind of error a reply is.
pub(super) fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or(text)
}
