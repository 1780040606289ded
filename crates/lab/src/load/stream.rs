//! One connection to a server: plain TCP, or TLS over it.
//!
//! Opened while it blocks (greeting, login, TLS handshake), then non-blocking for good.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mio::net::TcpStream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::driver::LoadError;
use crate::dialects::{Dialect, Framed};

/// Where a server is, and how to reach it.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its address.
    pub address: SocketAddr,
    /// For TLS: what to trust, and the name that the certificate must be for.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl Target {
    /// Without TLS.
    #[must_use]
    pub const fn plain(address: SocketAddr) -> Self {
        Self { address, tls: None }
    }
}

/// An open connection.
#[derive(Debug)]
pub struct Stream {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

/// How long a connection may take to open.
const OPENING: Duration = Duration::from_secs(10);

/// More than any greeting or reply to a login takes.
const OPENING_BYTES_MAX: usize = 64 * 1024;

impl Stream {
    /// Connects without TLS and without a word.
    ///
    /// # Errors
    /// What connecting says.
    pub fn plain(address: SocketAddr) -> io::Result<Self> {
        let socket = std::net::TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket: TcpStream::from_std(socket), tls: None })
    }

    /// A connection that somebody else opened and that is silent.
    ///
    /// # Errors
    /// What the socket says.
    pub fn opened(socket: std::net::TcpStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket: TcpStream::from_std(socket), tls: None })
    }

    /// Connects and says what `dialect` says first.
    ///
    /// # Errors
    /// [`LoadError::Io`] of the socket or TLS, [`LoadError::Opening`] when the server refuses.
    pub fn open(target: &Target, dialect: &mut dyn Dialect) -> Result<Self, LoadError> {
        let mut socket = std::net::TcpStream::connect_timeout(&target.address, OPENING)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(OPENING))?;
        socket.set_write_timeout(Some(OPENING))?;
        let mut tls = None;
        if let Some((config, name)) = &target.tls {
            let mut connection = ClientConnection::new(config.clone(), name.clone())
                .map_err(|error| LoadError::Opening(error.to_string()))?;
            while connection.is_handshaking() {
                connection.complete_io(&mut socket)?;
            }
            tls = Some(Box::new(connection));
        }
        match &mut tls {
            None => converse(&mut socket, dialect)?,
            Some(tls) => converse(&mut rustls::Stream::new(tls.as_mut(), &mut socket), dialect)?,
        }
        socket.set_nonblocking(true)?;
        Ok(Self { socket: TcpStream::from_std(socket), tls })
    }

    /// What to register with a poll.
    pub const fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// Whether bytes that were taken wait for room in the socket.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// As [`Read::read`].
    ///
    /// # Errors
    /// As there; `WouldBlock` when nothing is there yet.
    #[inline]
    pub fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read(to),
            Some(tls) => rustls::Stream::new(tls.as_mut(), &mut self.socket).read(to),
        }
    }

    /// As [`Write::write`]; of an empty slice, writes what waits.
    ///
    /// # Errors
    /// As there; `WouldBlock` when there is no room.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.write(bytes),
            Some(tls) => {
                let mut stream = rustls::Stream::new(tls.as_mut(), &mut self.socket);
                if bytes.is_empty() {
                    return stream.flush().map(|()| 0);
                }
                stream.write(bytes)
            }
        }
    }
}

/// Greeting, hello, and the replies to it.
fn converse(stream: &mut (impl Read + Write), dialect: &mut dyn Dialect) -> Result<(), LoadError> {
    let opening = |text: String| LoadError::Opening(text);
    let mut greeting = vec![0; dialect.greeting_bytes()];
    stream.read_exact(&mut greeting)?;
    let mut hello = Vec::new();
    let mut replies =
        dialect.hello(&greeting, &mut hello).map_err(|error| opening(error.to_string()))?;
    stream.write_all(&hello)?;
    stream.flush()?;
    let mut bytes = Vec::new();
    let mut number = 0;
    while replies > 0 {
        let frame = if bytes.is_empty() {
            Framed::Incomplete
        } else {
            dialect.frame(None, &bytes).map_err(|error| opening(error.to_string()))?
        };
        if let Framed::Frame { length, .. } = frame {
            dialect
                .check_hello(number, &bytes[..length])
                .map_err(|error| opening(error.to_string()))?;
            bytes.drain(..length);
            number += 1;
            replies -= 1;
            continue;
        }
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece)?;
        if read == 0 || bytes.len() > OPENING_BYTES_MAX {
            return Err(opening("the server hung up".to_owned()));
        }
        bytes.extend_from_slice(&piece[..read]);
    }
    if bytes.is_empty() { Ok(()) } else { Err(opening("more replies than requests".to_owned())) }
}
