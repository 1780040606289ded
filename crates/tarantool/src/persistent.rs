//! CALL of a persistent function, on the thread that has the request: one transaction, whose locks
//! grow (`ladon_kernel::persistent`).
//!
//! ```text
//! done, or an error of the function     what its statements have done is committed, as one record
//! a lock out of order                   taken back, and run again with all its locks
//! it leaves: too late, asks for more    taken back, and the program runs it
//! ```

use crate::access::Rights;
use crate::error;
use crate::long_select::{BYTES_MAX, TUPLES_MAX};
use crate::statements::{Ended, Running, check_filler, check_read, check_write, position_of};
use crate::statements::{puts, with};
use ladon_engine::{Catalog, Grown, SpaceMark, SpaceTx};
use ladon_iproto::request::Call;
use ladon_kernel::node::Node;
use ladon_kernel::persistent::{
    Called, Leave, Persistent, PlantedInCalls, Reach, Runner, Stopped, runner,
};
use ladon_kernel::program::{Failed, Kind, Returned};
use ladon_kernel::request::admission::Refusal;
use ladon_kernel::request::outcome::Flow;
use ladon_kernel::thread_parts::ThreadParts;
use ladon_record::{Change, Changes, Lsn, Record, SpaceId};
use ladon_space::{BoxError, Looked, Selected, Space, Statement, Tuple};
use ladon_system_spaces as system;
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A function may run so long, and so others wait for what it has locked;
const RUNS_MAX: Duration = Duration::from_micros(500);
/// so long if no program could run it instead.
const RUNS_ALONE_MAX: Duration = Duration::from_millis(5);
/// What has been looked at less often has not run for long: its thread had no turn of the processor.
const LOOKS_MIN: u32 = 64;
/// As above, if no program could run it instead.
const LOOKS_ALONE_MIN: u32 = 512;
/// Longer arguments are the program's.
const ARGUMENT_BYTES_MAX: usize = 16 << 10;
/// Spaces that it may lock. Each time that it begins again, it has one more from the beginning.
const SPACES_MAX: usize = 64;

/// Why a function was stopped that is not to go to the program.
enum Stop {
    /// It needs these spaces' locks from the beginning.
    Locks(Vec<SpaceId>),
    /// The definitions have changed.
    OutOfDate,
    /// Somebody has asked the writers of a space to wait.
    Stillness,
}

/// How one try has ended.
enum Tried {
    Done(Result<Returned, Failed>, Lsn),
    Stopped(Stop),
    Left(Leave),
}

impl Running<'_, '_> {
    /// Runs a persistent function here, if there is one of this name that can. Returns `false` if it is
    /// the program's.
    pub(crate) fn call_persistent(
        &mut self,
        call: &Call<'_>,
        is_16: bool,
        name: &str,
        out: &mut Vec<u8>,
    ) -> Result<bool, Ended> {
        let Some(runner) = runner() else { return Ok(false) };
        if self.session.is_of_program || self.is_in_transaction() {
            return Ok(false);
        }
        let has_program = self.thread.node.program.is_some();
        let Some(function) = self.rights()?.persistent(name) else { return Ok(false) };
        if has_program && function.is_given_up() {
            return Ok(false);
        }
        let function = Arc::clone(function);
        if call.arguments.len() > ARGUMENT_BYTES_MAX {
            return self.leaves(name, &Leave::Late);
        }
        let refusal = self.admit_write().err();
        let mut locks = Vec::new();
        for _ in 0..=SPACES_MAX {
            match self.try_persistent(runner, &function, (call, is_16), (&locks, refusal))? {
                Tried::Done(result, depends) => {
                    function.note_done();
                    if self.thread.local.planted_in_calls != PlantedInCalls::Early {
                        self.depends = self.depends.max(depends);
                    }
                    self.show_result(result, out)?;
                    return Ok(true);
                }
                Tried::Stopped(Stop::Locks(wanted)) => locks = wanted,
                Tried::Stopped(Stop::OutOfDate) => return Err(Ended::Again(Flow::GoesOn)),
                Tried::Stopped(Stop::Stillness) => return Err(Ended::Again(Flow::AwaitsCommit)),
                Tried::Left(leave) => {
                    function.note_left(&leave);
                    return self.leaves(name, &leave);
                }
            }
        }
        self.leaves(name, &Leave::Late)
    }

