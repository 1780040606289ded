//! CALL: methods of spaces and indexes by their names, without Lua.

use crate::call::{
    Argument, Arguments, Method, Options, Target, key_of, key_to_write, through_lua,
};
use crate::error;
use crate::long_count::{CountShape, Counted, LongCount};
use crate::lua_value::LuaValue;
use crate::session_settings;
use crate::statements::{Ended, Running, Seen, position_of};
use ladon_iproto::reply;
use ladon_iproto::request::Call;
use ladon_kernel::long::long_reply::LongReply;
use ladon_kernel::program::Kind;
use ladon_kernel::request::outcome::Flow;
use ladon_msgpack::{self as msgpack, Value, write};
use ladon_record::SpaceId;
use ladon_space::{BoxError, IteratorType, Selected, Statement, Tuple};
use ladon_system_spaces as system;

/// The number of the first field in operations, for Lua.
const INDEX_BASE: u32 = 1;

/// What a method returns.
enum Returned {
    Nothing,
    Tuple(Tuple),
    Number(u64),
}

impl Running<'_, '_> {
    /// Runs a call. CALL_16 returns tuples, and what is none in an array.
    pub(crate) fn call(
        &mut self,
        call: &Call<'_>,
        is_16: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Ended> {
        let name = String::from_utf8_lossy(call.name);
        if self.is_asked() {
            return self.ask(Kind::Call, call, out);
        }
        if !self.session.is_of_program {
            // A program calls methods by their names as Lua does in Tarantool: no function is called.
            self.rights()?.check_call(&name)?;
        }
        if let Some(info) = self.server_info(&name) {
            return Ok(self.reply_with_value(&info, is_16, out)?);
        }
        let is_function = self.rights()?.has_function(&name);
        if is_function && self.call_persistent(call, is_16, &name, out)? {
            return Ok(());
        }
        let undefined = || undefined(&name, is_function);
        let parsed = Target::parse(&name).map(|target| (target, true));
        let parsed = parsed.or_else(|| Some((Target::without_object(&name)?, false)));
        let Some((target, has_object)) = parsed else {
            return self.call_program(call, is_16, undefined, out);
        };
        let space =
            session_settings::named(target.space).or_else(|| self.catalog.named(target.space));
        let Some(space) = space else {
            return self.call_program(call, is_16, undefined, out);
        };
        let index = match target.index {
            None => 0,
            Some(index) => self
                .read_any(space, Seen::Schema, |space| {
                    Ok(space.index_named(index.as_bytes()).map(|it| it.def().id))
                })?
                .ok_or_else(undefined)?,
        };
        if !target.method.is_read() && self.is_for_program(space) {
            return self.call_program(call, is_16, undefined, out);
        }
        let passed = through_lua(call.arguments)?;
        if !has_object {
            return Err(error::without_object(target.index.is_some(), target.method.name()).into());
        }
        let mut arguments = Arguments::new(call.arguments, passed.as_deref())?;
        let of = (space, index);
        let done = self.call_method_of(of, target, &mut arguments, is_16, out);
        match done {
            Err(Ended::Error(error)) if target.index.is_none() => {
                Ok(self.without_primary(space, target.method, error, is_16, out)?)
            }
            done => done,
        }
    }

    /// Lua looks for the primary index before it looks at the arguments and at the rights: what a
    /// method that failed answers if there is none.
    fn without_primary(
        &mut self,
        space: SpaceId,
        method: Method,
        error: BoxError,
        is_16: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), BoxError> {
        let primary =
            self.read_any(space, Seen::Schema, |space| Ok(space.require_index(0).map(|_| ())))?;
        match (primary, method) {
            (Err(missing), method) if method.needs_primary() => Err(missing),
            (Err(_), Method::Count | Method::Len) => self.reply_with_value(&[0], is_16, out),
            (Err(_), Method::Pairs) => Err(pairs_of_nothing()),
            _ => Err(error),
        }
    }

    /// Replies with one value that is no tuple.
    fn reply_with_value(
        &mut self,
        value: &[u8],
        is_16: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), BoxError> {
        let data = reply::begin_data(out, self.sync, self.schema_version);
        if is_16 {
            write::array(out, 1);
        }
        out.extend_from_slice(value);
        data.finish(out, 1).map_err(|long| error::illegal(&long.to_string()))
    }

    fn call_method_of(
        &mut self,
        of: (SpaceId, u32),
        target: Target<'_>,
        arguments: &mut Arguments<'_>,
        is_16: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Ended> {
        let (method, is_of_index) = (target.method, target.index.is_some());
        if method == Method::Select {
            return self.call_select(of, arguments, is_16, out);
        }
        if method == Method::Count {
            return self.call_count(of, arguments, is_16, out);
        }
        if method == Method::Pairs {
            return Ok(self.call_pairs(of, arguments)?);
        }
        let returned = self.call_method(of, is_of_index, method, arguments)?;
        let data = reply::begin_data(out, self.sync, self.schema_version);
        let count = match returned {
            Returned::Nothing => 0,
            Returned::Tuple(tuple) => {
                out.extend_from_slice(tuple.bytes());
                1
            }
            Returned::Number(number) => {
                if is_16 {
                    write::array(out, 1);
                }
                write::uint(out, number);
                1
            }
        };
        Ok(data.finish(out, count).map_err(|long| error::illegal(&long.to_string()))?)
    }

    fn call_select(
        &mut self,
        of: (SpaceId, u32),
        arguments: &mut Arguments<'_>,
        is_16: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Ended> {
        let (space, index) = of;
        let key = key_of(arguments.next()?)?;
        let options = Options::parse(arguments.next()?)?;
        let Options { iterator, offset, limit, after } = options;
        let after = match after {
            Some(tuple) => {
                Some(self.read(space, Seen::Definition, |space| position_of(space, index, tuple))?)
            }
            None => None,
        };
        let iterator = iterator.unwrap_or_else(|| iterator_for(&key));
        let key = (&*key).into();
        let (offset, limit) = (offset.into(), limit.into());
        let selected = Selected { index, iterator, key, offset, limit, after };
        let begin = out.len();
        let count = self.reply_with(space, selected, !is_16, false, out)?;
        if is_16 && count == 0 && self.long.is_none() {
            // What returns tuples, and has none, returns one without fields.
            out.truncate(begin);
            let data = reply::begin_data(out, self.sync, self.schema_version);
            write::array(out, 0);
            data.finish(out, 1).map_err(|long| error::illegal(&long.to_string()))?;
        }
        Ok(())
    }

    fn call_count(
        &mut self,
        of: (SpaceId, u32),
        arguments: &mut Arguments<'_>,
        is_16: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Ended> {
        let (space, index) = of;
        let key = key_of(arguments.next()?)?;
        let iterator = Options::iterator(arguments.next()?);
        let may_be_long = self.thread.local.replies_later;
        let has_long_reply = self.session.has_long_reply;
        let counted = self.read(space, Seen::All, |space| {
            if space.index(0).is_none() {
                return Ok(Some(Counted::All(0)));
            }
            let iterator = iterator?.unwrap_or_else(|| iterator_for(&key));
            let key = (&*key).into();
            let (offset, limit, after) = (0, u64::MAX, None);
            let selected = Selected { index, iterator, key, offset, limit, after };
            let counted = Counted::of(space, selected, may_be_long)?;
            let waits = has_long_reply && matches!(counted, Counted::TooMany(_));
            Ok((!waits).then_some(counted))
        });
        let counted = counted?.ok_or(Ended::Again(Flow::AwaitsReply))?;
        let shape = CountShape { sync: self.sync, schema_version: self.schema_version, is_16 };
        match counted {
            Counted::TooMany(counting) => {
                let (space, selected) = *counting;
                let long = LongCount::new(space, &selected, shape)?;
                let began_ms = self.thread.now_ms;
                self.long = Some(LongReply::of_another_protocol(Box::new(long), began_ms));
                Ok(())
            }
            Counted::All(count) => {
                Ok(shape.write(out, count).map_err(|long| error::illegal(&long.to_string()))?)
            }
        }
    }

    fn call_method(
        &mut self,
        of: (SpaceId, u32),
        is_of_index: bool,
        method: Method,
        arguments: &mut Arguments<'_>,
    ) -> Result<Returned, Ended> {
        let (space, index) = of;
        let tuple = |tuple: Option<Tuple>| tuple.map_or(Returned::Nothing, Returned::Tuple);
        match method {
            Method::Select | Method::Count | Method::Pairs => {
                unreachable!("they have replies of their own")
            }
            Method::Get => {
                let key = key_of(arguments.next()?)?;
                let rights = self.rights()?.clone();
                let selected = one_with(index, &key);
                let seen = Seen::Tuples(&selected);
                let found = self.read_any(space, seen, |space| space.get(index, &key))?;
                let catalog = self.catalog;
                let is_hidden = |found: &Tuple| {
                    system::view_of(space).is_some() && !rights.sees(catalog, space, found.bytes())
                };
                Ok(tuple(found.filter(|found| !is_hidden(found))))
            }
            Method::Insert => {
                let new = tuple_of(arguments.next()?);
                Ok(tuple(self.write(space, Statement::Insert(new))?.new))
            }
            Method::Replace => {
                let new = tuple_of(arguments.next()?);
                Ok(tuple(self.write(space, Statement::Replace(new))?.new))
            }
            Method::Update => {
                let key = arguments.next()?;
                let operations = a_table(arguments.next()?, "Usage index:update(key, ops)")?;
                let (key, operations) = (key_to_write(key)?, an_array(operations)?);
                let (key, index_base) = (&*key, INDEX_BASE);
                let update = Statement::Update { index, key, operations, index_base };
                Ok(tuple(self.write(space, update)?.new))
            }
            Method::Upsert => {
                let usage = "Usage space:upsert(tuple_key, ops)";
                let (tuple, operations) = (arguments.next()?, arguments.next()?);
                if let Some(extra) = arguments.next()? {
                    return Err(extra_argument(extra).into());
                }
                let (tuple, operations) = (a_table(tuple, usage)?, a_table(operations, usage)?);
                let (tuple, operations) = (an_array(tuple)?, an_array(operations)?);
                let index_base = INDEX_BASE;
                self.write(space, Statement::Upsert { tuple, operations, index_base })?;
                Ok(Returned::Nothing)
            }
            Method::Delete => {
                let key = key_to_write(arguments.next()?)?;
                Ok(tuple(self.write(space, Statement::Delete { index, key: &key })?.old))
            }
            Method::Len | Method::Bsize => {
                Ok(Returned::Number(self.call_size(of, method, is_of_index)?))
            }
            Method::Min => {
                let key = key_of(arguments.next()?)?;
                Ok(tuple(self.read(space, Seen::All, |space| space.min(index, &key))?))
            }
            Method::Max => {
                let key = key_of(arguments.next()?)?;
                Ok(tuple(self.read(space, Seen::All, |space| space.max(index, &key))?))
            }
            Method::Random => {
                // The same number finds the same tuple, as long as nothing changes.
                let number = match arguments.next_or_null()? {
                    Some(number) => number.to_u32("box_index_random", 3)?.into(),
                    None => self.thread.local.rng.next_u64(),
                };
                Ok(tuple(self.read(space, Seen::All, |space| space.random(index, number))?))
            }
        }
    }

    /// The number of tuples or bytes of a space, or of an index.
    fn call_size(
        &mut self,
        (space, index): (SpaceId, u32),
        method: Method,
        is_of_index: bool,
    ) -> Result<u64, BoxError> {
        self.read(space, Seen::All, |space| {
            if !is_of_index {
                return Ok(if method == Method::Len { space.len() } else { space.bsize() });
            }
            let index = space.require_index(index)?;
            Ok(if method == Method::Len { index.len() } else { index.bytes() as u64 })
        })
    }

    /// `pairs` checks what it is given; the functions that it returns cannot leave the server.
    fn call_pairs(
        &mut self,
        (space, index): (SpaceId, u32),
        arguments: &mut Arguments<'_>,
    ) -> Result<(), BoxError> {
        let key = key_of(arguments.next()?)?;
        let iterator = Options::iterator(arguments.next()?);
        self.read(space, Seen::All, |space| {
            if space.index(0).is_none() {
                return Err(pairs_of_nothing());
            }
            let iterator = iterator?.unwrap_or_else(|| iterator_for(&key));
            space.select(index, iterator, &key, 0, 0, None)?;
            Err(error::of_lua("unsupported Lua type 'cdata'".to_owned()))
        })
    }
}

/// The error of `pairs` of a space without a primary index: it returns a function.
fn pairs_of_nothing() -> BoxError {
    error::of_lua("unsupported Lua type 'function'".to_owned())
}

/// The tuple with a key.
fn one_with(index: u32, key: &[u8]) -> Selected {
    let (iterator, key) = (IteratorType::Eq, key.into());
    Selected { index, iterator, key, offset: 0, limit: 1, after: None }
}

/// The iterator of a key for which none was named.
pub(crate) fn iterator_for(key: &[u8]) -> IteratorType {
    if key == [0x90] { IteratorType::All } else { IteratorType::Eq }
}

fn tuple_of(argument: Option<Argument<'_>>) -> &[u8] {
    // Nil is no array either; the space says so.
    argument.map_or(&[0xc0], |argument| argument.passed)
}

/// An argument that Lua takes only if it is a table.
fn a_table<'a>(argument: Option<Argument<'a>>, usage: &str) -> Result<&'a [u8], BoxError> {
    let is_table =
        |table: &[u8]| matches!(msgpack::read(&mut { table }), Ok(Value::Array(_) | Value::Map(_)));
    let table = argument.map(|argument| argument.passed).filter(|table| is_table(table));
    table.ok_or_else(|| error::of_lua(usage.to_owned()))
}

/// A table without names.
fn an_array(table: &[u8]) -> Result<&[u8], BoxError> {
    match msgpack::read(&mut { table }) {
        Ok(Value::Array(_)) => Ok(table),
        _ => Err(error::not_array()),
    }
}

fn extra_argument(extra: Argument<'_>) -> BoxError {
    let shown = LuaValue::of(extra.sent).shown();
    error::of_lua(format!(
        "Error: extra argument in upsert call: {shown}. Usage :upsert(tuple, operations)"
    ))
}

/// The error of a call that names nothing that there is here.
fn undefined(name: &str, is_function: bool) -> BoxError {
    /// Methods that Tarantool's spaces have besides.
    const OTHERS: [&str; 16] = [
        "truncate",
        "drop",
        "rename",
        "format",
        "alter",
        "create_index",
        "frommap",
        "auto_increment",
        "inc",
        "dec",
        "on_replace",
        "before_replace",
        "run_triggers",
        "stat",
        "compact",
        "exists",
    ];
    /// What `box` has besides.
    const MODULES: [&str; 32] = [
        "atomic",
        "backup",
        "begin",
        "broadcast",
        "cfg",
        "commit",
        "ctl",
        "error",
        "execute",
        "feedback",
        "func",
        "index",
        "internal",
        "iproto",
        "is_in_txn",
        "lib",
        "on_commit",
        "on_rollback",
        "once",
        "prepare",
        "read_view",
        "rollback",
        "runtime",
        "savepoint",
        "schema",
        "sequence",
        "session",
        "slab",
        "snapshot",
        "stat",
        "tuple",
        "unprepare",
    ];
    if is_function {
        return error::unsupported_procedure(name);
    }
    let Some(of_box) = name.strip_prefix("box.") else { return error::no_such_procedure(name) };
    let Some(of_space) = of_box.strip_prefix("space.") else {
        return match of_box.split(['.', ':']).next() {
            Some(module) if MODULES.contains(&module) => error::unsupported_procedure(name),
            _ => error::no_such_method(name),
        };
    };
    match of_space.rsplit_once([':', '.']) {
        Some((_, method)) if OTHERS.contains(&method) => error::unsupported_procedure(name),
        _ => error::no_such_method(name),
    }
}
