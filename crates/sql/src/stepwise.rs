//! Changes whose rows fire triggers: row by row, each seen by what comes after it.
//!
//! ```text
//! which rows -> each: BEFORE -> the row, if it is still there -> AFTER
//!                      |                                          |
//!                      +-- statements of a trigger, the same way -+
//! ```
//!
//! Every statement reads spaces as they are at that moment, through the writer.

use crate::ast::{OnConflict, Timing};
use crate::changes::{Change, Changing, Done, How, Stop, Writer, unique_key};
use crate::error::{self, Error, Then};
use crate::functions::Around;
use crate::plan;
use crate::programs::Fired;
use crate::run::{Budget, Env, Row, Run, Slot, Spaces};
use crate::tree::{Core, Ex};
use crate::triggers::{Program, ProgramStep};
use crate::value::Value;
use ladon_space::fields::Fields;
use ladon_space::{Space, Statement};

/// How deep triggers may fire each other: Tarantool's `SQL_LIMIT_TRIGGER_DEPTH`.
const DEPTH_MAX: usize = 30;

/// A statement that runs row by row.
pub(crate) struct Stepwise<'f> {
    pub(crate) programs: &'f [Program],
    pub(crate) parameters: &'f [Value],
    pub(crate) around: Around,
    pub(crate) budget: &'f Budget,
    /// Places of what a run keeps.
    pub(crate) places: usize,
    pub(crate) writer: &'f mut dyn Writer,
    pub(crate) depth: usize,
    /// A trigger that runs may run again.
    pub(crate) is_recursive: bool,
    /// Those that run.
    pub(crate) active: Vec<usize>,
}

/// OLD and NEW.
type Rows = [Slot<'static>; 2];

fn env(rows: &Rows) -> Env<'_> {
    Env { slots: rows, aggregates: &[], outer: None }
}

/// A row of packed fields.
fn row_of(tuple: &[u8]) -> Row {
    Fields::of(tuple).map(Value::unpack).collect()
}

/// A row that is to be changed.
enum Found {
    /// A table's, by its primary key.
    Key(Vec<u8>),
    /// A view's.
    Row(Row),
}

