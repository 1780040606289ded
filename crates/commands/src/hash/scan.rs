//! HSCAN.

use crate::shared::scan::{Also, ScanOptions, reply_empty, reply_page};
use ladon_engine::types::hash::HashValue;
use ladon_kernel::command::args;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;

pub(super) fn hscan(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let cursor = args::cursor(args[2])?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let hasher = ctx.keyspace().hasher();
    let (tx, reply) = ctx.tx_and_reply();
    let Some(hash) = tx.read_value::<HashValue>(db, key)? else {
        // As in Redis, the options are not checked then.
        reply_empty(reply);
        return Ok(());
    };
    let options = ScanOptions::parse(&args[3..], Also::NoValues)?;
    reply_page(reply, |page| {
        let mut words = 0;
        let next = hash.scan(hasher, cursor, options.count, |field| {
            if options.matches(field.name) {
                page.bulk(field.name);
                words += 1;
                if !options.no_values {
                    page.bulk(field.value);
                    words += 1;
                }
            }
            options.goes_on(page)
        });
        (next, words)
    });
    Ok(())
}
