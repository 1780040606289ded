//! INSERT, REPLACE, UPDATE and DELETE.
//!
//! Outside of a transaction, a statement computes its changes and writes them while it holds the
//! locks of its spaces. If that would take long, it does so in a transaction of its own on copies,
//! whose commit finds conflicts; then it runs again.

use super::binds::Values;
use super::read::{LOCKED_STEPS_MAX, QUICK_STEPS_MAX, budget};
use super::steps::Steps;
use crate::access::Rights;
use crate::error;
use crate::statements::{Ended, Running, Seen, check_filler, check_read, check_write, puts, with};
use ladon_engine::{Commit, CommitPace, Interactive, Scratch, SpaceTx};
use ladon_kernel::request::outcome::Flow;
use ladon_kernel::thread_parts::ThreadParts;
use ladon_space::{
    BoxError, ErrorCode, IteratorType, Selected, SequenceDef, Space, SpaceSequence, Statement,
    Tuple, Written,
};
use ladon_sql::{
    Budget, Changes, Done, Prepared, Session, Spaces, Stop, Then, Value, Writer, is_interrupted,
};
use ladon_system_spaces as system;
use std::sync::Arc;

/// `ER_TRANSACTION_CONFLICT`.
const TRANSACTION_CONFLICT: ErrorCode = ErrorCode(97);
/// Rows that a statement may change while it holds locks.
const LOCKED_ROWS_MAX: usize = 256;

/// The error of a statement of settings that takes too long.
fn told_too_long(error: BoxError) -> BoxError {
    if !is_interrupted(&error) {
        return error;
    }
    let why = format!("a change of settings is limited to {QUICK_STEPS_MAX} steps");
    error::illegal(&why)
}

/// What a read of one tuple selects.
fn selected(index: u32, key: &[u8]) -> Selected {
    let (iterator, key) = (IteratorType::Eq, key.into());
    Selected { index, iterator, key, offset: 0, limit: u64::MAX, after: None }
}

fn changes(
    prepared: &Prepared,
    spaces: &[&Space],
    values: &[Value],
    session: Session,
    budget: &Budget,
) -> Result<Changes, BoxError> {
    let spaces = Spaces::of(spaces.iter().copied());
    prepared.changes((&spaces, values), session, budget)
}

/// Writes under locks.
struct Locked<'l, 'a> {
    tx: &'l mut SpaceTx<'a>,
    rights: &'l Rights,
    filler: Option<(SpaceSequence, &'l SequenceDef)>,
    is_named: bool,
    is_watched: bool,
}

impl Writer for Locked<'_, '_> {
    fn write(&mut self, space: u32, statement: Statement<'_>) -> Result<Written, BoxError> {
        check_write(self.rights, self.tx.space(space))?;
        if let (Some(filler), Some(tuple)) = (self.filler, puts(statement)) {
            check_filler(self.rights, &filler)?;
            let tuple = self.tx.fill(filler, tuple)?;
            return self.tx.write(space, |space| with(statement, &tuple).run(space));
        }
        self.tx.write(space, |space| statement.run(space))
    }

    fn copy(&mut self, space: u32) -> Result<Space, BoxError> {
        let seen = self.tx.space(space);
        check_read(self.rights, space, seen)?;
        Ok(seen.clone())
    }

    fn is_named(&mut self, _: u32) -> bool {
        self.is_named
    }

    fn is_watched(&mut self, _: u32) -> bool {
        self.is_watched
    }

    fn find(&mut self, space: u32, index: u32, key: &[u8]) -> Result<Option<Tuple>, BoxError> {
        let seen = self.tx.space(space);
        check_read(self.rights, space, seen)?;
        seen.get(index, key)
    }
}

/// Writes in the stream's transaction.
pub(super) struct InStream<'w, 'a, 'thread>(pub(super) &'w mut Running<'a, 'thread>);

