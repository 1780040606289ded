//! Interactive transactions: many requests, then a commit or none.
//!
//! ```text
//! statement --> a copy of the space, made when it is first touched   others see nothing of it
//! commit    --> locks the touched spaces
//!               nobody changed them   the copies take their places
//!               somebody did          the statements run again on what there is now; if one shows
//!                                     something else than it showed before: a conflict
//! ```
//!
//! A copy shares memory with its space. Readers and writers never wait for an open transaction. What
//! a client was shown is true at the commit as well, so transactions are serializable. A conflict is
//! found at the commit, and only where a result would differ: two transactions that replace tuples
//! of one space do not conflict.
//!
//! A read of many tuples is not repeated: it conflicts with every change of its space. Each space is
//! copied at a moment of its own; the commit finds what did not fit together. A change of any
//! definition conflicts with every open transaction, as in Tarantool.

use crate::keyspace::Keyspace;
use crate::space::{SpaceTx, Spaces, conflict, no_such_space, transaction_too_large};
use crate::tx::{Garbage, Scratch};
use ladon_model::{Lsn, Record, SpaceId};
use ladon_space::{
    BoxError, ErrorCode, OwnedStatement, Selected, Space, Statement, Tuple, Written,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// A read of more tuples is not repeated at the commit.
const REPEATED_TUPLES_MAX: usize = 1_000;
/// What a transaction may hold, and those of a connection together. A commit runs in one turn of a
/// thread, and this bounds it.
const BYTES_MAX: usize = 64 << 20;
/// What a changed tuple costs beside its bytes: nodes of the indexes that are copied.
const STEP_BYTES: usize = 512;

/// An open transaction.
pub struct Interactive {
    /// The definitions' version at the first touch.
    schema_version: u64,
    touched: BTreeMap<SpaceId, Touched>,
    steps: Vec<Step>,
    /// Bytes held, as they are counted in `total`.
    bytes: usize,
    total: Arc<AtomicI64>,
}

/// A space as the transaction sees it.
struct Touched {
    space: Space,
    /// Those of the space when it was copied.
    version: u64,
    changed: Lsn,
    is_written: bool,
}

/// What was done and shown.
enum Step {
    Wrote(SpaceId, OwnedStatement, Result<Written, ErrorCode>),
    Selected(SpaceId, Selected, Vec<Tuple>),
    /// Depends on everything in the space.
    Looked(SpaceId),
}

impl Interactive {
    /// A transaction that has done nothing.
    pub fn new(spaces: &Spaces) -> Interactive {
        Interactive {
            schema_version: 0,
            touched: BTreeMap::new(),
            steps: Vec::new(),
            bytes: 0,
            total: spaces.bytes_counter(),
        }
    }

    /// A space as the transaction sees it, and the LSN that what it shows depends on. What a reply
    /// shows of it has to be noted.
    ///
    /// # Errors
    /// If there is no such space; `TRANSACTION_CONFLICT`, if definitions have changed meanwhile.
    pub fn space(&mut self, keyspace: &Keyspace, id: SpaceId) -> Result<(&Space, Lsn), BoxError> {
        let touched = self.touch(keyspace, id)?;
        Ok((&touched.space, touched.changed))
    }

    /// Notes that a reply shows the result of a selection.
    ///
    /// # Errors
    /// If the transaction holds too much.
    pub fn note_selected(&mut self, id: SpaceId, selected: Selected) -> Result<(), BoxError> {
        let Some(touched) = self.touched.get(&id) else { return Ok(()) };
        let tuples = |space| Some(selected.of(space).ok()?.take(REPEATED_TUPLES_MAX + 1).cloned());
        let tuples: Vec<Tuple> = tuples(&touched.space).into_iter().flatten().collect();
        if tuples.len() > REPEATED_TUPLES_MAX {
            return self.note_all(id);
        }
        let bytes = size_of_val(&tuples[..]) + selected.key.len();
        self.hold(bytes, Step::Selected(id, selected, tuples))
    }

    /// Notes that a reply depends on a whole space.
    ///
    /// # Errors
    /// If the transaction holds too much.
    pub fn note_all(&mut self, id: SpaceId) -> Result<(), BoxError> {
        self.hold(0, Step::Looked(id))
    }

    /// Runs a statement. Returns what it did. A reply about it, or about its error, depends on what
    /// [`Interactive::space`] says.
    ///
    /// # Errors
    /// Those of the statement, which has done nothing then, and those of [`Interactive::space`].
    pub fn write(
        &mut self,
        keyspace: &Keyspace,
        id: SpaceId,
        statement: Statement<'_>,
    ) -> Result<Written, BoxError> {
        let touched = self.touch(keyspace, id)?;
        let result = statement.run(&mut touched.space);
        touched.is_written |= result.is_ok();
        let kept = OwnedStatement::from(statement);
        let tuple = result.as_ref().ok().and_then(|written| written.new.as_ref());
        let bytes = kept.bytes() + tuple.map_or(0, Tuple::memory);
        let noted = match &result {
            Ok(written) => Ok(written.clone()),
            Err(error) => Err(error.code),
        };
        self.hold(bytes, Step::Wrote(id, kept, noted))?;
        result
    }

    fn touch(&mut self, keyspace: &Keyspace, id: SpaceId) -> Result<&mut Touched, BoxError> {
        if !self.touched.contains_key(&id) {
            let catalog = keyspace.spaces.catalog();
            if self.touched.is_empty() {
                self.schema_version = catalog.version;
            } else if self.schema_version != catalog.version {
                return Err(conflict());
            }
            let cell = catalog.get(id).ok_or_else(|| no_such_space(id))?;
            let held = cell.lock();
            if held.gone {
                return Err(no_such_space(id));
            }
            let (version, changed) = (held.version, held.changed);
            let space = held.space.clone();
            self.touched.insert(id, Touched { space, version, changed, is_written: false });
        }
        Ok(self.touched.get_mut(&id).expect("it was just put in"))
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is room for more beside transactions that hold this many bytes.
    ///
    /// # Errors
    /// `MEMORY_ISSUE`.
    pub fn check_room(beside: usize) -> Result<(), BoxError> {
        if beside > BYTES_MAX { Err(transaction_too_large(BYTES_MAX)) } else { Ok(()) }
    }

    /// Keeps a step.
    fn hold(&mut self, bytes: usize, step: Step) -> Result<(), BoxError> {
        let bytes = bytes + STEP_BYTES;
        self.bytes += bytes;
        self.total.fetch_add(bytes as i64, Relaxed);
        self.steps.push(step);
        Interactive::check_room(self.bytes)
    }

    /// Commits. `append` logs the changes, as one record. Returns `TRANSACTION_CONFLICT` if nothing
    /// has changed, and the LSN that a reply depends on: a conflict shows what others changed. What
    /// they changed of definitions is the caller's to know.
    pub fn commit(
        mut self,
        keyspace: &Keyspace,
        scratch: &mut Scratch,
        append: impl FnOnce(Record<'_>) -> Lsn,
    ) -> (Result<(), BoxError>, Lsn) {
        if let Err(error) = Interactive::check_room(self.bytes) {
            return (Err(error), Lsn::ZERO);
        }
        let is_written = self.touched.values().any(|touched| touched.is_written);
        if !is_written && self.touched.len() < 2 {
            // One space at one moment needs no check.
            self.leave(scratch);
            return (Ok(()), Lsn::ZERO);
        }
        let catalog = keyspace.spaces.catalog();
        if catalog.version != self.schema_version {
            self.leave(scratch);
            return (Err(conflict()), Lsn::ZERO);
        }
        let skips = scratch.skipped_read_canary;
        let ids: Vec<SpaceId> = self.touched.keys().copied().collect();
        let Ok(mut tx) = keyspace.begin_on_spaces(&catalog, &ids, scratch) else {
            return (Err(conflict()), Lsn::ZERO);
        };
        let changed: Vec<SpaceId> = self
            .touched
            .iter()
            .filter(|(id, touched)| tx.guard(**id).version != touched.version)
            .map(|(id, _)| *id)
            .collect();
        let repeated = match changed.is_empty() {
            true => {
                self.adopt(&mut tx);
                Ok(())
            }
            false => self.repeat(&mut tx, &changed, skips),
        };
        let lsn = match repeated {
            Ok(()) => tx.commit(append),
            Err(_) => tx.abort(),
        };
        self.leave(scratch);
        (repeated, lsn)
    }

    /// Nobody changed the spaces: the copies take their places.
    fn adopt(&mut self, tx: &mut SpaceTx<'_>) {
        for (id, touched) in &mut self.touched {
            // The reply depends on what was read as well.
            tx.space(*id);
            if touched.is_written {
                let before = tx.adopt(*id, touched.space.clone());
                touched.space = before;
            }
        }
        for step in &self.steps {
            if let Step::Wrote(id, _, Ok(written)) = step {
                tx.log(*id, written);
            }
        }
    }

    /// Runs the steps again on what there is now. `skips`: for tests, without the first read.
    fn repeat(
        &self,
        tx: &mut SpaceTx<'_>,
        changed: &[SpaceId],
        mut skips: bool,
    ) -> Result<(), BoxError> {
        for step in &self.steps {
            let is_same = match step {
                Step::Looked(_) | Step::Selected(..) if std::mem::take(&mut skips) => true,
                Step::Looked(id) => !changed.contains(id),
                Step::Selected(id, selected, before) => {
                    let now = selected.of(tx.space(*id));
                    now.map_or(before.is_empty(), |now| {
                        now.map(Tuple::bytes).eq(before.iter().map(Tuple::bytes))
                    })
                }
                Step::Wrote(id, statement, before) => {
                    let statement = statement.get();
                    match (tx.write(*id, |space| statement.run(space)), before) {
                        (Ok(now), Ok(before)) => {
                            let shown = |written| statement.shown(written).map(Tuple::bytes);
                            shown(&now) == shown(before)
                        }
                        (Err(now), Err(before)) => now.code == *before,
                        _ => false,
                    }
                }
            };
            if !is_same {
                return Err(conflict());
            }
        }
        Ok(())
    }

    /// Ends the transaction without a trace.
    pub fn roll_back(mut self, scratch: &mut Scratch) {
        self.leave(scratch);
    }

    /// Gives away what may be the last reference to large trees.
    fn leave(&mut self, scratch: &mut Scratch) {
        let held = (std::mem::take(&mut self.touched), std::mem::take(&mut self.steps));
        if !held.0.is_empty() {
            scratch.garbage.push(Garbage::of_bytes(held, self.bytes));
        }
    }
}

impl Drop for Interactive {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes as i64, Relaxed);
    }
}
