//! `DEBUG OBJECT`, `DEBUG HTSTATS`, `DEBUG HTSTATS-KEY`: how data is stored.

use ladon_engine::{EntryRef, Locks, Object, PARTITIONS, ValueRef, types};
use ladon_kernel::command::args;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(super) fn object(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let access = ctx.keyspace().access_rules().at(ctx.now_ms);
    let list_max = ctx.node.settings.list_max_listpack_size();
    let text = on_key(ctx, args[2], |entry| {
        let mut body = Vec::new();
        types::encode_body(entry.value(), &mut body);
        // Address of the value: in its entry, unless it is a separate object.
        let at = match entry.value() {
            ValueRef::Object(object) => std::ptr::from_ref(object).addr(),
            _ => entry.key().as_ptr().addr(),
        };
        let chunks = match entry.value() {
            ValueRef::Object(Object::List(list)) if list.encoding() == "quicklist" => {
                let (nodes, bytes) = (list.chunks(), list.listpack_bytes());
                let mean = list.len() as f64 / nodes as f64;
                let compressed = u8::from(list.compress_depth() != 0);
                format!(
                    " ql_nodes:{nodes} ql_avg_node:{mean:.2} ql_listpack_max:{list_max} \
                     ql_compressed:{compressed} ql_uncompressed_size:{bytes}"
                )
            }
            _ => String::new(),
        };
        format!(
            "Value at:{at:#x} refcount:1 encoding:{} serializedlength:{} lru:{} \
             lru_seconds_idle:{}{chunks}",
            types::encoding_of(entry.value()),
            body.len(),
            entry.access(),
            access.idle_seconds(entry.access())
        )
    })?;
    ctx.reply.simple(&text);
    Ok(())
}

fn on_key<R>(
    ctx: &mut Ctx<'_>,
    name: &[u8],
    show: impl FnOnce(EntryRef<'_>) -> R,
) -> Result<R, CommandError> {
    let (number, key) = (ctx.session.db, ctx.key(name));
    let found = ctx.on(Locks::One(key.hash), |tx| {
        let db = tx.keyspace().select(number);
        tx.peek(db, key).map(show)
    })?;
    found.ok_or(CommandError::NoSuchKey)
}

/// Redis writes to its standard output; Ladon writes to the server's log.
pub(super) fn listpack(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let elements = on_key(ctx, args[2], |entry| match entry.value() {
        ValueRef::Object(object) if object.encoding().starts_with("listpack") => {
            let mut elements = Vec::new();
            object.for_each(|parts| {
                let parts: Vec<String> =
                    parts.iter().map(|part| part.escape_ascii().to_string()).collect();
                elements.push(parts.join(" "));
            });
            Some(elements)
        }
        _ => None,
    })?;
    let elements = elements.ok_or(CommandError::text("ERR Not a listpack encoded object."))?;
    for (number, element) in elements.iter().enumerate() {
        tracing::info!("DEBUG LISTPACK {number}: {element}");
    }
    ctx.reply.simple("Listpack structure printed on stdout");
    Ok(())
}

pub(super) fn htstats(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let databases = i64::from(ctx.keyspace().databases());
    let number = args::integer(args[2])?;
    if !(0..databases).contains(&number) {
        return Err(CommandError::text("ERR Out of range database"));
    }
    let rounds = if ctx.in_exec { 1 } else { PARTITIONS };
    let (mut keys, mut expires, mut fewest, mut most) = (0, 0, usize::MAX, 0);
    for partition in 0..rounds {
        let (part_keys, part_expires, _) = ctx.on_partition(partition, |tx| {
            let db = tx.keyspace().select(number as u16);
            tx.summary(db)
        })?;
        keys += part_keys;
        expires += part_expires;
        fewest = fewest.min(part_keys);
        most = most.max(part_keys);
    }
    let text = format!(
        "[Dictionary HT]\n number of elements: {keys}\n partitions: {PARTITIONS}\n \
         keys in the emptiest partition: {fewest}\n keys in the fullest partition: {most}\n\
         [Expires HT]\n number of elements: {expires}\n"
    );
    ctx.reply.verbatim(*b"txt", text);
    Ok(())
}

pub(super) fn htstats_key(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let text = on_key(ctx, args[2], |entry| match entry.value() {
        ValueRef::Object(object) if object.encoding() == "hashtable" => Some(format!(
            "Hash table 0 stats (main hash table):\n number of elements: {}\n bytes: {}\n",
            object.len(),
            object.bytes()
        )),
        _ => None,
    })?;
    let text = text.ok_or(CommandError::text(
        "ERR The value stored at the specified key is not represented using an hash table",
    ))?;
    ctx.reply.verbatim(*b"txt", text);
    Ok(())
}
