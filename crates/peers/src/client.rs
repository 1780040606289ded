//! A connection to a running server that speaks Redis' protocol, as a client in a hurry uses it:
//! many requests at once, then their replies. Used by the tools, and by a replica.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// How a running server is reached.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// `host:port`, or `unix:PATH`.
    pub address: String,
    /// The user to log in as, if not the default one.
    pub user: Option<String>,
    /// The password, if one is needed.
    pub password: Option<String>,
    /// How TLS is spoken, if it is.
    pub tls: Option<ladon_tls::ClientOptions>,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The server cannot be reached.
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    /// TLS cannot be spoken with it.
    #[error("cannot connect: {0}")]
    Tls(#[from] ladon_tls::ConnectError),
    /// The options contradict each other.
    #[error("TLS has no place on a Unix socket")]
    TlsOnUnix,
    /// It broke, or nothing came in time.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// No server of Redis' protocol.
    #[error("it answers something that is not Redis' protocol")]
    Malformed,
    /// More than there can be.
    #[error("it answers more than {0} bytes at once")]
    TooLong(u64),
    /// Its own error.
    #[error("{0}")]
    Refused(String),
}

/// A reply of a kind that is asked for here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A status.
    Simple(String),
    /// An error.
    Error(String),
    /// A number.
    Integer(i64),
    /// A string, or none.
    Bulk(Option<Vec<u8>>),
    /// Others, in order.
    Array(Vec<Reply>),
}

trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// A connection.
pub struct Client {
    stream: BufReader<Box<dyn Stream>>,
    /// Requests that were not sent yet.
    out: Vec<u8>,
    /// Bytes that a reply may have, elements of arrays counted like bytes.
    reply_bytes_max: u64,
    /// What is left of that for the reply that is read.
    room: u64,
    socket: Option<TcpStream>,
}

/// Requests are sent together in about this many bytes.
const SEND_BYTES: usize = 64 << 10;
/// A longer line is none of Redis' protocol.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Memory is taken for so much of a string before it has come.
const RESERVED_BYTES_MAX: u64 = 1 << 20;
/// Arrays inside arrays: nothing that is asked for here has more.
const DEPTH_MAX: usize = 8;

