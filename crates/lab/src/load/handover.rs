//! From a push to the client that waits for it in BLPOP, one step at a time, over two connections.
//!
//! The consumer asks, the server is left alone for a while, so that the consumer waits and the
//! server sleeps, then the producer pushes. What is measured is the time from before the push is
//! written until the element is read, and until the push's own reply is.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::driver::Waiting;
use super::io_threads::IoThreads;
use super::words::bulks;
use crate::systems::control::Control;

/// What is done.
#[derive(Clone, Copy, Debug)]
pub struct Handovers {
    /// How long.
    pub time: Duration,
    /// Between the consumer's request and the push.
    pub pause: Duration,
    /// Bytes of each element.
    pub element_bytes: usize,
    /// IO threads of the server among which the two connections are to be on different ones; 1
    /// where it does not tell which connection is where.
    pub threads: usize,
    /// How the thread waits.
    pub waiting: Waiting,
}

/// What was seen, nanoseconds.
#[derive(Clone, Debug)]
pub struct HandedOver {
    /// Until the consumer had the element.
    pub handover_ns: Histogram<u64>,
    /// Until the producer had its reply.
    pub push_ns: Histogram<u64>,
    /// How long it took.
    pub elapsed: Duration,
}

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// The server did something else than was asked.
    #[error("{0}")]
    Unexpected(String),
    /// The push came before the consumer waited.
    #[error("has not made the consumer wait yet: a longer pause is needed")]
    NotWaiting,
    /// Errors of the sockets.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// The list.
const KEY: &str = "queue";
/// An element is a number of this many digits, and padding.
pub const ELEMENT_BYTES_MIN: usize = 10;
/// Handovers before anything counts.
const WARM_UP: u64 = 50;
/// Every so often the server is asked whether the consumer waits already when the push comes.
const ASKED_EVERY: u64 = 256;

impl Handovers {
    /// Does it; `begin` is called when the warm-up is over.
    ///
    /// # Errors
    /// See [`HandoverError`].
    pub fn run(
        &self,
        address: SocketAddr,
        mut begin: impl FnMut(),
    ) -> Result<HandedOver, HandoverError> {
        let mut control = Control::connect(address)?;
        let (mut consumer, mut producer) = self.pair(address)?;
        let mut handover_ns = histogram()?;
        let mut push_ns = histogram()?;
        let ask = request(&["BLPOP", KEY, "0"]);
        let mut began = Instant::now();
        let mut number: u64 = 0;
        while number <= WARM_UP || began.elapsed() < self.time {
            if number == WARM_UP {
                begin();
                began = Instant::now();
            }
            let element = format!("{number:0width$}", width = self.element_bytes);
            let right = request(&[KEY, &element]);
            consumer.stream.write_all(&ask)?;
            wait(self.pause, self.waiting);
            if number.is_multiple_of(ASKED_EVERY)
                && control.info("clients", "blocked_clients")?.trim() != "1"
            {
                return Err(HandoverError::NotWaiting);
            }
            let command = request(&["LPUSH", KEY, &element]);
            let sent = Instant::now();
            producer.stream.write_all(&command)?;
            consumer.expect(&right, "the element")?;
            let handed_over = sent.elapsed();
            producer.expect(b":1\r\n", "the push")?;
            let answered = sent.elapsed();
            if number >= WARM_UP {
                handover_ns.saturating_record(nanoseconds(handed_over));
                push_ns.saturating_record(nanoseconds(answered));
            }
            number += 1;
        }
        Ok(HandedOver { handover_ns, push_ns, elapsed: began.elapsed() })
    }

    /// The two sides, on different IO threads.
    fn pair(&self, address: SocketAddr) -> Result<(Peer, Peer), HandoverError> {
        let mut threads = IoThreads::of(address, self.threads)?;
        let connect = || Peer::connect(address, self.waiting);
        let (consumers_thread, consumer) = threads.place(connect)?;
        let producer = threads.place_beside(consumers_thread, connect)?;
        Ok((consumer, producer))
    }
}

/// One side.
struct Peer {
    stream: TcpStream,
    waiting: Waiting,
    received: Vec<u8>,
}

impl Peer {
    fn connect(address: SocketAddr, waiting: Waiting) -> Result<Peer, HandoverError> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nonblocking(false)?;
        let mut peer = Peer { stream, waiting, received: Vec::new() };
        // It has its thread before the next one comes.
        peer.stream.write_all(&request(&["PING"]))?;
        peer.expect(b"+PONG\r\n", "PING")?;
        Ok(peer)
    }

    /// Reads exactly what is expected.
    fn expect(&mut self, right: &[u8], what: &str) -> Result<(), HandoverError> {
        self.received.resize(right.len(), 0);
        let spins = self.waiting == Waiting::Spin;
        if spins {
            self.stream.set_nonblocking(true)?;
        }
        let read = read_exactly(&mut self.stream, &mut self.received);
        if spins {
            self.stream.set_nonblocking(false)?;
        }
        read?;
        if self.received == right {
            return Ok(());
        }
        let (right, got) = (right.escape_ascii(), self.received.escape_ascii());
        Err(HandoverError::Unexpected(format!("{what}: expected `{right}`, got `{got}`")))
    }
}

/// Spins where the stream does not wait.
fn read_exactly(stream: &mut TcpStream, bytes: &mut [u8]) -> io::Result<()> {
    let (mut filled, until) = (0, Instant::now() + PATIENCE);
    while filled < bytes.len() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                std::hint::spin_loop();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait(pause: Duration, waiting: Waiting) {
    match waiting {
        Waiting::Sleep => std::thread::sleep(pause),
        Waiting::Spin => {
            let began = Instant::now();
            while began.elapsed() < pause {
                std::hint::spin_loop();
            }
        }
    }
}

/// A request, and also `BLPOP`'s reply.
fn request(words: &[&str]) -> Vec<u8> {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let mut bytes = Vec::new();
    bulks(&words, &mut bytes);
    bytes
}

fn histogram() -> io::Result<Histogram<u64>> {
    Histogram::new_with_bounds(100, 60_000_000_000, 3).map_err(io::Error::other)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
