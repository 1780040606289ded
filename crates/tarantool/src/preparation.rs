//! A definition of a large space: its request runs again and again, and prepares a slice of what the
//! definition takes long for each time.

use crate::error;
use crate::statements::{Ended, Running, check_write};
use ladon_engine::{
    DefinitionTurn, Garbage, Preparation, PreparationLimits, Progress, SpaceCell, described_space,
};
use ladon_kernel::request::outcome::Flow;
use ladon_record::SpaceId;
use ladon_space::{BoxError, Statement, Written};
use ladon_system_spaces as system;

/// While earlier definitions have left more to be freed, no further one of a large space begins:
/// on a busy machine they would leave more than is freed.
const LEFT_BYTES_MAX: u64 = 64 << 20;

/// What a connection's request prepares.
pub(crate) struct Preparing {
    /// None before its turn, and while another one claims the space's definitions and has broken it
    /// off.
    preparation: Option<Preparation>,
    /// One of a space is prepared at a time: side by side they would break each other off, and all
    /// hold what they have built so far.
    turn: DefinitionTurn,
    cell: SpaceCell,
    rounds: u32,
    /// Who asks others to wait: the client's number.
    owner: u64,
}

impl Running<'_, '_> {
    /// Prepares what a statement defines, or a part of it; then the request runs again, as it does
    /// if another has asked definitions of the space to wait. `None` if the statement is to run at
    /// once: because that is quick, or to show what is wrong with it. Who has left is not waited
    /// for: others may wait for the same space.
    pub(crate) fn prepare(
        &mut self,
        id: SpaceId,
        statement: Statement<'_>,
    ) -> Result<Option<Box<Preparing>>, Ended> {
        if !matches!(id, system::SPACE | system::INDEX | system::TRUNCATE) {
            return Ok(None);
        }
        let Some(cell) = self.defined_cell(id, statement)? else { return Ok(None) };
        let (owner, now_ms) = (self.session.client().0, self.thread.now_ms);
        if self.session.has_left && self.session.preparing.is_some() {
            return Err(error::client_has_left().into());
        }
        if cell.is_claimed_beside(owner, now_ms) {
            self.discard_broken();
            return Err(Ended::Again(Flow::AwaitsCommit));
        }
        let is_much_left = self.thread.node.lazy_free.definition_bytes() > LEFT_BYTES_MAX;
        let is_early = |preparing: &Preparing, has_begun: bool| {
            !preparing.turn.has_come(now_ms) || is_much_left && !has_begun
        };
        let waits = |it: &Preparing| is_early(it, it.preparation.is_some());
        if self.session.preparing.as_deref().is_some_and(waits) {
            return Err(Ended::Again(Flow::AwaitsCommit));
        }
        let Some(written) = self.foreseen(id, statement)? else { return Ok(None) };
        let had_begun = self.session.preparing.is_some();
        let Some(mut preparing) = self.begin_or_go_on(id, &written, &cell) else { return Ok(None) };
        if self.session.has_left {
            self.discard(preparing);
            return Err(error::client_has_left().into());
        }
        if is_early(&preparing, had_begun) {
            let begun = preparing.preparation.take();
            self.thread.scratch.garbage.extend(begun.map(left));
            self.session.preparing = Some(preparing);
            return Err(Ended::Again(Flow::AwaitsCommit));
        }
        // Who was broken off asks others to wait.
        if preparing.rounds > 0 && !preparing.preparation().claim(owner, now_ms) {
            self.session.preparing = Some(preparing);
            return Err(Ended::Again(Flow::AwaitsCommit));
        }
        match preparing.preparation().go_on(self.limits().slice_work, now_ms) {
            Ok(Progress::Ready) => Ok(Some(preparing)),
            Ok(Progress::GoesOn) => Err(self.goes_on_preparing(preparing)),
            Ok(Progress::Broken) => match self.begin_again(id, &written, preparing) {
                Some(preparing) => Err(self.goes_on_preparing(preparing)),
                None => Ok(None),
            },
            Err(error) => {
                self.depends = self.depends.max(preparing.preparation().depends());
                self.discard(preparing);
                Err(error.into())
            }
        }
    }

    /// There is more to prepare: the request runs again.
    pub(crate) fn goes_on_preparing(&mut self, preparing: Box<Preparing>) -> Ended {
        self.session.preparing = Some(preparing);
        Ended::Again(Flow::GoesOn)
    }

    /// What the statement would write if it ran now. `None` if it would be refused.
    fn foreseen(
        &mut self,
        id: SpaceId,
        statement: Statement<'_>,
    ) -> Result<Option<Written>, BoxError> {
        let rights = self.session.rights(self.thread.node, self.thread.scratch)?;
        let (written, _) = self.catalog.read(id, |space| {
            check_write(rights, space)?;
            statement.run(&mut space.clone())
        });
        Ok(written.ok())
    }

