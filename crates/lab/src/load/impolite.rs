//! Impolite clients: as many requests as the sockets take, whatever the server does with them.
//!
//! ```text
//!   Requests    what is sent, how much of it, and whether replies are read     data
//!   Impolite    the connections; a turn moves one chunk of one of them
//!   Beside      an Impolite in the driver's turns, beside the users of a workload
//! ```
//!
//! One thread runs both, so that the impolite clients' cost on the load generator's core is limited
//! to a chunk per turn, and appears as the sample's longest turn. They are not users: a user waits
//! for its reply before it sends again, which is polite.

use std::io;
use std::time::Instant;

use super::driver::LoadError;
use super::stream::Stream;
use super::workload::{Beside, Check, Whose, Workload};

/// What each of the connections sends.
#[derive(Clone, Debug)]
pub struct Requests {
    /// Appends request `number`.
    pub write: fn(number: u32, to: &mut Vec<u8>),
    /// How many, of each connection: what bounds it.
    pub count: u32,
    /// The right answers, which repeat after so many.
    pub answers: Vec<u8>,
    /// How many replies `answers` has.
    pub replies: u32,
    /// How many may be unanswered, where replies are read.
    pub unanswered_max: u32,
    /// Whether replies are read and judged.
    pub reads: bool,
}

struct Connection {
    stream: Stream,
    unsent: Vec<u8>,
    sent: usize,
    written: u32,
    /// Bytes of replies that came.
    answered: u64,
    closed: bool,
}

/// See the module.
pub struct Impolite {
    requests: Requests,
    connections: Vec<Connection>,
    /// When nothing more is sent.
    until: Option<Instant>,
    /// Whose turn it is.
    next: usize,
    received: Vec<u8>,
}

/// What a turn sends at most, and reads at most: tens of microseconds of the load generator's core.
const CHUNK_BYTES: usize = 32 * 1024;
/// Connections that a turn asks in vain.
const TRIES: usize = 16;

impl Impolite {
    /// Over these connections, which are open and silent.
    #[must_use]
    pub fn over(streams: Vec<Stream>, requests: Requests) -> Self {
        let connection = |stream| Connection {
            stream,
            unsent: Vec::new(),
            sent: 0,
            written: 0,
            answered: 0,
            closed: false,
        };
        Self {
            requests,
            connections: streams.into_iter().map(connection).collect(),
            until: None,
            next: 0,
            received: vec![0; CHUNK_BYTES],
        }
    }

    /// Sends nothing more after this moment.
    pub const fn send_until(&mut self, until: Instant) {
        self.until = Some(until);
    }

