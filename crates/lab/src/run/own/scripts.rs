//! Scripts, alone and in pipelines.

use super::types::OnStage;
use crate::load::types::world::World;
use crate::operation::OperationKind;
use crate::run::cell::CellError;
use crate::run::stage::Stage;
use crate::works::scripts::{PARTS, USERS, depths};
use crate::works::types::sizes;

/// Measures the script of `part` at each depth.
pub(super) fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    stage.can_do(OperationKind::AddMember)?;
    let found = PARTS.iter().find(|(name, ..)| name[0] == part);
    let (_, operation, _) = found.expect("a part of this work");
    let sizes = sizes(&stage.bench.scale);
    let depth = 1;
    let mut world =
        World::load(&mut OnStage { stage, users: USERS, depth }, &sizes, &[*operation])?;
    for depth in depths(&stage.bench.scale) {
        let round =
            world.measure(*operation, &sizes, &mut OnStage { stage, users: USERS, depth })?;
        stage.put(part, Some(depth as f64), round);
    }
    Ok(())
}
