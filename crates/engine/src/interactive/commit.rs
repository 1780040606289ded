//! The commit of an interactive transaction, a slice of bounded work at a time.
//!
//! ```text
//!   +--> lock the touched spaces
//!   |      nobody has changed them since they were copied   --> the copies take their places; done
//!   |      little is to be repeated                         --> repeat it under the locks; done
//!   |      else: copy a space that was changed, unlock
//!   +--- repeat its steps on the copy, a slice in each turn; a conflict if one shows something else
//! ```
//!
//! What others change meanwhile makes the copy old again, so from the third round on the commit
//! asks the writers of its spaces to wait. That only decides how soon it succeeds: the versions are
//! compared under the locks in any case.

use super::{Interactive, Stated, Step, Touched, View, shown_by};
use crate::interactive::encoded::Encoded;
use crate::keyspace::Keyspace;
use crate::space::{Catalog, Content, SpaceTx, conflict, transactions_too_large};
use crate::tx::{Garbage, Scratch};
use ladon_record::{Lsn, Record, SpaceId};
use ladon_space::{BoundFields, BoxError, Tuple};
use std::mem::take;

/// Statements that a turn has time for: some two hundred microseconds.
const WORK_PER_TURN: usize = 32;
/// What takes about as long as a usual statement: looks of a selection, keys of multikey indexes, or
/// bytes copied.
const TUPLES_PER_WORK: usize = 8;
const BYTES_PER_WORK: usize = 16 << 10;
/// How often a space's steps are repeated before its writers are asked to wait.
const ROUNDS_WITHOUT_WAITING: u32 = 2;
/// How often they are repeated at most. Only changes that do not wait, as those of sequences, can
/// make as many necessary.
const ROUNDS_MAX: u32 = 8;

/// How much of a commit is done at once.
#[derive(Clone, Copy, Debug)]
pub struct CommitPace {
    /// Statements to repeat. As many again may run under the locks at the end.
    pub work: usize,
    /// The time, in Unix milliseconds.
    pub now_ms: u64,
}

impl CommitPace {
    /// What fits into a turn.
    pub fn of_turn(now_ms: u64) -> CommitPace {
        CommitPace { work: WORK_PER_TURN, now_ms }
    }
}

/// How far a commit has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// It is over.
    Done,
    /// Steps are being repeated: call again, as soon as others have had their turn.
    GoesOn,
    /// Another commit has asked the writers of a space to wait: call again later.
    Waits,
}

/// Steps of one space that run again on a new copy.
pub(super) struct Repetition {
    id: SpaceId,
    view: View,
    /// The next step.
    next: usize,
    planted: Planted,
}

/// Testing only.
#[derive(Clone, Copy, Default)]
pub(super) struct Planted {
    /// The first read is not looked at again.
    skips_read: bool,
    /// Foreign keys are not looked at again.
    skips_keys: bool,
}

impl Repetition {
    fn of(id: SpaceId, content: &Content, planted: Planted) -> Repetition {
        Repetition { id, view: View::of(content), next: 0, planted }
    }

    /// Repeats steps that take about so much work. Returns whether all are repeated.
    ///
    /// # Errors
    /// A conflict, if a step shows something else than before.
    fn go_on(&mut self, touched: &Touched, mut work: usize) -> Result<bool, BoxError> {
        let bound = touched.bound.as_ref().filter(|_| !self.planted.skips_keys);
        while let Some(step) = touched.steps.get(self.next) {
            if work == 0 {
                return Ok(false);
            }
            let is_read = matches!(step, Step::Selected(..));
            let is_skipped = is_read && std::mem::take(&mut self.planted.skips_read);
            if !is_skipped && !step.does_the_same(&mut self.view, bound) {
                return Err(conflict());
            }
            work = work.saturating_sub(step.work());
            self.next += 1;
        }
        Ok(true)
    }
}

impl Step {
    /// What it takes to repeat it, in usual statements.
    pub(super) fn work(&self) -> usize {
        let (tuples, bytes) = match self {
            Step::Kept(_) | Step::WentBack(_) => (0, 0),
            Step::Wrote((.., statement), result, keys) => {
                let new = result.as_ref().ok().and_then(|written| written.new.as_ref());
                (*keys, statement.bytes() + new.map_or(0, Tuple::memory))
            }
            Step::Selected(_, tuples, looks) => {
                (*looks, tuples.iter().map(|tuple| tuple.bytes().len()).sum())
            }
        };
        1 + tuples / TUPLES_PER_WORK + bytes / BYTES_PER_WORK
    }

