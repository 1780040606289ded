//! What the operations of each data type cost.

use crate::load::question::{Asking, Question};
use crate::load::types::world::{Ground, MeasureError, Operation, World};
use crate::operation::OperationKind;
use crate::results::schema::Round;
use crate::run::cell::CellError;
use crate::run::stage::{BULK_USERS, Stage};
use crate::works::types::{DEPTH, PARTS, USERS, sizes};

/// Gives the server data of every type.
pub(super) fn load(stage: &mut Stage<'_>, _: &str) -> Result<(), CellError> {
    stage.can_do(OperationKind::AddMember)?;
    let sizes = sizes(&stage.bench.scale);
    let operations: Vec<Operation> = PARTS.iter().map(|(_, operation, _)| *operation).collect();
    let world = World::load(&mut OnStage { stage }, &sizes, &operations)?;
    stage.kept = Some(Box::new(world));
    Ok(())
}

/// Measures the operation of `part`.
pub(super) fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let not_loaded = || CellError::Broken("its data were not loaded".to_owned());
    let sizes = sizes(&stage.bench.scale);
    let (_, operation, _) =
        PARTS.iter().find(|(name, ..)| name[0] == part).ok_or_else(not_loaded)?;
    let kept = stage.kept.take().ok_or_else(not_loaded)?;
    let mut world = kept.downcast::<World>().map_err(|_| not_loaded())?;
    let round = world.measure(*operation, &sizes, &mut OnStage { stage });
    let round = round.map_err(|error| match error {
        MeasureError::NotLoaded => not_loaded(),
        MeasureError::Ground(error) => error,
    })?;
    stage.kept = Some(world);
    stage.put(part, None, round);
    Ok(())
}

/// A server on a stage, for the questions of the types.
struct OnStage<'a, 'b> {
    stage: &'a mut Stage<'b>,
}

impl Ground for OnStage<'_, '_> {
    type Seen = Round;
    type Error = CellError;

    fn fill(&mut self, question: impl Question) -> Result<(), CellError> {
        self.stage.ask_all(BULK_USERS, question)
    }

    fn take<Q: Question>(&mut self, question: Q) -> Result<Round, CellError> {
        let seed = self.stage.next_seed();
        let asking = Asking::at_random(question, DEPTH, USERS, seed);
        self.stage.measure_resp(USERS, asking)
    }
}
