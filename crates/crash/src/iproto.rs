//! A blocking connection that speaks IPROTO and pipelines.

use crate::client::prepare;
use ladon_iproto::auth::{Credentials, scramble};
use ladon_iproto::client::{Reply, write_request};
use ladon_iproto::greeting::{self, GREETING_BYTES};
use ladon_iproto::request::Auth;
use ladon_iproto::{Progress, Request, frame};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

/// One connection.
pub struct IprotoClient {
    stream: TcpStream,
    input: Vec<u8>,
    start: usize,
    output: Vec<u8>,
    sync: u64,
}

/// What a reply says: the tuples, or the number of the error.
pub type Answer = Result<Vec<Vec<u8>>, u32>;

fn invalid(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

impl IprotoClient {
    /// Connects to a port of this machine, and logs in as `admin`.
    ///
    /// # Errors
    /// The system's, and a server that refuses.
    pub fn connect(port: u16, password: &str) -> io::Result<IprotoClient> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        prepare(&stream)?;
        let mut greeting = [0; GREETING_BYTES];
        stream.read_exact(&mut greeting)?;
        let salt = greeting::read(&greeting).ok_or_else(|| invalid("no greeting"))?.salt;
        let (input, output) = (Vec::new(), Vec::new());
        let mut client = IprotoClient { stream, input, start: 0, output, sync: 0 };
        let mut tuple = Vec::new();
        Credentials::ChapSha1(scramble(password.as_bytes(), &salt)).write(&mut tuple);
        let auth = Request::Auth(Auth { user_name: b"admin", tuple: &tuple });
        match client.call(&auth)? {
            Ok(_) => Ok(client),
            Err(code) => Err(invalid(format!("AUTH is refused with error {code}"))),
        }
    }

    /// Adds a request to what [`IprotoClient::send`] sends. Returns its number.
    pub fn add(&mut self, stream_id: u64, request: &Request<'_>) -> u64 {
        self.sync += 1;
        write_request(&mut self.output, self.sync, stream_id, request);
        self.sync
    }

    /// Sends the requests added so far.
    ///
    /// # Errors
    /// The system's.
    pub fn send(&mut self) -> io::Result<()> {
        let sent = self.stream.write_all(&self.output);
        self.output.clear();
        sent
    }

    /// Reads one reply; the number of its request with it.
    ///
    /// # Errors
    /// The system's; `UnexpectedEof` if the server closed the connection; `InvalidData` if the
    /// bytes are no reply.
    pub fn reply(&mut self) -> io::Result<(u64, Answer)> {
        loop {
            let input = &self.input[self.start..];
            match frame::next(input, frame::PACKET_BYTES_MAX) {
                Progress::Complete { start, end } => {
                    let reply = Reply::decode(&input[start..end]).map_err(invalid)?;
                    let tuples = || reply.tuples().into_iter().map(<[u8]>::to_vec).collect();
                    let answer = reply.error_code().map_or_else(|| Ok(tuples()), Err);
                    let sync = reply.header.sync;
                    self.start += end;
                    return Ok((sync, answer));
                }
                Progress::Invalid(error) => return Err(invalid(error)),
                Progress::Incomplete { .. } => {}
            }
            self.input.drain(..self.start);
            self.start = 0;
            let used = self.input.len();
            self.input.resize(used + (64 << 10), 0);
            let read = self.stream.read(&mut self.input[used..]);
            self.input.truncate(used + read.as_ref().copied().unwrap_or(0));
            match read {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// One request outside of streams, and its reply.
    ///
    /// # Errors
    /// As [`IprotoClient::send`] and [`IprotoClient::reply`].
    pub fn call(&mut self, request: &Request<'_>) -> io::Result<Answer> {
        let asked = self.add(0, request);
        self.send()?;
        let (sync, answer) = self.reply()?;
        if sync != asked {
            return Err(invalid(format!("the reply to {sync} came for {asked}")));
        }
        Ok(answer)
    }
}
