//! The client's side: for tests, the lab and the crash rounds.

use crate::fields::Fields;
use crate::reply::{ErrorEntry, error_key};
use crate::request::{Call, Execute, IndexRef, SpaceRef, Statement, features};
use crate::{Header, Request, key, request_type};
use ladon_msgpack::{Error, Value, read_array, take, write};

/// Appends a request, with its length in front.
///
/// # Panics
/// If it is longer than 4 GiB.
pub fn write_request(out: &mut Vec<u8>, sync: u64, stream_id: u64, request: &Request<'_>) {
    let start = out.len();
    out.extend_from_slice(&[0xce, 0, 0, 0, 0]);
    write::map(out, 2 + u32::from(stream_id != 0));
    pair_uint(out, key::REQUEST_TYPE, u64::from(request.request_type()));
    pair_uint(out, key::SYNC, sync);
    if stream_id != 0 {
        pair_uint(out, key::STREAM_ID, stream_id);
    }
    write_body(out, request);
    let length = u32::try_from(out.len() - start - 5).expect("a request is shorter than 4 GiB");
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
}

impl Request<'_> {
    /// The number of the request's type.
    pub const fn request_type(&self) -> u32 {
        match self {
            Request::Ping => request_type::PING,
            Request::Select(_) => request_type::SELECT,
            Request::Insert(_) => request_type::INSERT,
            Request::Replace(_) => request_type::REPLACE,
            Request::Update(_) => request_type::UPDATE,
            Request::Delete(_) => request_type::DELETE,
            Request::Upsert(_) => request_type::UPSERT,
            Request::Call(_) => request_type::CALL,
            Request::Call16(_) => request_type::CALL_16,
            Request::Eval(_) => request_type::EVAL,
            Request::Execute(_) => request_type::EXECUTE,
            Request::Prepare(_) => request_type::PREPARE,
            Request::Auth(_) => request_type::AUTH,
            Request::Id(_) => request_type::ID,
            Request::Nop => request_type::NOP,
            Request::Begin(_) => request_type::BEGIN,
            Request::Commit(_) => request_type::COMMIT,
            Request::Rollback => request_type::ROLLBACK,
            Request::Watch(_) => request_type::WATCH,
            Request::Unwatch(_) => request_type::UNWATCH,
            Request::WatchOnce(_) => request_type::WATCH_ONCE,
            Request::Replication(request_type) => *request_type,
        }
    }
}

fn write_body(out: &mut Vec<u8>, request: &Request<'_>) {
    match request {
        Request::Ping | Request::Nop | Request::Rollback | Request::Replication(_) => {
            write::map(out, 0);
        }
        Request::Call(call) | Request::Call16(call) => write_call(out, key::FUNCTION_NAME, call),
        Request::Eval(call) => write_call(out, key::EXPR, call),
        Request::Execute(execute) | Request::Prepare(execute) => write_execute(out, execute),
        Request::Auth(auth) => {
            write::map(out, 2);
            pair_str(out, key::USER_NAME, auth.user_name);
            pair(out, key::TUPLE, auth.tuple);
        }
        Request::Id(id) => {
            write::map(out, 2 + u32::from(id.auth_type.is_some()));
            pair_uint(out, key::VERSION, id.version);
            write::uint(out, key::FEATURES.into());
            write::array(out, id.features.count_ones());
            (0..64).filter(|n| id.features >> n & 1 == 1).for_each(|n| write::uint(out, n));
            if let Some(method) = id.auth_type {
                pair_str(out, key::AUTH_TYPE, method);
            }
        }
        Request::Begin(begin) => {
            let optional =
                u32::from(begin.timeout_seconds.is_some()) + u32::from(begin.is_sync.is_some());
            write::map(out, 1 + optional);
            pair_uint(out, key::TXN_ISOLATION, begin.isolation);
            if let Some(seconds) = begin.timeout_seconds {
                write::uint(out, key::TIMEOUT.into());
                write::double(out, seconds);
            }
            pair_is_sync(out, begin.is_sync);
        }
        Request::Commit(is_sync) => {
            write::map(out, u32::from(is_sync.is_some()));
            pair_is_sync(out, *is_sync);
        }
        Request::Watch(name) | Request::Unwatch(name) | Request::WatchOnce(name) => {
            write::map(out, 1);
            pair_str(out, key::EVENT_KEY, name);
        }
        _ => write_dml(out, request),
    }
}

