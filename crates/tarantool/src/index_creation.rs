//! An index of a large space: its request runs again and again, and builds a slice of it each time.

use crate::statements::{Running, check_write};
use ladon_commands::Flow;
use ladon_engine::{Built, Garbage, IndexCreation};
use ladon_space::BoxError;
use ladon_system_spaces as system;

/// Tuples that a turn has time for: some hundred microseconds.
const TUPLES_PER_TURN: usize = 128;
/// How often it begins again, if other definitions break it off. Then it is built in one go.
const ROUNDS_MAX: u32 = 8;

/// An index that a connection's request is building.
pub(crate) struct Building {
    /// The tuple of `_index` that describes it.
    tuple: Box<[u8]>,
    creation: IndexCreation,
    rounds: u32,
}

impl Running<'_, '_> {
    /// Builds the index that a tuple for `_index` describes, or a part of it; then the request runs
    /// again. `None` if it is to be built in one go, or cannot be.
    pub(crate) fn build_index(
        &mut self,
        tuple: &[u8],
        may_replace: bool,
    ) -> Result<Option<IndexCreation>, BoxError> {
        let building = self.session.building.take();
        let going = building.filter(|building| *building.tuple == *tuple);
        let mut building = match going {
            Some(building) => building,
            None => {
                let node = self.thread.node;
                let rights = self.session.rights(node, self.thread.scratch)?;
                let (may, lsn) =
                    self.catalog.read(system::INDEX, |space| check_write(rights, space));
                self.depends = self.depends.max(lsn);
                may?;
                let Some(creation) = node.keyspace.begin_index(tuple, may_replace) else {
                    return Ok(None);
                };
                Box::new(Building { tuple: tuple.into(), creation, rounds: 0 })
            }
        };
        match building.creation.go_on(TUPLES_PER_TURN) {
            Ok(Built::Ready) => return Ok(Some(building.creation)),
            Ok(Built::GoesOn) => {}
            Ok(Built::Broken) => {
                building.rounds += 1;
                let again = self.thread.node.keyspace.begin_index(tuple, may_replace);
                let Some(creation) = again.filter(|_| building.rounds < ROUNDS_MAX) else {
                    self.discard(building);
                    return Ok(None);
                };
                let broken = std::mem::replace(&mut building.creation, creation);
                self.thread.scratch.garbage.push(Garbage::of(broken));
            }
            Err(error) => {
                self.depends = self.depends.max(building.creation.depends());
                self.discard(building);
                return Err(error);
            }
        }
        self.session.building = Some(building);
        Err(self.run_again(Flow::GoesOn))
    }

    /// It may take long to drop.
    fn discard(&mut self, building: Box<Building>) {
        self.thread.scratch.garbage.push(Garbage::of(building));
    }

    /// The request is over: what it may have left of an index goes.
    pub(crate) fn end_building(&mut self) {
        if let Some(building) = self.session.building.take() {
            self.discard(building);
        }
    }
}
