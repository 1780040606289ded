//! A client of spaces: sends packets on its connection, many at once, on streams and outside of
//! them.

use crate::history::AskedGate;
use crate::node::SimNode;
use crate::plan::Redefine;
use crate::spaces::definition::Definition;
use crate::spaces::journal::{Journal, Operation, Reply, When};
use crate::spaces::procedure::Procedure;
use crate::spaces::request::{Habits, Request, Who};
use crate::spaces::setup::log_in;
use ladon_iproto::greeting::{GREETING_BYTES, read as read_greeting};
use ladon_iproto::{Progress, client, frame};
use ladon_net::ConnId;
use ladon_record::Gate;
use ladon_testkit::Random;
use std::collections::VecDeque;

/// Requests in flight.
const PIPELINE_MAX: usize = 12;
/// Requests that are sent together.
const BURST_MAX: u64 = 4;
/// Streams, besides none.
const STREAMS: usize = 2;

pub(crate) struct Client {
    pub(crate) name: u64,
    pub(crate) worker: usize,
    pub(crate) conn: ConnId,
    random: Random,
    /// Operations without a reply, in the order in which they were sent.
    awaited: VecDeque<usize>,
    /// Those that have not run.
    to_run: VecDeque<usize>,
    is_greeted: bool,
    input: Vec<u8>,
    /// The end of a packet of which a part is on its way.
    unsent: Vec<u8>,
    /// By stream, whether it has begun a transaction.
    has_begun: [bool; STREAMS + 1],
    serial: u64,
    /// Its transactions are long, and rarely show what others may change.
    is_patient: bool,
    habits: Habits,
    who: Who,
}

impl Client {
    /// Opens a connection, and logs in. Those who log in have to come first.
    ///
    /// # Errors
    /// If that fails.
    pub(crate) fn connect(
        node: &mut SimNode,
        name: u64,
        (worker, slot): (usize, u32),
        habits: Habits,
        who: Who,
    ) -> Result<Client, String> {
        let conn = match who {
            Who::Guest => node.connect_iproto(worker, slot),
            who => log_in(node, (worker, slot), who)?,
        };
        let mut random = Random::new(name);
        let is_patient = random.chance(1, if habits.binds { 2 } else { 4 });
        Ok(Client {
            name,
            worker,
            conn,
            random,
            awaited: VecDeque::new(),
            to_run: VecDeque::new(),
            is_greeted: who != Who::Guest,
            input: Vec::new(),
            unsent: Vec::new(),
            has_begun: [false; STREAMS + 1],
            serial: 0,
            is_patient,
            habits,
            who,
        })
    }

    /// What it sends now, if anything: new requests, or the rest of them.
    pub(crate) fn send(&mut self, step: u64, gate: Gate, journal: &mut Journal) -> Option<Vec<u8>> {
        if !self.unsent.is_empty() {
            return Some(std::mem::take(&mut self.unsent));
        }
        let mut bytes = Vec::new();
        for _ in 0..1 + self.random.below(BURST_MAX) {
            if self.awaited.len() < PIPELINE_MAX {
                self.ask(step, gate, journal, &mut bytes);
            }
        }
        // A packet may arrive in pieces, with anything in between.
        if !bytes.is_empty() && self.random.chance(1, 4) {
            self.unsent = bytes.split_off(self.random.below(bytes.len() as u64) as usize);
        }
        (!bytes.is_empty()).then_some(bytes)
    }

    fn ask(&mut self, step: u64, gate: Gate, journal: &mut Journal, bytes: &mut Vec<u8>) {
        let (stream, request) = self.request();
        let at = journal.operations.len();
        request.write(at as u64, stream, bytes);
        journal.operations.push(Operation {
            client: self.name,
            who: self.who,
            stream,
            request,
            begin: step,
            gate: AskedGate::Default(gate),
            end: None,
            may_be_lost: false,
            began: None,
            ran: None,
        });
        self.awaited.push_back(at);
        self.to_run.push_back(at);
    }

