//! Listing keys of a database with mounted spaces: ordinary keys first, then the tuples of each
//! space, in the order of its primary index.
//!
//! ```text
//! cursor    bit 62: of tuples | 14 bits: which space | 48 bits: a position's fingerprint
//! ```
//!
//! A position is a primary key, so a tuple that exists from a scan's start to its end is found,
//! whatever other tuples come and go. A position that was forgotten is the beginning of its space.

use super::{database, random, scan};
use crate::shared::scan::{Also, ScanOptions};
use ladon_engine::{Catalog, MOUNTS_DATABASE, Tx};
use ladon_kernel::command::args;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;
use ladon_kernel::request::mounted;
use ladon_kernel::scan_positions::ScanPosition;
use ladon_record::SpaceId;
use ladon_resp::Reply;
use ladon_settings::Glob;
use ladon_space::{IteratorType, Space};

/// Marks cursors of tuples; those of ordinary keys are below. Positive as a signed number.
const OF_TUPLES: u64 = 1 << 62;
const SPACE_BITS: u32 = 14;
const FINGERPRINT_BITS: u32 = 48;
const EMPTY_KEY: &[u8] = &[0x90];

pub(super) fn keys(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if ctx.session.db != MOUNTS_DATABASE {
        return scan::keys(ctx, args);
    }
    mounted::lock_all(ctx, args)?;
    let (db, glob) = (ctx.db(), Glob::new(args[1], false));
    let (tx, reply) = ctx.tx_and_reply();
    let mark = reply.begin_array();
    let mut count = 0;
    tx.for_each(db, |entry| {
        if glob.matches(entry.key()) {
            reply.bulk(entry.key());
            count += 1;
        }
    });
    for id in spaces_of(tx) {
        let space = tx.mounted(id);
        let Ok(tuples) = space.select(0, IteratorType::All, EMPTY_KEY, 0, u64::MAX, None) else {
            continue;
        };
        for tuple in tuples {
            let key = Tx::key_of_tuple(space, tuple.bytes());
            if glob.matches(&key) {
                reply.bulk(&key);
                count += 1;
            }
        }
    }
    reply.end_array(mark, count);
    Ok(())
}

/// The mounted spaces, which the transaction holds.
fn spaces_of(tx: &Tx<'_>) -> Vec<SpaceId> {
    tx.mounts().map(|catalog| in_order(catalog)).unwrap_or_default()
}

/// The mounted spaces in the order in which scans visit them.
fn in_order(catalog: &Catalog) -> Vec<SpaceId> {
    let mut ids: Vec<SpaceId> = catalog.mounts().iter().map(|mount| mount.space).collect();
    ids.sort_unstable_by_key(|&id| (place_of(id), id));
    ids
}

/// What a cursor has of a space.
fn place_of(id: SpaceId) -> u64 {
    u64::from(id) & ((1 << SPACE_BITS) - 1)
}

pub(super) fn dbsize(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if ctx.session.db != MOUNTS_DATABASE {
        return database::dbsize(ctx, args);
    }
    mounted::lock_all(ctx, args)?;
    let db = ctx.db();
    let tx = ctx.tx();
    let mut count = tx.len(db) as u64;
    for id in spaces_of(tx) {
        count += tx.mounted(id).len();
    }
    ctx.reply.integer(count as i64);
    Ok(())
}

/// Chooses between ordinary keys and each space by their numbers, then one of them.
pub(super) fn randomkey(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if ctx.session.db != MOUNTS_DATABASE {
        return random::randomkey(ctx, args);
    }
    mounted::check_no_script(ctx, args)?;
    let ordinary = random::count(ctx) as u64;
    let mut sizes = Vec::new();
    for id in in_order(&mounted::catalog(ctx)) {
        let size = mounted::on_space(ctx, id, |tx| tx.mounted(id).len())?;
        sizes.push((id, size.unwrap_or(0)));
    }
    let total = ordinary + sizes.iter().map(|(_, size)| size).sum::<u64>();
    let mut rest = match usize::try_from(total) {
        Ok(total @ 1..) => ctx.local.rng.below(total) as u64,
        _ => 0,
    };
    let number = ctx.local.rng.next_u64();
    for (id, size) in sizes {
        if rest >= size {
            rest -= size;
            continue;
        }
        let key = mounted::on_space(ctx, id, |tx| {
            let space = tx.mounted(id);
            let tuple = space.random(0, number).ok().flatten();
            tuple.map(|tuple| Tx::key_of_tuple(space, tuple.bytes()))
        })?;
        if let Some(Some(key)) = key {
            ctx.reply.bulk(key);
            return Ok(());
        }
    }
    random::randomkey(ctx, args)
}