impl Writer for InStream<'_, '_, '_> {
    fn write(&mut self, space: u32, statement: Statement<'_>) -> Result<Written, BoxError> {
        self.0.write_in_transaction(space, statement)
    }

    fn copy(&mut self, space: u32) -> Result<Space, BoxError> {
        let mut copies = self.0.copies(&[space])?;
        copies.pop().ok_or_else(|| error::illegal("a space is gone"))
    }

    fn is_named(&mut self, space: u32) -> bool {
        self.0.catalog.names(space)
    }

    fn is_watched(&mut self, space: u32) -> bool {
        self.0.catalog.watches(space)
    }

    fn find(&mut self, space: u32, index: u32, key: &[u8]) -> Result<Option<Tuple>, BoxError> {
        let selected = selected(index, key);
        self.0.read_any(space, Seen::Tuples(&selected), |space| space.get(index, key))
    }
}

/// A statement's transaction of its own.
pub(crate) struct Change {
    transaction: Interactive,
    /// What it has done, once only the commit is left.
    done: Option<Done>,
    /// The error of a statement whose changes stay.
    failed: Option<BoxError>,
    /// How often it has met a conflict.
    rounds: u32,
}

impl Change {
    /// Whether others wait for it: it has met so many conflicts.
    fn is_urgent(&self) -> bool {
        const ROUNDS_WITHOUT_WAITING: u32 = 3;
        self.rounds >= ROUNDS_WITHOUT_WAITING
    }

    /// Ends it without a trace.
    pub(super) fn roll_back(self, scratch: &mut Scratch) {
        self.transaction.roll_back(scratch);
    }
}

/// Writes to the copies of a statement's transaction.
pub(super) struct OnCopies<'w, 'a, 'thread> {
    pub(super) running: &'w mut Running<'a, 'thread>,
    pub(super) transaction: &'w mut Interactive,
}

impl Writer for OnCopies<'_, '_, '_> {
    fn write(&mut self, space: u32, statement: Statement<'_>) -> Result<Written, BoxError> {
        let node = self.running.thread.node;
        let rights = self.running.session.rights(node, self.running.thread.scratch)?.clone();
        let (seen, changed) = self.transaction.space(&node.keyspace, space)?;
        self.running.depends = self.running.depends.max(changed);
        check_write(&rights, seen)?;
        let numbered = match puts(statement) {
            Some(tuple) => Some(self.running.number(space, &rights, tuple)?),
            None => None,
        };
        let statement = numbered.as_ref().map_or(statement, |tuple| with(statement, tuple));
        self.transaction.write(&node.keyspace, space, statement)
    }

    fn copy(&mut self, space: u32) -> Result<Space, BoxError> {
        if system::view_of(space).is_some() || space == system::SESSION_SETTINGS {
            let mut copies = self.running.copies(&[space])?;
            return copies.pop().ok_or_else(|| error::illegal("a space is gone"));
        }
        let copy = self.seen(space)?.clone();
        self.transaction.note_all(space);
        Ok(copy)
    }

    fn is_named(&mut self, space: u32) -> bool {
        self.running.catalog.names(space)
    }

    fn is_watched(&mut self, space: u32) -> bool {
        self.running.catalog.watches(space)
    }

    fn find(&mut self, space: u32, index: u32, key: &[u8]) -> Result<Option<Tuple>, BoxError> {
        let found = self.seen(space)?.get(index, key);
        self.transaction.note_selected(space, selected(index, key))?;
        found
    }
}

/// Writes the session's settings, which are in no transaction.
struct OnSettings<'w, 'a, 'thread>(&'w mut Running<'a, 'thread>);

impl Writer for OnSettings<'_, '_, '_> {
    fn write(&mut self, _: u32, statement: Statement<'_>) -> Result<Written, BoxError> {
        self.0.write_settings(statement)
    }

    fn copy(&mut self, _: u32) -> Result<Space, BoxError> {
        self.0.read_settings(|space| Ok(space.clone()))
    }

    fn is_named(&mut self, _: u32) -> bool {
        false
    }

    fn is_watched(&mut self, _: u32) -> bool {
        false
    }

    fn find(&mut self, _: u32, index: u32, key: &[u8]) -> Result<Option<Tuple>, BoxError> {
        self.0.read_settings(|space| space.get(index, key))
    }
}

impl OnCopies<'_, '_, '_> {
    /// A space that the user may read, as the transaction sees it.
    fn seen(&mut self, id: u32) -> Result<&Space, BoxError> {
        let node = self.running.thread.node;
        let (space, changed) = self.transaction.space(&node.keyspace, id)?;
        self.running.depends = self.running.depends.max(changed);
        check_read(self.running.session.rights(node, self.running.thread.scratch)?, id, space)?;
        Ok(space)
    }
}

