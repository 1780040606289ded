//! A connection to a server that speaks IPROTO, and what the command asks of it.

use super::definition::{Field, IndexOptions, Part, SpaceRow, index_line};
use ladon_iproto::auth::{self, Credentials};
use ladon_iproto::client::{Reply, write_request};
use ladon_iproto::greeting::{self, GREETING_BYTES, SALT_BYTES};
use ladon_iproto::request::{
    Auth, Call, Delete, Execute, IndexRef, Put, Select, SpaceRef, Statement, Update,
};
use ladon_iproto::{Progress, Request, frame};
use ladon_msgpack::write;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use thiserror::Error;

const SPACE: u32 = 280;
const INDEX: u32 = 288;
const TRUNCATE: u32 = 330;
/// Where users' spaces begin.
const FIRST_ID: u32 = 512;
/// The user that owns what is created.
const ADMIN: u64 = 1;

/// Why nothing was done.
#[derive(Debug, Error)]
pub enum ClientError {
    #[error("cannot read the password from {0}: {1}")]
    Password(String, io::Error),
    #[error("no server that speaks IPROTO at {0}: {1}; start one with --iproto {0}")]
    Connect(String, String),
    #[error("the connection ended: {0}")]
    Ended(#[from] io::Error),
    #[error("{0}")]
    Refused(String),
    #[error("there is no space '{0}'; `ladon space list` names them")]
    NoSpace(String),
    #[error("space '{space}' has no field '{field}'; name one of its format, or count from 1")]
    NoField { space: String, field: String },
    #[error("space '{0}' is not mounted; `ladon space mount` mounts one")]
    NotMounted(String),
    #[error("the server's answer cannot be read: {0}")]
    Unreadable(#[from] ladon_msgpack::Error),
}

/// A socket to a server.
pub trait Stream: Read + Write {
    /// How long a read waits; `None` for as long as it takes.
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)
    }
}

impl Stream for UnixStream {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)
    }
}

pub struct Client {
    stream: Box<dyn Stream>,
    salt: [u8; SALT_BYTES],
    sync: u64,
    unread: Vec<u8>,
}

impl Client {
    pub fn connect(address: &str) -> Result<Client, ClientError> {
        let failed = |why: String| ClientError::Connect(address.to_owned(), why);
        let mut stream = TcpStream::connect(address).map_err(|error| failed(error.to_string()))?;
        let mut bytes = [0; GREETING_BYTES];
        stream.read_exact(&mut bytes).map_err(|error| failed(error.to_string()))?;
        Client::greeted(Box::new(stream), &bytes)
            .ok_or_else(|| failed("it greets otherwise".to_owned()))
    }

    /// Goes on with a connection behind its greeting, if that is of IPROTO.
    pub fn greeted(stream: Box<dyn Stream>, greeting: &[u8; GREETING_BYTES]) -> Option<Client> {
        let salt = greeting::read(greeting)?.salt;
        Some(Client { stream, salt, sync: 0, unread: Vec::new() })
    }

    pub fn log_in(&mut self, user: &str, password: &str) -> Result<(), ClientError> {
        let mut tuple = Vec::new();
        Credentials::ChapSha1(auth::scramble(password.as_bytes(), &self.salt)).write(&mut tuple);
        let request = Request::Auth(Auth { user_name: user.as_bytes(), tuple: &tuple });
        self.ask(&request).map(drop)
    }

