//! Moves batches and replies between a workload and a server over many connections, on one thread.
//!
//! ```text
//!   users        each sends a batch, and its next one when the last is answered or is due
//!     |  number modulo connections
//!   connections  carry the batches of their users, written together; replies come back in the order
//!                of requests, or say themselves whose they are
//! ```
//!
//! Usually there is a user per connection. Many users over one connection are what an asynchronous
//! client library does for a program of many threads.
//!
//! Sockets are non-blocking and edge-triggered (mio). While a run's core is its own, the thread
//! never sleeps: a sleeping client would make each reply's send a wake-up as well, which the kernel
//! would charge to the server.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

use super::sample::Sample;
use super::stream::Stream;
use super::workload::{Check, Whose, Workload};

/// How the thread waits for replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Waiting {
    /// Asks again and again; for a core of its own.
    Spin,
    /// Sleeps until there is something; where the core is shared.
    Sleep,
}

/// Why a load ended early.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A reply was not the right one.
    #[error(
        "wrong answer on connection {connection} about {about}: expected `{expected}`, got `{got}`"
    )]
    Wrong {
        /// Number of the connection, from 0.
        connection: usize,
        /// What was asked.
        about: String,
        /// The right answer, escaped.
        expected: String,
        /// What came, escaped and cut short.
        got: String,
    },
    /// No reply for a long time.
    #[error("no reply for {0:?}, with {1} requests unanswered")]
    Stalled(Duration, usize),
    /// The server closed a connection.
    #[error("the server closed connection {0}")]
    Closed(usize),
    /// A connection did not open as its protocol says.
    #[error("opening a connection: {0}")]
    Opening(String),
    /// The socket or the poll failed.
    #[error("load generator: {0}")]
    Io(#[from] io::Error),
}

struct Connection {
    stream: Stream,
    received: Vec<u8>,
    filled: usize,
    /// What the socket did not take at once, or what waits for the others' batches of this turn.
    unsent: Vec<u8>,
    /// Users whose batches are under way, in the order in which they were sent.
    order: VecDeque<u32>,
    /// Replies to come.
    owed: usize,
}

struct User {
    /// Requests of the batch under way, in order, and how many of them are answered.
    keys: Vec<u32>,
    answered: usize,
    sent_at: Instant,
    pace: Option<Pace>,
}

/// In the place of a key whose reply came, where replies come out of order.
const ANSWERED: u32 = u32::MAX;

/// Fixed times for a user's batches.
#[derive(Clone, Copy)]
struct Pace {
    interval: Duration,
    /// When the next batch is due.
    due: Instant,
    /// Whether times that went by while a reply was awaited are made up for.
    catches_up: bool,
}

/// The load generator.
pub struct Driver<W> {
    workload: W,
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    users: Vec<User>,
    /// Connections with bytes to write at the end of the turn.
    unflushed: Vec<usize>,
    waiting: Waiting,
    patience: Duration,
    /// Whether answered users get a next batch.
    sending: bool,
    started: bool,
    under_way: usize,
    /// Paced users that wait for their time, the earliest first.
    waiting_for_time: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Connections whose sockets may hold more than was read.
    unread: VecDeque<usize>,
    last_reply: Instant,
    sample: Sample,
}

/// Longer than any server's pause that should count as one; fsync on a slow disk included.
const STALL: Duration = Duration::from_secs(30);
/// Shorter than anything that somebody would notice in a work's stop.
const PATIENCE_MAX: Duration = Duration::from_millis(20);

/// Reads of one socket before the others get their turn: a reply may be larger than any buffer.
const READS_MAX: usize = 4;

/// What a connection reads at once, at the most; a longer reply makes its buffer grow.
const READ_BYTES_MAX: usize = 256 * 1024;

/// Bytes for the replies that all users of one connection may get at once: with room for one user's only,
/// a thousand users would be answered by a thousand reads, and the load would be the limit.
fn room(reply_bytes_max: usize, users: usize, connections: usize) -> usize {
    let share = users.div_ceil(connections.max(1)).max(1);
    // One byte more than the right answers take shows that there was one too many.
    reply_bytes_max.max((reply_bytes_max * share).min(READ_BYTES_MAX)) + 1
}

