//! An interactive transaction as the oracle sees it: a copy of each space that it touches, and what
//! it was shown.

use crate::spaces::contents::{Change, HASHED, Row, Rows, State, Table, code, linked, run};
use crate::spaces::journal::{Expected, Journal, Operation, Reply, When};
use crate::spaces::request::{Call, Key, Selection, Statement};
use std::rc::Rc;

/// So many parts of a commit are never too many. The steps of a space are repeated eight times at
/// most.
const PARTS_MAX: u32 = 8;

/// An open transaction, or one that has ended.
#[derive(Default)]
pub(crate) struct Transaction {
    /// When it times out, in Unix milliseconds: at the earliest, at the latest.
    pub(super) deadline: Option<(u64, u64)>,
    pub(super) is_over: bool,
    /// The version of the definitions at its first touch.
    pub(super) schema: Option<u64>,
    pub(super) touched: [Option<Touched>; 4],
    pub(super) steps: Vec<Step>,
    /// Changes before the first part of its commit, if that has several.
    pub(super) commits_from: Option<usize>,
    pub(super) parts: u32,
}

/// A space as the transaction sees it.
pub(super) struct Touched {
    pub(super) table: Table,
    /// Changes before the touch.
    pub(super) base: usize,
    /// The space's version then.
    pub(super) version: u64,
    pub(super) is_written: bool,
}

pub(super) struct Step {
    pub(super) operation: usize,
    pub(super) space: usize,
    pub(super) done: Done,
}

/// What was done, with what it showed.
pub(super) enum Done {
    /// A statement with its number, and what it did.
    Wrote(Statement, Result<Change, u32>),
    /// A statement that the foreign key refused. That depends on all in the bound spaces.
    Refused,
    /// A look-up of the foreign key; no client was shown it.
    LookedUp(Selection, Result<Rows, u32>),
    Selected(Selection, Result<Rows, u32>),
    Counted(u64),
}

/// The result of doing a step again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// The same.
    Same,
    /// The same to the client, but it reads or does something else than before, so the node may
    /// call it a conflict.
    Unlike,
    Different,
}

fn shown(done: &Result<Change, u32>) -> Result<Option<&Row>, u32> {
    done.as_ref().map(|change| change.shown.as_deref()).map_err(|code| *code)
}

impl Step {
    /// Does it again, on what there is.
    fn repeat(&self, tables: &mut [Rc<Table>; 4]) -> Again {
        match &self.done {
            Done::Wrote(statement, before) => {
                let now = run(tables, self.space, statement);
                let groups = |done: &Result<Change, u32>| done.as_ref().ok().map(Change::groups);
                match (&now, before) {
                    _ if shown(&now) != shown(before) => Again::Different,
                    _ if groups(&now) != groups(before) => Again::Unlike,
                    _ => Again::Same,
                }
            }
            Done::LookedUp(selection, rows) => {
                match tables[self.space].select(selection) == *rows {
                    true => Again::Same,
                    false => Again::Unlike,
                }
            }
            _ => self.repeat_on(&mut Table::clone(&tables[self.space])),
        }
    }

    /// Does it again on one space, whatever the foreign key says.
    fn repeat_on(&self, table: &mut Table) -> Again {
        let is_same = match &self.done {
            Done::Wrote(statement, before) => {
                shown(&table.run(self.space, statement)) == shown(before)
            }
            Done::Selected(selection, rows) => table.select(selection) == *rows,
            Done::Counted(count) => table.rows.len() as u64 == *count,
            Done::Refused | Done::LookedUp(..) => true,
        };
        if is_same { Again::Same } else { Again::Different }
    }
}