fn connect_tcp(address: &str, patience: Option<Duration>) -> io::Result<TcpStream> {
    let Some(patience) = patience else { return TcpStream::connect(address) };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => {
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Client {
    /// Connects and logs in.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn connect(options: &ServerOptions) -> Result<Client, ClientError> {
        Client::connect_to(options, None)
    }

    /// As `connect`, for a server that may not answer: each step takes no longer than `patience`.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn connect_within(
        options: &ServerOptions,
        patience: Duration,
    ) -> Result<Client, ClientError> {
        Client::connect_to(options, Some(patience))
    }

    fn connect_to(
        options: &ServerOptions,
        patience: Option<Duration>,
    ) -> Result<Client, ClientError> {
        let mut socket = None;
        let stream: Box<dyn Stream> = match options.address.strip_prefix("unix:") {
            Some(_) if options.tls.is_some() => return Err(ClientError::TlsOnUnix),
            Some(path) => {
                Box::new(UnixStream::connect(Path::new(path)).map_err(ClientError::Connect)?)
            }
            None => {
                let stream =
                    connect_tcp(&options.address, patience).map_err(ClientError::Connect)?;
                stream.set_nodelay(true).map_err(ClientError::Connect)?;
                socket = Some(stream.try_clone().map_err(ClientError::Connect)?);
                match &options.tls {
                    None => Box::new(stream),
                    Some(tls) => {
                        let host = options.address.rsplit_once(':').map_or("", |(host, _)| host);
                        Box::new(tls.connect(host, stream)?)
                    }
                }
            }
        };
        let stream = BufReader::with_capacity(SEND_BYTES, stream);
        let (reply_bytes_max, room) = (u64::MAX, u64::MAX);
        let mut client = Client { stream, out: Vec::new(), reply_bytes_max, room, socket };
        if let Some(password) = &options.password {
            let user = options.user.as_deref().unwrap_or("default");
            let words: [&[u8]; 3] = [b"AUTH", user.as_bytes(), password.as_bytes()];
            match &options.user {
                Some(_) => client.ask(&words)?,
                None => client.ask(&[words[0], words[2]])?,
            };
        }
        Ok(client)
    }

    /// Takes no reply that is longer, from a server that nobody vouches for.
    #[must_use]
    pub fn with_reply_bytes_max(mut self, most: u64) -> Client {
        self.reply_bytes_max = most;
        self
    }

    /// The connection's socket, with which another thread may end it; none on a Unix socket.
    ///
    /// # Errors
    /// What the system says.
    pub fn socket(&self) -> io::Result<Option<TcpStream>> {
        self.socket.as_ref().map(TcpStream::try_clone).transpose()
    }

    /// Queues a request; it is sent at the latest before a reply is read.
    ///
    /// # Errors
    /// What the system says.
    pub fn send(&mut self, words: &[&[u8]]) -> io::Result<()> {
        write!(self.out, "*{}\r\n", words.len())?;
        for word in words {
            write!(self.out, "${}\r\n", word.len())?;
            if word.len() < SEND_BYTES {
                self.out.extend_from_slice(word);
            } else {
                // Not copied first: it may be the value of a key.
                self.flush()?;
                self.stream.get_mut().write_all(word)?;
            }
            self.out.extend_from_slice(b"\r\n");
        }
        if self.out.len() >= SEND_BYTES { self.flush() } else { Ok(()) }
    }

    /// Sends what is queued, for replies that are read later.
    ///
    /// # Errors
    /// What the system says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.stream.get_mut().write_all(&self.out)?;
        self.out.clear();
        self.stream.get_mut().flush()
    }

    /// The next reply.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn reply(&mut self) -> Result<Reply, ClientError> {
        self.begin_reply()?;
        self.read(0)
    }

    /// The next reply; if it is a string, its bytes are appended to `into`, and the reply has none.
    ///
    /// # Errors
    /// See [`ClientError`]. A part of the bytes may have been appended.
    pub fn reply_into(&mut self, into: &mut Vec<u8>) -> Result<Reply, ClientError> {
        self.begin_reply()?;
        let (kind, text) = self.head()?;
        match (kind, bulk_bytes(kind, &text)?) {
            (_, Some(length)) => {
                self.bulk(length, into)?;
                Ok(Reply::Bulk(Some(Vec::new())))
            }
            (kind, None) => self.read_rest(kind, text, 0),
        }
    }

    fn begin_reply(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.flush()?;
        }
        self.room = self.reply_bytes_max;
        Ok(())
    }

    /// Sends a request and reads its reply; an error is one here, too.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn ask(&mut self, words: &[&[u8]]) -> Result<Reply, ClientError> {
        self.send(words)?;
        match self.reply()? {
            Reply::Error(text) => Err(ClientError::Refused(text)),
            reply => Ok(reply),
        }
    }

    /// Counts what is read of the reply.
    fn take_room(&mut self, bytes: u64) -> Result<(), ClientError> {
        let left = self.room.checked_sub(bytes);
        self.room = left.ok_or(ClientError::TooLong(self.reply_bytes_max))?;
        Ok(())
    }

    fn read(&mut self, depth: usize) -> Result<Reply, ClientError> {
        let (kind, text) = self.head()?;
        self.read_rest(kind, text, depth)
    }

    /// A reply's first line: its kind, and the text behind that.
    fn head(&mut self) -> Result<(u8, String), ClientError> {
        let line = self.line()?;
        let (&kind, text) = line.split_first().ok_or(ClientError::Malformed)?;
        Ok((kind, String::from_utf8_lossy(text).into_owned()))
    }

    fn read_rest(&mut self, kind: u8, text: String, depth: usize) -> Result<Reply, ClientError> {
        Ok(match kind {
            b'+' => Reply::Simple(text),
            b'-' => Reply::Error(text),
            b':' => Reply::Integer(number_in(&text)?),
            b'$' => Reply::Bulk(match bulk_bytes(kind, &text)? {
                None => None,
                Some(length) => {
                    let mut bytes = Vec::new();
                    self.bulk(length, &mut bytes)?;
                    Some(bytes)
                }
            }),
            b'*' if depth < DEPTH_MAX => {
                let mut elements = Vec::new();
                for _ in 0..number_in(&text)? {
                    elements.push(self.read(depth + 1)?);
                }
                Reply::Array(elements)
            }
            _ => return Err(ClientError::Malformed),
        })
    }

    fn bulk(&mut self, length: u64, into: &mut Vec<u8>) -> Result<(), ClientError> {
        self.take_room(length)?;
        into.reserve(length.min(RESERVED_BYTES_MAX) as usize);
        let read = (&mut self.stream).take(length).read_to_end(into)?;
        let mut end = [0; 2];
        self.stream.read_exact(&mut end)?;
        let is_whole = read as u64 == length && end == *b"\r\n";
        if is_whole { Ok(()) } else { Err(ClientError::Malformed) }
    }

    fn line(&mut self) -> Result<Vec<u8>, ClientError> {
        let mut line = Vec::new();
        (&mut self.stream).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let end = line.strip_suffix(b"\r\n").map(<[u8]>::len).ok_or(ClientError::Malformed)?;
        line.truncate(end);
        self.take_room(end as u64)?;
        Ok(line)
    }
}