impl<W: Workload> Driver<W> {
    /// Connects `clients` connections to `address`, for as many users. Nothing is sent yet.
    ///
    /// # Errors
    /// [`LoadError::Io`] when connecting fails.
    pub fn connect(
        address: SocketAddr,
        clients: usize,
        waiting: Waiting,
        workload: W,
    ) -> Result<Self, LoadError> {
        let streams = (0..clients).map(|_| Stream::plain(address)).collect::<Result<_, _>>()?;
        Self::over(streams, clients, waiting, workload)
    }

    /// Makes `users` users share `streams`, which are open and silent: user `n` has stream `n` modulo
    /// their number. Nothing is sent yet.
    ///
    /// # Errors
    /// [`LoadError::Io`] when the poll refuses a socket.
    pub fn over(
        streams: Vec<Stream>,
        users: usize,
        waiting: Waiting,
        workload: W,
    ) -> Result<Self, LoadError> {
        let poll = Poll::new()?;
        let room = room(workload.reply_bytes_max(), users, streams.len());
        let interest = Interest::READABLE | Interest::WRITABLE;
        let mut connections = Vec::with_capacity(streams.len());
        for (number, mut stream) in streams.into_iter().enumerate() {
            poll.registry().register(stream.socket(), Token(number), interest)?;
            connections.push(Connection {
                stream,
                received: vec![0; room],
                filled: 0,
                unsent: Vec::new(),
                order: VecDeque::new(),
                owed: 0,
            });
        }
        let user = || User { keys: Vec::new(), answered: 0, sent_at: Instant::now(), pace: None };
        Ok(Self {
            workload,
            poll,
            events: Events::with_capacity(connections.len().clamp(16, 1024)),
            connections,
            users: (0..users).map(|_| user()).collect(),
            unflushed: Vec::new(),
            waiting,
            patience: STALL,
            sending: true,
            started: false,
            under_way: 0,
            waiting_for_time: BinaryHeap::new(),
            unread: VecDeque::new(),
            last_reply: Instant::now(),
            sample: Sample::empty()?,
        })
    }

    /// Gives up after `patience` without a reply, instead of half a minute.
    pub const fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Makes user `number` send a batch every `interval`, the first one `offset` after now,
    /// instead of whenever the last one is answered. Times that go by while it waits for a reply are
    /// made up for, and latency counts from the moment at which a batch was **due**: a slow server
    /// cannot hide its pauses by slowing the client down. Only before the first [`Self::run`].
    pub fn pace(&mut self, number: usize, interval: Duration, offset: Duration) {
        let due = Instant::now() + offset;
        self.users[number].pace = Some(Pace { interval, due, catches_up: true });
    }

    /// The same for a user that looks for the longest wait: times that go by while it waits are
    /// left out, so that a reply that is always late does not add up to a wait without end.
    pub fn probe(&mut self, number: usize, interval: Duration) {
        self.users[number].pace = Some(Pace { interval, due: Instant::now(), catches_up: false });
    }

    /// Keeps the load up for `time`, or until the workload has nothing more to ask, and returns what
    /// was seen meanwhile. Requests stay under way in between, so call again soon.
    ///
    /// # Errors
    /// A wrong answer, a closed connection, 30 seconds without a reply.
    pub fn run(&mut self, time: Duration) -> Result<Sample, LoadError> {
        self.run_while(time, &AtomicBool::new(true))
    }

