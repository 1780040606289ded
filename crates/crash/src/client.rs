//! A blocking connection that speaks RESP and pipelines.

use ladon_resp::client::{Decoder, Value, write_request};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than any honest reply takes on a busy machine.
pub(crate) const REPLY_LIMIT: Duration = Duration::from_secs(60);

/// Small messages leave at once, and nothing waits for ever.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(REPLY_LIMIT))?;
    stream.set_write_timeout(Some(REPLY_LIMIT))
}

/// One connection.
pub struct Client {
    stream: TcpStream,
    decoder: Decoder,
    input: Vec<u8>,
    start: usize,
}

impl Client {
    /// Connects to a port of this machine.
    ///
    /// # Errors
    /// The system's.
    pub fn connect(port: u16) -> io::Result<Client> {
        Client::on(TcpStream::connect(("127.0.0.1", port))?)
    }

    /// A client on a connected socket.
    ///
    /// # Errors
    /// The system's.
    pub fn on(stream: TcpStream) -> io::Result<Client> {
        prepare(&stream)?;
        Ok(Client { stream, decoder: Decoder::default(), input: Vec::new(), start: 0 })
    }

    /// The socket itself, for bytes that are not a request.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends one request.
    ///
    /// # Errors
    /// The system's.
    pub fn request<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> io::Result<()> {
        let mut bytes = Vec::new();
        write_request(&mut bytes, arguments);
        self.send(&bytes)
    }

    /// Reads one reply.
    ///
    /// # Errors
    /// The system's; `UnexpectedEof` if the server closed the connection; `InvalidData` if the
    /// bytes are not RESP.
    pub fn reply(&mut self) -> io::Result<Value> {
        loop {
            let decoded = self.decoder.decode(&self.input[self.start..]);
            let decoded =
                decoded.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            self.start += decoded.consumed;
            if let Some(value) = decoded.value {
                return Ok(value);
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

    /// One request and its reply.
    ///
    /// # Errors
    /// As [`Client::request`] and [`Client::reply`].
    pub fn call<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> io::Result<Value> {
        self.request(arguments)?;
        self.reply()
    }

    /// Whether a reply comes within `time`; it stays to be read.
    ///
    /// # Errors
    /// As [`Client::reply`].
    pub fn has_reply_within(&mut self, time: Duration) -> io::Result<bool> {
        if self.start < self.input.len() {
            return Ok(true);
        }
        self.stream.set_read_timeout(Some(time))?;
        let mut byte = [0];
        let peeked = self.stream.peek(&mut byte);
        self.stream.set_read_timeout(Some(REPLY_LIMIT))?;
        match peeked {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(true),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
