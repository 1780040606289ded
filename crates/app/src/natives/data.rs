//! What `box.lua` is built on: requests of IPROTO, asked of the server that this is.

use super::{Native, raise_failed, raise_text, uint};
use crate::context::{Context, failed, not_configured};
use crate::host::Data;
use crate::stack::{LUA_TCDATA, State, bytes, push_bytes};
use crate::values::{Types, ValueError};
use ladon_iproto::client::Reply;
use ladon_iproto::reply::plain_data;
use ladon_iproto::request::{
    Begin, Call, Delete, Execute, IndexRef, Put, Request, Select, SpaceRef, Statement, Update,
    Upsert,
};
use ladon_kernel::program::{Failed, User};
use ladon_msgpack::{read_array, take, write};
use mlua::ffi::*;
use std::ffi::c_int;

pub(super) const NATIVES: &[Native] = &[
    (c"select", select),
    (c"get", get),
    (c"put", put),
    (c"update", update),
    (c"delete", delete),
    (c"upsert", upsert),
    (c"call", call),
    (c"execute", execute),
    (c"prepare", prepare),
    (c"watch_once", watch_once),
    (c"broadcast", broadcast),
    (c"begin", begin),
    (c"commit", commit),
    (c"rollback", rollback),
    (c"in_transaction", in_transaction),
    (c"call_triggers", call_triggers),
    (c"set_triggers", set_triggers),
    (c"last_stated", last_stated),
    (c"has_session", has_session),
    (c"check_call", check_call),
    (c"savepoint", savepoint),
    (c"go_back", go_back),
    (c"keep_stated", keep_stated),
    (c"stated", stated),
    (c"pass_gate", pass_gate),
    (c"schema_version", schema_version),
];

/// Lua counts fields from 1.
const INDEX_BASE: u32 = 1;

/// The number of the first field in operations: Lua's, unless another is given.
unsafe fn base(state: State, index: c_int) -> u32 {
    // SAFETY: As promised by the callers.
    unsafe { if lua_type(state, index) == LUA_TNUMBER { uint(state, index) } else { INDEX_BASE } }
}

/// Why a request has no values.
enum Refused {
    Failed(Failed),
    Value(ValueError),
}

impl From<ValueError> for Refused {
    fn from(error: ValueError) -> Refused {
        Refused::Value(error)
    }
}

impl From<Failed> for Refused {
    fn from(failed: Failed) -> Refused {
        Refused::Failed(failed)
    }
}

/// Raises what a request was refused for.
///
/// # Safety
/// As for [`crate::stack`]; the caller owns nothing else that has to be dropped.
unsafe fn raise(state: State, refused: Refused) -> c_int {
    // SAFETY: As promised.
    unsafe {
        match refused {
            Refused::Failed(failed) => raise_failed(state, failed),
            Refused::Value(ValueError(text)) => raise_text(state, text),
        }
    }
}

/// Values of Lua as MessagePack, one behind the other.
struct Encoded<'t> {
    buffer: Vec<u8>,
    ends: [usize; 3],
    /// The native's first argument, if it is a text. It stays on the stack meanwhile.
    text: &'t [u8],
}

impl<'t> Encoded<'t> {
    /// The values at these indices; 0 for none, and negative ones for keys.
    unsafe fn of(
        state: State,
        context: &Context,
        indices: [c_int; 3],
    ) -> Result<Encoded<'t>, ValueError> {
        // SAFETY: As promised by the caller. A number is left as it is.
        let text = unsafe {
            match lua_type(state, 1) {
                LUA_TSTRING => bytes(state, 1).unwrap_or_default(),
                _ => &[],
            }
        };
        let mut encoded = Encoded { buffer: context.take_buffer(), ends: [0; 3], text };
        let types = context.types.get();
        for (index, end) in indices.into_iter().zip(&mut encoded.ends) {
            if index > 0 {
                // SAFETY: As promised by the caller.
                unsafe { types.encode(state, index, &mut encoded.buffer) }?;
            } else if index < 0 {
                // SAFETY: As promised by the caller.
                unsafe { encode_key(&types, state, -index, &mut encoded.buffer) }?;
            }
            *end = encoded.buffer.len();
        }
        Ok(encoded)
    }

    fn get(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.buffer[start..self.ends[at]]
    }
}

