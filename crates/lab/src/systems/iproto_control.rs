//! A plain blocking IPROTO client for what happens beside the load.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::dialects::Framed;
use crate::dialects::iproto::msgpack::Value;
use crate::dialects::iproto::reply::{self, GREETING_BYTES, Reply};
use crate::dialects::iproto::request::{self, Request};

/// A connection for one request at a time.
#[derive(Debug)]
pub struct IprotoControl {
    stream: TcpStream,
    salt: [u8; request::SALT_BYTES],
    sync: u64,
}

impl IprotoControl {
    /// Connects as `guest`.
    ///
    /// # Errors
    /// What connecting says; `InvalidData` when the other side is not Tarantool.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        let mut greeting = [0; GREETING_BYTES];
        stream.read_exact(&mut greeting)?;
        let salt = reply::salt(&greeting).map_err(invalid)?;
        Ok(Self { stream, salt, sync: 0 })
    }

    /// Logs in.
    ///
    /// # Errors
    /// Errors of the socket; `PermissionDenied` with the server's words.
    pub fn auth(&mut self, user: &str, password: &str) -> io::Result<()> {
        let mut out = Vec::new();
        self.sync += 1;
        request::auth(self.sync, user, password, &self.salt, &mut out);
        let frame = self.exchange(&out)?;
        Reply::parse(&frame)
            .map_err(invalid)?
            .went_well()
            .map_err(|refused| io::Error::new(io::ErrorKind::PermissionDenied, refused.to_string()))
    }

    /// Sends one request and reads the data of its reply.
    ///
    /// # Errors
    /// Errors of the socket; `InvalidData` when the bytes are no reply to it; `Other` with the
    /// server's words.
    pub fn request(&mut self, request: &Request<'_>) -> io::Result<Vec<Value>> {
        let mut out = Vec::new();
        self.sync += 1;
        request.write(self.sync, &mut out);
        let frame = self.exchange(&out)?;
        let reply = Reply::parse(&frame).map_err(invalid)?;
        if matches!(request, Request::Ping) {
            return reply.went_well().map(|()| Vec::new()).map_err(io::Error::other);
        }
        reply.values().map_err(io::Error::other)
    }

    /// Runs Lua without arguments.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn eval(&mut self, expression: &str) -> io::Result<Vec<Value>> {
        self.request(&Request::Eval { expression, arguments: &[] })
    }

    fn exchange(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.stream.write_all(request)?;
        let mut received = Vec::new();
        let mut piece = [0; 16 * 1024];
        loop {
            match reply::frame(&received).map_err(invalid)? {
                Framed::Frame { length, tag }
                    if tag == Some(self.sync) && length == received.len() =>
                {
                    return Ok(received);
                }
                Framed::Frame { .. } => return Err(invalid("a reply to another request")),
                Framed::Incomplete => {}
            }
            let read = self.stream.read(&mut piece)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            received.extend_from_slice(&piece[..read]);
        }
    }
}

fn invalid(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
