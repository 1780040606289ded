//! A packet's body as a request.
//!
//! What Tarantool checks when it decodes is checked here, with its messages. Whether a space, an
//! iterator or a function exists is for the caller. Numbers of which Tarantool keeps 32 bits are
//! limited to 32 bits here: a larger one is the largest, and never names something else.

use crate::fields::Fields;
use crate::{Header, RequestError, key, request_type};
use ladon_msgpack::{Kind, Value, read, read_array, read_uint, take, validate};

/// A space, as a request names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceRef<'a> {
    /// By its id.
    Id(u32),
    /// By its name, which wins if both are sent.
    Name(&'a [u8]),
}

/// An index, as a request names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexRef<'a> {
    /// By its number; 0, the primary index, if the request names none.
    Id(u32),
    /// By its name, which wins if both are sent.
    Name(&'a [u8]),
}

/// SELECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select<'a> {
    /// The space.
    pub space: SpaceRef<'a>,
    /// The index.
    pub index: IndexRef<'a>,
    /// The iterator's number, not checked.
    pub iterator: u32,
    /// Tuples to pass over.
    pub offset: u32,
    /// Tuples to return at most.
    pub limit: u32,
    /// The key: a MessagePack array.
    pub key: &'a [u8],
    /// Whether the reply shows the position of the last tuple.
    pub fetch_position: bool,
    /// Where an earlier reply ended: the position that it showed.
    pub after_position: Option<&'a [u8]>,
    /// Where an earlier reply ended: its last tuple, a MessagePack array.
    pub after_tuple: Option<&'a [u8]>,
}

/// INSERT or REPLACE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put<'a> {
    /// The space.
    pub space: SpaceRef<'a>,
    /// The tuple: a MessagePack array.
    pub tuple: &'a [u8],
}

/// UPDATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// The space.
    pub space: SpaceRef<'a>,
    /// The index that the key belongs to.
    pub index: IndexRef<'a>,
    /// The number of the first field in the operations, 0 or 1.
    pub index_base: u32,
    /// The key: a MessagePack array.
    pub key: &'a [u8],
    /// The operations: a MessagePack array. On the wire they are the TUPLE.
    pub operations: &'a [u8],
}

/// DELETE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delete<'a> {
    /// The space.
    pub space: SpaceRef<'a>,
    /// The index that the key belongs to.
    pub index: IndexRef<'a>,
    /// The key: a MessagePack array.
    pub key: &'a [u8],
}

/// UPSERT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upsert<'a> {
    /// The space.
    pub space: SpaceRef<'a>,
    /// The number of the first field in the operations, 0 or 1.
    pub index_base: u32,
    /// The tuple to insert: a MessagePack array.
    pub tuple: &'a [u8],
    /// The operations: a MessagePack array.
    pub operations: &'a [u8],
}

/// CALL, CALL_16 or EVAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// The function's name, or the expression.
    pub name: &'a [u8],
    /// The arguments: a MessagePack array, empty if the request has none.
    pub arguments: &'a [u8],
}

/// A statement in SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement<'a> {
    /// Its text.
    Text(&'a [u8]),
    /// The number that PREPARE gave it.
    Id(u64),
}

/// EXECUTE or PREPARE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execute<'a> {
    /// The statement.
    pub statement: Statement<'a>,
    /// The values of its parameters, if the request has them: a MessagePack array.
    pub bind: Option<&'a [u8]>,
}

/// AUTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auth<'a> {
    /// The user's name.
    pub user_name: &'a [u8],
    /// The method and its data: a MessagePack array, for [`crate::auth::Credentials::decode`].
    pub tuple: &'a [u8],
}

/// ID: what the client knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Id<'a> {
    /// The version of the protocol.
    pub version: u64,
    /// The features that the client knows: bit n for feature n. Features from 64 on are left out.
    pub features: u64,
    /// The authentication method that it prefers.
    pub auth_type: Option<&'a [u8]>,
}

/// BEGIN.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Begin {
    /// Seconds after which the transaction is taken back.
    pub timeout_seconds: Option<f64>,
    /// The isolation level's number, not checked; 0 is the server's default.
    pub isolation: u64,
    /// Whether the transaction is synchronous (3.x).
    pub is_sync: Option<bool>,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names are the protocol's")]
