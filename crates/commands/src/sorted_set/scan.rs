//! ZSCAN.

use crate::shared::scan::{Also, ScanOptions, reply_empty, reply_page};
use ladon_engine::types::sorted_set::{SortedSet, write_score_17};
use ladon_kernel::command::args;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;
use ladon_resp::write_double;

pub(super) fn zscan(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let cursor = args::cursor(args[2])?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let hasher = ctx.keyspace().hasher();
    let (tx, reply) = ctx.tx_and_reply();
    let Some(set) = tx.read_value::<SortedSet>(db, key)? else {
        // As in Redis, the options are not checked then.
        reply_empty(reply);
        return Ok(());
    };
    let options = ScanOptions::parse(&args[3..], Also::Nothing)?;
    reply_page(reply, |page| {
        let (mut words, mut text) = (0, Vec::new());
        let next = set.scan(hasher, cursor, options.count, |member, score| {
            if !options.matches(member) {
                return options.goes_on(page);
            }
            text.clear();
            // Redis shows the scores of small sets as stored, and those of large ones with all
            // digits.
            if set.is_packed() {
                write_double(&mut text, score);
            } else {
                write_score_17(&mut text, score);
            }
            page.bulk(member);
            page.bulk(&text);
            words += 2;
            options.goes_on(page)
        });
        (next, words)
    });
    Ok(())
}
