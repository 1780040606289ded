//! `RANDOMKEY`.

use ladon_engine::PARTITIONS;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;

/// With at least this many keys, partitions differ little in size, because the hash spreads keys
/// evenly.
const EVEN_KEYS_MIN: usize = 256;
/// Buckets to search for a live key at a time.
const BUCKETS_PER_LOOK: usize = 64;
/// Tries before the sizes of all partitions are counted.
const TRIES_MAX: usize = 4;

pub(super) fn randomkey(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let key = from_a_large_partition(ctx).or_else(|| weighted(ctx)).or_else(|| any(ctx));
    match key {
        Some(key) => ctx.reply.bulk(key),
        // It was searched in the partitions only that no long script holds.
        None if ctx.node.scripts.running.any_long() => {
            return Err(ctx.node.scripts.running.busy());
        }
        None => ctx.reply.null(),
    }
    Ok(())
}

/// How many keys there are, expired ones included.
pub(super) fn count(ctx: &mut Ctx<'_>) -> usize {
    ctx.partitions().map(|partition| len(ctx, partition)).sum()
}

fn from_a_large_partition(ctx: &mut Ctx<'_>) -> Option<Vec<u8>> {
    (0..TRIES_MAX).find_map(|_| {
        let partition = ctx.local.rng.below(PARTITIONS);
        (len(ctx, partition) >= EVEN_KEYS_MIN).then(|| pick(ctx, partition))?
    })
}

/// Chooses a partition in proportion to its keys, then one of its keys: exactly uniform for few
/// keys.
fn weighted(ctx: &mut Ctx<'_>) -> Option<Vec<u8>> {
    let sizes: Vec<usize> = ctx.partitions().map(|partition| len(ctx, partition)).collect();
    let total: usize = sizes.iter().sum();
    (0..TRIES_MAX).take_while(|_| total > 0).find_map(|_| {
        let mut rest = ctx.local.rng.below(total);
        let partition = sizes.iter().position(|&size| {
            let here = rest < size;
            rest = rest.wrapping_sub(size);
            here
        })?;
        pick(ctx, partition)
    })
}

/// Searches from a random partition for any key that has not expired, when nearly all have. Finding
/// none depends on all partitions, and so does the reply.
fn any(ctx: &mut Ctx<'_>) -> Option<Vec<u8>> {
    let first = ctx.local.rng.below(PARTITIONS);
    let number = ctx.session.db;
    (0..PARTITIONS).map(|offset| (first + offset) % PARTITIONS).find_map(|partition| {
        let found = ctx.on_partition(partition, |tx| {
            let db = tx.keyspace().select(number);
            tx.depend_on_all();
            let mut found: Option<Vec<u8>> = None;
            let mut from = ladon_record::KeyHash(0);
            while found.is_none() {
                let next = tx.scan(db, partition, from, BUCKETS_PER_LOOK, |entry| {
                    found.get_or_insert_with(|| entry.key().to_vec());
                });
                match next {
                    Some(next) => from = next,
                    None => break,
                }
            }
            found
        });
        found.ok().flatten()
    })
}

fn len(ctx: &mut Ctx<'_>, partition: usize) -> usize {
    let number = ctx.session.db;
    let len = ctx.on_partition(partition, |tx| {
        let db = tx.keyspace().select(number);
        tx.len_of(db, partition)
    });
    len.unwrap_or_default()
}

fn pick(ctx: &mut Ctx<'_>, partition: usize) -> Option<Vec<u8>> {
    let number = ctx.session.db;
    let mut rng = ctx.local.rng.clone();
    let key = ctx.on_partition(partition, |tx| {
        let db = tx.keyspace().select(number);
        tx.random(db, partition, || rng.next_u64())
    });
    ctx.local.rng = rng;
    key.ok().flatten()
}