    /// Takes the rest of a packet, if there is one.
    pub(crate) fn take_unsent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.unsent)
    }

    /// Keeps bytes that could not be sent.
    pub(crate) fn keep_unsent(&mut self, bytes: Vec<u8>) {
        let rest = std::mem::replace(&mut self.unsent, bytes);
        self.unsent.extend(rest);
    }

    fn request(&mut self) -> (u64, Request) {
        self.serial += 1;
        let (random, habits) = (&mut self.random, self.habits);
        // Its first byte is a digit that others look for in the index of texts.
        let value = format!("{}:{}:{}", self.serial % 10, self.name, self.serial);
        let stream = random.below(3 * STREAMS as u64 / 2 + 1) as usize;
        if stream == 0 || stream > STREAMS {
            if self.who == Who::Admin && random.chance(1, 6) {
                return (0, Request::Define(Definition::some_grant(random, habits)));
            }
            let definition_in = match habits.redefine {
                // A definition is a conflict with every transaction, whatever keys say.
                None if habits.binds => 200,
                None => 30,
                Some(Redefine::All) => 14,
                Some(_) => 4,
            };
            if random.chance(1, definition_in) {
                return (0, Request::Define(Definition::some(random, habits)));
            }
            if habits.calls && random.chance(1, 3) {
                return (0, Request::Call(Procedure::some(random, &value, habits)));
            }
            return (0, Request::on_data(random, &value, habits));
        }
        let has_begun = &mut self.has_begun[stream];
        let commits_below = match self.is_patient {
            // Of a few statements that show nothing others may change, so that what a foreign key
            // reads is all that may be a conflict.
            true if habits.binds => 24,
            true => 4,
            false => 14,
        };
        let which = random.below(40);
        let request = match which {
            // A second time, or on a stream without a transaction.
            0 => Request::Begin(None),
            1 => Request::Rollback,
            2 => Request::Commit,
            3.. if *has_begun && which < commits_below => Request::Commit,
            3..36 if !*has_begun => {
                let is_short = random.chance(1, 8);
                Request::Begin(is_short.then(|| random.pick(&[5, 60, 4_000])))
            }
            5.. if self.is_patient => Request::of_no_conflict(random, &value, habits),
            _ if habits.calls && random.chance(1, 16) => {
                Request::Call(Procedure::some(random, &value, habits))
            }
            _ => Request::on_data(random, &value, habits),
        };
        match request {
            Request::Begin(_) => *has_begun = true,
            Request::Commit | Request::Rollback => *has_begun = false,
            _ => {}
        }
        (stream as u64, request)
    }

    /// The node has run the packet with this number, or a part of it.
    ///
    /// # Errors
    /// What is wrong with that.
    pub(crate) fn ran(
        &mut self,
        sync: u64,
        made: Option<&[u8]>,
        when: When,
        journal: &mut Journal,
    ) -> Result<(), String> {
        let at = sync as usize;
        let place = self.to_run.iter().position(|&to_run| to_run == at);
        let place = place.ok_or_else(|| format!("a packet ran that nobody sent: {at}"))?;
        let overtaken = self.to_run.range(..place).find(|&&it| journal.must_wait(at, it));
        if let Some(earlier) = overtaken {
            return Err(format!("{at} ran before {earlier}"));
        }
        let Some(made) = made else { return journal.ran_partly(at, when) };
        self.to_run.remove(place);
        journal.counted.overtakings += u64::from(place > 0);
        let made = match made {
            [] => None,
            made => {
                let (of, reply, rest) = Self::decode(made)?.ok_or("half a reply was made")?;
                if of != at {
                    return Err(format!("the reply to {of} was made for {at}"));
                }
                if rest != 0 {
                    return Err("more than a reply was made".to_owned());
                }
                Some(reply)
            }
        };
        journal.ran(at, made, when)
    }

    /// Notes the replies in what came.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        step: u64,
        journal: &mut Journal,
    ) -> Result<(), String> {
        self.input.extend_from_slice(bytes);
        if !self.is_greeted {
            let Some(greeting) = self.input.first_chunk::<GREETING_BYTES>() else { return Ok(()) };
            read_greeting(greeting).ok_or("a greeting that is none")?;
            self.input.drain(..GREETING_BYTES);
            self.is_greeted = true;
        }
        while !self.input.is_empty() {
            let Some((at, reply, rest)) = Self::decode(&self.input)? else { return Ok(()) };
            self.input.drain(..self.input.len() - rest);
            let place = self.awaited.iter().position(|&awaited| awaited == at);
            let place = place.ok_or_else(|| format!("an unasked reply, to {at}"))?;
            let stream = journal.operations[at].stream;
            let in_stream = |&&earlier: &&usize| journal.operations[earlier].stream == stream;
            if let Some(earlier) = self.awaited.range(..place).find(in_stream)
                && stream != 0
            {
                return Err(format!("in a stream, the reply to {at} overtook that to {earlier}"));
            }
            self.awaited.remove(place);
            journal.answered(at, reply, step)?;
        }
        Ok(())
    }

    /// Reads a reply, if it is all there: the operation, and how many bytes follow.
    fn decode(bytes: &[u8]) -> Result<Option<(usize, Reply, usize)>, String> {
        let (start, end) = match frame::next(bytes, frame::PACKET_BYTES_MAX) {
            Progress::Complete { start, end } => (start, end),
            Progress::Incomplete { .. } => return Ok(None),
            Progress::Invalid(error) => return Err(format!("a reply that is none: {error}")),
        };
        let reply = client::Reply::decode(&bytes[start..end]);
        let reply = reply.map_err(|error| format!("a reply that is none: {error}"))?;
        Ok(Some((reply.header.sync as usize, Reply::of(&reply), bytes.len() - end)))
    }

    /// The operation that it waits for.
    pub(crate) fn owed(&self) -> Option<usize> {
        self.awaited.front().copied()
    }
}