/// A key: what is no table and no tuple, is its only part.
pub(crate) unsafe fn encode_key(
    types: &Types,
    state: State,
    index: c_int,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    // SAFETY: As promised by the caller.
    unsafe {
        let kind = lua_type(state, index);
        let is_null = kind == LUA_TCDATA && ladon_modules::is_null(state, index);
        if kind == LUA_TNIL || kind == LUA_TNONE || is_null {
            write::array(out, 0);
            return Ok(());
        }
        if kind != LUA_TTABLE && types.tuple(state, index).is_none() {
            write::array(out, 1);
        }
        types.encode(state, index, out)
    }
}

/// What a native does with the values of a reply.
#[derive(Clone, Copy)]
enum Show {
    /// Pushes a table of tuples of a space.
    Tuples(u32),
    /// Pushes the tuple, or nil; more than one are an error.
    Tuple(u32),
    /// Pushes all values.
    Values,
    /// Pushes the reply's body as it is.
    Body,
    Nothing,
}

/// Asks, and pushes what the reply has. Returns how many values were pushed.
unsafe fn ask(
    state: State,
    context: &Context,
    indices: [c_int; 3],
    request: impl for<'a> Fn(&'a Encoded<'a>) -> Request<'a>,
    show: Show,
) -> c_int {
    let done = (|| {
        // SAFETY: As promised by the caller.
        let encoded = unsafe { Encoded::of(state, context, indices) }?;
        let mut reply = context.take_buffer();
        let asked = context.request(&request(&encoded), &mut reply);
        context.give_buffer(encoded.buffer);
        asked?;
        Ok::<_, Refused>(reply)
    })();
    let reply = match done {
        Ok(reply) => reply,
        // SAFETY: Nothing else is owned here.
        Err(refused) => return unsafe { raise(state, refused) },
    };
    // SAFETY: As promised by the caller.
    let shown = unsafe { show_reply(state, &context.types.get(), &reply, show) };
    context.give_buffer(reply);
    match shown {
        Ok(count) => count,
        // SAFETY: Nothing else is owned here.
        Err(refused) => unsafe { raise(state, refused) },
    }
}

unsafe fn show_reply(
    state: State,
    types: &Types,
    reply: &[u8],
    show: Show,
) -> Result<c_int, Refused> {
    if let Some((count, values)) = plain_data(reply)
        && !matches!(show, Show::Body)
    {
        // SAFETY: As promised by the caller.
        return unsafe { show_values(state, types, (count, values), show) };
    }
    // Behind its length.
    let packet = reply.get(5..).unwrap_or_default();
    let reply = Reply::decode(packet).map_err(ValueError::from)?;
    if let Some(failed) = failed(&reply) {
        return Err(failed.into());
    }
    if matches!(show, Show::Body) {
        let mut body = packet;
        take(&mut body).map_err(ValueError::from)?;
        // SAFETY: As promised by the caller.
        unsafe { push_bytes(state, body) };
        return Ok(1);
    }
    let mut data = reply.data.unwrap_or(&[0x90]);
    let count = read_array(&mut data).map_err(ValueError::from)?;
    // SAFETY: As promised by the caller.
    unsafe { show_values(state, types, (count, data), show) }
}

/// Pushes what is shown of so many values.
unsafe fn show_values(
    state: State,
    types: &Types,
    (count, mut data): (u32, &[u8]),
    show: Show,
) -> Result<c_int, Refused> {
    // SAFETY: As promised by the caller; room is made on the stack.
    unsafe {
        if lua_checkstack(state, 8) == 0 {
            return Err(ValueError("the stack has no room".to_owned()).into());
        }
        match show {
            Show::Nothing | Show::Body => Ok(0),
            Show::Tuples(space) => {
                lua_createtable(state, count.min(1 << 20) as c_int, 0);
                for at in 1..=count {
                    let tuple = take(&mut data).map_err(ValueError::from)?;
                    types.push_tuple(state, tuple, space);
                    lua_rawseti_(state, -2, at as c_int);
                }
                Ok(1)
            }
            // As Tarantool's methods: no value, not nil.
            Show::Tuple(_) if count == 0 => Ok(0),
            Show::Tuple(_) if count > 1 => Err(more_than_one().into()),
            Show::Tuple(space) => {
                let tuple = take(&mut data).map_err(ValueError::from)?;
                types.push_tuple(state, tuple, space);
                Ok(1)
            }
            Show::Values => {
                for _ in 0..count {
                    push_shown(state, types, &mut data)?;
                }
                Ok(count as c_int)
            }
        }
    }
}

/// Pushes a value; an array as a tuple: what box's methods return.
unsafe fn push_shown(state: State, types: &Types, data: &mut &[u8]) -> Result<(), ValueError> {
    // SAFETY: As promised by the caller.
    unsafe {
        if lua_checkstack(state, 8) == 0 {
            return Err(ValueError("the stack has no room".to_owned()));
        }
        match ladon_iproto::request::is_array(data) {
            true => types.push_tuple(state, take(data)?, 0),
            false => types.push(state, data)?,
        }
    }
    Ok(())
}