    /// The space that a definition is about. Many requests may wait for one, so it is found without
    /// a look at the system space: its number is the first part of that one's primary key.
    fn defined_cell(
        &mut self,
        id: SpaceId,
        statement: Statement<'_>,
    ) -> Result<Option<SpaceCell>, BoxError> {
        let of = |tuple: &[u8]| described_space(tuple).ok();
        let space = match statement {
            Statement::Insert(tuple)
            | Statement::Replace(tuple)
            | Statement::Upsert { tuple, .. } => of(tuple),
            Statement::Update { index: 0, key, .. } | Statement::Delete { index: 0, key } => {
                of(key)
            }
            // By a name.
            Statement::Update { .. } | Statement::Delete { .. } => {
                let written = self.foreseen(id, statement)?.unwrap_or_default();
                written.new.or(written.old).and_then(|tuple| of(tuple.bytes()))
            }
        };
        Ok(space.and_then(|space| self.catalog.get(space)).cloned())
    }

    /// What the request is preparing, or what it begins to prepare.
    fn begin_or_go_on(
        &mut self,
        id: SpaceId,
        written: &Written,
        cell: &SpaceCell,
    ) -> Option<Box<Preparing>> {
        let Some(preparing) = self.session.preparing.take() else {
            let preparation = Some(self.begin_preparation(id, written)?);
            let owner = self.session.client().0;
            let (cell, turn) = (cell.clone(), cell.queue_definition());
            return Some(Box::new(Preparing { preparation, turn, cell, rounds: 0, owner }));
        };
        let new = written.new.as_ref().map_or(&[][..], |new| new.bytes());
        if preparing.preparation.as_ref().is_some_and(|preparation| preparation.is_of(new)) {
            return Some(preparing);
        }
        // It was broken off, or it is an update of a definition that has changed meanwhile.
        self.begin_again(id, written, preparing)
    }

    fn begin_preparation(&mut self, id: SpaceId, written: &Written) -> Option<Preparation> {
        let limits = self.limits();
        let node = self.thread.node;
        let rights = self.session.rights(node, self.thread.scratch).ok()?;
        node.keyspace.prepare((id, rights), written, limits)
    }

    fn limits(&self) -> PreparationLimits {
        self.thread.scratch.preparation_limits.unwrap_or_default()
    }

    fn begin_again(
        &mut self,
        id: SpaceId,
        written: &Written,
        mut preparing: Box<Preparing>,
    ) -> Option<Box<Preparing>> {
        preparing.rounds += u32::from(preparing.preparation.is_some());
        let Some(mut preparation) = self.begin_preparation(id, written) else {
            self.discard(preparing);
            return None;
        };
        if let Some(broken) = &mut preparing.preparation {
            preparation = preparation.after(broken, self.thread.now_ms);
        }
        let broken = preparing.preparation.replace(preparation);
        self.thread.scratch.garbage.extend(broken.map(left));
        Some(preparing)
    }

    /// What is of no use need not follow changes.
    fn discard_broken(&mut self) {
        if let Some(preparing) = &mut self.session.preparing {
            let broken = preparing.preparation.take_if(|preparation| preparation.is_broken());
            preparing.rounds += u32::from(broken.is_some());
            self.thread.scratch.garbage.extend(broken.map(left));
        }
    }

    /// It may take long to drop.
    pub(crate) fn discard(&mut self, preparing: Box<Preparing>) {
        preparing.cell.end_claim(preparing.owner);
        if let Some(preparation) = &preparing.preparation {
            preparation.end_claim(preparing.owner);
        }
        let bytes = preparing.bytes();
        self.thread.scratch.garbage.push(Garbage::of_definition(preparing, bytes));
    }

    /// The request is over: what it may have left of a preparation goes.
    pub(crate) fn end_preparing(&mut self) {
        if let Some(preparing) = self.session.preparing.take() {
            self.discard(preparing);
        }
    }
}

fn left(preparation: Preparation) -> Garbage {
    let bytes = preparation.bytes();
    Garbage::of_definition(preparation, bytes)
}

impl Preparing {
    /// Bytes of memory that what was prepared takes.
    pub(crate) fn bytes(&self) -> usize {
        self.preparation.as_ref().map_or(0, Preparation::bytes)
    }

    /// What was prepared, of a request that goes on with it.
    pub(crate) fn preparation(&mut self) -> &mut Preparation {
        self.preparation.as_mut().expect("it was begun again")
    }
}
