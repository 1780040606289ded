//! IPROTO requests: their numbers, their keys, and a login.
//!
//! A request is its length, a header `{type, sync}` and a body, all MessagePack. The length goes
//! first and is known last, so it is always written in the five-byte form.
//!
//! Source: Tarantool's manual, "Box protocol", and `src/box/iproto_constants.h`.

use sha1::{Digest, Sha1};

use super::msgpack::{self, Value};

/// What a reply is matched by.
pub type Sync = u64;

// Request types.
/// `IPROTO_SELECT`
pub const SELECT: u8 = 0x01;
/// `IPROTO_INSERT`
pub const INSERT: u8 = 0x02;
/// `IPROTO_REPLACE`
pub const REPLACE: u8 = 0x03;
/// `IPROTO_UPDATE`
pub const UPDATE: u8 = 0x04;
/// `IPROTO_DELETE`
pub const DELETE: u8 = 0x05;
/// `IPROTO_AUTH`
pub const AUTH: u8 = 0x07;
/// `IPROTO_EVAL`
pub const EVAL: u8 = 0x08;
/// `IPROTO_UPSERT`
pub const UPSERT: u8 = 0x09;
/// `IPROTO_CALL`
pub const CALL: u8 = 0x0a;
/// `IPROTO_PING`
pub const PING: u8 = 0x40;

// Keys of headers and bodies.
/// `IPROTO_REQUEST_TYPE`
pub const REQUEST_TYPE: u8 = 0x00;
/// `IPROTO_SYNC`
pub const SYNC: u8 = 0x01;
/// `IPROTO_SPACE_ID`
pub const SPACE_ID: u8 = 0x10;
/// `IPROTO_INDEX_ID`
pub const INDEX_ID: u8 = 0x11;
/// `IPROTO_LIMIT`
pub const LIMIT: u8 = 0x12;
/// `IPROTO_OFFSET`
pub const OFFSET: u8 = 0x13;
/// `IPROTO_ITERATOR`
pub const ITERATOR: u8 = 0x14;
/// `IPROTO_KEY`
pub const KEY: u8 = 0x20;
/// `IPROTO_TUPLE`
pub const TUPLE: u8 = 0x21;
/// `IPROTO_FUNCTION_NAME`
pub const FUNCTION_NAME: u8 = 0x22;
/// `IPROTO_USER_NAME`
pub const USER_NAME: u8 = 0x23;
/// `IPROTO_EXPR`
pub const EXPR: u8 = 0x27;
/// `IPROTO_OPS`
pub const OPS: u8 = 0x28;
/// `IPROTO_DATA`
pub const DATA: u8 = 0x30;
/// `IPROTO_ERROR`
pub const ERROR: u8 = 0x31;

/// Where a SELECT begins and which way it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Iterator {
    /// Keys equal to the given one.
    Equal = 0,
    /// The given key and those above it, upwards.
    GreaterOrEqual = 5,
}

/// A request in general; what the load sends is written without going through this.
#[derive(Clone, Debug)]
pub enum Request<'a> {
    /// Answered with nothing.
    Ping,
    /// Tuples by an index.
    Select {
        /// Number of the space.
        space: u64,
        /// Number of the index, from 0.
        index: u64,
        /// Which of the tuples.
        iterator: Iterator,
        /// How many at most.
        limit: u64,
        /// Parts of the key.
        key: &'a [Value],
    },
    /// Adds a tuple; an error if its primary key is there.
    Insert {
        /// Number of the space.
        space: u64,
        /// The tuple.
        tuple: &'a [Value],
    },
    /// Adds a tuple or puts it in place of the one with its primary key.
    Replace {
        /// Number of the space.
        space: u64,
        /// The tuple.
        tuple: &'a [Value],
    },
    /// Changes fields of the tuple with this primary key.
    Update {
        /// Number of the space.
        space: u64,
        /// Parts of the key.
        key: &'a [Value],
        /// Operations, each `[operator, field, argument]`; fields from 0.
        operations: &'a [Value],
    },
    /// Changes fields of a tuple if it is there, adds it if not.
    Upsert {
        /// Number of the space.
        space: u64,
        /// The tuple to add.
        tuple: &'a [Value],
        /// As in [`Request::Update`].
        operations: &'a [Value],
    },
    /// Removes a tuple by its primary key.
    Delete {
        /// Number of the space.
        space: u64,
        /// Parts of the key.
        key: &'a [Value],
    },
    /// Calls a stored function.
    Call {
        /// Its name.
        function: &'a str,
        /// Its arguments.
        arguments: &'a [Value],
    },
    /// Runs Lua.
    Eval {
        /// The program; `...` are the arguments.
        expression: &'a str,
        /// Its arguments.
        arguments: &'a [Value],
    },
}

impl Request<'_> {
    /// Appends the request.
    pub fn write(&self, sync: Sync, out: &mut Vec<u8>) {
        match self {
            Self::Ping => framed(PING, sync, out, |out| msgpack::write_map(0, out)),
            Self::Select { space, index, iterator, limit, key } => {
                select(sync, *space, *index, *iterator, *limit, out, |out| array(key, out));
            }
            Self::Insert { space, tuple } => {
                of_tuple(INSERT, sync, *space, out, |out| array(tuple, out));
            }
            Self::Replace { space, tuple } => {
                of_tuple(REPLACE, sync, *space, out, |out| array(tuple, out));
            }
            Self::Update { space, key, operations } => {
                update(sync, *space, out, |out| array(key, out), |out| array(operations, out));
            }
            Self::Upsert { space, tuple, operations } => {
                upsert(sync, *space, out, |out| array(tuple, out), |out| array(operations, out));
            }
            Self::Delete { space, key } => delete(sync, *space, out, |out| array(key, out)),
            Self::Call { function, arguments } => {
                call(sync, function, out, |out| array(arguments, out));
            }
            Self::Eval { expression, arguments } => framed(EVAL, sync, out, |out| {
                msgpack::write_map(2, out);
                out.push(EXPR);
                msgpack::write_text(expression.as_bytes(), out);
                out.push(TUPLE);
                array(arguments, out);
            }),
        }
    }
}

