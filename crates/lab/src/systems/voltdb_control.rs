//! A plain blocking client of VoltDB for what happens beside the load: is the server up, how is it
//! set.
//!
//! By "VoltDB Wire Protocol, Version 1". All numbers are big-endian; a string is its length in four
//! bytes and its letters; a message is its length in four bytes and:
//!
//! ```text
//!   login      1 | hash 1 (SHA-256) | "database" | user | password's hash, 32 bytes
//!   answered   0 | code, 0 is welcome | host 4 | connection 8 | time 8 | leader 4 | build
//!   call       0 | procedure | handle 8 | parameters 2 | each: type 1 | value
//!   answered   0 | handle 8 | fields 1 | status, 1 is success | [status in words] | own status 1
//!              | [own status in words] | time 4 | tables 2 | each: length 4 | header's length 4
//!              | status 1 | columns 2 | a type 1 each | a name each | rows 4 | each: length 4 | cells
//! ```

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection for one call at a time, of nobody in particular.
pub struct VoltDbControl {
    stream: TcpStream,
}

/// More than any table that the lab asks for.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// The type of a string among parameters.
const STRING: u8 = 9;
/// Which of the fields that may be left out is there: the status in words.
const HAS_STATUS_TEXT: u8 = 1 << 5;
/// As [`HAS_STATUS_TEXT`], the procedure's own status.
const HAS_OWN_STATUS_TEXT: u8 = 1 << 7;

impl VoltDbControl {
    /// Connects and logs in.
    ///
    /// # Errors
    /// What connecting says; `PermissionDenied` when the server does not welcome anybody, which is
    /// so until it is up.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut control = Self { stream };
        let mut login = vec![1, 1];
        put_string(&mut login, "database");
        put_string(&mut login, "");
        login.extend_from_slice(&[0; 32]);
        control.send(&login)?;
        match control.receive()?.get(1) {
            Some(0) => Ok(control),
            code => {
                let text = format!("login answered {code:?}");
                Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
            }
        }
    }

    /// Calls a procedure with strings and returns the first table's rows, of which every column
    /// must hold strings.
    ///
    /// # Errors
    /// Errors of the socket; the server's words; `InvalidData` when the bytes are no answer.
    pub fn call(&mut self, procedure: &str, arguments: &[&str]) -> io::Result<Vec<Vec<String>>> {
        let mut request = vec![0];
        put_string(&mut request, procedure);
        request.extend_from_slice(&[0; 8]);
        let count = u16::try_from(arguments.len()).map_err(|_| malformed("too many"))?;
        request.extend_from_slice(&count.to_be_bytes());
        for argument in arguments {
            request.push(STRING);
            put_string(&mut request, argument);
        }
        self.send(&request)?;
        first_table(&self.receive()?)
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let length = u32::try_from(message.len()).map_err(|_| malformed("too long"))?;
        self.stream.write_all(&[&length.to_be_bytes(), message].concat())
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > MESSAGE_BYTES_MAX {
            return Err(malformed("a message too long"));
        }
        let mut message = vec![0; length];
        self.stream.read_exact(&mut message)?;
        Ok(message)
    }
}

fn put_string(to: &mut Vec<u8>, text: &str) {
    to.extend_from_slice(&(text.len() as u32).to_be_bytes());
    to.extend_from_slice(text.as_bytes());
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn first_table(message: &[u8]) -> io::Result<Vec<Vec<String>>> {
    let mut rest = Rest(message);
    rest.skip(1 + 8)?;
    let fields = rest.byte()?;
    let status = rest.byte()?;
    let text = if fields & HAS_STATUS_TEXT == 0 { String::new() } else { rest.string()? };
    if status != 1 {
        return Err(io::Error::other(format!("status {status}: {text}")));
    }
    rest.skip(1)?;
    if fields & HAS_OWN_STATUS_TEXT != 0 {
        rest.string()?;
    }
    rest.skip(4)?;
    if rest.number(2)? == 0 {
        return Err(malformed("no table"));
    }
    rest.skip(4 + 4 + 1)?;
    let columns = rest.number(2)?;
    let types = rest.take(columns)?;
    if types.iter().any(|&one| one != STRING) {
        return Err(malformed("a table not of strings"));
    }
    for _ in 0..columns {
        rest.string()?;
    }
    let rows = rest.number(4)?;
    let mut all = Vec::new();
    for _ in 0..rows {
        rest.skip(4)?;
        all.push((0..columns).map(|_| rest.string()).collect::<io::Result<_>>()?);
    }
    Ok(all)
}

/// What of a message was not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or_else(|| malformed("a message cut short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn skip(&mut self, count: usize) -> io::Result<()> {
        self.take(count).map(|_| ())
    }

    fn byte(&mut self) -> io::Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self, bytes: usize) -> io::Result<usize> {
        Ok(self.take(bytes)?.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    }

    /// A length of all ones is null.
    fn string(&mut self) -> io::Result<String> {
        let length = self.number(4)?;
        if length == u32::MAX as usize {
            return Ok(String::new());
        }
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A success with a table of two columns and one row, `kfactor` and null.
    fn answer() -> Vec<u8> {
        let mut message = vec![0; 9];
        message.extend([0, 1, 0x80, 0, 0, 0, 7, 0, 1]);
        message.extend([0, 0, 0, 99, 0, 0, 0, 9, 0x80, 0, 2, STRING, STRING]);
        put_string(&mut message, "PROPERTY");
        put_string(&mut message, "VALUE");
        message.extend([0, 0, 0, 1, 0, 0, 0, 15]);
        put_string(&mut message, "kfactor");
        message.extend([255; 4]);
        message
    }

    #[test]
    fn tables_are_read_and_what_is_cut_short_is_not() {
        let whole = answer();
        assert_eq!(first_table(&whole).unwrap(), [["kfactor", ""]]);
        for length in 0..whole.len() {
            assert!(first_table(&whole[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_refusal_has_the_server_s_words() {
        let mut message = vec![0; 9];
        message.extend([HAS_STATUS_TEXT, 254]);
        put_string(&mut message, "no such procedure");
        let error = first_table(&message).unwrap_err().to_string();
        assert_eq!(error, "status 254: no such procedure");
    }
}
