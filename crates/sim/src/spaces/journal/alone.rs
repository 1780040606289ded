//! Requests outside of transactions.

use super::call::call;
use super::{Journal, Operation, Reply};
use crate::spaces::contents::{Change, PLAIN, State, code, run};
use crate::spaces::definition::Definition;
use crate::spaces::request::{Call, Request, Statement};

impl Journal {
    /// The reply to a write outside of transactions.
    pub(super) fn write_outside(&mut self, space: usize, statement: &Statement) -> Reply {
        if statement.sql_rows == 0 {
            return Reply::of_statement(&self.write_alone(space, statement));
        }
        self.counted.sql += 1;
        let mut next = self.now().clone();
        let reply = run_sql(&mut next, space, statement);
        if next != *self.now() && !matches!(reply, Reply::Error(_)) {
            self.change(|now| *now = next);
        }
        reply
    }

    /// A statement outside of transactions.
    fn write_alone(&mut self, space: usize, statement: &Statement) -> Result<Change, u32> {
        let mut next = self.now().clone();
        let mut statement = statement.clone();
        next.number(space, &mut statement);
        let shown = run(&mut next.tables, space, &statement);
        if next != *self.now() {
            self.change(|now| *now = next);
        }
        shown
    }

    /// A definition takes effect, or finds at some time of its work what does not fit it.
    pub(super) fn define(
        &mut self,
        at: usize,
        definition: Definition,
        made: Option<&Reply>,
    ) -> Reply {
        let mut next = self.now().clone();
        let reply = match definition {
            Definition::Truncate(PLAIN) if self.is_bound => Reply::Error(code::ALTER_SPACE),
            definition => definition.apply(&mut next),
        };
        let began = self.operations[at].began;
        if let (Some(made @ Reply::Error(_)), Some(began)) = (made, began) {
            let is_met = |state: &State| definition.apply(&mut state.clone()) == *made;
            if let Some(after) = self.states[began..].iter().position(is_met) {
                self.counted.misfits += 1;
                self.met = Some(began + after);
                return made.clone();
            }
        }
        if reply == Reply::Other {
            self.counted.definitions += 1;
            self.counted.prepared += u64::from(began.is_some());
            self.definitions += u64::from(definition.is_of_schema());
            self.counted.granted += u64::from(matches!(definition, Definition::Grant { .. }));
            self.change(|now| *now = next);
        }
        reply
    }
}

/// Rows that SQL counts for one that was written.
pub(super) fn changed_by(statement: &Statement, change: &Change) -> u64 {
    let [old, new] = [&change.old, &change.new].map(|row| u64::from(row.is_some()));
    match statement.call {
        Call::Delete => old,
        Call::Update => new,
        _ => old + new,
    }
}

/// Runs a statement of SQL; of one that fails, nothing is to be kept.
fn run_sql(state: &mut State, space: usize, statement: &Statement) -> Reply {
    let (mut count, mut ids) = (0, Vec::new());
    for mut row in statement.rows() {
        let takes_number = row.id.is_none();
        state.number(space, &mut row);
        ids.extend(row.id.filter(|_| takes_number));
        match run(&mut state.tables, space, &row) {
            Ok(change) => count += changed_by(&row, &change),
            Err(code) => return Reply::Error(code),
        }
    }
    Reply::Changed(count, ids)
}

/// What a request outside of transactions shows of these contents, if it shows something.
pub(super) fn shown_alone(operation: &Operation, state: &State) -> Option<Reply> {
    Some(match &operation.request {
        Request::Call(procedure) => call(state, operation.who, procedure, None).0,
        Request::Select(space, selection) => Reply::of_rows(state.tables[*space].select(selection)),
        Request::Count(space) => Reply::Count(state.tables[*space].rows.len() as u64),
        Request::Write(space, statement) if statement.sql_rows > 0 => {
            run_sql(&mut state.clone(), *space, statement)
        }
        // It has changed nothing, and so has it now.
        Request::Write(space, statement) => {
            let mut statement = statement.clone();
            state.clone().number(*space, &mut statement);
            Reply::of_statement(&run(&mut state.tables.clone(), *space, &statement))
        }
        // It was refused for what is bound to it.
        Request::Define(Definition::Truncate(PLAIN)) => return None,
        Request::Define(definition) => definition.apply(&mut state.clone()),
        _ => return None,
    })
}