/// Whether a statement runs again after an error.
fn may_repeat(error: &BoxError, change: &Change) -> bool {
    /// After so many conflicts, others change the same rows all the time.
    const ROUNDS_MAX: u32 = 20;
    error.code == TRANSACTION_CONFLICT && change.rounds < ROUNDS_MAX
}

/// What came of a try under locks.
enum Tried {
    Done(Done),
    /// It takes too long.
    Long,
}

impl Running<'_, '_> {
    /// Runs a statement that changes rows of a space.
    pub(super) fn change_sql(
        &mut self,
        prepared: &Arc<Prepared>,
        target: u32,
        values: Values,
    ) -> Result<Done, Ended> {
        if target == system::SESSION_SETTINGS {
            return self.change_settings(prepared, &values);
        }
        if ladon_engine::is_defined_with(target) {
            return Err(error::unsupported("changes of system spaces by SQL").into());
        }
        let is_in_transaction = self.is_in_transaction();
        // One that has begun in a transaction goes on: half of it would stay there.
        if !is_in_transaction || self.session.sql_steps.is_none() {
            self.check_takes_writes_of(target)?;
        }
        if is_in_transaction {
            return self.change_in_stream(prepared, values);
        }
        if !self.session.sql_change.as_ref().is_some_and(|change| change.is_urgent()) {
            self.check_stillness(target)?;
        }
        if self.session.sql_change.is_none() && !prepared.is_stepwise() {
            match self.change_under_locks(prepared, target, &values)? {
                Tried::Done(done) => return Ok(done),
                Tried::Long => {}
            }
        }
        self.change_on_copies(prepared, values)
    }

    fn change_under_locks(
        &mut self,
        prepared: &Prepared,
        target: u32,
        values: &[Value],
    ) -> Result<Tried, Ended> {
        let session = self.sql_session();
        let node = self.thread.node;
        let filler = self.catalog.filler(target);
        let mut ids = prepared.spaces().to_vec();
        if ids.iter().any(|id| system::view_of(*id).is_some() || *id == system::SESSION_SETTINGS) {
            return Ok(Tried::Long);
        }
        ids.push(target);
        ids.extend(filler.map(|_| system::SEQUENCE_DATA));
        ids.sort_unstable();
        ids.dedup();
        let ThreadParts { scratch, append, .. } = &mut *self.thread;
        let rights = self.session.rights(node, scratch)?.clone();
        let begun = node.keyspace.begin_writing_spaces(self.catalog, &ids, scratch)?;
        // With the catalog that there is then.
        let Some(mut tx) = begun else { return Err(Ended::Again(Flow::GoesOn)) };
        let found = computed_in(&mut tx, prepared, &rights, values, session);
        let found = found.map_err(Stop::from).and_then(|changes| match changes {
            Some(changes) => {
                let is_named = self.catalog.names(target);
                let is_watched = self.catalog.watches(target);
                let mut writer =
                    Locked { tx: &mut tx, rights: &rights, filler, is_named, is_watched };
                changes.apply(&mut writer).map(Some)
            }
            None => Ok(None),
        });
        match found {
            Ok(Some(done)) => {
                self.depends = self.depends.max(tx.commit(append));
                Ok(Tried::Done(done))
            }
            Ok(None) => {
                self.depends = self.depends.max(tx.abort());
                Ok(Tried::Long)
            }
            Err(Stop { error, then: Then::Keep }) => {
                self.depends = self.depends.max(tx.commit(append));
                Err(error.into())
            }
            Err(stop) => {
                self.depends = self.depends.max(tx.abort());
                Err(stop.error.into())
            }
        }
    }

    /// Changes the session's settings.
    fn change_settings(&mut self, prepared: &Prepared, values: &[Value]) -> Result<Done, Ended> {
        let session = self.sql_session();
        let copies = self.copies(prepared.spaces())?;
        let borrowed: Vec<&Space> = copies.iter().collect();
        let changes = changes(prepared, &borrowed, values, session, &budget(QUICK_STEPS_MAX))
            .map_err(told_too_long)?;
        changes.apply(&mut OnSettings(self)).map_err(|stop| stop.error.into())
    }

