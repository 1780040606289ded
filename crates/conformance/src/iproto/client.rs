//! A client's side of IPROTO: requests out, replies in, as values.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use sha1::{Digest, Sha1};

use super::request::{Request, key, kind::AUTH};
use super::value::Value;

/// How long a reply may take.
const REPLY_LIMIT: Duration = Duration::from_secs(20);
/// Why there is no reply on a connection that was closed.
pub const CLOSED: &str = "the connection was closed";
const GREETING_BYTES: usize = 128;
const PING: u8 = 64;
/// The bit that marks a reply as an error.
const ERROR_BIT: i128 = 0x8000;
const SYNC: i128 = 1;
const DATA: i128 = 0x30;
const ERROR: i128 = 0x31;
/// What replies of SQL have: of columns, of changes, of parameters.
const METADATA: i128 = 0x32;
const BIND_METADATA: i128 = 0x33;
const BIND_COUNT: i128 = 0x34;
const SQL_INFO: i128 = 0x42;

/// What a server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The values of a success.
    Data(Vec<Value>),
    /// An error's code and message.
    Error(i128, String),
    /// No reply: why.
    Lost(String),
}

impl Reply {
    /// The reply as one line.
    pub fn show(&self) -> String {
        match self {
            Reply::Data(values) => Value::Array(values.clone()).show(),
            Reply::Error(code, message) => format!("-{code} {message}"),
            Reply::Lost(why) => format!("(lost: {why})"),
        }
    }
}

/// A connection.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    salt: Vec<u8>,
}

impl Client {
    /// Connects and reads the greeting.
    ///
    /// # Errors
    /// If there is no server, or none of this protocol.
    pub fn connect(address: SocketAddr) -> io::Result<Client> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_LIMIT))?;
        let mut greeting = [0; GREETING_BYTES];
        stream.read_exact(&mut greeting)?;
        if !greeting.starts_with(b"Tarantool ") {
            return Err(io::Error::other("the greeting is not Tarantool's"));
        }
        Ok(Client { stream, salt: base64(&greeting[64..108]) })
    }

    /// Logs in by `chap-sha1`.
    ///
    /// # Errors
    /// If the server refuses, with its words.
    pub fn log_in(&mut self, user: &str, password: &str) -> io::Result<()> {
        match self.try_log_in(user, password) {
            Reply::Data(_) => Ok(()),
            refused => Err(io::Error::other(refused.show())),
        }
    }

    /// The reply to a login by `chap-sha1`.
    pub fn try_log_in(&mut self, user: &str, password: &str) -> Reply {
        self.ask(&[Request::login(user, password)]).remove(0)
    }

    /// The login by `chap-sha1`, for the connection's salt.
    fn scrambled(&self, user: &str, password: &str) -> Request {
        let once = Sha1::digest(password);
        let mut salted = Sha1::new_with_prefix(&self.salt[..20]);
        salted.update(Sha1::digest(once));
        let scramble = once.iter().zip(salted.finalize()).map(|(a, b)| a ^ b).collect();
        let tuple = Value::Array(vec![Value::text("chap-sha1"), Value::Str(scramble)]);
        Request::new(AUTH, vec![(key::USER_NAME, Value::text(user)), (key::TUPLE, tuple)])
    }

    /// Asks whether the server answers.
    ///
    /// # Errors
    /// If it does not.
    pub fn ping(&mut self) -> io::Result<()> {
        self.must(&Request::new(PING, Vec::new()))
    }

    fn must(&mut self, request: &Request) -> io::Result<()> {
        match self.ask(std::slice::from_ref(request)).remove(0) {
            Reply::Data(_) => Ok(()),
            refused => Err(io::Error::other(refused.show())),
        }
    }

    /// Sends all, then reads a reply for each.
    pub fn ask(&mut self, requests: &[Request]) -> Vec<Reply> {
        self.send(requests);
        self.read(requests.len())
    }

    /// Sends requests, with the numbers from 0 on.
    pub fn send(&mut self, requests: &[Request]) {
        let mut bytes = Vec::new();
        for (sync, request) in requests.iter().enumerate() {
            let mut packet = Vec::new();
            let header = [
                (Value::int(0), Value::int(request.request_type)),
                (Value::int(SYNC), Value::int(sync as u64)),
            ];
            Value::Map(header.to_vec()).encode(&mut packet);
            let body = match &request.login {
                Some((user, password)) => self.scrambled(user, password).body_bytes(),
                None => request.body_bytes(),
            };
            packet.extend_from_slice(&body);
            bytes.push(0xce);
            bytes.extend_from_slice(&(packet.len() as u32).to_be_bytes());
            bytes.extend_from_slice(&packet);
        }
        // If the server has left, the replies say so.
        let _ = self.stream.write_all(&bytes);
    }

    /// The replies to so many requests, by their numbers.
    pub fn read(&mut self, count: usize) -> Vec<Reply> {
        let mut replies = vec![None; count];
        let mut why = String::from(CLOSED);
        for _ in 0..count {
            match self.read_one() {
                Ok((sync, reply)) => match replies.get_mut(sync) {
                    Some(place @ None) => *place = Some(reply),
                    _ => why = format!("a reply to request {sync}: {}", reply.show()),
                },
                Err(error) => {
                    use io::ErrorKind::{ConnectionReset, UnexpectedEof};
                    if !matches!(error.kind(), UnexpectedEof | ConnectionReset) {
                        why = error.to_string();
                    }
                    break;
                }
            }
        }
        replies.into_iter().map(|it| it.unwrap_or_else(|| Reply::Lost(why.clone()))).collect()
    }

    /// Sends a packet as it is, and reads its reply.
    pub fn ask_raw(&mut self, packet: &[u8]) -> Reply {
        let bytes = [&[0xce][..], &(packet.len() as u32).to_be_bytes(), packet].concat();
        let sent = self.stream.write_all(&bytes);
        let read = sent.and_then(|()| self.read_one());
        read.map_or_else(|error| Reply::Lost(error.to_string()), |(_, reply)| reply)
    }

    fn read_one(&mut self) -> io::Result<(usize, Reply)> {
        let mut length = [0; 5];
        self.stream.read_exact(&mut length)?;
        let length = match Value::decode(&mut &length[..]) {
            Some(Value::Int(length @ 0..=0x1000_0000)) => length as usize,
            other => return Err(io::Error::other(format!("a length of {other:?}"))),
        };
        let mut packet = vec![0; length];
        self.stream.read_exact(&mut packet)?;
        Reply::of_packet(&packet)
    }
}

