//! Interactive transactions: many requests, then a commit or none.
//!
//! ```text
//! statement --> a copy of the space, made when it is first touched   others see nothing of it
//! commit    --> locks the touched spaces
//!               nobody changed them   the copies take their places
//!               somebody did          the steps run again on a new copy of what there is now, a slice
//!                                     at a time and without locks (`commit.rs`); if one shows
//!                                     something else than it showed before: a conflict
//! ```
//!
//! A copy shares memory with its space. Readers and writers never wait for an open transaction.
//! What a client was shown is true at the commit as well, so transactions are serializable. A
//! conflict is found at the commit, and only where a result would differ: two transactions that
//! replace tuples of one space do not conflict.
//!
//! A repeated statement may do something else than it did, if nobody was shown that: a REPLACE may
//! find a tuple where there was none. A foreign key was checked for what it did first, so it is a
//! conflict if the key would read something else now.
//!
//! A read of many tuples is not repeated: it conflicts with every change of its space. Each space
//! is copied at a moment of its own; the commit finds what did not fit together. A change of any
//! definition conflicts with every open transaction, as in Tarantool.

mod commit;
mod encoded;
mod savepoint;

pub use commit::{Commit, CommitPace};
pub use savepoint::Stated;

use crate::keyspace::Keyspace;
use crate::space::{
    Catalog, Content, DEPTH_MAX, FOLLOWED_MAX, Holding, OpenTransactions, Spaces,
    TransactionLimits, check_written, conflict, followed, has_triggers, no_such_space, too_deep,
    too_many_transactions, transactions_too_large,
};
use crate::tx::{Garbage, Scratch};
use commit::{Planted, Repetition};
use encoded::Encoded;
use ladon_record::{Lsn, SpaceId};
use ladon_space::{
    BoundFields, BoxError, ForeignKey, Looked, OwnedStatement, Selected, Space, Statement, Tuple,
    Written,
};
use savepoint::Kept;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A read that has to look more often is not repeated at the commit. A look finds a tuple; or, in an
/// index without an order, it passes some that are not selected.
const REPEATED_LOOKS_MAX: usize = 1_000;
/// Limit of what a connection's transactions may have written, and of what it takes to repeat that,
/// unless somebody says otherwise.
const BYTES_MAX: u64 = 64 << 20;
/// A connection may always have written this much, however much others have.
const LITTLE_BYTES: usize = 64 << 10;
/// What a changed tuple costs beside its bytes: nodes of the indexes that are copied. So does each
/// of its keys in multikey indexes.
const STEP_BYTES: usize = 512;

/// An open transaction.
pub struct Interactive {
    /// The definitions' version at the first touch.
    schema_version: u64,
    touched: BTreeMap<SpaceId, Touched>,
    /// The steps of one space that are being repeated.
    repetition: Option<Repetition>,
    /// The commit has asked the writers of its spaces to wait.
    is_urgent: bool,
    planted: Planted,
    /// Savepoints that it may go back to, in order.
    savepoints: Vec<u64>,
    /// Counts savepoints and statements.
    next_number: u64,
    /// Who runs the statements calls what is to be called when tuples change.
    calls_triggers: bool,
    /// What a commit has done is kept.
    keeps_stated: bool,
    stated: Vec<Stated>,
    /// Something else is done together with it.
    is_joint: bool,
    /// The savepoints that it went back to, each with the number of the last step before that.
    returns: Vec<(u64, u64)>,
    /// Bytes of what it has written, as all count them.
    bytes: usize,
    all: Arc<OpenTransactions>,
    holding: Arc<Holding>,
    limits: TransactionLimits,
}

/// A space that the transaction has read or written.
struct Touched {
    view: View,
    /// What was done and shown. Each step is about this space alone.
    steps: Vec<Step>,
    /// What it takes to repeat the steps, in usual statements.
    work: usize,
    /// Something that was shown depends on everything in the space.
    is_read_whole: bool,
    /// How often the steps were begun to be repeated.
    rounds: u32,
    /// Fields that foreign keys read of tuples that it wrote, if there are keys.
    bound: Option<BoundFields>,
}

/// A copy of a space, and what the transaction did to it.
struct View {
    space: Space,
    /// Those of the space when it was copied.
    version: u64,
    changed: Lsn,
    is_written: bool,
    /// A program's functions are called when its tuples change.
    has_triggers: bool,
    /// Between savepoints.
    changes: Vec<Encoded>,
    /// What was done, for those who follow the space's changes, by the statements' numbers.
    noted: Vec<(u64, Written)>,
    /// What it was at savepoints.
    kept: Vec<Kept>,
}

