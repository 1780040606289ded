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

mod error;
mod receive;
mod send;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

pub use error::LoadError;

use super::sample::Sample;
use super::stream::Stream;
use super::workload::{Beside, Workload};

/// How the thread waits for replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Waiting {
    /// Asks again and again; for a core of its own.
    Spin,
    /// Sleeps until there is something; where the core is shared.
    Sleep,
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
    /// The workload's activity besides its users in the last turn.
    beside: Beside,
    /// The last turn, if it was longer than [`PAUSE_MIN`].
    pause: Option<(Instant, Instant)>,
    sample: Sample,
}

/// Longer than any server's pause that should count as one; fsync on a slow disk included.
const STALL: Duration = Duration::from_secs(30);
/// Shorter than anything that somebody would notice in a work's stop.
const PATIENCE_MAX: Duration = Duration::from_millis(20);

/// Longest poll while a workload has activity besides its users, because the poll does not cover
/// that.
const BESIDE_MAX: Duration = Duration::from_millis(1);
/// A sleep ends up to this much late: the kernel's timer slack, and a core that has to wake up.
const WAKES_LATE: Duration = Duration::from_micros(100);

/// A longer turn of the load generator is its own pause: requests due in the pause could not be
/// sent, and count from when they are sent.
const PAUSE_MIN: Duration = Duration::from_micros(200);

/// What a connection reads at once, at the most; a longer reply makes its buffer grow.
const READ_BYTES_MAX: usize = 256 * 1024;

/// Buffer size for the replies that all users of one connection may get at once. With room for one
/// user only, a thousand users would need a thousand reads, and the load generator would be the
/// limit.
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

    /// Makes `users` users share `streams`, which are open and silent: user `n` has stream `n`
    /// modulo their number. Nothing is sent yet.
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
            beside: Beside::Nothing,
            pause: None,
            sample: Sample::empty()?,
        })
    }

    /// Gives up after `patience` without a reply, instead of half a minute.
    pub const fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Makes user `number` send a batch every `interval`, the first one `offset` after now, instead
    /// of whenever the last one is answered. Times that go by while it waits for a reply are made
    /// up for, and latency counts from the moment at which a batch was **due**: a slow server
    /// cannot hide its pauses by slowing the client down. What was due in a pause of the load
    /// generator's own counts from when it is sent. Only before the first [`Self::run`].
    pub fn pace(&mut self, number: usize, interval: Duration, offset: Duration) {
        let due = Instant::now() + offset;
        self.users[number].pace = Some(Pace { interval, due, catches_up: true });
    }

    /// The same for a user that looks for the longest wait: times that go by while it waits are
    /// left out, so that a reply that is always late does not add up to a wait without end.
    pub fn probe(&mut self, number: usize, interval: Duration) {
        self.users[number].pace = Some(Pace { interval, due: Instant::now(), catches_up: false });
    }

    /// Keeps the load up for `time`, or until the workload has nothing more to ask, and returns
    /// what was seen meanwhile. Requests stay under way in between, so call again soon.
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

    /// How long the oldest batch under way has waited for its replies.
    #[must_use]
    pub fn oldest(&self) -> Option<Duration> {
        let under_way = self.users.iter().filter(|user| user.answered < user.keys.len());
        under_way.map(|user| user.sent_at.elapsed()).max()
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

    /// The same, to be told something.
    pub const fn workload_mut(&mut self) -> &mut W {
        &mut self.workload
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
            self.beside = self.workload.beside()?;
            let after = Instant::now();
            let worked = sent || events || read || self.beside == Beside::Worked;
            // A turn that spins in vain takes long only where something else has the core.
            let is_own = worked || self.waiting == Waiting::Spin;
            self.pause = (is_own && after - now > PAUSE_MIN).then_some((now, after));
            if is_own {
                self.sample.longest_turn = self.sample.longest_turn.max(after - now);
            }
            if worked {
                self.sample.busy += after - now;
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
        let spins = self.waiting == Waiting::Spin || self.beside == Beside::Worked;
        let patience = if spins || !self.unread.is_empty() {
            Duration::ZERO
        } else {
            let due = self.waiting_for_time.peek().map(|Reverse((due, _))| *due);
            let until_due = due.map_or(left, |due| due.saturating_duration_since(Instant::now()));
            let longest = if self.beside == Beside::Waits { BESIDE_MAX } else { PATIENCE_MAX };
            let sleep = until_due.min(left).min(longest);
            if self.under_way == 0 {
                // No reply can come. A paced user's time is told in microseconds, which a sleeping
                // poll cannot.
                std::thread::sleep(sleep.saturating_sub(WAKES_LATE));
                Duration::ZERO
            } else {
                // Rounded down to the resolution of a sleeping poll; the rest of the time is spent
                // polling.
                Duration::from_millis(sleep.as_millis() as u64)
            }
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

    fn unanswered(&self) -> usize {
        self.connections.iter().map(|connection| connection.owed).sum()
    }
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