fn number_in(text: &str) -> Result<i64, ClientError> {
    text.parse().map_err(|_| ClientError::Malformed)
}

/// The length of a string that is there, if that is what the reply is.
fn bulk_bytes(kind: u8, text: &str) -> Result<Option<u64>, ClientError> {
    let length = if kind == b'$' { number_in(text)? } else { -1 };
    Ok(u64::try_from(length).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// A client of a server that says this, whatever it is asked, and then nothing more.
    fn client_of(said: &'static [u8]) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 14]).unwrap();
            stream.write_all(said).unwrap();
        });
        let options = ServerOptions { address, user: None, password: None, tls: None };
        let mut client = Client::connect(&options).unwrap().with_reply_bytes_max(100);
        client.send(&[b"PING"]).unwrap();
        client
    }

    #[test]
    fn a_strings_bytes_come_behind_what_is_there() {
        let mut client =
            client_of(b"$3\r\nabc\r\n$0\r\n\r\n$-1\r\n-ERR no\r\n:7\r\n*1\r\n$1\r\nz\r\n");
        let mut into = b"before:".to_vec();
        let mut next = |into: &mut Vec<u8>| client.reply_into(into).unwrap();
        assert_eq!(next(&mut into), Reply::Bulk(Some(Vec::new())));
        assert_eq!(next(&mut into), Reply::Bulk(Some(Vec::new())));
        assert_eq!(next(&mut into), Reply::Bulk(None));
        assert_eq!(next(&mut into), Reply::Error("ERR no".to_owned()));
        assert_eq!(next(&mut into), Reply::Integer(7));
        assert_eq!(next(&mut into), Reply::Array(vec![Reply::Bulk(Some(b"z".to_vec()))]));
        assert_eq!(into, b"before:abc");
    }

    #[test]
    fn a_string_that_is_too_long_or_has_no_end_is_refused() {
        let refused = |said| client_of(said).reply_into(&mut Vec::new()).unwrap_err();
        assert!(matches!(refused(b"$1000000000000\r\n"), ClientError::TooLong(100)));
        assert!(matches!(refused(b"$3\r\nabcd\r\n"), ClientError::Malformed));
        assert!(matches!(refused(b"$3\r\nab"), ClientError::Io(_)));
        assert!(matches!(refused(b"$x\r\n"), ClientError::Malformed));
    }
}