    /// Whether all was sent, and answered where replies are read.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.connections.iter().all(|connection| {
            let sent = connection.written == self.requests.count && connection.is_sent();
            let answered =
                !self.requests.reads || self.replies_of(connection) == connection.written;
            connection.closed || (sent && answered)
        })
    }

    /// Requests that were answered; where replies are not read, those that were sent.
    #[must_use]
    pub fn done(&self) -> u64 {
        let of = |connection| {
            let one: &Connection = connection;
            u64::from(if self.requests.reads { self.replies_of(one) } else { one.written })
        };
        self.connections.iter().map(of).sum()
    }

    /// Connections that the server closed.
    #[must_use]
    pub fn closed(&self) -> usize {
        self.connections.iter().filter(|connection| connection.closed).count()
    }

    /// Moves one chunk of one connection.
    fn turn(&mut self) -> Result<Beside, LoadError> {
        for _ in 0..TRIES.min(self.connections.len()) {
            let number = self.next;
            self.next = (number + 1) % self.connections.len();
            let read = self.requests.reads && self.read(number)?;
            if self.write(number)? || read {
                return Ok(Beside::Worked);
            }
        }
        Ok(if self.is_finished() { Beside::Nothing } else { Beside::Waits })
    }

    fn write(&mut self, number: usize) -> Result<bool, LoadError> {
        let requests = &self.requests;
        let over = self.until.is_some_and(|until| Instant::now() >= until);
        let replies = self.replies_of(&self.connections[number]);
        let connection = &mut self.connections[number];
        if connection.closed {
            return Ok(false);
        }
        if connection.is_sent() {
            connection.unsent.clear();
            connection.sent = 0;
            let may_send = |connection: &Connection| {
                !over
                    && connection.unsent.len() < CHUNK_BYTES
                    && connection.written < requests.count
                    && (!requests.reads || connection.written - replies < requests.unanswered_max)
            };
            while may_send(connection) {
                (requests.write)(connection.written, &mut connection.unsent);
                connection.written += 1;
            }
        }
        if connection.is_sent() {
            return Ok(false);
        }
        match connection.stream.write(&connection.unsent[connection.sent..]) {
            Ok(written) => {
                connection.sent += written;
                Ok(written > 0)
            }
            Err(error) => self.failed(number, error),
        }
    }

    fn read(&mut self, number: usize) -> Result<bool, LoadError> {
        let connection = &mut self.connections[number];
        if connection.closed {
            return Ok(false);
        }
        match connection.stream.read(&mut self.received) {
            Ok(0) => Err(LoadError::Closed(number)),
            Ok(count) => {
                self.judge(number, count)?;
                Ok(true)
            }
            Err(error) => self.failed(number, error),
        }
    }

    /// The first `count` bytes received must be the next of the answers.
    fn judge(&mut self, number: usize, count: usize) -> Result<(), LoadError> {
        let connection = &mut self.connections[number];
        let (answers, bytes) = (&self.requests.answers, &self.received[..count]);
        let mut at = (connection.answered % answers.len() as u64) as usize;
        let mut left = bytes;
        while !left.is_empty() {
            let piece = left.len().min(answers.len() - at);
            if left[..piece] != answers[at..at + piece] {
                return Err(LoadError::Wrong {
                    connection: number,
                    about: "an impolite client's request".to_owned(),
                    expected: answers[at..].escape_ascii().to_string(),
                    got: left[..left.len().min(160)].escape_ascii().to_string(),
                });
            }
            left = &left[piece..];
            at = (at + piece) % answers.len();
        }
        connection.answered += count as u64;
        Ok(())
    }

    /// A server may close a client that does not read, but it must serve one that reads.
    fn failed(&mut self, number: usize, error: io::Error) -> Result<bool, LoadError> {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, Interrupted, WouldBlock};
        match error.kind() {
            WouldBlock | Interrupted => Ok(false),
            BrokenPipe | ConnectionReset if !self.requests.reads => {
                self.connections[number].closed = true;
                Ok(false)
            }
            BrokenPipe | ConnectionReset => Err(LoadError::Closed(number)),
            _ => Err(error.into()),
        }
    }

    /// Whole replies that came.
    fn replies_of(&self, connection: &Connection) -> u32 {
        let Requests { answers, replies, .. } = &self.requests;
        if answers.is_empty() {
            return 0;
        }
        let (all, rest) = (
            connection.answered / answers.len() as u64,
            connection.answered % answers.len() as u64,
        );
        let ends = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count() as u32;
        all as u32 * replies + ends(&answers[..rest as usize])
    }
}

impl Connection {
    fn is_sent(&self) -> bool {
        self.sent == self.unsent.len()
    }
}

/// A workload, and impolite clients beside it.
pub struct WithImpolite<W> {
    workload: W,
    /// The clients; none where nothing else goes on.
    pub impolite: Option<Impolite>,
}

impl<W> WithImpolite<W> {
    /// Both together.
    pub const fn new(workload: W, impolite: Option<Impolite>) -> Self {
        Self { workload, impolite }
    }
}

impl<W: Workload> Workload for WithImpolite<W> {
    fn batch(&mut self, user: usize, keys: &mut Vec<u32>) -> &[u8] {
        self.workload.batch(user, keys)
    }

    fn whose(&self, bytes: &[u8]) -> Whose {
        self.workload.whose(bytes)
    }

    fn check(&mut self, user: usize, key: u32, bytes: &[u8]) -> Check {
        self.workload.check(user, key, bytes)
    }

    fn right_answer(&self, user: usize, key: u32) -> Vec<u8> {
        self.workload.right_answer(user, key)
    }

    fn about(&self, user: usize, key: u32) -> String {
        self.workload.about(user, key)
    }

    fn lane(&self, user: usize) -> usize {
        self.workload.lane(user)
    }

