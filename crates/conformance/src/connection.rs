//! One client connection: writes commands as they are given, reads replies one by one.

use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::reply::Reply;

/// How long a reply may take. Longer than anything that a script waits for on purpose.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long one may take on a connection that has kept us waiting before.
const TIMEOUT_AFTER_TIMEOUT: Duration = Duration::from_millis(100);

/// A connection to one of the two servers.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    input: BufReader<TcpStream>,
}

impl Connection {
    /// Connects, and says `HELLO` for protocol version 3 (2 is what a connection starts with).
    ///
    /// # Errors
    /// Whatever stops the connection; a refused `HELLO` too.
    pub fn open(address: SocketAddr, protocol: u8) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&address, REPLY_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        let input = BufReader::new(stream.try_clone()?);
        let mut connection = Connection { stream, input };
        if protocol == 3 {
            let reply = connection.call(&["hello", "3"]);
            if !matches!(reply, Reply::Map(_)) {
                return Err(io::Error::other(format!("HELLO 3 answered {}", reply.show())));
            }
        }
        Ok(connection)
    }

    /// Sends a command and reads its reply.
    pub fn call<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Reply {
        self.send(words);
        self.read()
    }

    /// Sends a command. A connection that the server has closed shows at the next read.
    pub fn send<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        let mut bytes = Vec::new();
        encode(words, &mut bytes);
        self.send_raw(&bytes);
    }

    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Reads one reply.
    pub fn read(&mut self) -> Reply {
        let reply = Reply::read(&mut self.input);
        if reply == Reply::Timeout {
            // After a failure here, the rest of the script must not wait as long again.
            let _ = self.stream.set_read_timeout(Some(TIMEOUT_AFTER_TIMEOUT));
        }
        reply
    }

    /// Whether something has come that is not read yet, the connection's end among it.
    pub fn has_more(&mut self) -> bool {
        if !self.input.buffer().is_empty() {
            return true;
        }
        let _ = self.stream.set_nonblocking(true);
        let peeked = self.stream.peek(&mut [0]);
        let _ = self.stream.set_nonblocking(false);
        !matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits for nothing: [`Reply::Silence`] if nothing comes within `limit`, else what came.
    pub fn silence(&mut self, limit: Duration) -> Reply {
        let _ = self.stream.set_read_timeout(Some(limit));
        let reply = match Reply::read(&mut self.input) {
            Reply::Timeout => Reply::Silence,
            other => other,
        };
        let _ = self.stream.set_read_timeout(Some(REPLY_TIMEOUT));
        reply
    }
}

/// Appends a command as it goes over the wire.
pub fn encode<W: AsRef<[u8]>>(words: &[W], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        let word = word.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
}
