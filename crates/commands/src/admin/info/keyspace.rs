//! The section `Keyspace`.

use super::text::Text;
use ladon_engine::{MOUNTS_DATABASE, PARTITIONS};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::request::mounted;

pub(super) fn write(ctx: &mut Ctx<'_>, text: &mut Text) {
    text.section("Keyspace");
    let databases = ctx.keyspace().databases();
    let mut sums = vec![(0, 0, 0u64); usize::from(databases)];
    // Partition by partition, so that no client waits for the sum of all. A running transaction
    // holds all of them already.
    let rounds = if ctx.in_exec { 1 } else { PARTITIONS };
    for partition in 0..rounds {
        // Without the partitions that a long script holds.
        let _ = ctx.on_partition(partition, |tx| {
            for (number, sum) in sums.iter_mut().enumerate() {
                let db = tx.keyspace().select(number as u16);
                let (keys, expires, ttl) = tx.summary(db);
                sum.0 += keys;
                sum.1 += expires;
                sum.2 += ttl * expires as u64;
            }
        });
    }
    sums[usize::from(MOUNTS_DATABASE)].0 += tuples(ctx);
    for (number, (keys, expires, ttl_sum)) in sums.into_iter().enumerate() {
        if keys > 0 {
            let avg_ttl = ttl_sum.checked_div(expires as u64).unwrap_or(0);
            text.field(
                &format!("db{number}"),
                format_args!("keys={keys},expires={expires},avg_ttl={avg_ttl}"),
            );
        }
    }
}

/// Tuples of mounted spaces, which are keys as well. A transaction holds the spaces of its own keys
/// only, so there they are not counted.
fn tuples(ctx: &mut Ctx<'_>) -> usize {
    if ctx.in_exec || !ctx.keyspace().spaces.has_mounts() {
        return 0;
    }
    let catalog = mounted::catalog(ctx);
    let mut sum = 0;
    for mount in catalog.mounts() {
        // A script does not act on tuples, nor does what runs beside one.
        let len = mounted::on_space(ctx, mount.space, |tx| tx.mounted(mount.space).len());
        sum += len.ok().flatten().unwrap_or(0) as usize;
    }
    sum
}
