//! Commands on a connection of their own.
//!
//! Each call opens a connection as its user and closes it at the end, so that nothing is left of
//! `SELECT`, `MULTI` or `WATCH`, and a call that is given up leaves no wait behind.

use super::wire;
use crate::access::Peer;
use crate::door::Door;
use ladon_identity::User;
use ladon_resp::client::{DecodeError, DecodeLimits, Decoder, Value, write_request};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// Bytes of all replies of a call.
pub(super) const REPLY_BYTES_MAX: usize = 2 << 20;

/// How long a call may take; less than its HTTP connection may.
const TIME_MAX: Duration = Duration::from_secs(8);

/// Commands of a call.
pub(super) const COMMANDS_MAX: usize = 1000;

/// Commands with the server at a time: more long replies need not wait there than are read next.
const AT_ONCE_MAX: usize = 4;

/// Elements of one array in a reply.
const ELEMENTS_MAX: usize = 1 << 16;

/// Bytes read at a time.
const READ_BYTES: usize = 16 << 10;

/// The name of the console's connections in `CLIENT LIST`.
const NAME: &str = "ladon-console";

/// What changes whose connection it is, or what it speaks, or turns it into a stream.
const REFUSED: [&str; 11] = [
    "auth",
    "hello",
    "monitor",
    "psubscribe",
    "psync",
    "quit",
    "replconf",
    "reset",
    "ssubscribe",
    "subscribe",
    "sync",
];

/// Why there are not all replies.
#[derive(Debug, Error)]
pub(super) enum CallError {
    #[error("no connection to the server: {0}")]
    Open(io::Error),
    #[error("the server has closed the connection")]
    Closed,
    #[error(
        "no answer within {} seconds; the command was given up, which does not undo it",
        TIME_MAX.as_secs()
    )]
    TooLate,
    #[error("the reply is longer than {} MiB: ask for a part of it", REPLY_BYTES_MAX >> 20)]
    TooLong,
    #[error("the reply cannot be read: {0}")]
    Reply(#[from] DecodeError),
}

/// Why a command is not for the console.
pub(super) fn refusal(command: &[Vec<u8>]) -> Option<String> {
    let name = String::from_utf8_lossy(command.first()?).to_ascii_lowercase();
    let second = command.get(1).map(|word| word.to_ascii_lowercase());
    let is_silence = name == "client" && second.is_some_and(|word| word == b"reply");
    let instead = match name.as_str() {
        "subscribe" | "psubscribe" | "ssubscribe" => "the page Pub/Sub does that",
        "auth" | "hello" | "reset" => "log out and in again to be another user",
        name if is_silence || REFUSED.contains(&name) => "use another client for it",
        _ => return None,
    };
    Some(format!("ERR the console does not run {}: {instead}", name.to_uppercase()))
}

/// A connection to the server.
pub(super) struct Connection {
    stream: UnixStream,
    decoder: Decoder,
    input: Vec<u8>,
    /// Bytes that may still be received.
    left: usize,
}

impl Connection {
    /// Opens one, with a name.
    pub(super) async fn open(
        door: &dyn Door,
        peer: &Peer,
        user: Option<Arc<User>>,
        hello: &[&[u8]],
    ) -> Result<(Connection, Value), CallError> {
        let stream = door.open(peer, user).and_then(UnixStream::from_std);
        let stream = stream.map_err(CallError::Open)?;
        let limits = DecodeLimits {
            count_max: ELEMENTS_MAX,
            bulk_bytes_max: REPLY_BYTES_MAX,
            ..DecodeLimits::default()
        };
        let (decoder, input) = (Decoder::new(limits), Vec::new());
        let mut connection = Connection { stream, decoder, input, left: REPLY_BYTES_MAX };
        let mut request = Vec::new();
        let words: [&[u8]; 2] = [b"HELLO", b"3"];
        let name: [&[u8]; 2] = [b"SETNAME", NAME.as_bytes()];
        write_request(&mut request, &[&words, hello, &name].concat());
        let mut greeting = None;
        let greeted = connection.exchange(&request, 1, |value| greeting = Some(value));
        // A long script may keep the thread.
        timeout(TIME_MAX, greeted).await.unwrap_or(Err(CallError::TooLate))?;
        Ok((connection, greeting.ok_or(CallError::Closed)?))
    }

