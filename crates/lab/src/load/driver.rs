//! Moves batches and replies between a workload and a server over many connections, on one thread.
//!
//! Sockets are non-blocking and edge-triggered (mio). While a run's core is its own, the thread
//! never sleeps: a sleeping client would make each reply's send a wake-up as well, which the kernel
//! would charge to the server.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::sample::Sample;
use super::workload::{Check, Workload};

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
        "wrong answer on connection {connection} about key {key}: expected `{expected}`, got `{got}`"
    )]
    Wrong {
        /// Number of the connection, from 0.
        connection: usize,
        /// Number of the key, from 0.
        key: u32,
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
    /// The socket or the poll failed.
    #[error("load generator: {0}")]
    Io(#[from] io::Error),
}

struct Connection {
    stream: TcpStream,
    /// Requests of the batch under way, in order, and how many of them are answered.
    keys: Vec<u32>,
    answered: usize,
    sent_at: Instant,
    received: Vec<u8>,
    filled: usize,
    /// What the socket did not take at once.
    unsent: Vec<u8>,
    pace: Option<Pace>,
}

/// Fixed times for a connection's batches.
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
    waiting: Waiting,
    /// Whether answered connections get a next batch.
    sending: bool,
    started: bool,
    under_way: usize,
    /// Paced connections that wait for their time, the earliest first.
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

impl<W: Workload> Driver<W> {
    /// Connects `clients` connections to `address`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`LoadError::Io`] when connecting fails.
    pub fn connect(
        address: SocketAddr,
        clients: usize,
        waiting: Waiting,
        workload: W,
    ) -> Result<Self, LoadError> {
        let poll = Poll::new()?;
        // One byte more than the right answers take shows that there was one too many.
        let room = workload.reply_bytes_max() + 1;
        let mut connections = Vec::with_capacity(clients);
        for number in 0..clients {
            let stream = std::net::TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(&mut stream, Token(number), interest)?;
            connections.push(Connection {
                stream,
                keys: Vec::new(),
                answered: 0,
                sent_at: Instant::now(),
                received: vec![0; room],
                filled: 0,
                unsent: Vec::new(),
                pace: None,
            });
        }
        Ok(Self {
            workload,
            poll,
            events: Events::with_capacity(clients.clamp(16, 1024)),
            connections,
            waiting,
            sending: true,
            started: false,
            under_way: 0,
            waiting_for_time: BinaryHeap::new(),
            unread: VecDeque::new(),
            last_reply: Instant::now(),
            sample: Sample::empty()?,
        })
    }

    /// Makes connection `number` send a batch every `interval`, the first one `offset` after now,
    /// instead of whenever the last one is answered. Times that go by while it waits for a reply are
    /// made up for, and latency counts from the moment at which a batch was **due**: a slow server
    /// cannot hide its pauses by slowing the client down. Only before the first [`Self::run`].
    pub fn pace(&mut self, number: usize, interval: Duration, offset: Duration) {
        let due = Instant::now() + offset;
        self.connections[number].pace = Some(Pace { interval, due, catches_up: true });
    }

    /// The same for a connection that looks for the longest wait: times that go by while it waits are
    /// left out, so that a reply that is always late does not add up to a wait without end.
    pub fn probe(&mut self, number: usize, interval: Duration) {
        self.connections[number].pace =
            Some(Pace { interval, due: Instant::now(), catches_up: false });
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
            for number in 0..self.connections.len() {
                self.send_next(number, Instant::now())?;
            }
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
        self.turn_until(began, began + STALL * 2, &AtomicBool::new(true))
    }

    /// Runs until the workload has nothing more to ask and all is answered.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_to_end(&mut self) -> Result<Sample, LoadError> {
        self.run(Duration::from_secs(24 * 3600))
    }

    /// How long ago the earliest batch was due that a connection of [`Self::pace`] has not sent.
    #[must_use]
    pub fn behind(&self) -> Duration {
        let now = Instant::now();
        let paces = self.connections.iter().filter_map(|connection| connection.pace);
        let paces = paces.filter(|pace| pace.catches_up);
        paces.map(|pace| now.saturating_duration_since(pace.due)).max().unwrap_or_default()
    }

    /// What to ask and what was asked.
    pub fn workload(&self) -> &W {
        &self.workload
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
            let after = Instant::now();
            if sent || events || read {
                self.sample.busy += after - now;
                self.sample.longest_turn = self.sample.longest_turn.max(after - now);
            } else if self.under_way > 0 && after - self.last_reply > STALL {
                return Err(LoadError::Stalled(STALL, self.unanswered()));
            }
            now = after;
        }
        let mut sample = std::mem::replace(&mut self.sample, Sample::empty()?);
        sample.elapsed = now - began;
        Ok(sample)
    }

    /// Waits for events and handles them; says whether there were any.
    fn poll_once(&mut self, left: Duration) -> Result<bool, LoadError> {
        // A paced connection's time is told in microseconds, which a sleeping poll cannot.
        let sleep = self.waiting == Waiting::Sleep
            && self.waiting_for_time.is_empty()
            && self.unread.is_empty();
        let patience = if sleep { left.min(PATIENCE_MAX) } else { Duration::ZERO };
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

    /// Sends the batches of paced connections whose time has come.
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
        if writable && !self.connections[number].unsent.is_empty() {
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

    /// Reads what is there, judges it, and sends the next batch once the last one is answered.
    fn receive(&mut self, number: usize) -> Result<(), LoadError> {
        for _ in 0..READS_MAX {
            let connection = &mut self.connections[number];
            if connection.answered == connection.keys.len() {
                return Ok(()); // nothing is owed; an end of the stream shows at the next read
            }
            let read = match connection.stream.read(&mut connection.received[connection.filled..]) {
                Ok(0) => return Err(LoadError::Closed(number)),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            connection.filled += read;
            let now = Instant::now();
            self.judge(number, now)?;
            if self.connections[number].answered == self.connections[number].keys.len() {
                self.under_way -= 1;
                self.send_next(number, now)?;
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
        let connection = &mut self.connections[number];
        let mut at = 0;
        let before = connection.answered;
        while connection.answered < connection.keys.len() {
            let key = connection.keys[connection.answered];
            let bytes = &connection.received[at..connection.filled];
            match self.workload.check(number, key, bytes) {
                Check::Right(length) => at += length,
                Check::Incomplete => break,
                Check::Wrong => return Err(self.wrong(number, key, at)),
            }
            connection.answered += 1;
        }
        let done = connection.answered == connection.keys.len();
        if done && at < connection.filled {
            return Err(LoadError::Wrong {
                connection: number,
                key: connection.keys.last().copied().unwrap_or(0),
                expected: "nothing after the last reply".to_owned(),
                got: escaped(&connection.received[at..connection.filled]),
            });
        }
        connection.received.copy_within(at..connection.filled, 0);
        connection.filled -= at;
        let replies = (connection.answered - before) as u64;
        let latency = u64::try_from((now - connection.sent_at).as_nanos()).unwrap_or(u64::MAX);
        let lane = self.workload.lane(number);
        self.sample.latency_ns[lane].saturating_record_n(latency, replies);
        self.sample.replies += replies;
        self.last_reply = now;
        Ok(())
    }

    /// Sends the next batch now or, on a paced connection, when it is due: at once if that is past.
    fn send_next(&mut self, number: usize, now: Instant) -> Result<(), LoadError> {
        if !self.sending {
            return Ok(());
        }
        let Some(pace) = &mut self.connections[number].pace else {
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
        let connection = &mut self.connections[number];
        connection.keys.clear();
        connection.answered = 0;
        let bytes = self.workload.batch(number, &mut connection.keys);
        if bytes.is_empty() {
            return Ok(());
        }
        self.under_way += 1;
        connection.sent_at = since;
        let written = match connection.stream.write(bytes) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error.into()),
        };
        if written < bytes.len() {
            connection.unsent.extend_from_slice(&bytes[written..]);
            self.send_rest(number)?;
        }
        Ok(())
    }

    fn send_rest(&mut self, number: usize) -> Result<(), LoadError> {
        let connection = &mut self.connections[number];
        while !connection.unsent.is_empty() {
            match connection.stream.write(&connection.unsent) {
                Ok(written) => drop(connection.unsent.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn wrong(&self, number: usize, key: u32, at: usize) -> LoadError {
        let connection = &self.connections[number];
        LoadError::Wrong {
            connection: number,
            key,
            expected: escaped(&self.workload.right_answer(number, key)),
            got: escaped(&connection.received[at..connection.filled]),
        }
    }

    fn unanswered(&self) -> usize {
        self.connections.iter().map(|connection| connection.keys.len() - connection.answered).sum()
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