    fn change_in_stream(
        &mut self,
        prepared: &Arc<Prepared>,
        values: Values,
    ) -> Result<Done, Ended> {
        let steps = match self.session.sql_steps.take() {
            Some(steps) => steps,
            None => self.begin_in_stream(prepared, values)?,
        };
        let savepoint = steps.savepoint;
        let done = match self.write_slice(steps, None)? {
            Err(Stop { error, then: Then::Rollback }) => {
                self.roll_back();
                return Err(error.into());
            }
            done => done,
        };
        if let Some(savepoint) = savepoint {
            let transaction = self.open_transaction()?;
            if matches!(done, Err(Stop { then: Then::Abort | Then::Ignore, .. })) {
                transaction.go_back(savepoint)?;
            }
            transaction.release(savepoint);
        }
        done.map_err(|stop| stop.error.into())
    }

    fn begin_in_stream(
        &mut self,
        prepared: &Arc<Prepared>,
        values: Values,
    ) -> Result<Box<Steps>, Ended> {
        if prepared.is_stepwise() {
            let mut steps = self.stepping(prepared, &values)?;
            steps.savepoint = Some(self.open_transaction()?.savepoint()?);
            return Ok(Box::new(steps));
        }
        let changes = match self.session.sql_aside.take() {
            Some(aside) => self.made_aside(aside)?,
            None => {
                let copies = self.copies(prepared.spaces())?;
                self.computed(prepared, copies, values)?
            }
        };
        // One write that fails has changed nothing.
        let savepoint = match changes.write_once() {
            true => None,
            false => Some(self.open_transaction()?.savepoint()?),
        };
        let mut steps = Steps::of_changes(changes);
        steps.savepoint = savepoint;
        Ok(Box::new(steps))
    }

    /// Computes changes from copies, on a thread of its own if that takes long.
    fn computed(
        &mut self,
        prepared: &Arc<Prepared>,
        copies: Vec<Space>,
        values: Values,
    ) -> Result<Changes, Ended> {
        let session = self.sql_session();
        let borrowed: Vec<&Space> = copies.iter().collect();
        match changes(prepared, &borrowed, &values, session, &budget(QUICK_STEPS_MAX)) {
            Err(error) if is_interrupted(&error) => {}
            found => return Ok(found?),
        }
        let prepared = Arc::clone(prepared);
        self.go_on_aside(move |budget| {
            let borrowed: Vec<&Space> = copies.iter().collect();
            changes(&prepared, &borrowed, &values, session, budget)
        })
    }

    /// Runs the statement in a transaction of its own, and commits that; after a conflict, again.
    fn change_on_copies(
        &mut self,
        prepared: &Arc<Prepared>,
        values: Values,
    ) -> Result<Done, Ended> {
        let mut change = match self.session.sql_change.take() {
            Some(change) => change,
            None => self.new_change(0),
        };
        if change.done.is_none() {
            match self.change_copies(&mut change, prepared, values) {
                Ok(()) => {}
                Err(Ended::Again(flow)) => {
                    self.session.sql_change = Some(change);
                    return Err(Ended::Again(flow));
                }
                // Definitions have changed.
                Err(Ended::Error(error)) if may_repeat(&error, &change) => {
                    let next = self.new_change(change.rounds + 1);
                    change.transaction.roll_back(self.thread.scratch);
                    self.session.sql_change = Some(next);
                    return Err(Ended::Again(Flow::GoesOn));
                }
                Err(error) => {
                    change.transaction.roll_back(self.thread.scratch);
                    return Err(error);
                }
            }
        }
        self.commit_change(change)
    }

    fn new_change(&mut self, rounds: u32) -> Box<Change> {
        let node = self.thread.node;
        let (client, limits) = (self.session.client().0, node.transaction_limits());
        let transaction = Interactive::opened_by(client, &node.keyspace.spaces, limits);
        Box::new(Change { transaction, done: None, failed: None, rounds })
    }

