//! Changes in slices: a statement writes some rows in a turn, and its request is asked for again until
//! all are written. What is written is a transaction's, which nobody else sees before its commit.

use super::read::{BYTES_MAX, QUICK_STEPS_MAX};
use super::write::{InStream, OnCopies};
use crate::error;
use crate::statements::{Ended, Running};
use ladon_engine::Interactive;
use ladon_kernel::request::outcome::Flow;
use ladon_space::{BoxError, Space};
use ladon_sql::{Changes, Done, Prepared, Stepping, Stop, Turn, Value, Writer};
use parking_lot::Mutex;
use std::sync::Arc;

/// A statement that is writing.
pub(crate) struct Steps {
    work: Work,
    /// Where a stream's transaction was before it.
    pub(super) savepoint: Option<u64>,
}

enum Work {
    /// What is to be written is known.
    Changes(Changes),
    /// Row by row, because rows fire triggers. `None` while a thread reads ahead for it.
    Rows(Arc<Mutex<Option<Stepping>>>),
}

impl Steps {
    pub(super) fn of_changes(changes: Changes) -> Steps {
        Steps { work: Work::Changes(changes), savepoint: None }
    }
}

/// What a slice comes to: the end, well or not; or another slice.
type Sliced = Result<Result<Done, Stop>, Ended>;

/// What a statement with triggers needs for its next slice.
enum Slice {
    Turn(Result<Turn, Stop>),
    /// A read over these copies, on another thread.
    Reads(Vec<Space>),
}

fn slice(stepping: &mut Stepping, writer: &mut dyn Writer) -> Slice {
    match stepping.go_on(QUICK_STEPS_MAX, writer) {
        Ok(Turn::Reads(spaces)) => {
            let copies: Result<Vec<Space>, BoxError> =
                spaces.iter().map(|id| writer.copy(*id)).collect();
            copies.map_or_else(|error| Slice::Turn(Err(error.into())), Slice::Reads)
        }
        turn => Slice::Turn(turn),
    }
}

impl Running<'_, '_> {
    /// A statement with triggers that has done nothing.
    pub(super) fn stepping(
        &mut self,
        prepared: &Arc<Prepared>,
        values: &[Value],
    ) -> Result<Steps, BoxError> {
        let stepping = Stepping::new(Arc::clone(prepared), values, self.sql_session(), BYTES_MAX)?;
        let work = Work::Rows(Arc::new(Mutex::new(Some(stepping))));
        Ok(Steps { work, savepoint: None })
    }

    /// Writes a slice: to the copies of a statement's own transaction, or to the stream's.
    pub(super) fn write_slice(
        &mut self,
        mut steps: Box<Steps>,
        transaction: Option<&mut Interactive>,
    ) -> Sliced {
        let held = match &mut steps.work {
            Work::Changes(changes) => {
                changes.lost_row_canary = self.thread.local.lost_row_canary;
                let applied = match transaction {
                    Some(transaction) => {
                        let mut writer = OnCopies { running: self, transaction };
                        changes.apply_some(QUICK_STEPS_MAX, &mut writer)
                    }
                    None => changes.apply_some(QUICK_STEPS_MAX, &mut InStream(self)),
                };
                return match applied {
                    Ok(Some(done)) => Ok(Ok(done)),
                    Ok(None) => Err(self.steps_go_on(steps, Flow::GoesOn)),
                    Err(stop) => Ok(Err(stop)),
                };
            }
            Work::Rows(held) => Arc::clone(held),
        };
        if let Some(aside) = self.session.sql_aside.take() {
            match self.made_aside::<Stepping>(aside) {
                Ok(stepping) => *held.lock() = Some(stepping),
                Err(Ended::Again(flow)) => return Err(self.steps_go_on(steps, flow)),
                Err(Ended::Error(error)) => return Ok(Err(error.into())),
            }
        }
        let Some(mut stepping) = held.lock().take() else {
            return Ok(Err(error::illegal("a statement's state is gone").into()));
        };
        let slice = match transaction {
            Some(transaction) => slice(&mut stepping, &mut OnCopies { running: self, transaction }),
            None => slice(&mut stepping, &mut InStream(self)),
        };
        let copies = match slice {
            Slice::Turn(Ok(Turn::Done(done))) => return Ok(Ok(done)),
            Slice::Turn(Ok(_)) => {
                *held.lock() = Some(stepping);
                return Err(self.steps_go_on(steps, Flow::GoesOn));
            }
            Slice::Turn(Err(stop)) => return Ok(Err(stop)),
            Slice::Reads(copies) => copies,
        };
        *held.lock() = Some(stepping);
        // If there is no thread for it, it stays where it is.
        let read = move |budget: &ladon_sql::Budget| {
            let taken = held.lock().take();
            let mut stepping =
                taken.ok_or_else(|| error::illegal("a statement's state is gone"))?;
            stepping.read_ahead(&copies, budget);
            Ok(stepping)
        };
        match self.go_on_aside::<Stepping>(read) {
            Err(Ended::Again(flow)) => Err(self.steps_go_on(steps, flow)),
            Err(Ended::Error(error)) => Ok(Err(error.into())),
            Ok(_) => Ok(Err(error::illegal("a thread has no result yet").into())),
        }
    }

    fn steps_go_on(&mut self, steps: Box<Steps>, flow: Flow) -> Ended {
        self.session.sql_steps = Some(steps);
        Ended::Again(flow)
    }
}
