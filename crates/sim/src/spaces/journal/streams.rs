//! Requests of transactions: their beginnings, steps and ends.

use super::alone::changed_by;
use super::{Expected, Journal, Reply, When};
use crate::spaces::contents::{Change, NAMING, PLAIN, code, linked};
use crate::spaces::request::{Call, IteratorType, Key, Request, Selection, Statement};
use crate::spaces::transaction::{Done, Step, Transaction};

impl Journal {
    pub(super) fn begin(
        &mut self,
        key: (u64, u64),
        timeout_ms: Option<u64>,
        when: When,
    ) -> Expected {
        if self.open.contains_key(&key) {
            return Expected::This(Reply::Error(code::ACTIVE_TRANSACTION));
        }
        let deadline = timeout_ms.map(|ms| (when.turn_ms + ms, when.now_ms + ms + 1));
        self.open.insert(key, Transaction { deadline, ..Transaction::default() });
        Expected::This(Reply::Done)
    }

    pub(super) fn commit(
        &mut self,
        key: (u64, u64),
        made: Option<&Reply>,
        when: When,
    ) -> Result<Expected, String> {
        let Some(mut transaction) = self.open.remove(&key) else {
            return Ok(Expected::This(Reply::Done));
        };
        if transaction.times_out(made, when)? {
            self.counted.timed_out += 1;
            self.ended.push(transaction);
            return Ok(Expected::This(Reply::Error(code::TIMEOUT)));
        }
        let expected = transaction.commit(self, made);
        let is_conflict = made == Some(&Reply::Error(code::CONFLICT));
        self.counted.conflicts += u64::from(is_conflict);
        self.met = is_conflict.then(|| transaction.conflict_since(&self.states)).flatten();
        self.ended.push(transaction);
        Ok(expected)
    }

    /// A request in an open transaction.
    pub(super) fn in_transaction(
        &mut self,
        key: (u64, u64),
        at: usize,
        made: Option<&Reply>,
        when: When,
    ) -> Result<Reply, String> {
        let request = self.operations[at].request.clone();
        let mut transaction = self.open.remove(&key).expect("it was looked for");
        let reply = match transaction.times_out(made, when)? {
            true => Reply::Error(code::TIMEOUT),
            false => self.step(&mut transaction, at, &request),
        };
        self.open.insert(key, transaction);
        Ok(reply)
    }

    /// Copies what a request looks at. Returns `false` if definitions have changed since.
    fn touch(
        &self,
        transaction: &mut Transaction,
        space: usize,
        request: &Request,
        is_denied: bool,
    ) -> bool {
        let now = (&*self.now().tables[space], self.position(), self.versions[space]);
        let is_touched = transaction.touch(space, self.definitions, now);
        let finds_nothing = match request {
            Request::Write(_, statement) => transaction.finds_nothing(space, statement),
            _ => true,
        };
        is_touched && (is_denied || finds_nothing || transaction.touch_for(space, self))
    }

    fn step(&mut self, transaction: &mut Transaction, at: usize, request: &Request) -> Reply {
        let (Request::Select(space, _) | Request::Count(space) | Request::Write(space, _)) =
            request
        else {
            unreachable!("definitions are no part of transactions here");
        };
        let space = *space;
        let is_denied = self.now().denies(self.operations[at].who, request);
        if !self.touch(transaction, space, request, is_denied) {
            return Reply::Error(code::CONFLICT);
        }
        if is_denied {
            return Reply::Error(code::ACCESS_DENIED);
        }
        let (done, reply) = match request {
            Request::Write(_, statement) if statement.sql_rows > 0 => {
                return self.step_of_sql(transaction, (at, space), statement);
            }
            Request::Write(_, statement) => {
                let mut statement = statement.clone();
                let mut next = self.now().clone();
                next.number(space, &mut statement);
                if next != *self.now() {
                    // The number is used, whatever becomes of the transaction.
                    self.change(|now| *now = next);
                }
                let done = transaction.run(space, &statement);
                let reply = Reply::of_statement(&done);
                if let Err(code::NAMES_NOBODY | code::IS_NAMED) = done {
                    let of =
                        |space: &usize| Step { operation: at, space: *space, done: Done::Refused };
                    transaction.steps.extend(linked(space, self.is_bound).iter().map(of));
                    return reply;
                }
                let looked_up = self.is_bound.then(|| looked_up(space, &done)).flatten();
                transaction.steps.push(Step {
                    operation: at,
                    space,
                    done: Done::Wrote(statement, done),
                });
                if let Some((of, selection)) = looked_up {
                    let touched = transaction.touched[of].as_ref().expect("it was just touched");
                    let rows = touched.table.select(&selection);
                    let done = Done::LookedUp(selection, rows);
                    transaction.steps.push(Step { operation: at, space: of, done });
                }
                return reply;
            }
            Request::Select(_, selection) => {
                let touched = transaction.touched[space].as_ref().expect("it was just touched");
                let rows = touched.table.select(selection);
                if let Err(code) = rows {
                    // An error of a selection is not repeated.
                    return Reply::Error(code);
                }
                let reply = Reply::of_rows(rows.clone());
                (Done::Selected(selection.clone(), rows), reply)
            }
            _ => {
                let touched = transaction.touched[space].as_ref().expect("it was just touched");
                let count = touched.table.rows.len() as u64;
                (Done::Counted(count), Reply::Count(count))
            }
        };
        transaction.steps.push(Step { operation: at, space, done });
        reply
    }

    /// A statement of SQL in a transaction: rows that are put, or one that is looked for first.
    fn step_of_sql(
        &mut self,
        transaction: &mut Transaction,
        (operation, space): (usize, usize),
        statement: &Statement,
    ) -> Reply {
        self.counted.sql += 1;
        if matches!(statement.call, Call::Update | Call::Delete) {
            // Any change of the space may be one of what it has looked at.
            let touched = transaction.touched[space].as_ref().expect("it was just touched");
            let done = Done::Counted(touched.table.rows.len() as u64);
            transaction.steps.push(Step { operation, space, done });
            if transaction.finds_nothing(space, statement) {
                return Reply::Changed(0, Vec::new());
            }
        }
        let (mut count, mut ids) = (0, Vec::new());
        for mut row in statement.rows() {
            let takes_number = row.id.is_none();
            let mut next = self.now().clone();
            next.number(space, &mut row);
            if next != *self.now() {
                // The number is used, whatever becomes of the transaction.
                self.change(|now| *now = next);
            }
            let done = transaction.run(space, &row);
            let changed = done.as_ref().map(|change| changed_by(&row, change)).map_err(|it| *it);
            ids.extend(row.id.filter(|_| takes_number));
            transaction.steps.push(Step { operation, space, done: Done::Wrote(row, done) });
            match changed {
                Ok(more) => count += more,
                Err(code) => return Reply::Error(code),
            }
        }
        Reply::Changed(count, ids)
    }
}

/// The foreign key's look-up in the other space.
fn looked_up(space: usize, done: &Result<Change, u32>) -> Option<(usize, Selection)> {
    let [left, came] = done.as_ref().ok()?.groups();
    let (of, group) = match space {
        NAMING => (PLAIN, came?),
        PLAIN if left != came => (NAMING, left?),
        _ => return None,
    };
    let (iterator, key) = (IteratorType::Eq, Key::Number(group));
    Some((of, Selection { index: 1, iterator, key, offset: 0, limit: u32::MAX }))
}