/// `ER_TUPLE_NOT_ARRAY`.
pub(crate) fn not_array() -> Failed {
    let message = "Tuple/Key must be MsgPack array".to_owned();
    Failed::new(22, message, "ClientError")
}

/// `ER_MORE_THAN_ONE_TUPLE`.
fn more_than_one() -> Failed {
    let message = "Get() doesn't support partial keys and non-unique indexes".to_owned();
    Failed::new(41, message, "ClientError")
}

/// `select(space, index, iterator, offset, limit, key, after) -> table of tuples`; `after` is a
/// tuple or nil.
unsafe extern "C-unwind" fn select(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let (space, index, iterator) = (uint(state, 1), uint(state, 2), uint(state, 3));
        let (offset, limit) = (uint(state, 4), uint(state, 5));
        let has_after = lua_type(state, 7) > LUA_TNIL;
        let after = if has_after { 7 } else { 0 };
        let request = request_of(|it: &Encoded| {
            select_of(it, (space, index), iterator, (offset, limit), has_after)
        });
        ask(state, context, [6, after, 0], request, Show::Tuples(space))
    }
}

/// A closure whose result borrows from its argument.
fn request_of<F: for<'a> Fn(&'a Encoded<'a>) -> Request<'a>>(request: F) -> F {
    request
}

fn select_of<'a>(
    encoded: &'a Encoded<'_>,
    (space, index): (u32, u32),
    iterator: u32,
    (offset, limit): (u32, u32),
    has_after: bool,
) -> Request<'a> {
    Request::Select(Select {
        space: SpaceRef::Id(space),
        index: IndexRef::Id(index),
        iterator,
        offset,
        limit,
        key: encoded.get(0),
        fetch_position: false,
        after_position: None,
        after_tuple: has_after.then(|| encoded.get(1)),
    })
}

/// `get(space, index, key) -> tuple or nil`.
unsafe extern "C-unwind" fn get(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let of = (uint(state, 1), uint(state, 2));
        let request = request_of(|it: &Encoded| select_of(it, of, 0, (0, 2), false));
        ask(state, context, [-3, 0, 0], request, Show::Tuple(of.0))
    }
}

/// `put(space, tuple, replaces) -> tuple`.
unsafe extern "C-unwind" fn put(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let is_row =
            lua_type(state, 2) == LUA_TTABLE || context.types.get().tuple(state, 2).is_some();
        if !is_row {
            return raise_failed(state, not_array());
        }
        let (space, replaces) = (uint(state, 1), lua_toboolean(state, 3) != 0);
        let request = request_of(|it: &Encoded| {
            let put = Put { space: SpaceRef::Id(space), tuple: it.get(0) };
            if replaces { Request::Replace(put) } else { Request::Insert(put) }
        });
        ask(state, context, [2, 0, 0], request, Show::Tuple(space))
    }
}

/// `update(space, index, key, operations, base or nil) -> tuple or nil`.
unsafe extern "C-unwind" fn update(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let (space, index) = (uint(state, 1), uint(state, 2));
        let index_base = base(state, 5);
        let request = request_of(|it: &Encoded| {
            Request::Update(Update {
                space: SpaceRef::Id(space),
                index: IndexRef::Id(index),
                index_base,
                key: it.get(0),
                operations: it.get(1),
            })
        });
        ask(state, context, [-3, 4, 0], request, Show::Tuple(space))
    }
}

/// `delete(space, index, key) -> tuple or nil`.
unsafe extern "C-unwind" fn delete(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let (space, index) = (uint(state, 1), uint(state, 2));
        let request = request_of(|it: &Encoded| {
            let (space, index) = (SpaceRef::Id(space), IndexRef::Id(index));
            Request::Delete(Delete { space, index, key: it.get(0) })
        });
        ask(state, context, [-3, 0, 0], request, Show::Tuple(space))
    }
}

/// `upsert(space, tuple, operations, base or nil)`.
unsafe extern "C-unwind" fn upsert(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let (space, index_base) = (uint(state, 1), base(state, 4));
        let request = request_of(|it: &Encoded| {
            Request::Upsert(Upsert {
                space: SpaceRef::Id(space),
                index_base,
                tuple: it.get(0),
                operations: it.get(1),
            })
        });
        ask(state, context, [2, 3, 0], request, Show::Nothing)
    }
}