/// What was done and shown.
enum Step {
    /// The statement, its number, and whether triggers were called; its result; and how many keys of
    /// multikey indexes it made and removed.
    Wrote((u64, bool, OwnedStatement), Result<Written, BoxError>, usize),
    /// A savepoint.
    Kept(u64),
    /// The space is again as it was at a savepoint.
    WentBack(u64),
    /// What was selected, and how often the selection had to look.
    Selected(Selected, Vec<Tuple>, usize),
}

impl View {
    fn of(content: &Content) -> View {
        let Content { space, version, changed, has_triggers, .. } = content;
        let (space, version, changed) = (space.clone(), *version, *changed);
        let has_triggers = *has_triggers;
        let (changes, noted) = (vec![Encoded::default()], Vec::new());
        View {
            space,
            version,
            changed,
            is_written: false,
            has_triggers,
            changes,
            noted,
            kept: Vec::new(),
        }
    }

    /// Runs a statement, and notes what changed.
    fn run(&mut self, number: u64, statement: Statement<'_>) -> Result<Written, BoxError> {
        let written = statement.run(&mut self.space)?;
        self.note(number, &written);
        Ok(written)
    }

    fn note(&mut self, number: u64, written: &Written) {
        self.is_written = true;
        if let Some(changes) = self.changes.last_mut() {
            changes.push(&self.space, written);
        }
        self.noted.push((number, written.clone()));
    }

    /// Bytes of what was encoded since the last savepoint.
    fn last_bytes(&self) -> usize {
        self.changes.last().map_or(0, Encoded::bytes)
    }
}

impl Interactive {
    /// A transaction that has done nothing, of no client.
    pub fn new(spaces: &Spaces) -> Interactive {
        let limits = TransactionLimits { all: u64::MAX, of_client: BYTES_MAX };
        Interactive::opened_by(0, spaces, limits)
    }

    /// A transaction of a client that has done nothing.
    pub fn opened_by(client: u64, spaces: &Spaces, limits: TransactionLimits) -> Interactive {
        let all = Arc::clone(&spaces.transactions);
        Interactive {
            schema_version: 0,
            touched: BTreeMap::new(),
            repetition: None,
            is_urgent: false,
            planted: Planted::default(),
            savepoints: Vec::new(),
            next_number: 0,
            calls_triggers: false,
            keeps_stated: false,
            stated: Vec::new(),
            is_joint: false,
            returns: Vec::new(),
            bytes: 0,
            holding: all.add(client),
            all,
            limits,
        }
    }

    /// A space as the transaction sees it, and the LSN that what it shows depends on. What a reply
    /// shows of it has to be noted.
    ///
    /// # Errors
    /// If there is no such space; `TRANSACTION_CONFLICT`, if definitions have changed meanwhile.
    pub fn space(&mut self, keyspace: &Keyspace, id: SpaceId) -> Result<(&Space, Lsn), BoxError> {
        let touched = self.touch(keyspace, id)?;
        Ok((&touched.view.space, touched.view.changed))
    }

    /// Notes that a reply shows the result of a selection.
    ///
    /// # Errors
    /// If the transaction holds too much.
    pub fn note_selected(&mut self, id: SpaceId, selected: Selected) -> Result<(), BoxError> {
        let Some(touched) = self.touched.get_mut(&id) else { return Ok(()) };
        let Some((tuples, looks)) = shown_by(&selected, &touched.view.space) else {
            touched.is_read_whole = true;
            return Ok(());
        };
        let bytes = size_of_val(&tuples[..]) + selected.key.len();
        touched.keep(Step::Selected(selected, tuples, looks));
        self.hold(bytes)
    }

    /// Notes that a reply depends on a whole space.
    pub fn note_all(&mut self, id: SpaceId) {
        if let Some(touched) = self.touched.get_mut(&id) {
            touched.is_read_whole = true;
        }
    }

    /// Runs a statement. Returns what it did. A reply about it, or about its error, depends on what
    /// [`Interactive::depends`] says then.
    ///
    /// # Errors
    /// Those of the statement, which has done nothing then, and those of [`Interactive::space`].
    pub fn write(
        &mut self,
        keyspace: &Keyspace,
        id: SpaceId,
        statement: Statement<'_>,
    ) -> Result<Written, BoxError> {
        let catalog = keyspace.spaces.catalog();
        let linked = self.bind(keyspace, id, &catalog)?;
        let acts = |id: &SpaceId| {
            let touched = self.touched.get(id);
            touched.is_some_and(|it| it.view.space.def().foreign_keys.iter().any(ForeignKey::acts))
        };
        if !linked.iter().any(acts) {
            return self.write_one(keyspace, (id, linked), statement);
        }
        let savepoint = self.savepoint()?;
        let mut left = FOLLOWED_MAX;
        let result = self.write_following(keyspace, (id, statement), (DEPTH_MAX, &mut left));
        if result.is_err() {
            self.go_back(savepoint)?;
        }
        self.release(savepoint);
        result
    }