pub enum Request<'a> {
    Ping,
    Select(Select<'a>),
    Insert(Put<'a>),
    Replace(Put<'a>),
    Update(Update<'a>),
    Delete(Delete<'a>),
    Upsert(Upsert<'a>),
    Call(Call<'a>),
    /// CALL of the protocol before 1.7, whose reply is a list of tuples.
    Call16(Call<'a>),
    Eval(Call<'a>),
    Execute(Execute<'a>),
    Prepare(Execute<'a>),
    Auth(Auth<'a>),
    Id(Id<'a>),
    Nop,
    Begin(Begin),
    /// With whether the transaction is synchronous (3.x).
    Commit(Option<bool>),
    Rollback,
    /// With the key.
    Watch(&'a [u8]),
    /// With the key.
    Unwatch(&'a [u8]),
    /// With the key.
    WatchOnce(&'a [u8]),
    /// What replicas send: its type. The body is MessagePack, and not read further.
    Replication(u32),
}

impl<'a> Request<'a> {
    /// Decodes the body of a packet whose header is read.
    ///
    /// # Errors
    /// Tarantool's, for a type that is not known and for a body that lacks something.
    #[inline]
    pub fn decode(header: &Header, body: &'a [u8]) -> Result<Request<'a>, RequestError> {
        let fields = |required| Dml::decode(body, required);
        Ok(match header.request_type {
            request_type::SELECT => Request::Select(fields(SELECT)?.select()),
            request_type::INSERT => Request::Insert(fields(INSERT)?.put()),
            request_type::REPLACE => Request::Replace(fields(INSERT)?.put()),
            request_type::UPDATE => Request::Update(fields(UPDATE)?.update()),
            request_type::DELETE => Request::Delete(fields(DELETE)?.delete()),
            request_type::UPSERT => Request::Upsert(fields(UPSERT)?.upsert()),
            request_type::CALL => Request::Call(call(body, key::FUNCTION_NAME)?),
            _ => return Request::decode_rare(header.request_type, body),
        })
    }

    fn decode_rare(request_type: u32, body: &'a [u8]) -> Result<Request<'a>, RequestError> {
        Ok(match request_type {
            request_type::CALL_16 => Request::Call16(call(body, key::FUNCTION_NAME)?),
            request_type::EVAL => Request::Eval(call(body, key::EXPR)?),
            request_type::EXECUTE => Request::Execute(execute(body)?),
            request_type::PREPARE => Request::Prepare(execute(body)?),
            request_type::AUTH => Request::Auth(auth(body)?),
            request_type::ID => Request::Id(id(body)?),
            request_type::BEGIN => Request::Begin(begin(body)?),
            request_type::WATCH => Request::Watch(event_key(body)?),
            request_type::UNWATCH => Request::Unwatch(event_key(body)?),
            request_type::WATCH_ONCE => Request::WatchOnce(event_key(body)?),
            // A NOP's body is no concern of anybody.
            request_type::NOP => Request::Nop,
            request_type::COMMIT => Request::Commit(begin(body)?.is_sync),
            request_type::PING => unread(body, Request::Ping)?,
            request_type::ROLLBACK => unread(body, Request::Rollback)?,
            request_type::JOIN..=request_type::JOIN_SNAPSHOT => {
                unread(body, Request::Replication(request_type))?
            }
            other => return unread(body, other).and_then(|t| Err(RequestError::UnknownType(t))),
        })
    }
}

/// A body that is not read must still be one value.
fn unread<T>(body: &[u8], result: T) -> Result<T, RequestError> {
    match body.is_empty() || validate(body).is_ok() {
        true => Ok(result),
        false => Err(PACKET_BODY),
    }
}

const PACKET_BODY: RequestError = RequestError::InvalidMsgpack("packet body");
const REQUEST_BODY: RequestError = RequestError::InvalidMsgpack("request body");
const MISSING_BODY: RequestError = RequestError::InvalidMsgpack("missing request body");

/// What a body that is no such map is, and which keys' types matter.
struct Rules {
    mistyped: RequestError,
    /// Keys whose values are checked. `None`: all, and keys that are no numbers are passed over.
    checked: Option<&'static [u8]>,
}

/// Passes the body's pairs to `visit`: the key, the value (of an array or map its head) and the
/// value's bytes.
#[inline]
fn each<'a>(
    body: &'a [u8],
    rules: &Rules,
    mut visit: impl FnMut(u8, Value<'a>, &'a [u8]),
) -> Result<(), RequestError> {
    let mut mistyped = false;
    let Some(mut fields) = Fields::new(body).map_err(|_| PACKET_BODY)? else {
        return Err(if validate(body).is_ok() { rules.mistyped.clone() } else { PACKET_BODY });
    };
    while let Some(field) = fields.next().map_err(|_| PACKET_BODY)? {
        let Some(key) = field.key else {
            mistyped |= rules.checked.is_some();
            continue;
        };
        let checked = rules.checked.is_none_or(|keys| keys.iter().any(|k| u64::from(*k) == key));
        mistyped |= checked && !key::allows(key, field.value.kind());
        if let Ok(key) = u8::try_from(key) {
            visit(key, field.value, field.bytes);
        }
    }
    match (fields.rest(), mistyped) {
        ([], false) => Ok(()),
        ([], true) => Err(rules.mistyped.clone()),
        _ => Err(PACKET_BODY),
    }
}

/// Keys of a request on data, as bits of their number.
type Required = u64;

const SELECT: Required = bit(key::SPACE_ID) | bit(key::LIMIT) | bit(key::KEY);
const INSERT: Required = bit(key::SPACE_ID) | bit(key::TUPLE);
const UPDATE: Required = bit(key::SPACE_ID) | bit(key::KEY) | bit(key::TUPLE);
const DELETE: Required = bit(key::SPACE_ID) | bit(key::KEY);
const UPSERT: Required = bit(key::SPACE_ID) | bit(key::TUPLE) | bit(key::OPS);

const fn bit(key: u8) -> Required {
    1 << key
}

/// Every field that a request on data may have.
struct Dml<'a> {
    space_id: u32,
    space_name: Option<&'a [u8]>,
    index_id: u32,
    index_name: Option<&'a [u8]>,
    iterator: u32,
    offset: u32,
    limit: u32,
    index_base: u32,
    fetch_position: bool,
    key: &'a [u8],
    tuple: &'a [u8],
    operations: &'a [u8],
    after_position: Option<&'a [u8]>,
    after_tuple: Option<&'a [u8]>,
}

impl<'a> Dml<'a> {
    #[inline]
    fn decode(body: &'a [u8], required: Required) -> Result<Dml<'a>, RequestError> {
        let mut dml = Dml {
            space_id: 0,
            space_name: None,
            index_id: 0,
            index_name: None,
            iterator: 0,
            offset: 0,
            limit: 0,
            index_base: 0,
            fetch_position: false,
            key: EMPTY_ARRAY,
            tuple: EMPTY_ARRAY,
            operations: EMPTY_ARRAY,
            after_position: None,
            after_tuple: None,
        };
        let mut missing = required;
        if dml.decode_usual(body, &mut missing).is_none() {
            missing = required;
            let rules = Rules { mistyped: PACKET_BODY, checked: None };
            each(body, &rules, |key, value, bytes| missing &= !dml.set(key, value, bytes))?;
        }
        match missing {
            0 => Ok(dml),
            _ => Err(RequestError::MissingField(name(missing.trailing_zeros() as u8))),
        }
    }

    /// Takes the pairs of a body as connectors send it; `None` of any other, which may have left
    /// something behind that pairs of the same keys replace.
    #[inline]
    fn decode_usual(&mut self, body: &'a [u8], missing: &mut Required) -> Option<()> {
        if body.is_empty() {
            return Some(());
        }
        let (&first @ 0x80..=0x8f, mut rest) = body.split_first()? else { return None };
        for _ in 0..first & 0x0f {
            let (&key, value) = rest.split_first()?;
            rest = value;
            match key {
                key::KEY | key::TUPLE | key::OPS => {
                    let (0x90..=0x9f | 0xdc | 0xdd) = rest.first()? else { return None };
                    let bytes = take(&mut rest).ok()?;
                    match key {
                        key::KEY => self.key = bytes,
                        key::TUPLE => self.tuple = bytes,
                        _ => self.operations = bytes,
                    }
                }
                key::SPACE_ID
                | key::INDEX_ID
                | key::LIMIT
                | key::OFFSET
                | key::ITERATOR
                | key::INDEX_BASE => {
                    let number = small(read_uint(&mut rest).ok()?);
                    match key {
                        key::SPACE_ID => self.space_id = number,
                        key::INDEX_ID => self.index_id = number,
                        key::LIMIT => self.limit = number,
                        key::OFFSET => self.offset = number,
                        key::ITERATOR => self.iterator = number,
                        _ => self.index_base = number,
                    }
                }
                _ => return None,
            }
            *missing &= !bit(key);
        }
        rest.is_empty().then_some(())
    }

    /// Takes one pair, and returns the key that it stands for.
    #[inline]
    fn set(&mut self, key: u8, value: Value<'a>, bytes: &'a [u8]) -> Required {
        match (key, value) {
            (key::SPACE_ID, Value::Uint(id)) => self.space_id = small(id),
            (key::INDEX_ID, Value::Uint(id)) => self.index_id = small(id),
            (key::LIMIT, Value::Uint(limit)) => self.limit = small(limit),
            (key::OFFSET, Value::Uint(offset)) => self.offset = small(offset),
            (key::ITERATOR, Value::Uint(iterator)) => self.iterator = small(iterator),
            (key::INDEX_BASE, Value::Uint(base)) => self.index_base = small(base),
            (key::FETCH_POSITION, Value::Bool(fetch)) => self.fetch_position = fetch,
            (key::KEY, _) => self.key = bytes,
            (key::TUPLE, _) => self.tuple = bytes,
            (key::OPS, _) => self.operations = bytes,
            (key::AFTER_POSITION, Value::Str(position)) => self.after_position = Some(position),
            (key::AFTER_TUPLE, _) => self.after_tuple = Some(bytes),
            (key::SPACE_NAME, Value::Str(name)) => {
                self.space_name = Some(name);
                return bit(key::SPACE_ID);
            }
            (key::INDEX_NAME, Value::Str(name)) => self.index_name = Some(name),
            _ => return 0,
        }
        1u64.checked_shl(u32::from(key)).unwrap_or(0)
    }

    fn space(&self) -> SpaceRef<'a> {
        self.space_name.map_or(SpaceRef::Id(self.space_id), SpaceRef::Name)
    }

    fn index(&self) -> IndexRef<'a> {
        self.index_name.map_or(IndexRef::Id(self.index_id), IndexRef::Name)
    }

    fn select(self) -> Select<'a> {
        Select {
            space: self.space(),
            index: self.index(),
            iterator: self.iterator,
            offset: self.offset,
            limit: self.limit,
            key: self.key,
            fetch_position: self.fetch_position,
            after_position: self.after_position,
            after_tuple: self.after_tuple,
        }
    }

    fn put(self) -> Put<'a> {
        Put { space: self.space(), tuple: self.tuple }
    }

    fn update(self) -> Update<'a> {
        Update {
            space: self.space(),
            index: self.index(),
            index_base: self.index_base,
            key: self.key,
            operations: self.tuple,
        }
    }

    fn delete(self) -> Delete<'a> {
        Delete { space: self.space(), index: self.index(), key: self.key }
    }

    fn upsert(self) -> Upsert<'a> {
        Upsert {
            space: self.space(),
            index_base: self.index_base,
            tuple: self.tuple,
            operations: self.operations,
        }
    }
}

/// An empty MessagePack array.
pub(crate) const EMPTY_ARRAY: &[u8] = &[0x90];

fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn name(key: u8) -> &'static str {
    key::name(u64::from(key)).unwrap_or("unknown")
}

/// CALL and EVAL; `name_key` is the key that has the name.
fn call(body: &[u8], name_key: u8) -> Result<Call<'_>, RequestError> {
    const CHECKED: &[u8] = &[key::FUNCTION_NAME, key::EXPR, key::TUPLE];
    if body.is_empty() {
        return Err(MISSING_BODY);
    }
    let (mut called, mut arguments) = (None, EMPTY_ARRAY);
    let rules = Rules { mistyped: PACKET_BODY, checked: Some(CHECKED) };
    each(body, &rules, |key, value, bytes| match value {
        Value::Str(text) if key == name_key => called = Some(text),
        Value::Array(_) if key == key::TUPLE => arguments = bytes,
        _ => {}
    })?;
    let name = called.ok_or(RequestError::MissingField(name(name_key)))?;
    Ok(Call { name, arguments })
}

fn execute(body: &[u8]) -> Result<Execute<'_>, RequestError> {
    const BOTH: RequestError = RequestError::InvalidMsgpack(
        "SQL text and statement id are incompatible options in one request: choose one",
    );
    if body.is_empty() {
        return Err(MISSING_BODY);
    }
    let (mut text, mut id, mut bind) = (None, None, None);
    let rules = Rules { mistyped: PACKET_BODY, checked: None };
    each(body, &rules, |key, value, bytes| match (key, value) {
        (key::SQL_TEXT, Value::Str(value)) => text = Some(value),
        (key::STMT_ID, Value::Uint(value)) => id = Some(value),
        (key::SQL_BIND, _) => bind = Some(bytes),
        _ => {}
    })?;
    let statement = match (text, id) {
        (Some(text), None) => Statement::Text(text),
        (None, Some(id)) => Statement::Id(id),
        (Some(_), Some(_)) => return Err(BOTH),
        (None, None) => return Err(RequestError::MissingField("SQL_TEXT or STMT_ID")),
    };
    Ok(Execute { statement, bind })
}

fn auth(body: &[u8]) -> Result<Auth<'_>, RequestError> {
    const CHECKED: &[u8] = &[key::USER_NAME, key::TUPLE];
    if body.is_empty() {
        return Err(MISSING_BODY);
    }
    let (mut user_name, mut tuple) = (None, None);
    let rules = Rules { mistyped: PACKET_BODY, checked: Some(CHECKED) };
    each(body, &rules, |key, value, bytes| match (key, value) {
        (key::USER_NAME, Value::Str(name)) => user_name = Some(name),
        (key::TUPLE, _) => tuple = Some(bytes),
        _ => {}
    })?;
    let user_name = user_name.ok_or(RequestError::MissingField(name(key::USER_NAME)))?;
    let tuple = tuple.ok_or(RequestError::MissingField(name(key::TUPLE)))?;
    Ok(Auth { user_name, tuple })
}

fn id(body: &[u8]) -> Result<Id<'_>, RequestError> {
    const CHECKED: &[u8] = &[key::VERSION, key::FEATURES, key::AUTH_TYPE];
    if body.is_empty() {
        return Err(REQUEST_BODY);
    }
    let mut id = Id::default();
    let mut features_known = true;
    let rules = Rules { mistyped: REQUEST_BODY, checked: Some(CHECKED) };
    each(body, &rules, |key, value, bytes| match (key, value) {
        (key::VERSION, Value::Uint(version)) => id.version = version,
        (key::FEATURES, Value::Array(_)) => match features(bytes) {
            Some(features) => id.features = features,
            None => features_known = false,
        },
        (key::AUTH_TYPE, Value::Str(method)) => id.auth_type = Some(method),
        _ => {}
    })?;
    if features_known { Ok(id) } else { Err(REQUEST_BODY) }
}

/// The set of features in an array of their numbers.
pub(crate) fn features(mut array: &[u8]) -> Option<u64> {
    let mut features = 0;
    for _ in 0..read_array(&mut array).ok()? {
        let feature = read_uint(&mut array).ok()?;
        features |= u32::try_from(feature).ok().and_then(|n| 1u64.checked_shl(n)).unwrap_or(0);
    }
    Some(features)
}

fn begin(body: &[u8]) -> Result<Begin, RequestError> {
    let mut begin = Begin::default();
    if body.is_empty() {
        return Ok(begin);
    }
    const CHECKED: &[u8] = &[key::TIMEOUT, key::TXN_ISOLATION, key::IS_SYNC];
    let rules = Rules { mistyped: REQUEST_BODY, checked: Some(CHECKED) };
    each(body, &rules, |key, value, _| match (key, value) {
        (key::TIMEOUT, Value::Double(seconds)) => begin.timeout_seconds = Some(seconds),
        (key::TXN_ISOLATION, Value::Uint(isolation)) => begin.isolation = isolation,
        (key::IS_SYNC, Value::Bool(is_sync)) => begin.is_sync = Some(is_sync),
        _ => {}
    })?;
    Ok(begin)
}

fn event_key(body: &[u8]) -> Result<&[u8], RequestError> {
    if body.is_empty() {
        return Err(MISSING_BODY);
    }
    let mut event = None;
    let rules = Rules { mistyped: PACKET_BODY, checked: Some(&[key::EVENT_KEY]) };
    each(body, &rules, |key, value, _| {
        if let (key::EVENT_KEY, Value::Str(name)) = (key, value) {
            event = Some(name);
        }
    })?;
    event.ok_or(RequestError::MissingField(name(key::EVENT_KEY)))
}

/// Whether the bytes are one MessagePack array and nothing else.
pub fn is_array(bytes: &[u8]) -> bool {
    let mut head = bytes;
    read(&mut head).is_ok_and(|value| value.kind() == Kind::Array) && validate(bytes).is_ok()
}