/// The requests on a space's data.
fn write_dml(out: &mut Vec<u8>, request: &Request<'_>) {
    match request {
        Request::Select(select) => {
            let optional = [select.after_position.is_some(), select.after_tuple.is_some()];
            let optional = optional.iter().filter(|there| **there).count() as u32;
            write::map(out, 6 + optional + u32::from(select.fetch_position));
            pair_space(out, select.space);
            pair_index(out, select.index);
            pair_uint(out, key::LIMIT, select.limit.into());
            pair_uint(out, key::OFFSET, select.offset.into());
            pair_uint(out, key::ITERATOR, select.iterator.into());
            pair(out, key::KEY, select.key);
            if select.fetch_position {
                write::uint(out, key::FETCH_POSITION.into());
                write::bool(out, true);
            }
            if let Some(position) = select.after_position {
                pair_str(out, key::AFTER_POSITION, position);
            }
            if let Some(tuple) = select.after_tuple {
                pair(out, key::AFTER_TUPLE, tuple);
            }
        }
        Request::Insert(put) | Request::Replace(put) => {
            write::map(out, 2);
            pair_space(out, put.space);
            pair(out, key::TUPLE, put.tuple);
        }
        Request::Update(update) => {
            write::map(out, 5);
            pair_space(out, update.space);
            pair_index(out, update.index);
            pair_uint(out, key::INDEX_BASE, update.index_base.into());
            pair(out, key::KEY, update.key);
            pair(out, key::TUPLE, update.operations);
        }
        Request::Delete(delete) => {
            write::map(out, 3);
            pair_space(out, delete.space);
            pair_index(out, delete.index);
            pair(out, key::KEY, delete.key);
        }
        Request::Upsert(upsert) => {
            write::map(out, 4);
            pair_space(out, upsert.space);
            pair_uint(out, key::INDEX_BASE, upsert.index_base.into());
            pair(out, key::TUPLE, upsert.tuple);
            pair(out, key::OPS, upsert.operations);
        }
        _ => unreachable!("a request on data"),
    }
}

fn write_call(out: &mut Vec<u8>, name_key: u8, call: &Call<'_>) {
    write::map(out, 2);
    pair_str(out, name_key, call.name);
    pair(out, key::TUPLE, call.arguments);
}

fn write_execute(out: &mut Vec<u8>, execute: &Execute<'_>) {
    write::map(out, 1 + u32::from(execute.bind.is_some()));
    match execute.statement {
        Statement::Text(text) => pair_str(out, key::SQL_TEXT, text),
        Statement::Id(id) => pair_uint(out, key::STMT_ID, id),
    }
    if let Some(bind) = execute.bind {
        pair(out, key::SQL_BIND, bind);
    }
}

fn pair(out: &mut Vec<u8>, key: u8, value: &[u8]) {
    write::uint(out, key.into());
    out.extend_from_slice(value);
}

fn pair_uint(out: &mut Vec<u8>, key: u8, value: u64) {
    write::uint(out, key.into());
    write::uint(out, value);
}

fn pair_str(out: &mut Vec<u8>, key: u8, value: &[u8]) {
    write::uint(out, key.into());
    write::str(out, value);
}

fn pair_is_sync(out: &mut Vec<u8>, is_sync: Option<bool>) {
    if let Some(is_sync) = is_sync {
        write::uint(out, key::IS_SYNC.into());
        write::bool(out, is_sync);
    }
}

fn pair_space(out: &mut Vec<u8>, space: SpaceRef<'_>) {
    match space {
        SpaceRef::Id(id) => pair_uint(out, key::SPACE_ID, id.into()),
        SpaceRef::Name(name) => pair_str(out, key::SPACE_NAME, name),
    }
}

fn pair_index(out: &mut Vec<u8>, index: IndexRef<'_>) {
    match index {
        IndexRef::Id(id) => pair_uint(out, key::INDEX_ID, id.into()),
        IndexRef::Name(name) => pair_str(out, key::INDEX_NAME, name),
    }
}

/// A reply or an event. What it does not have is `None` or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Type, sync and schema version.
    pub header: Header,
    /// The data: a MessagePack array.
    pub data: Option<&'a [u8]>,
    /// EXECUTE: what is known of the columns, a MessagePack array of maps.
    pub metadata: Option<&'a [u8]>,
    /// EXECUTE: what a statement without rows has done, a MessagePack map.
    pub sql_info: Option<&'a [u8]>,
    /// The position of the last tuple.
    pub position: Option<&'a [u8]>,
    /// The error's message.
    pub error: Option<&'a [u8]>,
    /// The error and its causes.
    pub stack: Vec<ErrorEntry<'a>>,
    /// ID: the version of the protocol.
    pub version: Option<u64>,
    /// ID: the features, bit n for feature n.
    pub features: Option<u64>,
    /// ID: the authentication method that the server prefers.
    pub auth_type: Option<&'a [u8]>,
    /// An event's key.
    pub event_key: Option<&'a [u8]>,
    /// An event's value, MessagePack.
    pub event_data: Option<&'a [u8]>,
}