    /// Runs a statement, and before its check what the actions of foreign keys ask for: so deep, and
    /// so many tuples.
    fn write_following(
        &mut self,
        keyspace: &Keyspace,
        (id, statement): (SpaceId, Statement<'_>),
        (depth, left): (usize, &mut usize),
    ) -> Result<Written, BoxError> {
        let catalog = keyspace.spaces.catalog();
        let linked = self.bind(keyspace, id, &catalog)?;
        // It is not checked yet: what it does is taken back if the check fails.
        let written = self.write_one(keyspace, (id, &[]), statement)?;
        let copy = |id| self.touched.get(&id).map(|touched| &touched.view.space);
        for one in followed(linked, id, &written, copy, *left)? {
            let Some(below) = depth.checked_sub(1) else {
                return Err(too_deep(&self.touch(keyspace, id)?.view.space));
            };
            *left -= one.changes.len().min(*left);
            self.note_selected(one.child, one.read)?;
            for change in &one.changes {
                let statement = (one.child, change.statement());
                self.write_following(keyspace, statement, (below, left))?;
            }
        }
        for (id, selected) in self.check((id, linked), &written)? {
            self.note_selected(id, selected)?;
        }
        Ok(written)
    }

    /// Checks the foreign keys of a space that was written. Returns what was read for that.
    fn check(
        &mut self,
        (id, linked): (SpaceId, &[SpaceId]),
        written: &Written,
    ) -> Result<Vec<(SpaceId, Selected)>, BoxError> {
        let mut reads = Vec::new();
        let copy = |id| self.touched.get(&id).map(|touched| &touched.view.space);
        let noted = |id, selected| reads.push((id, selected));
        if let Err(error) = check_written(linked, id, written, copy, noted) {
            // What was shown depends on all of them, in a way that the steps do not tell.
            linked.iter().for_each(|id| self.note_all(*id));
            return Err(error);
        }
        Ok(reads)
    }

    /// Runs a statement, and checks the foreign keys of the linked spaces.
    fn write_one(
        &mut self,
        keyspace: &Keyspace,
        (id, linked): (SpaceId, &[SpaceId]),
        statement: Statement<'_>,
    ) -> Result<Written, BoxError> {
        let calls_triggers = self.calls_triggers;
        let view = &self.touch(keyspace, id)?.view;
        if view.has_triggers && !calls_triggers {
            return Err(has_triggers(&view.space));
        }
        let result = statement.run(&mut self.touch(keyspace, id)?.view.space);
        let mut reads = Vec::new();
        if let Ok(written) = &result {
            let checked = self.check((id, linked), written);
            if checked.is_err() {
                self.touch(keyspace, id)?.view.space.undo(written);
            }
            reads = checked?;
        }
        self.next_number += 1;
        let number = self.next_number;
        let bytes =
            self.touch(keyspace, id)?.note_written((number, calls_triggers, statement), &result);
        self.hold(bytes)?;
        for (id, selected) in reads {
            self.note_selected(id, selected)?;
        }
        result
    }

    /// Touches the spaces that keys bind to one that is to be written, and notes what foreign keys read
    /// of its tuples: no definition changes as long as it is open. Returns those spaces.
    fn bind<'a>(
        &mut self,
        keyspace: &Keyspace,
        id: SpaceId,
        catalog: &'a Catalog,
    ) -> Result<&'a [SpaceId], BoxError> {
        let linked = catalog.linked(id).unwrap_or_default();
        for other in linked {
            self.touch(keyspace, *other)?;
        }
        let is_bound = |touched: &Touched| touched.bound.is_some();
        let Some(own) = self.touched.get(&id).filter(|own| !is_bound(own)) else {
            return Ok(linked);
        };
        let def_of = |id: &SpaceId| Some(self.touched.get(id)?.view.space.def());
        let bound = BoundFields::of(own.view.space.def(), linked.iter().filter_map(def_of));
        self.touched.entry(id).and_modify(|own| own.bound = Some(bound));
        Ok(linked)
    }

    /// Whether who runs statements from now on calls what a program wants to have called when tuples
    /// change. Others cannot change them.
    pub fn call_triggers(&mut self, calls: bool) {
        self.calls_triggers = calls;
    }

    /// The LSN that all depends on that it has shown.
    pub fn depends(&self) -> Lsn {
        self.touched.values().map(|touched| touched.view.changed).max().unwrap_or(Lsn::ZERO)
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
            self.holding.copied(cell, &held);
            let mut touched = Touched::of(View::of(&held));
            if let Some(last) = self.savepoints.last() {
                // At all of them it was as it is now.
                touched.keep_savepoint(*last);
            }
            self.touched.insert(id, touched);
        }
        Ok(self.touched.get_mut(&id).expect("it was just put in"))
    }

    /// Bytes of what it has written, and of what it takes to repeat that.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts a step that is none on spaces, and returns its number. The transaction commits together
    /// with something else from then on: what it has read is checked in any case.
    pub fn step_beside(&mut self) -> u64 {
        self.is_joint = true;
        self.next_number += 1;
        self.next_number
    }

    /// Counts bytes that are held for such steps.
    ///
    /// # Errors
    /// If the transaction holds too much.
    pub fn hold_beside(&mut self, bytes: usize) -> Result<(), BoxError> {
        self.hold(bytes)
    }

    /// The savepoints that it went back to, in the order of time, each with the number of the last
    /// step before that.
    pub fn returns(&self) -> &[(u64, u64)] {
        &self.returns
    }

    /// Whether something is written.
    pub fn is_written(&self) -> bool {
        self.touched.values().any(|touched| touched.view.is_written)
    }

    /// Whether something is written that is kept: not in temporary spaces alone.
    pub fn writes_what_is_kept(&self) -> bool {
        let mut views = self.touched.values().map(|touched| &touched.view);
        views.any(|view| view.is_written && !view.space.def().is_temporary)
    }

    /// Whether it was asked to end, because too much memory is kept for it.
    pub fn has_to_end(&self) -> bool {
        self.holding.has_to_end()
    }

    /// Whether there is room for more beside its client's other transactions, which have written
    /// this many bytes, and beside those of others. Others leave a little to everybody.
    ///
    /// # Errors
    /// `MEMORY_ISSUE`.
    pub fn check_room(&self, beside: usize) -> Result<(), BoxError> {
        let own = self.bytes + beside;
        if own as u64 > self.limits.of_client {
            return Err(transactions_too_large(self.limits.of_client));
        }
        if own > LITTLE_BYTES && self.all.written() > self.limits.all {
            return Err(too_many_transactions(self.limits.all));
        }
        Ok(())
    }

    /// Counts what a step holds.
    fn hold(&mut self, bytes: usize) -> Result<(), BoxError> {
        let bytes = bytes + STEP_BYTES;
        self.bytes += bytes;
        self.all.count_written(bytes as i64);
        match self.bytes as u64 > self.limits.of_client {
            true => Err(transactions_too_large(self.limits.of_client)),
            false => Ok(()),
        }
    }

    /// Ends the transaction without a trace.
    pub fn roll_back(mut self, scratch: &mut Scratch) {
        self.leave(scratch);
    }

    /// Gives away what may be the last reference to large trees.
    fn leave(&mut self, scratch: &mut Scratch) {
        let held = (std::mem::take(&mut self.touched), self.repetition.take());
        if !held.0.is_empty() {
            scratch.garbage.push(Garbage::of_bytes(held, self.bytes));
        }
    }
}