    /// Runs it again, and returns whether it shows what it showed before, and whether the checks of
    /// foreign keys that it passed then are still those of what it has done.
    fn does_the_same(&self, view: &mut View, bound: Option<&BoundFields>) -> bool {
        match self {
            Step::Selected(selected, before, _) => {
                shown_by(selected, &view.space).is_some_and(|(now, _)| {
                    now.iter().map(Tuple::bytes).eq(before.iter().map(Tuple::bytes))
                })
            }
            Step::Kept(savepoint) => {
                view.keep(*savepoint);
                true
            }
            Step::WentBack(savepoint) => view.go_back(*savepoint),
            // Triggers have come meanwhile, and were not called.
            Step::Wrote((_, false, _), ..) if view.has_triggers => false,
            Step::Wrote((number, _, statement), before, _) => {
                let statement = statement.get();
                match (view.run(*number, statement), before) {
                    (Ok(now), Ok(before)) => {
                        let shown = |written| statement.shown(written).map(Tuple::bytes);
                        shown(&now) == shown(before)
                            && bound.is_none_or(|bound| bound.are_alike(before, &now))
                    }
                    // Its text may show a tuple.
                    (Err(now), Err(before)) => now == *before,
                    _ => false,
                }
            }
        }
    }
}

impl Interactive {
    /// Commits, or does a part of it. `append` logs the changes, as one record. Returns
    /// `TRANSACTION_CONFLICT` if nothing has changed, and the transaction is over. The LSN is the
    /// one that a reply depends on: a conflict shows what others changed. What they changed of
    /// definitions is the caller's to know.
    pub fn commit(
        &mut self,
        keyspace: &Keyspace,
        scratch: &mut Scratch,
        pace: CommitPace,
        append: impl FnOnce(Record<'_>) -> Lsn,
    ) -> (Result<Commit, BoxError>, Lsn) {
        let work = scratch.commit_limits.map_or(pace.work, |limits| limits.work);
        let pace = CommitPace { work, ..pace };
        let mut depends = Lsn::ZERO;
        self.planted = Planted {
            skips_read: scratch.skipped_read_canary,
            skips_keys: scratch.skipped_keys_canary,
        };
        let done = self.go_on_with_commit(keyspace, scratch, pace, append, &mut depends);
        if !matches!(done, Ok(Commit::GoesOn | Commit::Waits)) {
            if self.is_urgent {
                let catalog = keyspace.spaces.catalog();
                let cells = self.touched.keys().filter_map(|id| catalog.get(*id));
                cells.for_each(|cell| cell.end_stillness());
            }
            self.leave(scratch);
        }
        (done, depends)
    }

    fn go_on_with_commit(
        &mut self,
        keyspace: &Keyspace,
        scratch: &mut Scratch,
        pace: CommitPace,
        append: impl FnOnce(Record<'_>) -> Lsn,
        depends: &mut Lsn,
    ) -> Result<Commit, BoxError> {
        if self.bytes as u64 > self.limits.of_client {
            return Err(transactions_too_large(self.limits.of_client));
        }
        if !self.is_written() && self.touched.len() < if self.is_joint { 1 } else { 2 } {
            // One space at one moment needs no check.
            return Ok(Commit::Done);
        }
        let catalog = keyspace.spaces.catalog();
        if catalog.version != self.schema_version {
            return Err(conflict());
        }
        if self.is_urgent {
            self.ask_writers_to_wait(&catalog, pace.now_ms);
        }
        if !self.repeat_a_slice(pace.work, scratch, depends)? {
            return Ok(Commit::GoesOn);
        }
        if !self.is_urgent && self.has_to_wait(&catalog, pace.now_ms) {
            return Ok(Commit::Waits);
        }
        let ids: Vec<SpaceId> = self.touched.keys().copied().collect();
        let mut tx = keyspace.begin_on_spaces(&catalog, &ids, scratch).map_err(|_| conflict())?;
        let is_known = !tx.is_out_of_date();
        let old =
            self.old_copies(&mut tx).and_then(|old| is_known.then_some(old).ok_or_else(conflict));
        let old = match old {
            Ok(old) => old,
            Err(error) => {
                *depends = tx.abort();
                return Err(error);
            }
        };
        if old.iter().map(|id| self.touched[id].work).sum::<usize>() <= pace.work {
            let mut replaced = Vec::new();
            let done = self.repeat_all(&mut tx, &old, &mut replaced);
            *depends = match done {
                Ok(()) => self.finish(tx, append),
                Err(_) => tx.abort(),
            };
            scratch.garbage.push(Garbage::of(replaced));
            return done.map(|()| Commit::Done);
        }
        // Others change the space again while its steps are repeated.
        let id = old[0];
        self.repetition = Some(Repetition::of(id, tx.guard(id), self.planted));
        if let Some(cell) = catalog.get(id) {
            self.holding.copied(cell, tx.guard(id));
        }
        *depends = tx.abort();
        let rounds = self.touched.get_mut(&id).map_or(0, |touched| {
            touched.rounds += 1;
            touched.rounds
        });
        if rounds > ROUNDS_MAX {
            return Err(conflict());
        }
        let limits = scratch.commit_limits;
        self.is_urgent |=
            rounds > limits.map_or(ROUNDS_WITHOUT_WAITING, |it| it.rounds_without_waiting);
        Ok(Commit::GoesOn)
    }

    /// Repeats a slice of the steps of the space that was copied, if one was. Returns whether
    /// nothing is left of them.
    fn repeat_a_slice(
        &mut self,
        work: usize,
        scratch: &mut Scratch,
        depends: &mut Lsn,
    ) -> Result<bool, BoxError> {
        let Some(mut repetition) = self.repetition.take() else { return Ok(true) };
        let Some(touched) = self.touched.get_mut(&repetition.id) else { return Ok(true) };
        // A conflict shows what is in the copy.
        *depends = repetition.view.changed;
        if !repetition.go_on(touched, work)? {
            self.repetition = Some(repetition);
            return Ok(false);
        }
        let before = std::mem::replace(&mut touched.view, repetition.view);
        scratch.garbage.push(Garbage::of(before));
        Ok(true)
    }

    /// The spaces that somebody has changed since they were copied.
    ///
    /// # Errors
    /// A conflict, if such a change needs no look at the steps.
    fn old_copies(&self, tx: &mut SpaceTx<'_>) -> Result<Vec<SpaceId>, BoxError> {
        let is_old = |(id, version): (SpaceId, u64)| tx.guard(id).version != version;
        let versions = self.touched.iter().map(|(id, touched)| (*id, touched.view.version));
        let old: Vec<bool> = versions.map(is_old).collect();
        let old = self.touched.iter().zip(old).filter(|(_, is_old)| *is_old);
        old.map(|((id, touched), _)| match touched.is_read_whole && !self.planted.skips_read {
            true => Err(conflict()),
            false => Ok(*id),
        })
        .collect()
    }

    /// Repeats the steps of the spaces whose copies are old, which are few. What may take long to
    /// drop goes to `replaced`.
    fn repeat_all(
        &mut self,
        tx: &mut SpaceTx<'_>,
        old: &[SpaceId],
        replaced: &mut Vec<View>,
    ) -> Result<(), BoxError> {
        for id in old {
            let Some(touched) = self.touched.get_mut(id) else { continue };
            let mut repetition = Repetition::of(*id, tx.guard(*id), self.planted);
            let is_same = repetition.go_on(touched, usize::MAX);
            replaced.push(std::mem::replace(&mut touched.view, repetition.view));
            is_same?;
        }
        Ok(())
    }

    /// Puts the copies into the places of their spaces, and logs the changes. Returns the LSN that
    /// a reply depends on.
    fn finish(&mut self, mut tx: SpaceTx<'_>, append: impl FnOnce(Record<'_>) -> Lsn) -> Lsn {
        let mut views = Vec::new();
        for (id, touched) in &mut self.touched {
            // The reply depends on what was read as well.
            tx.space(*id);
            if touched.view.is_written {
                tx.adopt(*id, &mut touched.view.space);
                let is_followed = tx.is_followed(*id);
                let is_wanted = is_followed || self.keeps_stated;
                let noted = if is_wanted { take(&mut touched.view.noted) } else { Vec::new() };
                for (number, written) in noted {
                    if self.keeps_stated {
                        let written = written.clone();
                        self.stated.push(Stated { number, space: *id, written });
                    }
                    if is_followed {
                        tx.note(*id, written);
                    }
                }
                views.push(&mut touched.view);
            }
        }
        let mut short = Vec::new();
        let record = Encoded::record(&mut views, &mut short);
        // What is beside it may have changes.
        let record = record.or(self.is_joint.then_some(Record::Changes(&[])));
        tx.commit_adopted(record, append)
    }

    /// Asks who would change what it has touched to wait a moment, from now on and at its commit:
    /// its work has been in vain before.
    pub fn keep_still(&mut self, keyspace: &Keyspace, now_ms: u64) {
        self.is_urgent = true;
        self.ask_writers_to_wait(&keyspace.spaces.catalog(), now_ms);
    }

    fn ask_writers_to_wait(&self, catalog: &Catalog, now_ms: u64) {
        let cells = self.touched.keys().filter_map(|id| catalog.get(*id));
        cells.for_each(|cell| cell.keep_still(now_ms));
    }

    /// Whether another commit has asked the writers of a space to wait that this one writes.
    fn has_to_wait(&self, catalog: &Catalog, now_ms: u64) -> bool {
        let written = self.touched.iter().filter(|(_, touched)| touched.view.is_written);
        let mut cells = written.filter_map(|(id, _)| catalog.get(*id));
        cells.any(|cell| cell.is_kept_still(now_ms))
    }
}