    fn reply_bytes_max(&self) -> usize {
        self.workload.reply_bytes_max()
    }

    fn beside(&mut self) -> Result<Beside, LoadError> {
        self.impolite.as_mut().map_or(Ok(Beside::Nothing), Impolite::turn)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener};
    use std::time::Duration;

    use super::*;

    fn requests(reads: bool) -> Requests {
        Requests {
            write: |number, to| to.extend_from_slice(if number % 2 == 0 { b"one" } else { b"two" }),
            count: 1001,
            answers: b":1\r\n:22\r\n".to_vec(),
            replies: 2,
            unanswered_max: 7,
            reads,
        }
    }

    /// One connection, whose other end is `serve`'s.
    fn over(
        serve: impl FnOnce(std::net::TcpStream) + Send + 'static,
        requests: Requests,
    ) -> (Impolite, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let stream = Stream::plain(listener.local_addr().unwrap()).unwrap();
        let served = std::thread::spawn(move || serve(listener.accept().unwrap().0));
        (Impolite::over(vec![stream], requests), served)
    }

    fn turns_until(
        impolite: &mut Impolite,
        over: impl Fn(&Impolite) -> bool,
    ) -> Result<(), LoadError> {
        let until = Instant::now() + Duration::from_secs(20);
        while !over(impolite) && Instant::now() < until {
            impolite.turn()?;
        }
        assert!(over(impolite));
        Ok(())
    }

    #[test]
    fn all_is_sent_and_answered_and_no_more_is_unanswered_than_may_be() {
        let serve = |mut socket: std::net::TcpStream| {
            let mut request = [0; 3];
            for number in 0..1001 {
                socket.read_exact(&mut request).unwrap();
                assert_eq!(&request, if number % 2 == 0 { b"one" } else { b"two" });
                if number == 6 {
                    socket.set_nonblocking(true).unwrap();
                    std::thread::sleep(Duration::from_millis(50));
                    assert!(socket.read(&mut [0]).is_err(), "an eighth unanswered request");
                    socket.set_nonblocking(false).unwrap();
                    for number in 0..7 {
                        let answer: &[u8] = if number % 2 == 0 { b":1\r\n" } else { b":22\r\n" };
                        socket.write_all(answer).unwrap();
                    }
                } else if number > 6 {
                    let answer: &[u8] = if number % 2 == 0 { b":1\r\n" } else { b":22\r\n" };
                    socket.write_all(answer).unwrap();
                }
            }
        };
        let (mut impolite, served) = over(serve, requests(true));
        turns_until(&mut impolite, Impolite::is_finished).unwrap();
        assert_eq!((impolite.done(), impolite.closed()), (1001, 0));
        served.join().unwrap();
    }

    #[test]
    fn a_wrong_answer_and_a_closed_reader_are_errors() {
        let wrong = |mut socket: std::net::TcpStream| socket.write_all(b":1\r\n:2\r\n").unwrap();
        let (mut impolite, served) = over(wrong, requests(true));
        let error = turns_until(&mut impolite, Impolite::is_finished).unwrap_err();
        assert!(matches!(error, LoadError::Wrong { .. }), "{error}");
        served.join().unwrap();
        let (mut impolite, served) = over(drop, requests(true));
        let error = turns_until(&mut impolite, Impolite::is_finished).unwrap_err();
        assert!(matches!(error, LoadError::Closed(0)), "{error}");
        served.join().unwrap();
    }

    #[test]
    fn who_does_not_read_may_be_closed() {
        let many = Requests { count: u32::MAX, ..requests(false) };
        let (mut impolite, served) = over(drop, many);
        turns_until(&mut impolite, |impolite| impolite.closed() == 1).unwrap();
        assert!(impolite.is_finished() && impolite.done() > 0);
        served.join().unwrap();
    }

    #[test]
    fn nothing_is_sent_after_the_end() {
        let (mut impolite, served) =
            over(|mut socket| drop(socket.read_to_end(&mut Vec::new())), requests(false));
        impolite.send_until(Instant::now());
        assert_eq!(impolite.turn().unwrap(), Beside::Waits);
        assert_eq!(impolite.done(), 0);
        drop(impolite);
        served.join().unwrap();
    }
}
