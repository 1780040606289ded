//! A blocking client of any dialect, for what happens beside a load: one connection, some requests
//! at a time, every answer judged by its caller.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::dialects::{Dialect, Framed};
use crate::operation::{Answer, Operation};

/// See the module.
pub struct Plain {
    dialect: Box<dyn Dialect>,
    stream: TcpStream,
    received: Vec<u8>,
    /// Bytes of `received` that were answered.
    used: usize,
}

/// Longer than any server's pause.
const PATIENCE: Duration = Duration::from_secs(60);

impl Plain {
    /// Connects and sends the dialect's first message.
    ///
    /// # Errors
    /// Those of the socket; `InvalidData` and `PermissionDenied` with the server's message.
    pub fn connect(address: SocketAddr, mut dialect: Box<dyn Dialect>) -> io::Result<Self> {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut greeting = vec![0; dialect.greeting_bytes()];
        stream.read_exact(&mut greeting)?;
        let mut out = Vec::new();
        let replies = dialect.hello(&greeting, &mut out).map_err(invalid)?;
        stream.write_all(&out)?;
        let mut client = Self { dialect, stream, received: Vec::new(), used: 0 };
        for number in 0..replies {
            let (frame, _) = client.frame(None)?;
            let checked = client.dialect.check_hello(number, &frame);
            checked.map_err(|refused| {
                io::Error::new(io::ErrorKind::PermissionDenied, refused.to_string())
            })?;
        }
        Ok(client)
    }

    /// Sends all requests together; their answers, in the order of the requests.
    ///
    /// # Errors
    /// Errors of the socket; `InvalidData` when a reply cannot be read; `Other` with the server's
    /// refusal.
    pub fn ask(&mut self, operations: &[Operation]) -> io::Result<Vec<Answer>> {
        let mut out = Vec::new();
        for (tag, operation) in operations.iter().enumerate() {
            self.dialect.encode(tag as u64, operation, &mut out);
        }
        self.stream.write_all(&out)?;
        let mut answers = vec![None; operations.len()];
        for next in 0..operations.len() {
            let (frame, tag) = self.frame(Some(&operations[next]))?;
            let which = tag.map_or(Some(next), |tag| usize::try_from(tag).ok());
            let which = which.filter(|which| matches!(answers.get(*which), Some(None)));
            let which = which.ok_or_else(|| invalid("a reply to no request"))?;
            let answer = self.dialect.answer(&operations[which], &frame);
            answers[which] = Some(answer.map_err(|refused| io::Error::other(refused.to_string()))?);
        }
        Ok(answers.into_iter().flatten().collect())
    }

    fn frame(&mut self, expecting: Option<&Operation>) -> io::Result<(Vec<u8>, Option<u64>)> {
        loop {
            let rest = &self.received[self.used..];
            if !rest.is_empty() {
                let framed = self.dialect.frame(expecting, rest).map_err(invalid)?;
                if let Framed::Frame { length, tag } = framed {
                    let frame = rest[..length].to_vec();
                    self.used += length;
                    if self.used == self.received.len() {
                        self.received.clear();
                        self.used = 0;
                    }
                    return Ok((frame, tag));
                }
            }
            let mut piece = [0; 64 * 1024];
            let read = self.stream.read(&mut piece)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.received.extend_from_slice(&piece[..read]);
        }
    }
}

fn invalid(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