impl Transaction {
    /// Whether its time is over. The node says so, within limits.
    ///
    /// # Errors
    /// If it says so too early or too late.
    pub(super) fn times_out(&mut self, made: Option<&Reply>, when: When) -> Result<bool, String> {
        let says = made == Some(&Reply::Error(code::TIMEOUT));
        if self.is_over && !says {
            return Err("a transaction goes on that was over".to_owned());
        }
        let (earliest, latest) = self.deadline.unwrap_or((u64::MAX, u64::MAX));
        if says && when.now_ms < earliest {
            return Err("a transaction was over before its time".to_owned());
        }
        if !says && when.turn_ms >= latest {
            return Err("a transaction goes on after its time".to_owned());
        }
        self.is_over = says;
        Ok(says)
    }

    /// Copies a space at its first touch: its tuples, the changes before, and its version. Whether
    /// that can be, because definitions have not changed since another was copied.
    pub(super) fn touch(
        &mut self,
        space: usize,
        definitions: u64,
        (table, base, version): (&Table, usize, u64),
    ) -> bool {
        let schema = *self.schema.get_or_insert(definitions);
        if self.touched[space].is_some() {
            return true;
        }
        if schema != definitions && self.touched.iter().any(Option::is_some) {
            return false;
        }
        let table = Table::clone(table);
        self.touched[space] = Some(Touched { table, base, version, is_written: false });
        true
    }

    /// As `touch`, of a space that is written: the foreign key's other space is copied as well.
    pub(super) fn touch_for(&mut self, space: usize, journal: &Journal) -> bool {
        let all = std::iter::once(&space).chain(linked(space, journal.is_bound));
        let base = journal.position();
        all.copied().all(|space| {
            let table = &journal.now().tables[space];
            self.touch(space, journal.definitions, (table, base, journal.versions[space]))
        })
    }

    /// Whether a change by SQL finds no row in the copy of a space: it only reads then.
    pub(super) fn finds_nothing(&self, space: usize, statement: &Statement) -> bool {
        let is_change = matches!(statement.call, Call::Update | Call::Delete);
        let touched = self.touched[space].as_ref();
        let has_row = |it: &Touched| statement.id.is_some_and(|id| it.table.rows.contains_key(&id));
        statement.sql_rows > 0 && is_change && !touched.is_some_and(has_row)
    }

    /// Runs a statement that has its number on the copies.
    pub(super) fn run(&mut self, space: usize, statement: &Statement) -> Result<Change, u32> {
        let table = |it: &Option<Touched>| it.as_ref().map(|it| Rc::new(it.table.clone()));
        let mut tables = self.touched.each_ref().map(|it| table(it).unwrap_or_default());
        let done = run(&mut tables, space, statement);
        let touched = self.touched[space].as_mut().expect("it is touched before");
        touched.table = Table::clone(&tables[space]);
        touched.is_written |= done.is_ok();
        done
    }

    /// A part of its commit is done. From then on it does not time out.
    pub(super) fn goes_on(&mut self, position: usize, when: When) -> Result<(), String> {
        if self.commits_from.is_none() {
            self.times_out(None, when)?;
            (self.commits_from, self.deadline) = (Some(position), None);
        }
        self.parts += 1;
        Ok(())
    }

    /// Whether one of its steps would show something else, of these contents.
    fn differs(&self, state: &State) -> bool {
        self.again(state) == Again::Different
    }

    /// The result of doing all its steps again on these contents.
    fn again(&self, state: &State) -> Again {
        let mut tables = state.tables.clone();
        let mut all = Again::Same;
        for step in &self.steps {
            match step.repeat(&mut tables) {
                Again::Same => {}
                Again::Unlike => all = Again::Unlike,
                Again::Different => return Again::Different,
            }
        }
        all
    }