    /// As [`Self::run`], but ends as soon as `go_on` is false.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_while(&mut self, time: Duration, go_on: &AtomicBool) -> Result<Sample, LoadError> {
        let began = Instant::now();
        self.last_reply = began;
        if !self.started {
            self.started = true;
            for number in 0..self.users.len() {
                self.send_next(number, Instant::now())?;
            }
            self.flush()?;
        }
        self.turn_until(began, began + time, go_on)
    }

    /// Sends nothing more and waits for the replies under way.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn drain(&mut self) -> Result<Sample, LoadError> {
        self.sending = false;
        self.waiting_for_time.clear();
        let began = Instant::now();
        self.last_reply = began;
        self.turn_until(began, began + self.patience * 2, &AtomicBool::new(true))
    }

    /// Runs until the workload has nothing more to ask and all is answered.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_to_end(&mut self) -> Result<Sample, LoadError> {
        self.run(Duration::from_secs(24 * 3600))
    }

    /// How long ago the earliest batch was due that a user of [`Self::pace`] has not sent.
    #[must_use]
    pub fn behind(&self) -> Duration {
        let now = Instant::now();
        let paces = self.users.iter().filter_map(|user| user.pace);
        let paces = paces.filter(|pace| pace.catches_up);
        paces.map(|pace| now.saturating_duration_since(pace.due)).max().unwrap_or_default()
    }

    /// Whether requests are under way or to come.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.under_way > 0 || !self.waiting_for_time.is_empty()
    }

    /// What to ask and what was asked.
    pub fn workload(&self) -> &W {
        &self.workload
    }

    /// The same, to be taken back when the load is over.
    pub fn into_workload(self) -> W {
        self.workload
    }

    fn turn_until(
        &mut self,
        began: Instant,
        deadline: Instant,
        go_on: &AtomicBool,
    ) -> Result<Sample, LoadError> {
        let mut now = began;
        while now < deadline
            && go_on.load(Ordering::Relaxed)
            && (self.under_way > 0 || !self.waiting_for_time.is_empty())
        {
            let sent = self.send_due(now)?;
            let events = self.poll_once(deadline - now)?;
            let read = self.receive_rest()?;
            self.flush()?;
            let after = Instant::now();
            if sent || events || read {
                self.sample.busy += after - now;
                self.sample.longest_turn = self.sample.longest_turn.max(after - now);
            } else if self.under_way > 0 && after - self.last_reply > self.patience {
                return Err(LoadError::Stalled(self.patience, self.unanswered()));
            }
            now = after;
        }
        let mut sample = std::mem::replace(&mut self.sample, Sample::empty()?);
        sample.elapsed = now - began;
        Ok(sample)
    }

    /// Waits for events and handles them; says whether there were any.
    fn poll_once(&mut self, left: Duration) -> Result<bool, LoadError> {
        // A paced user's time is told in microseconds, which a sleeping poll cannot.
        let patience = if self.waiting == Waiting::Spin || !self.unread.is_empty() {
            Duration::ZERO
        } else {
            let due = self.waiting_for_time.peek().map(|Reverse((due, _))| *due);
            let until_due = due.map_or(left, |due| due.saturating_duration_since(Instant::now()));
            // Rounded down to what a sleeping poll can tell: the rest is spent asking.
            Duration::from_millis(until_due.min(left).min(PATIENCE_MAX).as_millis() as u64)
        };
        match self.poll.poll(&mut self.events, Some(patience)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(false),
            other => other?,
        }
        // Taken out, as handling an event needs all of `self`.
        let events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        let mut result = Ok(!events.is_empty());
        for event in &events {
            let handled = self.on_event(event.token().0, event.is_writable());
            if let Err(error) = handled {
                result = Err(error);
                break;
            }
        }
        self.events = events;
        result
    }

    /// Sends the batches of paced users whose time has come.
    fn send_due(&mut self, now: Instant) -> Result<bool, LoadError> {
        let mut sent = false;
        while let Some(&Reverse((due, number))) = self.waiting_for_time.peek() {
            if due > now {
                break;
            }
            self.waiting_for_time.pop();
            self.send(number, due)?;
            sent = true;
        }
        Ok(sent)
    }

    fn on_event(&mut self, number: usize, writable: bool) -> Result<(), LoadError> {
        let connection = &self.connections[number];
        if writable && (!connection.unsent.is_empty() || connection.stream.wants_write()) {
            self.send_rest(number)?;
        }
        self.receive(number)
    }

    /// Goes on with one of the sockets that have more; says whether there was one.
    fn receive_rest(&mut self) -> Result<bool, LoadError> {
        let Some(number) = self.unread.pop_front() else { return Ok(false) };
        self.receive(number)?;
        Ok(true)
    }

    /// Reads what is there, judges it, and lets users that are answered in full send their next batch.
    fn receive(&mut self, number: usize) -> Result<(), LoadError> {
        for _ in 0..READS_MAX {
            let connection = &mut self.connections[number];
            if connection.owed == 0 {
                return Ok(()); // nothing is owed; an end of the stream shows at the next read
            }
            if connection.filled == connection.received.len() {
                connection.received.resize(connection.filled * 2, 0);
            }
            let read = match connection.stream.read(&mut connection.received[connection.filled..]) {
                Ok(0) => return Err(LoadError::Closed(number)),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            connection.filled += read;
            self.judge(number, Instant::now())?;
            if self.connections[number].owed == 0 {
                return Ok(());
            }
            // Edge-triggered: only WouldBlock proves that the socket is empty.
        }
        if !self.unread.contains(&number) {
            self.unread.push_back(number);
        }
        Ok(())
    }

    /// Judges the complete replies received so far.
    fn judge(&mut self, number: usize, now: Instant) -> Result<(), LoadError> {
        let mut at = 0;
        // Replies to one user that come together are recorded together.
        let (mut last, mut right) = (0, 0);
        loop {
            let connection = &self.connections[number];
            if at == connection.filled {
                break;
            }
            let bytes = &connection.received[at..connection.filled];
            let Some(&first) = connection.order.front() else {
                return Err(self.wrong_after_the_last(number, at));
            };
            let (user_number, slot) = match self.workload.whose(bytes) {
                Whose::Next => (first as usize, self.users[first as usize].answered),
                Whose::Of { user, slot } if self.owes(number, user, slot) => (user, slot),
                Whose::Incomplete => break,
                Whose::Of { .. } | Whose::Nobody => {
                    return Err(self.wrong_owner(number, at));
                }
            };
            let user = &mut self.users[user_number];
            let key = user.keys[slot];
            match self.workload.check(user_number, key, bytes) {
                Check::Right(length) => at += length,
                Check::Incomplete => break,
                Check::Wrong => return Err(self.wrong(number, user_number, key, at)),
            }
            user.keys[slot] = ANSWERED;
            user.answered += 1;
            let done = user.answered == user.keys.len();
            if last != user_number && right > 0 {
                self.record(last, right, now);
                right = 0;
            }
            last = user_number;
            right += 1;
            self.connections[number].owed -= 1;
            if done {
                self.record(last, right, now);
                right = 0;
                self.finished(number, user_number, now, at)?;
            }
        }
        if right > 0 {
            self.record(last, right, now);
        }
        let connection = &mut self.connections[number];
        connection.received.copy_within(at..connection.filled, 0);
        connection.filled -= at;
        Ok(())
    }

    /// Whether connection `number` still owes user `user` the reply to request `slot` of its batch.
    fn owes(&self, number: usize, user: usize, slot: usize) -> bool {
        user % self.connections.len() == number
            && self
                .users
                .get(user)
                .is_some_and(|user| user.keys.get(slot).is_some_and(|&key| key != ANSWERED))
    }

    fn record(&mut self, user: usize, replies: u64, now: Instant) {
        let latency = now.saturating_duration_since(self.users[user].sent_at).as_nanos();
        let lane = self.workload.lane(user);
        let latency = u64::try_from(latency).unwrap_or(u64::MAX);
        self.sample.latency_ns[lane].saturating_record_n(latency, replies);
        self.sample.replies += replies;
        self.last_reply = now;
    }

    /// A user's batch is answered in full.
    fn finished(
        &mut self,
        number: usize,
        user: usize,
        now: Instant,
        at: usize,
    ) -> Result<(), LoadError> {
        let connection = &mut self.connections[number];
        if connection.order.front() == Some(&(user as u32)) {
            connection.order.pop_front();
        } else {
            connection.order.retain(|&other| other as usize != user);
        }
        self.under_way -= 1;
        if connection.order.is_empty() && at < connection.filled {
            return Err(self.wrong_after_the_last(number, at));
        }
        self.users[user].keys.clear();
        self.users[user].answered = 0;
        self.send_next(user, now)
    }

    /// Sends the next batch now or, for a paced user, when it is due: at once if that is past.
    fn send_next(&mut self, number: usize, now: Instant) -> Result<(), LoadError> {
        if !self.sending {
            return Ok(());
        }
        let Some(pace) = &mut self.users[number].pace else {
            return self.send(number, now);
        };
        while !pace.catches_up && pace.due < now {
            pace.due += pace.interval;
        }
        let due = pace.due;
        pace.due += pace.interval;
        if due <= now {
            return self.send(number, due);
        }
        self.waiting_for_time.push(Reverse((due, number)));
        Ok(())
    }

    /// Sends the next batch; its latency counts from `since`.
    fn send(&mut self, number: usize, since: Instant) -> Result<(), LoadError> {
        let place = number % self.connections.len();
        let shared = self.users.len() > self.connections.len();
        let user = &mut self.users[number];
        let connection = &mut self.connections[place];
        user.keys.clear();
        user.answered = 0;
        let bytes = self.workload.batch(number, &mut user.keys);
        if bytes.is_empty() {
            return Ok(());
        }
        self.under_way += 1;
        user.sent_at = since;
        connection.order.push_back(number as u32);
        connection.owed += user.keys.len();
        if shared {
            // Others of this turn may want to send as well; one write takes all.
            if connection.unsent.is_empty() {
                self.unflushed.push(place);
            }
            connection.unsent.extend_from_slice(bytes);
            return Ok(());
        }
        let written = match connection.stream.write(bytes) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error.into()),
        };
        if written < bytes.len() {
            connection.unsent.extend_from_slice(&bytes[written..]);
            self.send_rest(place)?;
        }
        Ok(())
    }

    /// Writes what the users of shared connections left to write.
    fn flush(&mut self) -> Result<(), LoadError> {
        while let Some(number) = self.unflushed.pop() {
            self.send_rest(number)?;
        }
        Ok(())
    }

    fn send_rest(&mut self, number: usize) -> Result<(), LoadError> {
        let connection = &mut self.connections[number];
        let mut written = 0;
        let mut result = Ok(());
        while written < connection.unsent.len() || connection.stream.wants_write() {
            match connection.stream.write(&connection.unsent[written..]) {
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    result = Err(error.into());
                    break;
                }
            }
        }
        connection.unsent.drain(..written);
        result
    }

    fn wrong(&self, number: usize, user: usize, key: u32, at: usize) -> LoadError {
        let connection = &self.connections[number];
        LoadError::Wrong {
            connection: number,
            about: self.workload.about(user, key),
            expected: escaped(&self.workload.right_answer(user, key)),
            got: escaped(&connection.received[at..connection.filled]),
        }
    }

    fn wrong_after_the_last(&self, number: usize, at: usize) -> LoadError {
        let connection = &self.connections[number];
        LoadError::Wrong {
            connection: number,
            about: "what was asked last".to_owned(),
            expected: "nothing after the last reply".to_owned(),
            got: escaped(&connection.received[at..connection.filled]),
        }
    }

    fn wrong_owner(&self, number: usize, at: usize) -> LoadError {
        let connection = &self.connections[number];
        LoadError::Wrong {
            connection: number,
            about: "requests under way".to_owned(),
            expected: "a reply to one of them".to_owned(),
            got: escaped(&connection.received[at..connection.filled]),
        }
    }

    fn unanswered(&self) -> usize {
        self.connections.iter().map(|connection| connection.owed).sum()
    }
}

/// Enough to see what came instead.
const SHOWN_BYTES: usize = 160;

fn escaped(bytes: &[u8]) -> String {
    let mut text = bytes[..bytes.len().min(SHOWN_BYTES)].escape_ascii().to_string();
    if bytes.len() > SHOWN_BYTES {
        text += "...";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_connection_has_room_for_all_its_users() {
        assert_eq!(room(128, 50, 50), 129);
        assert_eq!(room(128, 1000, 1), 128_001);
        assert_eq!(room(128, 8000, 1), READ_BYTES_MAX + 1);
        assert_eq!(room(1 << 20, 8000, 1), (1 << 20) + 1, "never less than one user's");
        assert_eq!(room(128, 0, 0), 129);
    }
}