    /// Computes the changes and writes them to the transaction's copies.
    fn change_copies(
        &mut self,
        change: &mut Change,
        prepared: &Arc<Prepared>,
        values: Values,
    ) -> Result<(), Ended> {
        let steps = match self.session.sql_steps.take() {
            Some(steps) => steps,
            None => self.begin_on_copies(change, prepared, values)?,
        };
        let done = self.write_slice(steps, Some(&mut change.transaction));
        if change.is_urgent() {
            change.transaction.keep_still(&self.thread.node.keyspace, self.thread.now_ms);
        }
        self.keep_done(change, done?)
    }

    fn begin_on_copies(
        &mut self,
        change: &mut Change,
        prepared: &Arc<Prepared>,
        values: Values,
    ) -> Result<Box<Steps>, Ended> {
        if prepared.is_stepwise() {
            return Ok(Box::new(self.stepping(prepared, &values)?));
        }
        if let Some(aside) = self.session.sql_aside.take() {
            return Ok(Box::new(Steps::of_changes(self.made_aside(aside)?)));
        }
        let node = self.thread.node;
        let mut copies = Vec::new();
        for id in prepared.spaces() {
            if system::view_of(*id).is_some() || *id == system::SESSION_SETTINGS {
                copies.append(&mut self.copies(&[*id])?);
                continue;
            }
            let (space, changed) = change.transaction.space(&node.keyspace, *id)?;
            self.depends = self.depends.max(changed);
            check_read(self.session.rights(node, self.thread.scratch)?, *id, space)?;
            copies.push(space.clone());
            change.transaction.note_all(*id);
        }
        Ok(Box::new(Steps::of_changes(self.computed(prepared, copies, values)?)))
    }

    /// Notes what a statement has done, also if it has failed and its changes stay.
    fn keep_done(&mut self, change: &mut Change, done: Result<Done, Stop>) -> Result<(), Ended> {
        self.depends = self.depends.max(change.transaction.depends());
        match done {
            Ok(done) => change.done = Some(done),
            Err(Stop { error, then: Then::Keep }) => {
                (change.done, change.failed) = (Some(Done::default()), Some(error));
            }
            Err(stop) => return Err(stop.error.into()),
        }
        Ok(())
    }

    fn commit_change(&mut self, mut change: Box<Change>) -> Result<Done, Ended> {
        let node = self.thread.node;
        let pace = CommitPace::of_turn(self.thread.now_ms);
        let ThreadParts { scratch, append, .. } = &mut *self.thread;
        let (committed, lsn) = change.transaction.commit(&node.keyspace, scratch, pace, append);
        let flow = match committed {
            Ok(Commit::Done) => {
                self.depends = self.depends.max(lsn);
                if let Some(error) = change.failed.take() {
                    return Err(error.into());
                }
                return Ok(change.done.take().unwrap_or_default());
            }
            Ok(Commit::GoesOn) => Flow::GoesOn,
            Ok(Commit::Waits) => Flow::AwaitsCommit,
            Err(error) if may_repeat(&error, &change) => {
                change = self.new_change(change.rounds + 1);
                Flow::GoesOn
            }
            Err(error) => {
                self.depends = self.depends.max(lsn);
                return Err(error.into());
            }
        };
        self.session.sql_change = Some(change);
        Err(Ended::Again(flow))
    }
}

/// The changes of a statement whose spaces are locked; `None` if they take long.
fn computed_in(
    tx: &mut SpaceTx<'_>,
    prepared: &Prepared,
    rights: &Rights,
    values: &[Value],
    session: Session,
) -> Result<Option<Changes>, BoxError> {
    let budget = budget(LOCKED_STEPS_MAX);
    let found = match *prepared.spaces() {
        [id] => {
            let space = tx.space(id);
            check_read(rights, id, space)?;
            changes(prepared, &[space], values, session, &budget)
        }
        _ => {
            let mut copies = Vec::new();
            for id in prepared.spaces() {
                let space = tx.space(*id);
                check_read(rights, *id, space)?;
                copies.push(space.clone());
            }
            let borrowed: Vec<&Space> = copies.iter().collect();
            changes(prepared, &borrowed, values, session, &budget)
        }
    };
    match found {
        Ok(changes) if changes.len() <= LOCKED_ROWS_MAX => Ok(Some(changes)),
        Ok(_) => Ok(None),
        Err(error) if is_interrupted(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