    /// The program is to run it.
    ///
    /// # Errors
    /// There is none.
    fn leaves(&self, name: &str, leave: &Leave) -> Result<bool, Ended> {
        if self.thread.node.program.is_some() {
            return Ok(false);
        }
        let why = match leave {
            Leave::Late => "takes too long, or too much memory, to run",
            Leave::Asks(what) => &format!("asks for {what}, which is not there"),
        };
        let what = format!("function '{name}' without a program (`ladon tarantool`): it {why}");
        Err(error::unsupported(&what).into())
    }

    fn try_persistent(
        &mut self,
        runner: &dyn Runner,
        function: &Persistent,
        (call, is_16): (&Call<'_>, bool),
        (locks, refusal): (&[SpaceId], Option<Refusal>),
    ) -> Result<Tried, Ended> {
        let (node, catalog) = (self.thread.node, self.catalog);
        self.rights()?;
        let rights = self.session.take_rights();
        let now_ms = self.thread.now_ms;
        let planted = self.thread.local.planted_in_calls;
        // Those that it has asked for are held in the next try.
        let refused_lock = self.thread.local.refused_lock.filter(|_| locks.is_empty());
        let ThreadParts { scratch, append, .. } = &mut *self.thread;
        let tried = match (&rights, node.keyspace.begin_on_spaces(catalog, locks, scratch)) {
            (Some((_, rights)), Ok(tx)) => {
                let mut reached = Reached::new(node, catalog, tx, rights, (refusal, now_ms));
                reached.refused_lock = refused_lock;
                let kind = if is_16 { Kind::Call16 } else { Kind::Call };
                let called = runner.call(function, kind, call.arguments, &mut reached);
                reached.end(called, (append, planted))
            }
            _ => Tried::Stopped(Stop::OutOfDate),
        };
        self.session.give_rights(rights);
        Ok(tried)
    }
}

/// What a function reaches, and what it has done.
struct Reached<'a> {
    node: &'a Node,
    catalog: &'a Catalog,
    tx: SpaceTx<'a>,
    rights: &'a Rights,
    /// Why nothing may be written, if so.
    refusal: Option<Refusal>,
    now_ms: u64,
    began: Option<Instant>,
    /// How often it was asked whether it is late.
    looks: Cell<u32>,
    /// Where its transaction began, if it has one, and the savepoints.
    transaction: Option<SpaceMark>,
    savepoints: Vec<SpaceMark>,
    /// It has used a sequence, whose numbers are not taken back.
    has_numbered: bool,
    stop: Option<Stop>,
    /// Locks that it has asked for, and the one that is refused: see `Local::refused_lock`.
    asked: u32,
    refused_lock: Option<u32>,
}

