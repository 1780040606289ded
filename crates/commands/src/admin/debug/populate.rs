//! `DEBUG POPULATE`: many keys at once.

use ladon_engine::Locks;
use ladon_kernel::command::args;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;
use ladon_kernel::request::{admission, mounted};

/// `DEBUG POPULATE count [prefix [bytes]]`: keys `prefix:0`, ... with the values `value:0`, ...
/// With `bytes`, values are cut or padded with zero bytes to that size. Existing keys stay as they
/// are.
pub(super) fn populate(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    admission::changes(ctx.node).map_err(|refusal| refusal.error(ctx.node))?;
    let count = args::positive(args[2])?;
    let prefix = args.get(3).copied().unwrap_or(b"key");
    let bytes_max = i64::try_from(ctx.node.settings.proto_max_bulk_len()).unwrap_or(i64::MAX);
    let bytes = match args.get(4) {
        Some(bytes) => Some(args::integer_in(bytes, 0, bytes_max)? as usize),
        None => None,
    };
    mounted::check_new_keys(ctx, &[prefix, b":"].concat())?;
    let number = ctx.session.db;
    for index in 0..count {
        let mut name = prefix.to_vec();
        name.extend_from_slice(format!(":{index}").as_bytes());
        let mut value = format!("value:{index}").into_bytes();
        if let Some(bytes) = bytes {
            value.resize(bytes, 0);
        }
        let key = ctx.key(&name);
        ctx.on(Locks::One(key.hash), |tx| {
            let db = tx.keyspace().select(number);
            if !tx.exists(db, key) {
                tx.put_string(db, key, &value, 0);
            }
        })?;
    }
    ctx.reply.ok();
    Ok(())
}