/// `call(name, arguments) -> values`: a method of a space or of an index by its name.
unsafe extern "C-unwind" fn call(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let request =
            request_of(|it: &Encoded| Request::Call(Call { name: it.text, arguments: it.get(0) }));
        ask(state, context, [2, 0, 0], request, Show::Values)
    }
}

/// `execute(sql, parameters or nil) -> body`: that of the reply, MessagePack.
unsafe extern "C-unwind" fn execute(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let has_bind = lua_type(state, 2) > LUA_TNIL;
        let request = request_of(|it: &Encoded| {
            let statement = Statement::Text(it.text);
            Request::Execute(Execute { statement, bind: has_bind.then(|| it.get(0)) })
        });
        ask(state, context, [if has_bind { 2 } else { 0 }, 0, 0], request, Show::Body)
    }
}

/// `prepare(sql or number) -> body`: that of the reply, MessagePack. A number is that of a statement
/// which is to be forgotten.
unsafe extern "C-unwind" fn prepare(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let id = (lua_type(state, 1) == LUA_TNUMBER).then(|| lua_tonumber(state, 1) as u64);
        let request = request_of(|it: &Encoded| {
            let statement = id.map_or(Statement::Text(it.text), Statement::Id);
            Request::Prepare(Execute { statement, bind: None })
        });
        ask(state, context, [0; 3], request, Show::Body)
    }
}

/// `watch_once(key) -> value or nothing`.
unsafe extern "C-unwind" fn watch_once(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let request = request_of(|it: &Encoded| Request::WatchOnce(it.text));
        ask(state, context, [0; 3], request, Show::Values)
    }
}

/// `broadcast(key, value)`.
unsafe extern "C-unwind" fn broadcast(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let done = (|| {
            let encoded = Encoded::of(state, context, [2, 0, 0])?;
            let depends = context.seat().depends;
            let done = match &mut *context.data.borrow_mut() {
                Some(data) => data.broadcast(encoded.text, encoded.get(0), depends),
                None => Err(not_configured()),
            };
            context.give_buffer(encoded.buffer);
            Ok::<_, Refused>(done?)
        })();
        match done {
            Ok(()) => 0,
            Err(refused) => raise(state, refused),
        }
    }
}

/// `begin()`.
unsafe extern "C-unwind" fn begin(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let begin = request_of(|_: &Encoded| Request::Begin(Begin::default()));
        let count = ask(state, context, [0; 3], begin, Show::Nothing);
        context.change_seat(|seat| seat.in_transaction = true);
        count
    }
}

/// `commit()`. The transaction is over, whatever comes of it.
unsafe extern "C-unwind" fn commit(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe { end_transaction(state, Request::Commit(None)) }
}

/// `rollback()`.
unsafe extern "C-unwind" fn rollback(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe { end_transaction(state, Request::Rollback) }
}

unsafe fn end_transaction(state: State, request: Request<'_>) -> c_int {
    // SAFETY: As promised by the callers.
    unsafe {
        let context = Context::of(state);
        let mut reply = context.take_buffer();
        let asked = context.request(&request, &mut reply);
        context.change_seat(|seat| seat.in_transaction = false);
        let done = asked
            .map_err(Refused::from)
            .and_then(|()| show_reply(state, &context.types.get(), &reply, Show::Nothing));
        context.give_buffer(reply);
        match done {
            Ok(count) => count,
            Err(refused) => raise(state, refused),
        }
    }
}

/// Asks the data something about the fiber's transaction.
unsafe fn about_transaction<T>(
    state: State,
    ask: impl FnOnce(&mut dyn Data, u64, User) -> Result<T, Failed>,
) -> T
where
    T: Copy + Default,
{
    // SAFETY: As promised by the callers.
    unsafe {
        let context = Context::of(state);
        let (fiber, user) = (context.scheduler.current(), context.seat().user);
        let asked = match &mut *context.data.borrow_mut() {
            Some(data) => ask(&mut **data, fiber, user),
            None => Err(not_configured()),
        };
        match asked {
            Ok(value) => value,
            Err(failed) => {
                raise_failed(state, failed);
                T::default()
            }
        }
    }
}

/// `call_triggers(boolean) -> boolean`: whether the fiber calls what is to be called when tuples change;
/// returns whether it did.
unsafe extern "C-unwind" fn call_triggers(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        let (before, calls) = (context.seat().calls_triggers, lua_toboolean(state, 1) != 0);
        context.change_seat(|seat| seat.calls_triggers = calls);
        lua_pushboolean(state, c_int::from(before));
    }
    1
}

