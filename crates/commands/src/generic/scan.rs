//! Listing keys: KEYS at one moment, SCAN step by step.
//!
//! A cursor is a position in hash order: the top 48 bits of the hash to continue from, 0 at the
//! start and the end. Splits and merges of the table move no position, so a key that exists from a
//! scan's start to its end is found, whatever other keys come and go.

use crate::shared::scan::{Also, ScanOptions};
use ladon_engine::types::kind_of;
use ladon_engine::{EntryRef, PARTITIONS, partition_of};
use ladon_kernel::command::args::cursor;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_record::KeyHash;
use ladon_resp::Reply;
use ladon_settings::Glob;

/// Hash bits that a cursor omits: buckets are never as fine, and a client that reads the cursor as
/// a signed number sees a positive one.
const CURSOR_SHIFT: u32 = 16;
/// Buckets (of some five keys) read while one lock is held.
const BUCKETS_PER_LOCK_MAX: usize = 64;
/// Maximum number of buckets read for each requested key: the cost of a scan over very few keys.
const BUCKETS_PER_KEY_MAX: usize = 64;

pub(super) fn keys(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let db = ctx.db();
    let glob = (args[1] != b"*").then(|| Glob::new(args[1], false));
    let (tx, reply) = ctx.tx_and_reply();
    let mark = reply.begin_array();
    let mut count = 0;
    tx.for_each(db, |entry| {
        if glob.as_ref().is_none_or(|glob| glob.matches(entry.key())) {
            reply.bulk(entry.key());
            count += 1;
        }
    });
    reply.end_array(mark, count);
    Ok(())
}

pub(super) fn scan(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let cursor = cursor(args[1])?;
    let options = ScanOptions::parse(&args[2..], Also::Type)?;
    let mut out = Vec::new();
    let (next, found) = page(ctx, cursor, &options, &mut out)?;
    reply_page(ctx, next, found, &out);
    Ok(())
}

/// Writes a page's keys into `out`. Returns the next cursor, and how many they are.
pub(super) fn page(
    ctx: &mut Ctx<'_>,
    cursor: u64,
    options: &ScanOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(u64, usize), CommandError> {
    let mut found = 0;
    let mut bulks = Reply::new(out, ctx.reply.proto());
    let next = walk(ctx, cursor, options.count, |entry| {
        let kind = kind_of(entry.value()).name().as_bytes();
        if options.kind.is_none_or(|wanted| wanted.eq_ignore_ascii_case(kind))
            && options.matches(entry.key())
        {
            bulks.bulk(entry.key());
            found += 1;
        }
        options.goes_on(&bulks)
    })?;
    Ok((next, found))
}

/// Replies with a page.
pub(super) fn reply_page(ctx: &mut Ctx<'_>, next: u64, found: usize, keys: &[u8]) {
    ctx.reply.array(2);
    ctx.reply.bulk_int(next as i64);
    ctx.reply.array(found);
    ctx.reply.raw(keys);
}

/// Visits about `count` keys from `cursor` on, fewer if `visit` returns that it is enough, locking
/// one partition at a time. Returns where to continue.
fn walk(
    ctx: &mut Ctx<'_>,
    cursor: u64,
    count: usize,
    mut visit: impl FnMut(EntryRef<'_>) -> bool,
) -> Result<u64, CommandError> {
    let number = ctx.session.db;
    // A cursor that Ladon never returned ends the scan.
    if cursor > u64::MAX >> CURSOR_SHIFT {
        return Ok(0);
    }
    let mut at = KeyHash(cursor << CURSOR_SHIFT);
    let mut partition = partition_of(at);
    let (mut seen, mut buckets_left) = (0, count.saturating_mul(BUCKETS_PER_KEY_MAX));
    loop {
        let buckets = (count.saturating_sub(seen) / 4).clamp(1, BUCKETS_PER_LOCK_MAX);
        let next = ctx.on_partition(partition, |tx| {
            let db = tx.keyspace().select(number);
            tx.scan(db, partition, at, buckets, |entry| {
                seen = if visit(entry) { seen + 1 } else { count.max(seen + 1) };
            })
        })?;
        match next {
            Some(next) => {
                at = next;
                buckets_left = buckets_left.saturating_sub(buckets);
            }
            None if partition + 1 == PARTITIONS => return Ok(0),
            None => {
                partition += 1;
                at = KeyHash((partition as u64) << (64 - PARTITIONS.ilog2()));
            }
        }
        // Rounded down, so that no key is skipped; but the cursor must advance.
        let reached = at.0 >> CURSOR_SHIFT;
        if reached > cursor && (seen >= count || buckets_left == 0) {
            return Ok(reached);
        }
    }
}