    /// Runs a statement of SQL, in a stream, so that it may begin a transaction.
    ///
    /// # Errors
    /// Those of the statement and of the connection.
    pub fn execute<T>(
        &mut self,
        statement: &str,
        read: impl Fn(&Reply<'_>) -> Result<T, ladon_msgpack::Error>,
    ) -> Result<T, ClientError> {
        const STREAM: u64 = 1;
        let statement = Statement::Text(statement.as_bytes());
        let request = Request::Execute(Execute { statement, bind: None });
        self.ask_in(STREAM, &request, |reply| Ok(read(reply)?))
    }

    /// Runs an expression of Lua, with texts as its arguments. Returns the first value, a text.
    ///
    /// # Errors
    /// Those of the expression and of the connection.
    pub fn eval(&mut self, expression: &str, arguments: &[&str]) -> Result<String, ClientError> {
        let mut packed = Vec::new();
        write::array(&mut packed, arguments.len() as u32);
        for argument in arguments {
            write::str(&mut packed, argument.as_bytes());
        }
        let call = Call { name: expression.as_bytes(), arguments: &packed };
        self.ask_in(0, &Request::Eval(call), |reply| {
            let mut first = *reply
                .tuples()
                .first()
                .ok_or_else(|| ClientError::Refused("the expression has no value".to_owned()))?;
            let text = ladon_msgpack::read_str(&mut first)?;
            Ok(String::from_utf8_lossy(text).into_owned())
        })
    }

    fn ask(&mut self, request: &Request<'_>) -> Result<Vec<Vec<u8>>, ClientError> {
        self.ask_in(0, request, |reply| {
            Ok(reply.tuples().into_iter().map(<[u8]>::to_vec).collect())
        })
    }

    fn ask_in<T>(
        &mut self,
        stream: u64,
        request: &Request<'_>,
        read: impl Fn(&Reply<'_>) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        self.sync += 1;
        let mut bytes = Vec::new();
        write_request(&mut bytes, self.sync, stream, request);
        self.stream.write_all(&bytes)?;
        loop {
            match frame::next(&self.unread, frame::PACKET_BYTES_MAX) {
                Progress::Complete { start, end } => {
                    let reply = Reply::decode(&self.unread[start..end])?;
                    let error = reply.error.map(|text| String::from_utf8_lossy(text).into_owned());
                    let answer = read(&reply);
                    self.unread.drain(..end);
                    return error.map_or(answer, |error| Err(ClientError::Refused(error)));
                }
                Progress::Invalid(error) => return Err(ClientError::Refused(error.to_string())),
                Progress::Incomplete { .. } => {}
            }
            let mut part = [0; 64 << 10];
            let count = self.stream.read(&mut part)?;
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            self.unread.extend_from_slice(&part[..count]);
        }
    }

    fn select(&mut self, space: u32, key: &[u8]) -> Result<Vec<Vec<u8>>, ClientError> {
        // EQ, and ALL for the empty key.
        let iterator = if key == [0x90] { 2 } else { 0 };
        self.ask(&Request::Select(Select {
            space: SpaceRef::Id(space),
            index: IndexRef::Id(0),
            iterator,
            offset: 0,
            limit: u32::MAX,
            key,
            fetch_position: false,
            after_position: None,
            after_tuple: None,
        }))
    }

    fn insert(&mut self, space: u32, tuple: &[u8]) -> Result<(), ClientError> {
        let put = Put { space: SpaceRef::Id(space), tuple };
        self.ask(&Request::Insert(put)).map(drop)
    }

    fn delete(&mut self, space: u32, key: &[u8]) -> Result<(), ClientError> {
        let (space, index) = (SpaceRef::Id(space), IndexRef::Id(0));
        self.ask(&Request::Delete(Delete { space, index, key })).map(drop)
    }

    /// The users' spaces, by number.
    pub fn spaces(&mut self) -> Result<Vec<SpaceRow>, ClientError> {
        let mut rows = Vec::new();
        for tuple in self.select(SPACE, &[0x90])? {
            rows.push(SpaceRow::read(&tuple)?);
        }
        rows.retain(|row| row.id >= FIRST_ID);
        rows.sort_by_key(|row| row.id);
        Ok(rows)
    }

    pub fn space_named(&mut self, name: &str) -> Result<SpaceRow, ClientError> {
        let found = self.spaces()?.into_iter().find(|row| row.name == name);
        found.ok_or_else(|| ClientError::NoSpace(name.to_owned()))
    }

    pub fn next_space_id(&mut self) -> Result<u32, ClientError> {
        Ok(self.spaces()?.last().map_or(FIRST_ID, |row| row.id + 1))
    }

    fn index_rows(&mut self, space: &SpaceRow) -> Result<Vec<(u32, String)>, ClientError> {
        let mut rows = Vec::new();
        for tuple in self.select(INDEX, &key(&[space.id]))? {
            rows.push(index_line(&tuple)?);
        }
        rows.sort_unstable();
        Ok(rows)
    }

    /// A line about each of its indexes.
    pub fn indexes_of(&mut self, space: &SpaceRow) -> Result<Vec<String>, ClientError> {
        Ok(self.index_rows(space)?.into_iter().map(|(_, line)| line).collect())
    }

    pub fn next_index_id(&mut self, space: &SpaceRow) -> Result<u32, ClientError> {
        Ok(self.index_rows(space)?.last().map_or(0, |(id, _)| id + 1))
    }

    pub fn create_space(
        &mut self,
        id: u32,
        name: &str,
        fields: &[Field],
    ) -> Result<(), ClientError> {
        // No field count, and no options.
        let mut format = Vec::new();
        write_format(&mut format, fields);
        self.insert(SPACE, &space_tuple(id, name, "memtx", &[&[0, 0x80], &format[..]].concat()))
    }

    pub fn create_index(
        &mut self,
        space: &SpaceRow,
        id: u32,
        name: &str,
        options: &IndexOptions,
        parts: &[Part],
    ) -> Result<(), ClientError> {
        let mut tuple = Vec::new();
        write::array(&mut tuple, 6);
        write::uint(&mut tuple, space.id.into());
        write::uint(&mut tuple, id.into());
        write::str(&mut tuple, name.as_bytes());
        options.write(&mut tuple);
        write::array(&mut tuple, parts.len() as u32);
        for part in parts {
            part.write(space, &mut tuple).ok_or_else(|| ClientError::NoField {
                space: space.name.clone(),
                field: part.field().to_owned(),
            })?;
        }
        self.insert(INDEX, &tuple)
    }

    /// Replaces the tuple of `_space`, as `alter` of Tarantool does. What is not given stays, with
    /// options that the command line has no words for.
    pub fn alter_space(
        &mut self,
        space: &SpaceRow,
        name: Option<&String>,
        fields: Option<&[Field]>,
    ) -> Result<(), ClientError> {
        let name = name.unwrap_or(&space.name);
        let mut format = Vec::new();
        match fields {
            Some(fields) => write_format(&mut format, fields),
            None => format.extend_from_slice(&space.format),
        }
        let rest = [&space.field_count[..], &space.options_map(), &format].concat();
        let tuple = space_tuple(space.id, name, &space.engine, &rest);
        let put = Put { space: SpaceRef::Id(SPACE), tuple: &tuple };
        self.ask(&Request::Replace(put)).map(drop)
    }

    /// Mounts a space under a prefix of Redis' keys, or unmounts it.
    pub fn mount(&mut self, space: &SpaceRow, prefix: Option<&str>) -> Result<(), ClientError> {
        /// The field of the options, from 0.
        const OPTIONS: u64 = 5;
        let mut operations = Vec::new();
        write::array(&mut operations, 1);
        write::array(&mut operations, 3);
        write::str(&mut operations, b"=");
        write::uint(&mut operations, OPTIONS);
        operations.extend_from_slice(&space.options_with_prefix(prefix));
        self.ask(&Request::Update(Update {
            space: SpaceRef::Id(SPACE),
            index: IndexRef::Id(0),
            index_base: 0,
            key: &key(&[space.id]),
            operations: &operations,
        }))
        .map(drop)
    }

    /// Drops the secondary indexes, the primary one, the note of how often it was emptied, and the
    /// space.
    pub fn drop_space(&mut self, space: &SpaceRow) -> Result<(), ClientError> {
        for (id, _) in self.index_rows(space)?.into_iter().rev() {
            self.delete(INDEX, &key(&[space.id, id]))?;
        }
        self.delete(TRUNCATE, &key(&[space.id]))?;
        self.delete(SPACE, &key(&[space.id]))
    }
}

fn key(parts: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    write::array(&mut out, parts.len() as u32);
    parts.iter().for_each(|&part| write::uint(&mut out, part.into()));
    out
}

/// A tuple of `_space`: id, owner, name, engine; and the rest, which is the field count, the flags
/// and the format.
fn space_tuple(id: u32, name: &str, engine: &str, rest: &[u8]) -> Vec<u8> {
    let mut tuple = Vec::new();
    write::array(&mut tuple, 7);
    write::uint(&mut tuple, id.into());
    write::uint(&mut tuple, ADMIN);
    write::str(&mut tuple, name.as_bytes());
    write::str(&mut tuple, engine.as_bytes());
    tuple.extend_from_slice(rest);
    tuple
}

fn write_format(out: &mut Vec<u8>, fields: &[Field]) {
    write::array(out, fields.len() as u32);
    fields.iter().for_each(|field| field.write(out));
}