    /// Sends bytes, and passes on as many replies. What no request asked for is left out.
    pub(super) async fn exchange(
        &mut self,
        request: &[u8],
        replies: usize,
        mut each: impl FnMut(Value),
    ) -> Result<(), CallError> {
        let (mut unsent, mut missing) = (request, replies);
        while missing > 0 {
            let both = Interest::READABLE | Interest::WRITABLE;
            let wanted = if unsent.is_empty() { Interest::READABLE } else { both };
            let ready = self.stream.ready(wanted).await.map_err(|_| CallError::Closed)?;
            if ready.is_writable() && !unsent.is_empty() {
                match self.stream.try_write(unsent) {
                    Ok(count) => unsent = &unsent[count..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return Err(CallError::Closed),
                }
            }
            if ready.is_readable() || ready.is_read_closed() {
                self.receive()?;
            }
            while missing > 0
                && let Some(value) = self.decode()?
            {
                if !matches!(value, Value::Push(_)) {
                    each(value);
                    missing -= 1;
                }
            }
        }
        Ok(())
    }

    /// Sends bytes.
    pub(super) async fn send(&mut self, mut request: &[u8]) -> Result<(), CallError> {
        while !request.is_empty() {
            self.stream.writable().await.map_err(|_| CallError::Closed)?;
            match self.stream.try_write(request) {
                Ok(count) => request = &request[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(CallError::Closed),
            }
        }
        Ok(())
    }

    /// The next value, whatever it is; the bound on received bytes begins again.
    pub(super) async fn next(&mut self) -> Result<Value, CallError> {
        loop {
            if let Some(value) = self.decode()? {
                self.left = REPLY_BYTES_MAX;
                return Ok(value);
            }
            self.stream.readable().await.map_err(|_| CallError::Closed)?;
            self.receive()?;
        }
    }

    fn receive(&mut self) -> Result<(), CallError> {
        let length = self.input.len();
        self.input.resize(length + READ_BYTES, 0);
        let read = self.stream.try_read(&mut self.input[length..]);
        self.input.truncate(length + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) => Err(CallError::Closed),
            Ok(count) => {
                self.left = self.left.checked_sub(count).ok_or(CallError::TooLong)?;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(_) => Err(CallError::Closed),
        }
    }

    fn decode(&mut self) -> Result<Option<Value>, CallError> {
        let decoded = self.decoder.decode(&self.input).map_err(|error| match error {
            DecodeError::TooBig(_) => CallError::TooLong,
            error => CallError::Reply(error),
        })?;
        self.input.drain(..decoded.consumed);
        Ok(decoded.value)
    }
}

/// Runs commands one after the other. The replies are JSON, separated by commas; `Err` beside them
/// says why there are no more.
pub(super) async fn call(
    door: &dyn Door,
    peer: &Peer,
    user: Arc<User>,
    database: u32,
    commands: &[Vec<Vec<u8>>],
) -> (Vec<u8>, Result<(), CallError>) {
    let mut replies = Vec::new();
    let mut add = |value: &Value| {
        if !replies.is_empty() {
            replies.push(b',');
        }
        wire::write(&mut replies, value);
    };
    let run = async {
        let (mut connection, greeting) = Connection::open(door, peer, Some(user), &[]).await?;
        if greeting.is_error() {
            // Such as too many clients.
            commands.iter().for_each(|_| add(&greeting));
            return Ok(());
        }
        if database != 0 {
            let mut request = Vec::new();
            write_request(&mut request, &[b"SELECT", database.to_string().as_bytes()]);
            let mut selected = None;
            connection.exchange(&request, 1, |value| selected = Some(value)).await?;
            if let Some(error) = selected.filter(Value::is_error) {
                commands.iter().for_each(|_| add(&error));
                return Ok(());
            }
        }
        for some in
            commands.chunk_by(|one, other| refusal(one).is_none() && refusal(other).is_none())
        {
            if let Some(refusal) = some.first().and_then(|command| refusal(command)) {
                add(&Value::Error(refusal.into_bytes()));
                continue;
            }
            for some in some.chunks(AT_ONCE_MAX) {
                let mut request = Vec::new();
                some.iter().for_each(|command| write_request(&mut request, command));
                connection.exchange(&request, some.len(), &mut add_by_value(&mut add)).await?;
            }
        }
        Ok(())
    };
    let result = timeout(TIME_MAX, run).await;
    (replies, result.unwrap_or(Err(CallError::TooLate)))
}

fn add_by_value(add: &mut impl FnMut(&Value)) -> impl FnMut(Value) {
    |value| add(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_the_connection_is_refused() {
        let words = |line: &str| -> Vec<Vec<u8>> {
            line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
        };
        for name in REFUSED {
            assert!(refusal(&words(name)).is_some(), "{name}");
        }
        assert!(refusal(&words("Client Reply off")).is_some());
        for line in ["GET reply", "client list", "CLIENT", "multi", "monitors"] {
            assert!(refusal(&words(line)).is_none(), "{line}");
        }
    }
}