    /// After how many changes somebody had changed what it was shown. `None` if changes of
    /// definitions, or others that leave no trace in the contents, must have been what it met.
    pub(super) fn conflict_since(&self, states: &[State]) -> Option<usize> {
        let first = self.touched.iter().flatten().map(|it| it.base).min()?;
        let is_changed = |step: &Step, at: usize| {
            let Some(Touched { base, .. }) = self.touched[step.space] else { return false };
            at > base && {
                let table = |at: usize| &states[at].tables[step.space];
                !Rc::ptr_eq(table(at), table(base))
            }
        };
        // Any change of the space may be one too many for them.
        let depends_on_all = |step: &&Step| match &step.done {
            Done::Counted(_) | Done::Refused => true,
            Done::Selected(it, _) => step.space == HASHED && it.key == Key::None,
            Done::Wrote(..) | Done::LookedUp(..) => false,
        };
        (first..states.len()).find(|&at| {
            let mut steps = self.steps.iter().filter(depends_on_all);
            steps.any(|step| is_changed(step, at)) || self.differs(&states[at])
        })
    }

    /// Commits. The oracle's changes are made if the node has committed and that may be.
    pub(super) fn commit(&self, journal: &mut Journal, made: Option<&Reply>) -> Expected {
        let touched = || self.touched.iter().flatten();
        let is_written = touched().any(|it| it.is_written);
        if !is_written && touched().count() < 2 {
            // Its moment is that of its copy.
            return Expected::This(Reply::Done);
        }
        let conflict = Expected::This(Reply::Error(code::CONFLICT));
        if self.schema != Some(journal.definitions) {
            return conflict;
        }
        let mut next = journal.now().clone();
        let is_changed = |space: usize| {
            let touched = self.touched[space].as_ref();
            touched.is_some_and(|it| it.version != journal.versions[space])
        };
        let any_is_changed = (0..4).any(is_changed);
        // What a part of the commit met may be gone by now. Other changes may have come too often.
        let met = self
            .commits_from
            .is_some_and(|from| journal.any_since(from, |it| self.again(it) != Again::Same));
        let mut may_be_refused = met || self.parts > PARTS_MAX;
        for step in &self.steps {
            let again = step.repeat(&mut next.tables);
            if again != Again::Same && !any_is_changed {
                unreachable!("on its own copies it was the same");
            }
            may_be_refused |= again == Again::Unlike;
            let is_all = |it: &Selection| step.space == HASHED && it.key == Key::None;
            match &step.done {
                // Any change of the space is one too many.
                Done::Counted(_) | Done::Refused if is_changed(step.space) => return conflict,
                // Attempts that were taken back count as changes, too, and may change an order.
                Done::Counted(_) | Done::Refused => may_be_refused = true,
                // The error's text shows a tuple, which may be another one by now.
                Done::Wrote(_, Err(code::TUPLE_FOUND)) => {
                    may_be_refused |= is_changed(step.space);
                }
                Done::Selected(it, _) if is_all(it) => may_be_refused = true,
                _ => {}
            }
            if again == Again::Different {
                return conflict;
            }
        }
        if made == Some(&Reply::Done) && next != *journal.now() {
            let now = journal.now().clone();
            for (table, before) in next.tables.iter_mut().zip(&now.tables) {
                // What is equal is not changed.
                if table == before {
                    *table = Rc::clone(before);
                }
            }
            journal.change(|now| *now = next);
            journal.counted.committed += 1;
        }
        match may_be_refused {
            true => Expected::DoneOrConflict,
            false => Expected::This(Reply::Done),
        }
    }

    /// Whether what it has firmly shown is true without the changes behind `kept`.
    pub(super) fn holds(&self, kept: usize, found: &State, operations: &[Operation]) -> bool {
        let is_lost = |(space, touched): (usize, &Option<Touched>)| {
            touched.as_ref().is_some_and(|it| it.base > kept) && {
                let mut table = Table::clone(&found.tables[space]);
                let mut steps = self.steps.iter().filter(|step| step.space == space);
                !steps.all(|step| {
                    let is_same = step.repeat_on(&mut table) == Again::Same;
                    is_same || !operations[step.operation].is_firm()
                })
            }
        };
        !self.touched.iter().enumerate().any(is_lost)
    }
}
