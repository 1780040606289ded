//! Users who know which shard of a cluster has which key.

use crate::dialects::resp::Resp;
use crate::dialects::slots::Sharded;
use crate::load::stream::{Stream, Target};
use crate::run::cell::CellError;
use crate::run::stage::Stage;
use crate::traffic::Asked;
use crate::traffic::iterations::Deed;
use crate::work::Phase;
use crate::works::cluster::{SHARDS, USERS};

/// Puts `part` on the masters, each user on one of them.
pub(super) fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let deed = if part == "set" { Deed::Set } else { Deed::Get };
    let Some(instance) = &stage.instance else {
        return Err(CellError::Cannot("attached: its shards are not known".to_owned()));
    };
    let value_bytes = stage.bench.scale.value_bytes_first(64);
    let masters = instance.addresses()[..SHARDS].to_vec();
    let mut dialect = Box::new(Sharded::new(Resp::new(), SHARDS));
    let streams = (0..USERS).map(|user| {
        let target = Target::plain(masters[user % SHARDS]);
        Stream::open(&target, &mut *dialect)
            .map_err(|error| CellError::Broken(format!("connection {user}: {error}")))
    });
    let streams = streams.collect::<Result<Vec<_>, _>>()?;
    let asked = Asked::Iterations { space: "few", deed, value_bytes };
    let phase = Phase::new(part, USERS, asked);
    let round = stage.measure_over(&phase, dialect, streams)?;
    stage.put(part, None, round);
    Ok(())
}
