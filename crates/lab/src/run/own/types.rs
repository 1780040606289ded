//! What the operations of each data type cost, and scripts alone and in pipelines.

use crate::load::question::{Asking, Question};
use crate::load::types::world::{Ground, MeasureError, Operation, World};
use crate::operation::OperationKind;
use crate::results::schema::Round;
use crate::run::cell::CellError;
use crate::run::stage::{BULK_USERS, Stage};
use crate::works::scripts;
use crate::works::types::{DEPTH, PARTS, USERS, sizes};

/// Gives the server data of every type.
pub(super) fn load(stage: &mut Stage<'_>, _: &str) -> Result<(), CellError> {
    stage.can_do(OperationKind::AddMember)?;
    let sizes = sizes(&stage.bench.scale);
    let operations: Vec<Operation> = PARTS.iter().map(|(_, operation, _)| *operation).collect();
    let world = World::load(&mut on(stage), &sizes, &operations)?;
    stage.kept = Some(Box::new(world));
    Ok(())
}

/// Measures the operation of `part`.
pub(super) fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let not_loaded = || CellError::from(MeasureError::NotLoaded);
    let sizes = sizes(&stage.bench.scale);
    let (_, operation, _) =
        PARTS.iter().find(|(name, ..)| name[0] == part).ok_or_else(not_loaded)?;
    let kept = stage.kept.take().ok_or_else(not_loaded)?;
    let mut world = kept.downcast::<World>().map_err(|_| not_loaded())?;
    let round = world.measure(*operation, &sizes, &mut on(stage))?;
    stage.kept = Some(world);
    stage.put(part, None, round);
    Ok(())
}

/// Measures the script of `part` at each depth.
pub(super) fn script(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    stage.can_do(OperationKind::AddMember)?;
    let found = scripts::PARTS.iter().find(|(name, ..)| name[0] == part);
    let &(_, operation, _) = found.expect("a part of this work");
    let sizes = sizes(&stage.bench.scale);
    let users = scripts::USERS;
    let mut world = World::load(&mut OnStage { stage, users, depth: 1 }, &sizes, &[operation])?;
    for depth in scripts::depths(&stage.bench.scale) {
        let round = world.measure(operation, &sizes, &mut OnStage { stage, users, depth })?;
        stage.put(part, Some(depth as f64), round);
    }
    Ok(())
}

const fn on<'a, 'b>(stage: &'a mut Stage<'b>) -> OnStage<'a, 'b> {
    OnStage { stage, users: USERS, depth: DEPTH }
}

impl From<MeasureError<CellError>> for CellError {
    fn from(error: MeasureError<CellError>) -> Self {
        match error {
            MeasureError::NotLoaded => CellError::Broken("its data were not loaded".to_owned()),
            MeasureError::Ground(error) => error,
        }
    }
}

/// A server on a stage, for questions that so many users ask, so many at once.
struct OnStage<'a, 'b> {
    stage: &'a mut Stage<'b>,
    users: usize,
    depth: usize,
}

impl Ground for OnStage<'_, '_> {
    type Seen = Round;
    type Error = CellError;

    fn fill(&mut self, question: impl Question) -> Result<(), CellError> {
        self.stage.ask_all(BULK_USERS, question)
    }

    fn take<Q: Question>(&mut self, question: Q) -> Result<Round, CellError> {
        let seed = self.stage.next_seed();
        let asking = Asking::at_random(question, self.depth, self.users, seed);
        self.stage.measure_resp(self.users, asking)
    }
}