impl Stepwise<'_> {
    /// Runs something over the spaces as they are now.
    fn over<T>(
        &mut self,
        reads: &[u32],
        work: impl FnOnce(&Run<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let copies: Result<Vec<Space>, Error> =
            reads.iter().map(|id| self.writer.copy(*id)).collect();
        let copies = copies?;
        let spaces = Spaces::of(copies.iter());
        work(&Run::new(spaces, self.parameters, self.around, self.budget, self.places))
    }

    /// Changes rows. `outer` has the rows of the trigger around, `policy` its statement's conflict
    /// policy.
    pub(crate) fn change(
        &mut self,
        changing: &Changing,
        outer: Option<&Rows>,
        policy: OnConflict,
    ) -> Result<Done, Stop> {
        let policy = if policy == OnConflict::Abort { changing.on_conflict } else { policy };
        let mut done = Done::default();
        if let How::Insert { columns, rows } = &changing.how {
            let rows = self.over(&changing.reads, |run| {
                let outer = outer.map(env);
                changing.inserts(run, (columns, rows.as_ref()), outer.as_ref(), None)
            })?;
            for change in &rows {
                let inserted = self.insert(changing, change, policy, &mut done);
                passed(inserted)?;
            }
            return Ok(done);
        }
        let core = match &changing.how {
            How::Update { rows, .. } | How::Delete { rows } => rows,
            How::Insert { .. } => return Ok(done),
        };
        for found in self.found(changing, core, outer)? {
            let changed = match &changing.how {
                How::Update { set, .. } => {
                    self.update(changing, (&found, outer), (set, policy), &mut done)
                }
                _ => self.delete(changing, &found, &mut done),
            };
            passed(changed)?;
        }
        Ok(done)
    }

    fn found(
        &mut self,
        changing: &Changing,
        core: &Core,
        outer: Option<&Rows>,
    ) -> Result<Vec<Found>, Error> {
        self.over(&changing.reads, |run| {
            let mut all = Vec::new();
            run.each_joined(core, outer.map(env).as_ref(), &mut |env| {
                let (found, bytes) = match env.slots.first() {
                    Some(Slot::Row(row)) => (Found::Row(row.clone()), row.len() * 32),
                    slot => {
                        let Some(tuple) = slot.and_then(Slot::tuple) else { return Ok(()) };
                        let key = changing.key_of(tuple.bytes())?;
                        let bytes = key.len();
                        (Found::Key(key), bytes)
                    }
                };
                run.budget.take(bytes + 64)?;
                all.push(found);
                Ok(())
            })?;
            Ok(all)
        })
    }

    /// The row as it is now; none if it has gone.
    fn now(&mut self, changing: &Changing, found: &Found) -> Result<Option<Slot<'static>>, Error> {
        match found {
            Found::Row(row) => Ok(Some(Slot::Row(row.clone()))),
            Found::Key(key) => Ok(self.writer.find(changing.table.id, 0, key)?.map(Slot::Own)),
        }
    }

    fn insert(
        &mut self,
        changing: &Changing,
        change: &Change,
        policy: OnConflict,
        done: &mut Done,
    ) -> Result<(), Stop> {
        let Change::Insert(tuple, is_numbered) = change else { return Ok(()) };
        let mut values: Vec<Value> = Fields::of(tuple).map(Value::unpack).collect();
        if let (true, Some(field)) = (*is_numbered, changing.table.autoincrement) {
            // The number is not known yet.
            values[field as usize] = Value::Int(-1);
        }
        let mut rows = [Slot::Nothing, Slot::Row(values.into())];
        self.fire(&changing.triggers, Timing::Before, &rows, policy)?;
        if changing.table.view.is_some() {
            return self.fire(&changing.triggers, Timing::InsteadOf, &rows, policy);
        }
        if let Some(error) = changing.null_of(tuple, *is_numbered) {
            return if policy == OnConflict::Ignore { Ok(()) } else { Err(error.into()) };
        }
        if policy == OnConflict::Replace && !changing.replaced.is_empty() {
            self.make_room(changing, tuple, policy, done)?;
        }
        let written = changing.made(policy, Vec::new()).apply_row(change, self.writer, done)?;
        if let Some(new) = written.and_then(|written| written.new) {
            rows[1] = Slot::Own(new);
            self.fire(&changing.triggers, Timing::After, &rows, policy)?;
        }
        Ok(())
    }

    /// Deletes the rows whose unique keys a new row has, with their triggers.
    fn make_room(
        &mut self,
        changing: &Changing,
        tuple: &[u8],
        policy: OnConflict,
        done: &mut Done,
    ) -> Result<(), Stop> {
        let table = &changing.table;
        for index in table.indexes.iter().filter(|index| index.is_unique) {
            let Some(key) = unique_key(index, tuple) else { continue };
            let Some(old) = self.writer.find(table.id, index.id, &key)? else { continue };
            let rows = [Slot::Own(old), Slot::Nothing];
            self.fire(&changing.replaced, Timing::Before, &rows, policy)?;
            let delete = Statement::Delete { index: index.id, key: &key };
            if self.writer.write(table.id, delete)?.old.is_some() {
                done.count += 1;
                self.fire(&changing.replaced, Timing::After, &rows, policy)?;
            }
        }
        Ok(())
    }

    fn update(
        &mut self,
        changing: &Changing,
        (found, outer): (&Found, Option<&Rows>),
        (set, policy): (&[(usize, Ex)], OnConflict),
        done: &mut Done,
    ) -> Result<(), Stop> {
        let Some(old) = self.now(changing, found)? else { return Ok(()) };
        let Some((change, new)) = self.updated(changing, (&old, outer), (set, policy))? else {
            return Ok(());
        };
        let mut rows = [old, Slot::Row(new)];
        self.fire(&changing.triggers, Timing::Before, &rows, policy)?;
        let Some(change) = change else {
            return self.fire(&changing.triggers, Timing::InsteadOf, &rows, policy);
        };
        if self.now(changing, found)?.is_none() {
            return Ok(());
        }
        let written = changing.made(policy, Vec::new()).apply_row(&change, self.writer, done)?;
        if let Some(new) = written.and_then(|written| written.new) {
            rows[1] = Slot::Own(new);
            self.fire(&changing.triggers, Timing::After, &rows, policy)?;
        }
        Ok(())
    }

    /// The change of a row of a table, and the row that comes of it; of a view, only that.
    fn updated(
        &mut self,
        changing: &Changing,
        (old, outer): (&Slot<'static>, Option<&Rows>),
        (set, policy): (&[(usize, Ex)], OnConflict),
    ) -> Result<Option<(Option<Change>, Row)>, Error> {
        // A copy of the table would make the write that follows copy its path in the trees.
        let has_query = set.iter().any(|(_, ex)| plan::has_query(ex));
        let reads = if has_query { &changing.reads[..] } else { &[] };
        self.over(reads, |run| {
            let outer = outer.map(env);
            let slots = std::slice::from_ref(old);
            let env = Env { slots, aggregates: &[], outer: outer.as_ref() };
            if let Slot::Row(row) = old {
                let mut values = row.to_vec();
                for (field, ex) in set {
                    values[*field] = run.eval(ex, &env)?;
                }
                return Ok(Some((None, values.into())));
            }
            let Some(tuple) = old.tuple() else { return Ok(None) };
            let change = changing.update(run, tuple.bytes(), &env, (set, policy))?;
            let Some(Change::Update(key, operations, new)) = change else { return Ok(None) };
            let row = row_of(&new);
            Ok(Some((Some(Change::Update(key, operations, new)), row)))
        })
    }

    fn delete(&mut self, changing: &Changing, found: &Found, done: &mut Done) -> Result<(), Stop> {
        let policy = changing.on_conflict;
        let Some(old) = self.now(changing, found)? else { return Ok(()) };
        let rows = [old, Slot::Nothing];
        self.fire(&changing.triggers, Timing::Before, &rows, policy)?;
        let Found::Key(key) = found else {
            return self.fire(&changing.triggers, Timing::InsteadOf, &rows, policy);
        };
        let change = Change::Delete(key.clone());
        let written = changing.made(policy, Vec::new()).apply_row(&change, self.writer, done)?;
        if written.is_some_and(|written| written.old.is_some()) {
            self.fire(&changing.triggers, Timing::After, &rows, policy)?;
        }
        Ok(())
    }

    /// Runs the triggers of a row.
    fn fire(
        &mut self,
        fired: &[Fired],
        timing: Timing,
        rows: &Rows,
        policy: OnConflict,
    ) -> Result<(), Stop> {
        for fired in fired.iter().filter(|fired| fired.timing == timing) {
            if !self.is_recursive && self.active.contains(&fired.program) {
                continue;
            }
            if self.depth >= DEPTH_MAX {
                return Err(error::execute("too many levels of trigger recursion").into());
            }
            self.depth += 1;
            self.active.push(fired.program);
            let result = self.program(&self.programs[fired.program], rows, policy);
            self.active.pop();
            self.depth -= 1;
            result?;
        }
        Ok(())
    }

    fn program(&mut self, program: &Program, rows: &Rows, policy: OnConflict) -> Result<(), Stop> {
        self.budget.step()?;
        if let Some(when) = &program.when {
            let around = env(rows);
            let holds = self.over(&program.reads, |run| {
                run.holds(when, &Env { outer: Some(&around), ..Env::NOTHING })
            })?;
            if !holds {
                return Ok(());
            }
        }
        for step in &program.steps {
            match step {
                ProgramStep::Rows(query, reads) => {
                    let around = env(rows);
                    self.over(reads, |run| {
                        let found = run.query(query, Some(&around), None)?;
                        run.forget(&found);
                        Ok(())
                    })?;
                }
                ProgramStep::Changes(changing) => {
                    self.change(changing, Some(rows), policy)?;
                }
            }
        }
        Ok(())
    }
}

/// RAISE(IGNORE) leaves one row alone.
fn passed(result: Result<(), Stop>) -> Result<(), Stop> {
    match result {
        Err(Stop { then: Then::Ignore, .. }) => Ok(()),
        result => result,
    }
}
