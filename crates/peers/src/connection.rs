//! A connection to a server of Redis' protocol, with a limit for every step.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// What is sent together. The target has the patience's time for each of them.
const CHUNK_BYTES: usize = 64 << 10;

/// A longer line is no answer to anything that is sent here.
const LINE_BYTES_MAX: usize = 1024;

/// A connection.
pub(crate) struct Connection {
    stream: TcpStream,
    /// What was not sent yet.
    out: Vec<u8>,
    /// What was received, and how much of it was read.
    input: Vec<u8>,
    read: usize,
    pub(crate) patience: Duration,
    /// The database that is selected there, if it is known.
    pub(crate) database: Option<i64>,
}

/// The target's answer to one request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Ok,
    /// Without its leading `-`.
    Error(Vec<u8>),
}

impl Connection {
    /// Connects to the first of the host's addresses that lets it. Looking a name up takes as long
    /// as the system's resolver lets it.
    pub(crate) fn open(host: &str, port: u16, patience: Duration) -> io::Result<Connection> {
        let deadline = Instant::now() + patience;
        let mut failure = io::Error::from(ErrorKind::NotFound);
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, left(deadline)?) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    let (out, input) = (Vec::new(), Vec::new());
                    return Ok(Connection {
                        stream,
                        out,
                        input,
                        read: 0,
                        patience,
                        database: None,
                    });
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Appends a request's words to what is to be sent.
    pub(crate) fn request(&mut self, words: &[&[u8]]) -> io::Result<()> {
        self.begin_request(words.len());
        words.iter().try_for_each(|word| self.word(word))
    }

    pub(crate) fn begin_request(&mut self, words: usize) {
        self.out.extend_from_slice(format!("*{words}\r\n").as_bytes());
    }

    pub(crate) fn word(&mut self, word: &[u8]) -> io::Result<()> {
        self.begin_word(word.len() as u64);
        self.bytes(word)?;
        self.bytes(b"\r\n")
    }

    /// The word's bytes follow, and the end of a line.
    pub(crate) fn begin_word(&mut self, length: u64) {
        self.out.extend_from_slice(format!("${length}\r\n").as_bytes());
    }

    /// Sends bytes, or keeps them until there are more.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.out.len() + bytes.len() < CHUNK_BYTES {
            self.out.extend_from_slice(bytes);
            return Ok(());
        }
        self.flush()?;
        bytes.chunks(CHUNK_BYTES).try_for_each(|chunk| self.send(chunk))
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let mut out = std::mem::take(&mut self.out);
        let result = out.chunks(CHUNK_BYTES).try_for_each(|chunk| self.send(chunk));
        out.clear();
        self.out = out;
        result
    }

    fn send(&mut self, mut chunk: &[u8]) -> io::Result<()> {
        let deadline = Instant::now() + self.patience;
        while !chunk.is_empty() {
            self.stream.set_write_timeout(Some(left(deadline)?))?;
            match self.stream.write(chunk) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => chunk = &chunk[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads the answer to the next request, which must be `+OK` or an error. The patience is for
    /// all of it.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        let deadline = Instant::now() + self.patience;
        loop {
            let unread = &self.input[self.read..];
            if let Some(end) = unread.iter().position(|&byte| byte == b'\n') {
                let line = unread[..end].strip_suffix(b"\r").unwrap_or(&unread[..end]);
                let answer = match line {
                    b"+OK" => Answer::Ok,
                    [b'-', text @ ..] => Answer::Error(text.to_vec()),
                    _ => return Err(ErrorKind::InvalidData.into()),
                };
                self.read += end + 1;
                return Ok(answer);
            }
            if unread.len() >= LINE_BYTES_MAX {
                return Err(ErrorKind::InvalidData.into());
            }
            self.receive(deadline)?;
        }
    }

    /// Whether the target has said nothing that was not asked for.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.read == self.input.len() && self.out.is_empty()
    }

    fn receive(&mut self, deadline: Instant) -> io::Result<()> {
        self.input.drain(..std::mem::take(&mut self.read));
        self.stream.set_read_timeout(Some(left(deadline)?))?;
        let mut bytes = [0; LINE_BYTES_MAX];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.input.extend_from_slice(&bytes[..count]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The time until then, which is not over.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Whether the target had its time: what was asked for is not asked for again.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
}