impl<'a> Reached<'a> {
    fn new(
        node: &'a Node,
        catalog: &'a Catalog,
        tx: SpaceTx<'a>,
        rights: &'a Rights,
        (refusal, now_ms): (Option<Refusal>, u64),
    ) -> Reached<'a> {
        Reached {
            node,
            catalog,
            tx,
            rights,
            refusal,
            now_ms,
            began: None,
            looks: Cell::new(0),
            transaction: None,
            savepoints: Vec::new(),
            has_numbered: false,
            stop: None,
            asked: 0,
            refused_lock: None,
        }
    }

    /// Commits what has been done, or takes it back.
    fn end(
        mut self,
        called: Called,
        (append, planted): (impl FnOnce(Record<'_>) -> Lsn, PlantedInCalls),
    ) -> Tried {
        let mut result = match (self.stop.take(), called) {
            (Some(stop), _) => {
                match planted {
                    PlantedInCalls::KeptTry => self.tx.commit(append),
                    _ => self.tx.abort(),
                };
                return Tried::Stopped(stop);
            }
            (None, Called::Leaves(leave)) => {
                match planted {
                    PlantedInCalls::Kept => self.tx.commit(append),
                    _ => self.tx.abort(),
                };
                return Tried::Left(leave);
            }
            (None, Called::Done(result)) => result,
        };
        if let Some(mark) = self.transaction.take() {
            if self.has_numbered {
                self.tx.abort();
                return Tried::Left(rollback_of_numbers());
            }
            self.tx.go_back(mark);
            result = result.and(Err(Failed::transaction_left_open()));
        }
        let depends = self.tx.commit(|record| match planted {
            PlantedInCalls::HalfRecord => half_of(record, append),
            _ => append(record),
        });
        Tried::Done(result, depends)
    }

    fn stops(&mut self, stop: Stop) -> Stopped {
        self.stop = Some(stop);
        Stopped::Leaves(Leave::Late)
    }

    /// Locks these spaces, which are in order; called before each request.
    fn lock(&mut self, ids: &[SpaceId]) -> Result<(), Stopped> {
        if self.is_late() {
            return Err(Stopped::Leaves(Leave::Late));
        }
        if ids.iter().all(|id| self.tx.holds(*id)) {
            return Ok(());
        }
        if ids.iter().any(|&id| id < system::USER_ID_MIN && id != system::SEQUENCE_DATA) {
            return Err(asks("a space of the system"));
        }
        self.lock_any(ids)
    }

    fn lock_any(&mut self, ids: &[SpaceId]) -> Result<(), Stopped> {
        let waited_from = Instant::now();
        self.asked += 1;
        let grown = match self.refused_lock == Some(self.asked) {
            true => Ok(Grown::Refused),
            false => self.tx.grow(ids),
        };
        // What others take does not count.
        self.began = self.began.map(|began| began + waited_from.elapsed());
        match grown? {
            Grown::Held if self.tx.is_out_of_date() => Err(self.stops(Stop::OutOfDate)),
            Grown::Held if self.tx.spaces().count() > SPACES_MAX => Err(asks("many spaces")),
            Grown::Held => Ok(()),
            Grown::Refused | Grown::Busy => {
                let mut wanted: Vec<SpaceId> =
                    self.tx.spaces().chain(ids.iter().copied()).collect();
                wanted.sort_unstable();
                wanted.dedup();
                Err(self.stops(Stop::Locks(wanted)))
            }
        }
    }

    /// A space that the function may read.
    fn readable(&mut self, id: SpaceId) -> Result<&Space, Stopped> {
        self.lock(&[id])?;
        let space = self.tx.space(id);
        check_read(self.rights, id, space)?;
        Ok(space)
    }

    /// Whether a space may be written, which is locked.
    fn check_writes(&mut self, id: SpaceId) -> Result<(), Stopped> {
        let Some(cell) = self.catalog.get(id) else { return Ok(()) };
        if cell.has_triggers() {
            return Err(asks("a space with triggers"));
        }
        if cell.is_kept_still(self.now_ms) {
            return Err(self.stops(Stop::Stillness));
        }
        match self.refusal {
            None => Ok(()),
            Some(Refusal::ReadOnly) if self.tx.space(id).def().is_temporary => Ok(()),
            Some(refusal) => Err(error::of_refusal(refusal, self.node).into()),
        }
    }

    /// Takes back what was done since; a sequence's numbers cannot be.
    fn go_back_to(&mut self, mark: SpaceMark) -> Result<(), Stopped> {
        if self.has_numbered {
            return Err(Stopped::Leaves(rollback_of_numbers()));
        }
        self.tx.go_back(mark);
        Ok(())
    }
}

/// Logs what was changed in the first of the changed spaces: see [`PlantedInCalls::HalfRecord`].
#[cold]
fn half_of(record: Record<'_>, append: impl FnOnce(Record<'_>) -> Lsn) -> Lsn {
    let changes = record.changes();
    let mut rest = Changes::new(&changes);
    let (mut first, mut kept) = (None, 0);
    while let Some(Ok(change)) = rest.next() {
        if first.is_some_and(|first| space_of(&change) != first) {
            break;
        }
        first = Some(space_of(&change));
        kept = changes.len() - rest.rest().len();
    }
    append(Record::Changes(&changes[..kept]))
}

fn space_of(change: &Change<'_>) -> Option<SpaceId> {
    match change {
        Change::SpacePut { space, .. } | Change::SpaceDelete { space, .. } => Some(*space),
        _ => None,
    }
}

fn asks(what: &str) -> Stopped {
    Stopped::Leaves(Leave::Asks(what.to_owned()))
}

fn rollback_of_numbers() -> Leave {
    Leave::Asks("a rollback behind a sequence's number".to_owned())
}

/// Appends selected tuples. Returns how many, or `None` if it looks at too many.
fn append_selected(
    space: &Space,
    selected: &Selected,
    out: &mut Vec<u8>,
) -> Result<Option<u32>, BoxError> {
    let (mut count, start) = (0, out.len());
    let mut selection = selected.of(space)?;
    for _ in 0..=TUPLES_MAX {
        match selection.look() {
            Looked::Found((_, tuple)) => {
                if out.len() - start > BYTES_MAX {
                    return Ok(None);
                }
                out.extend_from_slice(tuple.bytes());
                count += 1;
            }
            Looked::AtSome => {}
            Looked::AtAll => return Ok(Some(count)),
        }
    }
    Ok(None)
}