/// The selected tuples, and how many looks that took; `None` if it takes too many.
fn shown_by(selected: &Selected, space: &Space) -> Option<(Vec<Tuple>, usize)> {
    let Ok(mut selection) = selected.of(space) else { return Some((Vec::new(), 0)) };
    let mut tuples = Vec::new();
    for looks in 0..=REPEATED_LOOKS_MAX {
        match selection.look() {
            Looked::Found((_, tuple)) => tuples.push(tuple.clone()),
            Looked::AtSome => {}
            Looked::AtAll => return Some((tuples, looks)),
        }
    }
    None
}

impl Touched {
    fn of(view: View) -> Touched {
        Touched { view, steps: Vec::new(), work: 0, is_read_whole: false, rounds: 0, bound: None }
    }

    /// Notes what a statement did, or its error. Returns the bytes that this holds.
    fn note_written(
        &mut self,
        (number, calls_triggers, statement): (u64, bool, Statement<'_>),
        result: &Result<Written, BoxError>,
    ) -> usize {
        let before = self.view.last_bytes();
        let kept = OwnedStatement::from(statement);
        let mut bytes = kept.bytes();
        let mut keys = 0;
        bytes += result.as_ref().err().map_or(0, |error| error.message.len());
        if let Ok(written) = result {
            self.view.note(number, written);
            bytes += written.new.as_ref().map_or(0, Tuple::memory);
            let changed = [&written.old, &written.new].into_iter().flatten();
            keys = changed.map(|tuple| self.view.space.multikeys(tuple.bytes()) as usize).sum();
        }
        bytes += keys * STEP_BYTES + self.view.last_bytes();
        self.keep(Step::Wrote((number, calls_triggers, kept), result.clone(), keys));
        bytes - before
    }

    fn keep(&mut self, step: Step) {
        self.work += step.work();
        self.steps.push(step);
    }
}

impl Drop for Interactive {
    fn drop(&mut self) {
        self.all.count_written(-(self.bytes as i64));
        self.all.remove(&self.holding);
    }
}
