//! Messages from one publisher to many subscribers of a channel, a batch at a time.
//!
//! The next batch begins when everybody has the last one, and the publisher its replies. What is
//! measured is the time from before a batch is written until then.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mio::{Events, Interest, Poll, Token};

use super::driver::Waiting;
use super::stream::Stream;
use super::words::{array, bulk, bulks, integer};

/// What is done.
#[derive(Clone, Copy, Debug)]
pub struct FanOut {
    /// How long.
    pub time: Duration,
    /// Before anything counts.
    pub warm_up: Duration,
    /// Connections that are subscribed.
    pub subscribers: usize,
    /// Messages that are published at once.
    pub batch: usize,
    /// How the thread waits.
    pub waiting: Waiting,
}

/// What was seen.
#[derive(Clone, Debug)]
pub struct FannedOut {
    /// From before a batch was written until the last subscriber had it.
    pub batches_ns: Histogram<u64>,
    /// Messages that subscribers got.
    pub delivered: u64,
    /// How long it took.
    pub elapsed: Duration,
}

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum FanOutError {
    /// The server did something else than was asked.
    #[error("{0}")]
    Unexpected(String),
    /// Errors of the sockets.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// How long a batch may take.
const PATIENCE: Duration = Duration::from_secs(30);
const CHANNEL: &[u8] = b"channel";
/// Bytes of a message: a number, and padding.
const MESSAGE_BYTES: usize = 64;
/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;
const EVENTS_AT_ONCE: usize = 1024;

/// A connection, and how far it is in what it must get.
struct Side {
    stream: Stream,
    got: usize,
}

impl FanOut {
    /// Does it; `begin` is called when the warm-up is over.
    ///
    /// # Errors
    /// See [`FanOutError`].
    pub fn run(
        &self,
        address: SocketAddr,
        mut begin: impl FnMut(),
    ) -> Result<FannedOut, FanOutError> {
        let poll = Poll::new()?;
        let mut sides = Vec::with_capacity(self.subscribers + 1);
        for number in 0..=self.subscribers {
            let mut stream = Stream::plain(address)?;
            poll.registry().register(stream.socket(), Token(number), Interest::READABLE)?;
            sides.push(Side { stream, got: 0 });
        }
        let mut ground = Ground { poll, sides, waiting: self.waiting, bytes: vec![0; READ_BYTES] };
        let mut subscribe = Vec::new();
        bulks(&[b"SUBSCRIBE", CHANNEL], &mut subscribe);
        for side in &mut ground.sides[1..] {
            write_all(&mut side.stream, &subscribe)?;
        }
        let mut subscribed = Vec::new();
        array(3, &mut subscribed);
        bulk(b"subscribe", &mut subscribed);
        bulk(CHANNEL, &mut subscribed);
        integer(1, &mut subscribed);
        ground.exchange(&[], &[], &subscribed)?;

        let mut batches_ns =
            Histogram::new_with_bounds(100, 60_000_000_000, 3).map_err(io::Error::other)?;
        let (mut began, mut counts, mut batches, mut number) = (Instant::now(), false, 0, 0);
        let mut replies = Vec::new();
        for _ in 0..self.batch {
            integer(self.subscribers as u64, &mut replies);
        }
        loop {
            let (mut requests, mut messages) = (Vec::new(), Vec::new());
            for _ in 0..self.batch {
                let message = format!("{number:0MESSAGE_BYTES$}");
                number += 1;
                bulks(&[b"PUBLISH", CHANNEL, message.as_bytes()], &mut requests);
                bulks(&[b"message", CHANNEL, message.as_bytes()], &mut messages);
            }
            let sent = Instant::now();
            ground.exchange(&requests, &replies, &messages)?;
            if counts {
                let nanoseconds = u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX);
                batches_ns.saturating_record(nanoseconds);
                batches += 1;
                if began.elapsed() >= self.time {
                    break;
                }
            } else if began.elapsed() >= self.warm_up {
                begin();
                (counts, began) = (true, Instant::now());
            }
        }
        let delivered = batches * (self.batch * self.subscribers) as u64;
        Ok(FannedOut { batches_ns, delivered, elapsed: began.elapsed() })
    }
}

/// The publisher, side 0, and the subscribers.
struct Ground {
    poll: Poll,
    sides: Vec<Side>,
    waiting: Waiting,
    bytes: Vec<u8>,
}

impl Ground {
    /// The publisher sends `requests`, and gets exactly `replies`; everybody else gets exactly
    /// `messages`.
    fn exchange(
        &mut self,
        requests: &[u8],
        replies: &[u8],
        messages: &[u8],
    ) -> Result<(), FanOutError> {
        write_all(&mut self.sides[0].stream, requests)?;
        let mut missing = self.sides.len() - usize::from(replies.is_empty());
        let mut events = Events::with_capacity(EVENTS_AT_ONCE);
        let until = Instant::now() + PATIENCE;
        let patience = match self.waiting {
            Waiting::Spin => Duration::ZERO,
            Waiting::Sleep => PATIENCE,
        };
        while missing != 0 {
            self.poll.poll(&mut events, Some(patience))?;
            for event in &events {
                let number = event.token().0;
                let side = &mut self.sides[number];
                let right = if number == 0 { replies } else { messages };
                let had = side.got;
                side.read(right, &mut self.bytes)?;
                missing -= usize::from(had < right.len() && side.got == right.len());
            }
            if Instant::now() > until {
                let text = format!("{missing} connections did not get everything in 30 s");
                return Err(FanOutError::Unexpected(text));
            }
        }
        for side in &mut self.sides {
            side.got = 0;
        }
        Ok(())
    }
}

impl Side {
    /// Reads what is there: more of what is `right`.
    fn read(&mut self, right: &[u8], bytes: &mut [u8]) -> Result<(), FanOutError> {
        loop {
            let count = match self.stream.read(bytes) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            let wanted = right.get(self.got..self.got + count);
            if wanted != Some(&bytes[..count]) {
                let shown = |bytes: &[u8]| bytes[..bytes.len().min(200)].escape_ascii().to_string();
                return Err(FanOutError::Unexpected(format!(
                    "expected `{}`, got `{}`",
                    shown(&right[self.got.min(right.len())..]),
                    shown(&bytes[..count])
                )));
            }
            self.got += count;
        }
    }
}

fn write_all(stream: &mut Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