/// Appends length and header around what `body` appends.
#[inline]
pub fn framed(kind: u8, sync: Sync, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0xce, 0, 0, 0, 0, 0x82, REQUEST_TYPE, kind, SYNC]);
    msgpack::write_unsigned(sync, out);
    body(out);
    let length = u32::try_from(out.len() - start - 5).expect("the lab's requests are small");
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
}

/// SELECT with a key that `key` appends as an array.
#[inline]
pub fn select(
    sync: Sync,
    space: u64,
    index: u64,
    iterator: Iterator,
    limit: u64,
    out: &mut Vec<u8>,
    key: impl FnOnce(&mut Vec<u8>),
) {
    framed(SELECT, sync, out, |out| {
        msgpack::write_map(6, out);
        pair(SPACE_ID, space, out);
        pair(INDEX_ID, index, out);
        pair(LIMIT, limit, out);
        pair(OFFSET, 0, out);
        pair(ITERATOR, iterator as u64, out);
        out.push(KEY);
        key(out);
    });
}

/// INSERT or REPLACE of a tuple that `tuple` appends as an array.
#[inline]
pub fn of_tuple(
    kind: u8,
    sync: Sync,
    space: u64,
    out: &mut Vec<u8>,
    tuple: impl FnOnce(&mut Vec<u8>),
) {
    framed(kind, sync, out, |out| {
        msgpack::write_map(2, out);
        pair(SPACE_ID, space, out);
        out.push(TUPLE);
        tuple(out);
    });
}

/// DELETE of the tuple with the primary key that `key` appends as an array.
#[inline]
pub fn delete(sync: Sync, space: u64, out: &mut Vec<u8>, key: impl FnOnce(&mut Vec<u8>)) {
    framed(DELETE, sync, out, |out| {
        msgpack::write_map(3, out);
        pair(SPACE_ID, space, out);
        pair(INDEX_ID, 0, out);
        out.push(KEY);
        key(out);
    });
}

/// UPDATE of the tuple with the primary key that `key` appends, by what `operations` appends.
#[inline]
pub fn update(
    sync: Sync,
    space: u64,
    out: &mut Vec<u8>,
    key: impl FnOnce(&mut Vec<u8>),
    operations: impl FnOnce(&mut Vec<u8>),
) {
    framed(UPDATE, sync, out, |out| {
        msgpack::write_map(4, out);
        pair(SPACE_ID, space, out);
        pair(INDEX_ID, 0, out);
        out.push(KEY);
        key(out);
        // In UPDATE the operations are where a tuple would be.
        out.push(TUPLE);
        operations(out);
    });
}

/// UPSERT of what `tuple` and `operations` append.
pub fn upsert(
    sync: Sync,
    space: u64,
    out: &mut Vec<u8>,
    tuple: impl FnOnce(&mut Vec<u8>),
    operations: impl FnOnce(&mut Vec<u8>),
) {
    framed(UPSERT, sync, out, |out| {
        msgpack::write_map(3, out);
        pair(SPACE_ID, space, out);
        out.push(TUPLE);
        tuple(out);
        out.push(OPS);
        operations(out);
    });
}

/// CALL with arguments that `arguments` appends as an array.
#[inline]
pub fn call(sync: Sync, function: &str, out: &mut Vec<u8>, arguments: impl FnOnce(&mut Vec<u8>)) {
    framed(CALL, sync, out, |out| {
        msgpack::write_map(2, out);
        out.push(FUNCTION_NAME);
        msgpack::write_text(function.as_bytes(), out);
        out.push(TUPLE);
        arguments(out);
    });
}

fn pair(key: u8, value: u64, out: &mut Vec<u8>) {
    out.push(key);
    msgpack::write_unsigned(value, out);
}

fn array(items: &[Value], out: &mut Vec<u8>) {
    msgpack::write_array(items.len(), out);
    items.iter().for_each(|item| item.write(out));
}

/// AUTH by `chap-sha1`: proves that the password is known without sending it. `salt` is what the
/// greeting said.
pub fn auth(sync: Sync, user: &str, password: &str, salt: &[u8; SALT_BYTES], out: &mut Vec<u8>) {
    let scramble = scramble(password, salt);
    framed(AUTH, sync, out, |out| {
        msgpack::write_map(2, out);
        out.push(USER_NAME);
        msgpack::write_text(user.as_bytes(), out);
        out.push(TUPLE);
        msgpack::write_array(2, out);
        msgpack::write_text(b"chap-sha1", out);
        msgpack::write_text(&scramble, out);
    });
}

/// How much of the greeting's salt is used.
pub const SALT_BYTES: usize = 20;

/// `SHA1(password) xor SHA1(salt + SHA1(SHA1(password)))`
fn scramble(password: &str, salt: &[u8; SALT_BYTES]) -> [u8; 20] {
    let once: [u8; 20] = Sha1::digest(password).into();
    let twice: [u8; 20] = Sha1::digest(once).into();
    let salted: [u8; 20] = Sha1::new().chain_update(salt).chain_update(twice).finalize().into();
    std::array::from_fn(|index| once[index] ^ salted[index])
}