impl<'a> Reply<'a> {
    /// Decodes a packet from the server.
    ///
    /// # Errors
    /// It is no reply.
    pub fn decode(packet: &'a [u8]) -> Result<Reply<'a>, Error> {
        let no_map = Error::Type { expected: "map", found: "something else" };
        let (header, body) = Header::decode(packet).map_err(|_| no_map)?;
        let mut reply = Reply { header, ..Reply::default() };
        // An old server's reply to PING ends with its header.
        if body.is_empty() {
            return Ok(reply);
        }
        let mut fields = Fields::new(body)?.ok_or(no_map)?;
        while let Some(field) = fields.next()? {
            let Some(Ok(key)) = field.key.map(u8::try_from) else { continue };
            match (key, field.value) {
                (key::DATA, Value::Array(_)) => reply.data = Some(field.bytes),
                (key::METADATA, Value::Array(_)) => reply.metadata = Some(field.bytes),
                (key::SQL_INFO, Value::Map(_)) => reply.sql_info = Some(field.bytes),
                (key::POSITION, Value::Str(position)) => reply.position = Some(position),
                (key::ERROR_24, Value::Str(message)) => reply.error = Some(message),
                (key::ERROR, Value::Map(_)) => reply.stack = read_stack(field.bytes)?,
                (key::VERSION, Value::Uint(version)) => reply.version = Some(version),
                (key::FEATURES, Value::Array(_)) => reply.features = features(field.bytes),
                (key::AUTH_TYPE, Value::Str(method)) => reply.auth_type = Some(method),
                (key::EVENT_KEY, Value::Str(name)) => reply.event_key = Some(name),
                (key::EVENT_DATA, _) => reply.event_data = Some(field.bytes),
                _ => {}
            }
        }
        if fields.rest().is_empty() { Ok(reply) } else { Err(Error::Trailing) }
    }

    /// The error's code; `None` if the reply is no error.
    pub fn error_code(&self) -> Option<u32> {
        let code = self.header.request_type;
        (code & request_type::ERROR != 0).then_some(code & (request_type::ERROR - 1))
    }

    /// The values of the data.
    pub fn tuples(&self) -> Vec<&'a [u8]> {
        let Some(mut data) = self.data else { return Vec::new() };
        let count = read_array(&mut data).unwrap_or(0);
        (0..count).map_while(|_| take(&mut data).ok()).collect()
    }
}

fn read_stack(bytes: &[u8]) -> Result<Vec<ErrorEntry<'_>>, Error> {
    let mut stack = Vec::new();
    let Some(mut fields) = Fields::new(bytes)? else { return Ok(stack) };
    while let Some(field) = fields.next()? {
        if field.key != Some(error_key::STACK.into()) {
            continue;
        }
        let mut entries = field.bytes;
        for _ in 0..read_array(&mut entries)? {
            stack.push(read_entry(take(&mut entries)?)?);
        }
    }
    Ok(stack)
}

fn read_entry(bytes: &[u8]) -> Result<ErrorEntry<'_>, Error> {
    let mut entry = ErrorEntry {
        class: &[],
        file: &[],
        line: 0,
        message: &[],
        errno: 0,
        code: 0,
        fields: None,
    };
    let Some(mut fields) = Fields::new(bytes)? else { return Ok(entry) };
    while let Some(field) = fields.next()? {
        let Some(Ok(key)) = field.key.map(u8::try_from) else { continue };
        match (key, field.value) {
            (error_key::CLASS, Value::Str(class)) => entry.class = class,
            (error_key::FILE, Value::Str(file)) => entry.file = file,
            (error_key::LINE, Value::Uint(line)) => entry.line = line,
            (error_key::MESSAGE, Value::Str(message)) => entry.message = message,
            (error_key::ERRNO, Value::Uint(errno)) => entry.errno = errno,
            (error_key::CODE, Value::Uint(code)) => entry.code = code,
            (error_key::FIELDS, Value::Map(_)) => entry.fields = Some(field.bytes),
            _ => {}
        }
    }
    Ok(entry)
}
