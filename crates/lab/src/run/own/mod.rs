//! The steps that are more than traffic, one file each: the code behind [`crate::work::Own`].

mod churn;
mod eviction;
mod fairness;
mod growth;
mod handover;
mod idle;
mod lag;
mod memory;
mod ping;
mod publish;
mod shards;
mod slots;
mod snapshot;
mod sql;
mod stall;
mod types;

use super::cell::CellError;
use super::stage::Stage;
use crate::work::Own;

/// Does `own` on a stage and puts its rounds into cells; `part` is the first of its step.
///
/// # Errors
/// Why there is no figure.
pub fn run(own: Own, stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let step = match own {
        Own::Ping => ping::run,
        Own::Shards => shards::run,
        Own::Idle => idle::run,
        Own::Slots => slots::run,
        Own::Lag => lag::run,
        Own::LoadTypes => types::load,
        Own::Type => types::run,
        Own::Script => types::script,
        Own::Publish => publish::run,
        Own::Notifications => publish::notifications,
        Own::LoadSql => sql::load,
        Own::Sql => sql::run,
        Own::LoadLarge => stall::load,
        Own::Stall => stall::run,
        Own::Fairness => fairness::run,
        Own::Handover => handover::run,
        Own::Memory => memory::run,
        Own::Snapshot => snapshot::run,
        Own::Growth => growth::run,
        Own::Eviction => eviction::run,
        Own::Churn => churn::run,
    };
    step(stage, part)
}