impl Reply {
    /// A reply's packet: its request's number and what it says.
    ///
    /// # Errors
    /// If the bytes are no reply.
    pub fn of_packet(packet: &[u8]) -> io::Result<(usize, Reply)> {
        let mut rest = packet;
        let header = Value::decode(&mut rest);
        let body =
            if rest.is_empty() { Some(Value::Map(Vec::new())) } else { Value::decode(&mut rest) };
        let (Some(header), Some(body), []) = (header, body, rest) else {
            return Err(io::Error::other(format!("no packet: {}", super::value::hex(packet))));
        };
        let Some(Value::Int(status)) = field(&header, 0) else {
            return Err(io::Error::other("a reply without a status"));
        };
        let Some(Value::Int(sync)) = field(&header, SYNC) else {
            return Err(io::Error::other("a reply without a number"));
        };
        let reply = if status & ERROR_BIT == 0 {
            let of_sql = [METADATA, SQL_INFO, BIND_METADATA, BIND_COUNT];
            let of_sql = of_sql.iter().filter_map(|key| field(&body, *key)).cloned();
            match field(&body, DATA) {
                Some(Value::Array(rows)) if field(&body, METADATA).is_some() => {
                    Reply::Data(of_sql.chain([Value::Array(rows.clone())]).collect())
                }
                None if field(&body, SQL_INFO).is_some() || field(&body, BIND_COUNT).is_some() => {
                    Reply::Data(of_sql.collect())
                }
                Some(Value::Array(values)) => Reply::Data(values.clone()),
                None => Reply::Data(Vec::new()),
                Some(other) => Reply::Lost(format!("data {}", other.show())),
            }
        } else {
            match field(&body, ERROR) {
                Some(Value::Str(text)) => {
                    Reply::Error(status - ERROR_BIT, String::from_utf8_lossy(text).into_owned())
                }
                other => Reply::Lost(format!("an error without a message: {other:?}")),
            }
        };
        Ok((usize::try_from(*sync).unwrap_or(usize::MAX), reply))
    }
}

fn field(map: &Value, key: i128) -> Option<&Value> {
    let Value::Map(pairs) = map else { return None };
    pairs.iter().find(|(name, _)| *name == Value::Int(key)).map(|(_, value)| value)
}

/// The bytes that a text in base64 stands for.
fn base64(text: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for digit in text.iter().filter_map(|it| DIGITS.iter().position(|digit| digit == it)) {
        (bits, count) = (bits << 6 | digit as u32, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
