//! The server around SQLite: one thread, one database in memory, EXECUTE and PREPARE of IPROTO.
//!
//! A statement by text is compiled each time, as SQLite keeps none by itself; a prepared one is
//! compiled once.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Statement, ToSql, params_from_iter};

use crate::dialects::iproto::msgpack::{self, Reader};
use crate::dialects::iproto::reply::GREETING_BYTES;
use crate::dialects::iproto::request::{DATA, ERROR, PING, REQUEST_TYPE, SYNC};
use crate::dialects::sql::iproto::{
    EXECUTE, METADATA, PREPARE, ROW_COUNT, SQL_BIND, SQL_INFO, SQL_TEXT, STMT_ID,
};

/// `IPROTO_FIELD_NAME`
const FIELD_NAME: u64 = 0;
/// An error of a request, as IPROTO writes it, and its number: `ER_SQL_EXECUTE`.
const FAILED: u64 = 0x8000 | 174;
/// A longer request is none of the lab's.
const REQUEST_BYTES_MAX: u64 = 16 << 20;
const LISTENER: Token = Token(usize::MAX);

/// Serves on this port of 127.0.0.1 until the process is ended.
///
/// # Errors
/// Those of the listening socket and of the poll.
pub fn serve(port: u16) -> io::Result<()> {
    let database = Connection::open_in_memory().map_err(io::Error::other)?;
    let mut listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    let (mut poll, mut events) = (Poll::new()?, Events::with_capacity(256));
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut statements =
        Statements { database: &database, numbers: HashMap::new(), all: Vec::new() };
    let mut clients: HashMap<Token, Client> = HashMap::new();
    let mut next = 0;
    loop {
        match poll.poll(&mut events, None) {
            // The lab stops those that wait for their turn, and lets them go on.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((socket, _)) = listener.accept() {
                    let token = Token(next);
                    next += 1;
                    if let Some(client) = Client::greeted(&poll, token, socket) {
                        clients.insert(token, client);
                    }
                }
            } else if let Some(client) = clients.get_mut(&event.token())
                && client.turn(event, &mut statements).is_none()
            {
                clients.remove(&event.token());
            }
        }
    }
}

struct Client {
    socket: TcpStream,
    received: Vec<u8>,
    unsent: Vec<u8>,
}

impl Client {
    fn greeted(poll: &Poll, token: Token, mut socket: TcpStream) -> Option<Self> {
        socket.set_nodelay(true).ok()?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(&mut socket, token, interest).ok()?;
        let salt = "A".repeat(43) + "=";
        let greeting =
            format!("{:<63}\n{salt:<63}\n", "Tarantool 2.6.0 (Binary) SQLite of the lab");
        debug_assert_eq!(greeting.len(), GREETING_BYTES);
        let mut client = Self { socket, received: Vec::new(), unsent: greeting.into_bytes() };
        client.send()?;
        Some(client)
    }

    /// Reads, answers and writes; `None` when the connection is over, or sent what is no request.
    fn turn(&mut self, event: &Event, statements: &mut Statements<'_>) -> Option<()> {
        if event.is_readable() {
            let mut piece = [0; 64 * 1024];
            loop {
                match self.socket.read(&mut piece) {
                    Ok(0) => return None,
                    Ok(read) => self.received.extend_from_slice(&piece[..read]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => return None,
                }
            }
            let mut done = 0;
            while let Some(length) = whole(&self.received[done..])? {
                statements.answer(&self.received[done..done + length], &mut self.unsent)?;
                done += length;
            }
            self.received.drain(..done);
        }
        self.send()
    }

    fn send(&mut self) -> Option<()> {
        let mut sent = 0;
        while sent < self.unsent.len() {
            match self.socket.write(&self.unsent[sent..]) {
                Ok(0) => return None,
                Ok(wrote) => sent += wrote,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        self.unsent.drain(..sent);
        Some(())
    }
}

/// The bytes of the request at the front, if it is whole; the outer `None` where it is none.
fn whole(bytes: &[u8]) -> Option<Option<usize>> {
    // The lab writes lengths in five bytes.
    let [0xce, a, b, c, d, ..] = bytes else {
        return (bytes.len() < 5).then_some(None);
    };
    let length = u64::from(u32::from_be_bytes([*a, *b, *c, *d])) + 5;
    if length > REQUEST_BYTES_MAX {
        return None;
    }
    let length = length as usize;
    Some((bytes.len() >= length).then_some(length))
}

/// The database, and the statements that were prepared.
struct Statements<'a> {
    database: &'a Connection,
    numbers: HashMap<String, usize>,
    all: Vec<Statement<'a>>,
}

/// A request's body.
#[derive(Default)]
struct Body<'a> {
    text: Option<&'a str>,
    statement: Option<u64>,
    values: Vec<Box<dyn ToSql + 'a>>,
}

impl Statements<'_> {
    /// Appends the answer to a whole request; `None` where it is none.
    fn answer(&mut self, request: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let mut reader = Reader::new(request);
        reader.unsigned()?;
        let (mut kind, mut sync) = (0, 0);
        for _ in 0..reader.map()? {
            match u8::try_from(reader.unsigned()?).ok()? {
                REQUEST_TYPE => kind = u8::try_from(reader.unsigned()?).ok()?,
                SYNC => sync = reader.unsigned()?,
                _ => reader.skip()?,
            }
        }
        let body = body(&mut reader)?;
        let mut answer = Vec::new();
        let result = match kind {
            PING => {
                msgpack::write_map(0, &mut answer);
                Ok(())
            }
            PREPARE => self.prepare(body.text?, &mut answer),
            EXECUTE => self.execute(&body, &mut answer),
            other => Err(format!("no request of type {other}")),
        };
        let code = if let Err(words) = &result {
            answer.clear();
            msgpack::write_map(1, &mut answer);
            answer.push(ERROR);
            msgpack::write_text(words.as_bytes(), &mut answer);
            FAILED
        } else {
            0
        };
        let start = out.len();
        out.extend_from_slice(&[0xce, 0, 0, 0, 0, 0x82, REQUEST_TYPE]);
        msgpack::write_unsigned(code, out);
        out.push(SYNC);
        msgpack::write_unsigned(sync, out);
        out.extend_from_slice(&answer);
        let length = u32::try_from(out.len() - start - 5).ok()?;
        out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
        Some(())
    }

