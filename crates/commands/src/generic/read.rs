//! `LADON.READ`: a key's type, its time to live, and its value by the command of its type, as one.

use super::{existence, ttl, tuple};
use ladon_engine::types::kind_of;
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::command::spec::{Handler, HandlerFn, OnTuples};
use ladon_kernel::ctx::Ctx;

/// The commands that answer whole values: type, name, arguments behind the key.
const READERS: [(&str, &str, &[&[u8]]); 6] = [
    ("string", "get", &[]),
    ("hash", "hgetall", &[]),
    ("list", "lrange", &[b"0", b"-1"]),
    ("set", "smembers", &[]),
    ("zset", "zrange", &[b"0", b"-1", b"WITHSCORES"]),
    ("stream", "xrange", &[b"-", b"+"]),
];

pub(super) fn read(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let kind = ctx.tx().inspect(db, key).map(|entry| kind_of(entry.value()).name());
    ctx.reply.array(3);
    existence::type_of(ctx, args)?;
    ttl::pttl(ctx, args)?;
    match kind {
        None => ctx.reply.null(),
        Some(kind) => value(ctx, args[1], kind, false)?,
    }
    Ok(())
}

/// The same of a tuple, which is a hash.
pub(super) fn read_tuple(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    ctx.reply.array(3);
    tuple::type_of(ctx, args)?;
    tuple::ttl(ctx, args)?;
    value(ctx, args[1], "hash", true)
}

fn value(ctx: &mut Ctx<'_>, key: &[u8], kind: &str, is_tuple: bool) -> CommandResult {
    let unknown =
        || CommandError::err(format_args!("a value of type {} is read by its commands only", kind));
    let (_, name, options) = READERS.iter().find(|(read, ..)| *read == kind).ok_or_else(unknown)?;
    let table = ctx.node.table;
    let spec = table.find(name.as_bytes()).map(|id| table.spec(id)).ok_or_else(unknown)?;
    let handler: HandlerFn = match (is_tuple, spec.on_tuples, spec.handler) {
        (true, OnTuples::Keys(handler), _) | (false, _, Handler::Run(handler)) => handler,
        _ => return Err(CommandError::err(format_args!("'{}' cannot be read", shown(key)))),
    };
    let args: Vec<&[u8]> =
        [name.as_bytes(), key].into_iter().chain(options.iter().copied()).collect();
    handler(ctx, &args)
}
