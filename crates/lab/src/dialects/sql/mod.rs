//! Statements of SQL to bytes, and replies to rows, one file per protocol.
//!
//! A connection is opened while it blocks: login, and the statements that it prepares. After that
//! its bytes are the load driver's.

pub mod iproto;
pub mod mysql;

use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::Malformed;

/// A value that a statement is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Integer(i64),
    /// A text.
    Text(String),
}

/// A value of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// A number.
    Integer(i64),
    /// A text; in some replies also a number, in digits.
    Text(&'a [u8]),
    /// No value.
    Null,
}

impl Cell<'_> {
    /// Whether it is this value: digits of a text are the number that they say.
    #[inline]
    #[must_use]
    pub fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Integer(mine), Value::Integer(other)) => mine == other,
            (Self::Text(mine), Value::Text(other)) => *mine == other.as_bytes(),
            (Self::Text(mine), Value::Integer(_)) => {
                digits(mine).is_some_and(|mine| Cell::Integer(mine).is(value))
            }
            _ => false,
        }
    }
}

fn digits(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// What a server said to a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// Rows, one after the other.
    Rows {
        /// Values of a row.
        columns: usize,
        /// Values of all rows.
        cells: Vec<Cell<'a>>,
    },
    /// How many rows it changed.
    Changed(u64),
    /// Its number for a statement that was prepared.
    Prepared(u64),
    /// An error, in its words.
    Refused(String),
}

/// A whole reply at the front of received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Its bytes.
    pub length: usize,
    /// What it says.
    pub said: Said<'a>,
}

/// What a reply answers: its bytes may not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// A statement by text.
    Text,
    /// The preparation of a statement.
    Preparation,
    /// A prepared statement.
    Prepared,
}

/// A protocol that carries statements.
pub trait SqlProtocol: Send {
    /// Reads what the server says first and logs in.
    ///
    /// # Errors
    /// Those of the socket; `Other` with the server's words.
    fn login(&self, socket: &mut TcpStream) -> io::Result<()>;

    /// Whether several statements of a connection may be under way; their replies then carry tags.
    fn pipelines(&self) -> bool;

    /// Appends a statement by its text.
    fn text(&self, tag: u64, text: &str, out: &mut Vec<u8>);

    /// Appends the preparation of a statement.
    fn prepare(&self, tag: u64, text: &str, out: &mut Vec<u8>);

    /// Appends the execution of a prepared statement.
    fn execute(&self, tag: u64, statement: u64, values: &[Value], out: &mut Vec<u8>);

    /// The tag of the first reply in `bytes`; `None` where they are too few, or replies carry none.
    ///
    /// # Errors
    /// When the bytes cannot be a reply.
    fn tag(&self, bytes: &[u8]) -> Result<Option<u64>, Malformed>;

    /// The first whole reply in `bytes`; `None` where they are too few.
    ///
    /// # Errors
    /// When the bytes cannot be a reply.
    fn reply<'a>(&self, answers: Answers, bytes: &'a [u8]) -> Result<Option<Reply<'a>>, Malformed>;

    /// How the statement that creates a table ends: its columns, and which is the primary key, in a
    /// tree. `columns` are names with whether they are texts.
    fn create_table(&self, name: &str, columns: &[(&str, bool)]) -> String {
        let columns: Vec<String> = columns
            .iter()
            .map(|(name, is_text)| {
                format!("{name} {}", if *is_text { "VARCHAR(40)" } else { "INTEGER" })
            })
            .collect();
        format!("CREATE TABLE {name} ({}, PRIMARY KEY (id))", columns.join(", "))
    }
}

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlKind {
    /// IPROTO's EXECUTE and PREPARE.
    Iproto,
    /// MySQL's client/server protocol.
    MySql,
}

impl SqlKind {
    /// The protocol.
    #[must_use]
    pub fn protocol(self) -> Box<dyn SqlProtocol> {
        match self {
            Self::Iproto => Box::new(iproto::IprotoSql),
            Self::MySql => Box::new(mysql::MySql),
        }
    }
}

/// A longer reply is none that the lab asks for.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// Sends one request over a blocking socket and gives its reply to `see`.
///
/// # Errors
/// Those of the socket; `InvalidData` when the bytes are no reply.
pub fn ask<T>(
    protocol: &dyn SqlProtocol,
    socket: &mut TcpStream,
    answers: Answers,
    request: &[u8],
    see: impl FnOnce(&Said<'_>) -> T,
) -> io::Result<T> {
    socket.write_all(request)?;
    let mut received = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        let read = socket.read(&mut piece)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        received.extend_from_slice(&piece[..read]);
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let reply =
            protocol.reply(answers, &received).map_err(|error| invalid(error.to_string()))?;
        match reply {
            Some(reply) if reply.length == received.len() => return Ok(see(&reply.said)),
            Some(_) => return Err(invalid("more than one reply".to_owned())),
            None if received.len() > REPLY_BYTES_MAX => {
                return Err(invalid("a reply without end".to_owned()));
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_the_number_that_they_say() {
        assert!(Cell::Text(b"-12").is(&Value::Integer(-12)));
        assert!(!Cell::Text(b"12x").is(&Value::Integer(12)));
        assert!(!Cell::Integer(12).is(&Value::Text("12".to_owned())));
        assert!(!Cell::Null.is(&Value::Integer(0)));
    }
}