    fn prepare(&mut self, text: &str, out: &mut Vec<u8>) -> Result<(), String> {
        let number = match self.numbers.get(text) {
            Some(number) => *number,
            None => {
                let statement = self.database.prepare(text).map_err(|error| error.to_string())?;
                self.all.push(statement);
                self.numbers.insert(text.to_owned(), self.all.len() - 1);
                self.all.len() - 1
            }
        };
        msgpack::write_map(1, out);
        out.push(STMT_ID);
        msgpack::write_unsigned(number as u64, out);
        Ok(())
    }

    fn execute(&mut self, body: &Body<'_>, out: &mut Vec<u8>) -> Result<(), String> {
        let text;
        let statement = match (body.text, body.statement) {
            (Some(words), None) => {
                text = self.database.prepare(words).map_err(|error| error.to_string())?;
                &mut { text }
            }
            (None, Some(number)) => {
                let known =
                    usize::try_from(number).ok().and_then(|number| self.all.get_mut(number));
                known.ok_or("no such statement")?
            }
            _ => return Err("EXECUTE needs a text or a statement".to_owned()),
        };
        run(statement, &body.values, out).map_err(|error| error.to_string())
    }
}

fn body<'a>(reader: &mut Reader<'a>) -> Option<Body<'a>> {
    let mut body = Body::default();
    for _ in 0..reader.map()? {
        match u8::try_from(reader.unsigned()?).ok()? {
            SQL_TEXT => body.text = Some(std::str::from_utf8(reader.bytes()?).ok()?),
            STMT_ID => body.statement = Some(reader.unsigned()?),
            SQL_BIND => {
                for _ in 0..reader.array()? {
                    body.values.push(match reader.rest().first()? {
                        0xa0..=0xbf | 0xd9..=0xdb => {
                            Box::new(std::str::from_utf8(reader.bytes()?).ok()?)
                        }
                        _ => Box::new(reader.integer()?),
                    });
                }
            }
            _ => reader.skip()?,
        }
    }
    Some(body)
}

/// Runs a statement and appends the body of its reply.
fn run(
    statement: &mut Statement<'_>,
    values: &[Box<dyn ToSql + '_>],
    out: &mut Vec<u8>,
) -> rusqlite::Result<()> {
    let values = params_from_iter(values);
    let columns = statement.column_count();
    if columns == 0 {
        let changed = statement.execute(values)?;
        msgpack::write_map(1, out);
        out.push(SQL_INFO);
        msgpack::write_map(1, out);
        out.push(ROW_COUNT);
        msgpack::write_unsigned(changed as u64, out);
        return Ok(());
    }
    msgpack::write_map(2, out);
    out.push(METADATA);
    msgpack::write_array(columns, out);
    for column in 0..columns {
        msgpack::write_map(1, out);
        msgpack::write_unsigned(FIELD_NAME, out);
        msgpack::write_text(statement.column_name(column)?.as_bytes(), out);
    }
    out.push(DATA);
    // How many rows there are is known at their end: room for the longest head.
    let head = out.len();
    out.extend_from_slice(&[0xdd, 0, 0, 0, 0]);
    let mut count = 0u32;
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        count += 1;
        msgpack::write_array(columns, out);
        for column in 0..columns {
            match row.get_ref(column)? {
                ValueRef::Null => msgpack::Value::Nil.write(out),
                ValueRef::Integer(number) => msgpack::write_integer(number, out),
                ValueRef::Real(number) => msgpack::Value::Float(number).write(out),
                ValueRef::Text(text) | ValueRef::Blob(text) => msgpack::write_text(text, out),
            }
        }
    }
    out[head + 1..head + 5].copy_from_slice(&count.to_be_bytes());
    Ok(())
}