fn append_one(tuple: Option<Tuple>, out: &mut Vec<u8>) -> bool {
    if let Some(tuple) = &tuple {
        out.extend_from_slice(tuple.bytes());
    }
    tuple.is_some()
}

impl Reach for Reached<'_> {
    fn version(&self) -> (u64, u64) {
        (self.node.keyspace.spaces.number(), self.catalog.version)
    }

    fn look(
        &mut self,
        space: SpaceId,
        selected: &Selected,
        out: &mut Vec<u8>,
    ) -> Result<u32, Stopped> {
        let stored = system::view_of(space).unwrap_or(space);
        self.lock_any(&[stored])?;
        if self.node.keyspace.spaces.version() != self.catalog.version {
            // They may be of later definitions than the catalog.
            return Err(self.stops(Stop::OutOfDate));
        }
        let found = append_selected(self.tx.space(stored), selected, out)?;
        found.ok_or(Stopped::Leaves(Leave::Late))
    }

    fn begin_time(&mut self) {
        self.began = Some(Instant::now());
    }

    fn is_late(&self) -> bool {
        let looks = self.looks.get() + 1;
        self.looks.set(looks);
        let (looks_min, most) = match self.node.program.is_some() {
            true => (LOOKS_MIN, RUNS_MAX),
            false => (LOOKS_ALONE_MIN, RUNS_ALONE_MAX),
        };
        let is_late = |began: Instant| looks >= looks_min && began.elapsed() > most;
        self.stop.is_some() || self.began.is_some_and(is_late)
    }

    fn get(
        &mut self,
        space: SpaceId,
        index: u32,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Stopped> {
        Ok(append_one(self.readable(space)?.get(index, key)?, out))
    }

    fn select(
        &mut self,
        space: SpaceId,
        mut selected: Selected,
        after: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<u32, Stopped> {
        let space = self.readable(space)?;
        if let Some(after) = after {
            selected.after = Some(position_of(space, selected.index, after)?);
        }
        append_selected(space, &selected, out)?.ok_or(Stopped::Leaves(Leave::Late))
    }

    fn count(&mut self, space: SpaceId, selected: &Selected) -> Result<u64, Stopped> {
        let space = self.readable(space)?;
        crate::long_count::count_at_once(space, selected)?.ok_or(Stopped::Leaves(Leave::Late))
    }

    fn len(&mut self, space: SpaceId, index: u32) -> Result<u64, Stopped> {
        Ok(self.readable(space)?.require_index(index)?.len())
    }

    fn extreme(
        &mut self,
        space: SpaceId,
        (index, is_last): (u32, bool),
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Stopped> {
        let space = self.readable(space)?;
        let found = if is_last { space.max(index, key)? } else { space.min(index, key)? };
        Ok(append_one(found, out))
    }

    fn write(
        &mut self,
        id: SpaceId,
        statement: Statement<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Stopped> {
        let catalog = self.catalog;
        match puts(statement) {
            Some(_) => self.lock(&catalog.put_with(&[id]))?,
            None => self.lock(&catalog.changed_with(&[id]))?,
        }
        self.check_writes(id)?;
        check_write(self.rights, self.tx.space(id))?;
        let mut filled = None;
        if let (Some(filler), Some(tuple)) = (catalog.filler(id), puts(statement)) {
            check_filler(self.rights, &filler)?;
            self.has_numbered = true;
            filled = Some(self.tx.fill(filler, tuple)?);
        }
        let statement = filled.as_ref().map_or(statement, |tuple| with(statement, tuple));
        let written = self.tx.write(id, |space| statement.run(space))?;
        Ok(append_one(statement.shown(&written).cloned(), out))
    }

    fn begin(&mut self) {
        self.savepoints.clear();
        self.transaction = Some(self.tx.mark());
    }

    fn commit(&mut self) {
        self.transaction = None;
    }

    fn roll_back(&mut self) -> Result<(), Stopped> {
        match self.transaction.take() {
            Some(mark) => self.go_back_to(mark),
            None => Ok(()),
        }
    }

    fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    fn savepoint(&mut self) -> u64 {
        self.savepoints.push(self.tx.mark());
        self.savepoints.len() as u64
    }

    fn go_back(&mut self, savepoint: u64) -> Result<bool, Stopped> {
        let Some(&mark) = savepoint.checked_sub(1).and_then(|at| self.savepoints.get(at as usize))
        else {
            return Ok(false);
        };
        self.savepoints.truncate(savepoint as usize);
        self.go_back_to(mark)?;
        Ok(true)
    }
}