/// `set_triggers(space, boolean)`: whether something is to be called when its tuples change.
unsafe extern "C-unwind" fn set_triggers(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let (space, has_triggers) = (uint(state, 1), lua_toboolean(state, 2) != 0);
        about_transaction(state, |data, _, _| data.set_triggers(space, has_triggers));
    }
    0
}

/// `last_stated(space) -> boolean, old or nil, new or nil`: whether the last statement of the fiber's
/// transaction has done something to the space, and what.
unsafe extern "C-unwind" fn last_stated(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls. An error of memory leaves the tuples behind.
    unsafe {
        let context = Context::of(state);
        let (fiber, user) = (context.scheduler.current(), context.seat().user);
        let space = uint(state, 1);
        let stated = match &mut *context.data.borrow_mut() {
            Some(data) => data.last_stated(fiber, user, space),
            None => None,
        };
        lua_pushboolean(state, c_int::from(stated.is_some()));
        let (old, new) = stated.map_or((None, None), |one| (one.old, one.new));
        for tuple in [&old, &new] {
            match tuple {
                Some(tuple) => context.types.get().push_tuple(state, tuple, space),
                None => lua_pushnil(state),
            }
        }
    }
    3
}

/// `has_session(number) -> boolean`: whether there is such a client.
unsafe extern "C-unwind" fn has_session(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let number = lua_tonumber(state, 1) as u64;
        let data = Context::of(state).data.borrow();
        let is_there = data.as_ref().is_some_and(|data| data.has_session(number));
        lua_pushboolean(state, c_int::from(is_there));
    }
    1
}

/// `check_call(name)`: raises an error if the fiber's user may not call a function of this name.
unsafe extern "C-unwind" fn check_call(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls; the name is Lua's, on the stack.
    unsafe {
        let name = std::str::from_utf8(bytes(state, 1).unwrap_or_default()).unwrap_or_default();
        about_transaction(state, |data, _, user| data.check_call(user, name));
    }
    0
}

/// `savepoint() -> number`.
unsafe extern "C-unwind" fn savepoint(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let number = about_transaction(state, |data, fiber, user| data.savepoint(fiber, user));
        lua_pushnumber(state, number as f64);
    }
    1
}

/// `go_back(savepoint)`.
unsafe extern "C-unwind" fn go_back(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let to = lua_tonumber(state, 1) as u64;
        about_transaction(state, |data, fiber, user| data.go_back(fiber, user, to));
    }
    0
}

/// `keep_stated()`: for `stated` after the commit.
unsafe extern "C-unwind" fn keep_stated(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe { about_transaction(state, |data, fiber, user| data.keep_stated(fiber, user)) };
    0
}

/// `stated() -> {{space, old or nil, new or nil}, ...}`: what the fiber's transaction has done, or
/// the one that has just committed.
unsafe extern "C-unwind" fn stated(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls. An error of memory leaves the list behind.
    unsafe {
        let context = Context::of(state);
        let (fiber, user) = (context.scheduler.current(), context.seat().user);
        let stated = match &mut *context.data.borrow_mut() {
            Some(data) => data.stated(fiber, user),
            None => Vec::new(),
        };
        let types = context.types.get();
        lua_createtable(state, stated.len().min(1 << 20) as c_int, 0);
        for (at, one) in stated.iter().enumerate() {
            lua_createtable(state, 3, 0);
            lua_pushnumber(state, f64::from(one.space));
            lua_rawseti_(state, -2, 1);
            for (to, tuple) in [(2, &one.old), (3, &one.new)] {
                if let Some(tuple) = tuple {
                    types.push_tuple(state, tuple, one.space);
                    lua_rawseti_(state, -2, to);
                }
            }
            lua_rawseti_(state, -2, at as c_int + 1);
        }
    }
    1
}

/// `in_transaction() -> boolean`.
unsafe extern "C-unwind" fn in_transaction(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe { lua_pushboolean(state, c_int::from(Context::of(state).seat().in_transaction)) };
    1
}

/// `pass_gate()`: waits until what the fiber has seen and written may leave the process.
unsafe extern "C-unwind" fn pass_gate(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        super::before_switch(state);
        Context::of(state).pass_gate();
    }
    0
}

/// `schema_version() -> number`, nil before `box.cfg`.
unsafe extern "C-unwind" fn schema_version(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let version = Context::of(state).data.borrow().as_ref().map(|data| data.schema_version());
        match version {
            Some(version) => lua_pushnumber(state, version as f64),
            None => lua_pushnil(state),
        }
    }
    1
}