pub(super) fn scan(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if ctx.session.db != MOUNTS_DATABASE {
        return scan::scan(ctx, args);
    }
    mounted::check_no_script(ctx, args)?;
    let cursor = args::cursor(args[1])?;
    let options = ScanOptions::parse(&args[2..], Also::Type)?;
    let mut out = Vec::new();
    let (next, found) = if cursor & OF_TUPLES == 0 {
        let (next, found) = scan::page(ctx, cursor, &options, &mut out)?;
        // Cursors that were never returned end a scan, as without mounts.
        let is_end = next == 0 && cursor >> FINGERPRINT_BITS == 0;
        let next = if is_end { first_cursor(ctx, &options) } else { next };
        (next, found)
    } else {
        let mut page = Page {
            reply: Reply::new(&mut out, ctx.reply.proto()),
            options: &options,
            found: 0,
            left: options.count,
        };
        (tuples(ctx, cursor, &mut page)?, page.found)
    };
    scan::reply_page(ctx, next, found, &out);
    Ok(())
}

/// The cursor with which tuples begin; 0 if none can match.
fn first_cursor(ctx: &Ctx<'_>, options: &ScanOptions<'_>) -> u64 {
    if options.kind.is_some_and(|kind| !kind.eq_ignore_ascii_case(b"hash")) {
        return 0;
    }
    match in_order(&mounted::catalog(ctx)).first() {
        Some(&id) => keep(ctx, (id, None)),
        None => 0,
    }
}

/// The cursor of a position.
fn keep(ctx: &Ctx<'_>, position: ScanPosition) -> u64 {
    let mut bytes = position.0.to_le_bytes().to_vec();
    bytes.extend_from_slice(position.1.as_deref().unwrap_or_default());
    let fingerprint = ctx.keyspace().hash(&bytes).0 >> (64 - FINGERPRINT_BITS);
    let place = place_of(position.0);
    ctx.node.scan_positions.keep(fingerprint | place << FINGERPRINT_BITS, position);
    OF_TUPLES | place << FINGERPRINT_BITS | fingerprint
}

/// A page of tuples being filled.
struct Page<'p, 'o> {
    reply: Reply<'p>,
    options: &'p ScanOptions<'o>,
    found: usize,
    /// Tuples that it may still examine.
    left: usize,
}

impl Page<'_, '_> {
    /// Examines tuples of a space behind a primary key. Returns where to continue; `None` at the
    /// space's end.
    fn fill(&mut self, space: &Space, after: Option<&[u8]>) -> Option<Box<[u8]>> {
        let (iterator, key) = match after {
            Some(key) => (IteratorType::Gt, key),
            None => (IteratorType::All, EMPTY_KEY),
        };
        // The primary index may have changed, or be gone.
        let tuples = space.select(0, iterator, key, 0, u64::MAX, None).ok()?;
        let mut last = None;
        for tuple in tuples {
            if self.left == 0 || !self.options.goes_on(&self.reply) {
                let last: &ladon_space::Tuple = last?;
                return space.primary_key_of(last.bytes()).ok().map(Vec::into_boxed_slice);
            }
            self.left -= 1;
            last = Some(tuple);
            let key = Tx::key_of_tuple(space, tuple.bytes());
            if self.options.matches(&key) {
                self.reply.bulk(&key);
                self.found += 1;
            }
        }
        None
    }
}

/// Fills a page from a cursor on, and returns the next one.
fn tuples(
    ctx: &mut Ctx<'_>,
    cursor: u64,
    page: &mut Page<'_, '_>,
) -> Result<u64, ladon_kernel::command::error::CommandError> {
    let place = cursor >> FINGERPRINT_BITS & ((1 << SPACE_BITS) - 1);
    let mut ids = in_order(&mounted::catalog(ctx));
    let mut after = None;
    match ctx.node.scan_positions.find(cursor & !OF_TUPLES) {
        Some((id, key)) => {
            after = key.filter(|_| ids.contains(&id));
            ids.retain(|&other| (place_of(other), other) >= (place, id));
        }
        None => ids.retain(|&other| place_of(other) >= place),
    }
    for id in ids {
        if page.left == 0 {
            return Ok(keep(ctx, (id, None)));
        }
        let from = after.take();
        let next = mounted::on_space(ctx, id, |tx| page.fill(tx.mounted(id), from.as_deref()))?;
        if let Some(Some(key)) = next {
            return Ok(keep(ctx, (id, Some(key))));
        }
    }
    Ok(0)
}
