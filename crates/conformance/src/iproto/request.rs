//! A request of a round, and what of its reply is compared.

use super::client::Reply;
use super::value::{Value, hex};

/// The keys of bodies.
#[allow(missing_docs, reason = "the names are the protocol's")]
pub mod key {
    pub const SPACE_ID: u8 = 0x10;
    pub const INDEX_ID: u8 = 0x11;
    pub const LIMIT: u8 = 0x12;
    pub const OFFSET: u8 = 0x13;
    pub const ITERATOR: u8 = 0x14;
    pub const INDEX_BASE: u8 = 0x15;
    pub const KEY: u8 = 0x20;
    pub const TUPLE: u8 = 0x21;
    pub const FUNCTION_NAME: u8 = 0x22;
    pub const USER_NAME: u8 = 0x23;
    pub const OPS: u8 = 0x28;
    pub const SQL_TEXT: u8 = 0x40;
    pub const SQL_BIND: u8 = 0x41;
}

/// The types of requests.
#[allow(missing_docs, reason = "the names are the protocol's")]
pub mod kind {
    pub const SELECT: u8 = 1;
    pub const INSERT: u8 = 2;
    pub const REPLACE: u8 = 3;
    pub const UPDATE: u8 = 4;
    pub const DELETE: u8 = 5;
    pub const AUTH: u8 = 7;
    pub const CALL_16: u8 = 6;
    pub const UPSERT: u8 = 9;
    pub const CALL: u8 = 10;
    pub const EXECUTE: u8 = 11;
    pub const PREPARE: u8 = 13;
}

/// What of a reply is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Every value, in this order.
    Exact,
    /// Every value, in any order: all of a HASH index.
    Unordered,
    /// How many values: a part of a HASH index.
    Count,
    /// Whether it is an error, and which.
    Kind,
    /// Whether it is an error: which tuple of a HASH index is found to be wrong first.
    Refusal,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its type's number.
    pub request_type: u8,
    /// Its body, if it has the form that bodies have.
    pub body: Vec<(u8, Value)>,
    /// The user and the password, in place of the body, of a login by `chap-sha1`.
    pub login: Option<(String, String)>,
    /// Other bytes in place of the body.
    pub raw: Option<Vec<u8>>,
    /// What of its reply is compared.
    pub check: Check,
}

impl Request {
    /// A request whose reply is compared exactly.
    pub fn new(request_type: u8, body: Vec<(u8, Value)>) -> Request {
        Request { request_type, body, login: None, raw: None, check: Check::Exact }
    }

    /// A login by `chap-sha1`: the body depends on the connection.
    pub fn login(user: &str, password: &str) -> Request {
        let login = Some((user.to_owned(), password.to_owned()));
        Request { login, ..Request::new(kind::AUTH, Vec::new()) }
    }

    /// The body's bytes.
    pub fn body_bytes(&self) -> Vec<u8> {
        if let Some(raw) = &self.raw {
            return raw.clone();
        }
        let mut bytes = Vec::new();
        let pairs = self.body.iter().map(|(key, value)| (Value::int(*key), value.clone()));
        Value::Map(pairs.collect()).encode(&mut bytes);
        bytes
    }

    /// Whether `got` agrees with `wanted`, as far as that is defined.
    pub fn same(&self, wanted: &Reply, got: &Reply) -> bool {
        let (wanted, got) = match (wanted, got) {
            (Reply::Data(wanted), Reply::Data(got)) => (wanted, got),
            (Reply::Error(..), Reply::Error(..)) if self.check == Check::Refusal => return true,
            _ => return wanted == got,
        };
        match self.check {
            Check::Exact | Check::Refusal => wanted == got,
            Check::Unordered => in_order(wanted) == in_order(got),
            Check::Count => flat(wanted).len() == flat(got).len(),
            Check::Kind => true,
        }
    }

    /// The request as one line.
    pub fn line(&self) -> String {
        if let Some((user, _)) = &self.login {
            return format!("LOGIN {user}");
        }
        let name = name(self.request_type);
        let Some(raw) = &self.raw else {
            let body = self.body.iter().map(|(key, value)| shown(key_name(*key), value));
            return format!("{name} {}", body.collect::<Vec<_>>().join(" "));
        };
        format!("{name} bytes {} {}", hex(raw), fields(raw))
    }
}

/// A request of this type with the bytes of a body, as one line.
pub fn line_of(request_type: u8, body: &[u8]) -> String {
    format!("{} {}", name(request_type), fields(body))
}

/// What bytes are as the fields of a body, as far as they are any.
fn fields(bytes: &[u8]) -> String {
    let mut rest = bytes;
    let body = match (Value::decode(&mut rest), rest) {
        (Some(Value::Map(pairs)), []) => pairs,
        _ => Vec::new(),
    };
    let body = body.iter().map(|(key, value)| match key {
        Value::Int(key @ 0..=255) => shown(key_name(*key as u8), value),
        key => shown(key.show(), value),
    });
    body.collect::<Vec<_>>().join(" ")
}

fn shown(name: String, value: &Value) -> String {
    format!("{name}={}", value.show())
}

/// The tuples of a reply: those of SELECT, or the ones that a call returned in one value.
fn flat(values: &[Value]) -> Vec<Value> {
    match values {
        [Value::Array(tuples)] if tuples.iter().all(|it| matches!(it, Value::Array(_))) => {
            tuples.clone()
        }
        tuples => tuples.to_vec(),
    }
}

fn in_order(values: &[Value]) -> Vec<Value> {
    let mut tuples = flat(values);
    tuples.sort();
    tuples
}

fn name(request_type: u8) -> String {
    let name = match request_type {
        kind::SELECT => "SELECT",
        kind::INSERT => "INSERT",
        kind::REPLACE => "REPLACE",
        kind::UPDATE => "UPDATE",
        kind::DELETE => "DELETE",
        kind::CALL_16 => "CALL_16",
        kind::UPSERT => "UPSERT",
        kind::CALL => "CALL",
        other => return format!("REQUEST_{other}"),
    };
    name.into()
}

fn key_name(key: u8) -> String {
    let name = match key {
        key::SPACE_ID => "space",
        key::INDEX_ID => "index",
        key::LIMIT => "limit",
        key::OFFSET => "offset",
        key::ITERATOR => "iterator",
        key::INDEX_BASE => "index_base",
        key::KEY => "key",
        key::TUPLE => "tuple",
        key::FUNCTION_NAME => "function",
        key::OPS => "ops",
        other => return format!("0x{other:02x}"),
    };
    name.into()
}
