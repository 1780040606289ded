//! Where members are: `GEOPOS`, `GEODIST`, `GEOHASH`.

use super::kernel::{distance, point_of_score, standard_geohash, write_distance};
use super::options;
use crate::shared::scores;
use ladon_engine::types::sorted_set::SortedSet;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(super) fn geopos(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    scores::reply_for_each(ctx, args, |reply, score| match score.map(point_of_score) {
        Some(point) => {
            reply.array(2);
            reply.human_double(point.longitude);
            reply.human_double(point.latitude);
        }
        None => reply.null_array(),
    })
}

pub(super) fn geohash(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    scores::reply_for_each(ctx, args, |reply, score| match score.map(point_of_score) {
        Some(point) => reply.bulk(standard_geohash(point)),
        None => reply.null(),
    })
}

pub(super) fn geodist(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let unit = match &args[4..] {
        [] => 1.0,
        [unit] => options::unit(unit)?,
        _ => return Err(CommandError::Syntax),
    };
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let hasher = ctx.keyspace().hasher();
    let (tx, reply) = ctx.tx_and_reply();
    let set = tx.read_value::<SortedSet>(db, key)?;
    let point = |member| Some(point_of_score(set?.score(hasher, member)?));
    match (point(args[2]), point(args[3])) {
        (Some(a), Some(b)) => reply.bulk(write_distance(distance(a, b) / unit)),
        _ => reply.null(),
    }
    Ok(())
}
