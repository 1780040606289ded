//! What ran on the spaces, in its order, checked while it runs.
//!
//! ```text
//! changes   S0 --insert--> S1 --COMMIT--> S2 --delete--> S3        after the crash: S2
//! ran          |  select (at S1)             | select (at S2)
//! kept      <----------- up to here -------> | lost
//! ```
//! The node says which packet it has run, with the reply as it made it. The oracle, which is plain
//! maps, must come to the same reply. A transaction that is committed must find, repeated at its
//! commit on what there is, all that it showed before; so the committed ones are serializable, in
//! the order of their commits. One that would not find it must be refused.
//!
//! The log keeps a prefix of the changes. So after a crash there must be a change up to which the
//! oracle has what was found, and whatever a client was firmly shown must be true without the rest.

use crate::history::AskedGate;
use crate::spaces::contents::{Change, HASHED, NAMING, PLAIN, Rows, State, code, linked, run};
use crate::spaces::definition::Definition;
use crate::spaces::request::{Call, IteratorType, Key, Request, Selection, Statement, Who};
use crate::spaces::transaction::{Done, Step, Transaction};
use ladon_iproto::client;
use ladon_msgpack::{Value, read_array, read_uint};
use ladon_record::Gate;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Without data.
    Done,
    Rows(Rows),
    Count(u64),
    /// Of SQL: rows that were changed, and the numbers that the sequence gave.
    Changed(u64, Vec<u64>),
    /// Data that no request on these spaces gives: a definition.
    Other,
    Error(u32),
}

impl Reply {
    pub(crate) fn of(reply: &client::Reply<'_>) -> Reply {
        use crate::spaces::contents::Row;
        if let Some(code) = reply.error_code() {
            return Reply::Error(code);
        }
        if let Some(info) = reply.sql_info {
            return Reply::of_sql(info).unwrap_or(Reply::Other);
        }
        if reply.data.is_none() {
            return Reply::Done;
        }
        let tuples = reply.tuples();
        if let [mut number] = tuples[..]
            && let Ok(count) = read_uint(&mut number)
        {
            return Reply::Count(count);
        }
        let rows: Option<Rows> = tuples.iter().map(|it| Row::read(it).map(Rc::new)).collect();
        rows.map_or(Reply::Other, Reply::Rows)
    }

    /// Of `{0: COUNT, 1: [IDS]}`.
    fn of_sql(mut info: &[u8]) -> Option<Reply> {
        let Value::Map(pairs) = ladon_msgpack::read(&mut info).ok()? else { return None };
        let (mut count, mut ids) = (0, Vec::new());
        for _ in 0..pairs {
            match read_uint(&mut info).ok()? {
                0 => count = read_uint(&mut info).ok()?,
                _ => {
                    for _ in 0..read_array(&mut info).ok()? {
                        ids.push(read_uint(&mut info).ok()?);
                    }
                }
            }
        }
        Some(Reply::Changed(count, ids))
    }

    fn of_rows(rows: Result<Rows, u32>) -> Reply {
        rows.map_or_else(Reply::Error, Reply::Rows)
    }

    fn of_statement(done: &Result<Change, u32>) -> Reply {
        Reply::of_rows(done.clone().map(|change| change.shown.into_iter().collect()))
    }

    /// With tuples in the oracle's order, if they may come in any.
    fn ordered(self, request: &Request) -> Reply {
        match (request, self) {
            (Request::Select(HASHED, Selection { key: Key::None, .. }), Reply::Rows(mut rows)) => {
                rows.sort_by_key(|row| row.id);
                Reply::Rows(rows)
            }
            (_, reply) => reply,
        }
    }
}

/// A request in its life.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) client: u64,
    pub(crate) who: Who,
    pub(crate) stream: u64,
    pub(crate) request: Request,
    /// When it was sent, in steps.
    pub(crate) begin: u64,
    pub(crate) gate: AskedGate,
    /// When its reply came, in steps.
    pub(crate) end: Option<u64>,
    pub(crate) may_be_lost: bool,
    /// Changes before the first part of its work, if that has several.
    pub(crate) began: Option<usize>,
    /// What it did when it ran.
    pub(crate) ran: Option<Ran>,
}

#[derive(Clone, Debug)]
pub(crate) struct Ran {
    /// The reply that the node made; of one that is made in slices, what it has to be.
    pub(crate) made: Reply,
    /// Changes before it.
    position: usize,
    /// It has made the change with this number.
    changed: Option<usize>,
    is_in_transaction: bool,
    /// It was refused: nothing happened.
    is_refused: bool,
    /// It is a conflict, or an error of a definition, that was there after so many changes.
    met: Option<usize>,
}

/// When something ran: the time at the beginning of the turn, and at its end, in Unix milliseconds.
/// The node took a time in between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct When {
    pub(crate) turn_ms: u64,
    pub(crate) now_ms: u64,
}

/// One life's.
#[derive(Default)]
pub(crate) struct Journal {
    /// After each number of changes.
    states: Vec<State>,
    /// By space, how often it was changed.
    pub(super) versions: [u64; 4],
    /// How often definitions have changed.
    pub(super) definitions: u64,
    pub(crate) operations: Vec<Operation>,
    /// By client and stream.
    open: BTreeMap<(u64, u64), Transaction>,
    ended: Vec<Transaction>,
    /// After how many changes the conflict was there that a commit has just met, or what a
    /// definition did not fit.
    met: Option<usize>,
    /// Something may be refused for want of a disk or of memory.
    may_refuse: bool,
    /// A foreign key binds `naming` to `plain`.
    pub(super) is_bound: bool,
    pub(crate) counted: Counted,
}

/// For the report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) ran: u64,
    pub(crate) committed: u64,
    pub(crate) conflicts: u64,
    pub(crate) timed_out: u64,
    pub(crate) long: u64,
    pub(crate) definitions: u64,
    pub(crate) prepared: u64,
    pub(crate) misfits: u64,
    pub(crate) definition_slices: u64,
    pub(crate) kept_unanswered: u64,
    pub(crate) lost: u64,
    pub(crate) slices: u64,
    pub(crate) waits_for_commits: u64,
    pub(crate) overtakings: u64,
    pub(crate) denied: u64,
    pub(crate) granted: u64,
    pub(crate) sql: u64,
    pub(crate) sql_slices: u64,
}

/// What a request has to answer.
pub(super) enum Expected {
    This(Reply),
    /// A commit may be refused and need not.
    DoneOrConflict,
}

impl Journal {
    /// Of a life that begins with these contents.
    pub(crate) fn new(found: State, may_refuse: bool, is_bound: bool) -> Journal {
        Journal { states: vec![found], may_refuse, is_bound, ..Journal::default() }
    }

    pub(crate) fn now(&self) -> &State {
        self.states.last().expect("the first is never taken out")
    }

    pub(super) fn position(&self) -> usize {
        self.states.len() - 1
    }

    /// Whether something is true of the contents at one time since so many changes.
    pub(super) fn any_since(&self, from: usize, is_true: impl FnMut(&State) -> bool) -> bool {
        self.states[from..].iter().any(is_true)
    }

    /// Something has changed; the number of the change.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut State)) -> usize {
        let mut next = self.now().clone();
        change(&mut next);
        for (at, version) in self.versions.iter_mut().enumerate() {
            let before = &self.states[self.states.len() - 1].tables[at];
            *version += u64::from(!Rc::ptr_eq(before, &next.tables[at]));
        }
        self.states.push(next);
        self.position()
    }

    /// The node has run an operation. `made`: its reply, unless that is made in slices.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn ran(&mut self, at: usize, made: Option<Reply>, when: When) -> Result<(), String> {
        let (request, key, who) = {
            let operation = &self.operations[at];
            (operation.request.clone(), (operation.client, operation.stream), operation.who)
        };
        self.counted.ran += 1;
        let position = self.position();
        let made = made.map(|made| made.ordered(&request));
        let is_in_transaction = self.open.contains_key(&key);
        let is_refused = made.as_ref().is_some_and(|made| self.is_refused(&request, made));
        let expected = match &request {
            _ if is_refused => {
                if request == Request::Commit {
                    self.ended.extend(self.open.remove(&key));
                }
                None
            }
            Request::Begin(timeout_ms) => Some(self.begin(key, *timeout_ms, when)),
            Request::Commit => Some(self.commit(key, made.as_ref(), when)?),
            Request::Rollback => {
                self.ended.extend(self.open.remove(&key));
                Some(Expected::This(Reply::Done))
            }
            _ if is_in_transaction => {
                Some(Expected::This(self.in_transaction(key, at, made.as_ref(), when)?))
            }
            _ if self.now().denies(who, &request) => {
                Some(Expected::This(Reply::Error(code::ACCESS_DENIED)))
            }
            Request::Define(definition) => {
                Some(Expected::This(self.define(at, *definition, made.as_ref())))
            }
            Request::Select(space, selection) => {
                let rows = self.now().tables[*space].select(selection);
                Some(Expected::This(Reply::of_rows(rows)))
            }
            Request::Count(space) => {
                let count = self.now().tables[*space].rows.len() as u64;
                Some(Expected::This(Reply::Count(count)))
            }
            Request::Write(space, statement) => {
                Some(Expected::This(self.write_outside(*space, statement)))
            }
        };
        let made = match (expected, made) {
            (None, Some(made)) => made,
            (Some(Expected::DoneOrConflict), Some(made)) => made,
            (Some(Expected::This(expected)), Some(made)) if expected == made => made,
            // It is looked at when it has come.
            (Some(Expected::This(expected @ Reply::Rows(_))), None) => {
                self.counted.long += 1;
                expected
            }
            (Some(Expected::This(expected)), made) => {
                return Err(format!(
                    "{}: the node made {made:?}, and not {expected:?}",
                    self.operations[at].show()
                ));
            }
            (None | Some(Expected::DoneOrConflict), None) => {
                return Err(format!("no reply to {}", self.operations[at].show()));
            }
        };
        self.counted.denied += u64::from(made == Reply::Error(code::ACCESS_DENIED));
        let changed = (self.position() > position).then(|| self.position());
        let met = self.met.take();
        let ran = Ran { made, position, changed, is_in_transaction, is_refused, met };
        self.operations[at].ran = Some(ran);
        Ok(())
    }

    /// The node has done a part of an operation's work, and runs it again.
    ///
    /// # Errors
    /// If there is nothing that may take long.
    pub(crate) fn ran_partly(&mut self, at: usize, when: When) -> Result<(), String> {
        let position = self.position();
        let operation = &mut self.operations[at];
        operation.began.get_or_insert(position);
        let key = (operation.client, operation.stream);
        match (&operation.request, self.open.get_mut(&key)) {
            (Request::Commit, Some(transaction)) => {
                self.counted.slices += 1;
                transaction.goes_on(position, when)
            }
            (Request::Define(_), None) => {
                self.counted.definition_slices += 1;
                Ok(())
            }
            // It waits for the end of a long reply. A transaction has copied the space already.
            (Request::Select(..) | Request::Count(_), None) => Ok(()),
            (&Request::Select(space, _) | &Request::Count(space), Some(transaction)) => {
                let (definitions, version) = (self.definitions, self.versions[space]);
                let table = &self.states[position].tables[space];
                match transaction.touch(space, definitions, (table, position, version)) {
                    true => Ok(()),
                    false => Err(format!("{}: it goes on after a conflict", operation.show())),
                }
            }
            // A slice of a statement of SQL; the transaction has copied the space already.
            (Request::Write(space, statement), Some(_)) if statement.sql_rows > 0 => {
                let space = *space;
                let mut transaction = self.open.remove(&key).expect("it was just there");
                let is_touched = transaction.touch_for(space, self);
                self.open.insert(key, transaction);
                self.counted.sql_slices += 1;
                match is_touched {
                    true => Ok(()),
                    false => Err(format!("{at}: it goes on after a conflict")),
                }
            }
            // It waits for a commit or a definition.
            (Request::Write(..), None) => {
                self.counted.waits_for_commits += 1;
                Ok(())
            }
            _ => Err(format!("{}: it goes on later", operation.show())),
        }
    }

    /// Whether a request of a client must not run before an earlier one of it that is not done.
    pub(crate) fn must_wait(&self, at: usize, earlier: usize) -> bool {
        let (request, earlier) = (&self.operations[at], &self.operations[earlier]);
        let reads = |it: &Operation| matches!(it.request, Request::Select(..) | Request::Count(_));
        request.stream == earlier.stream
            && match earlier.request {
                _ if request.stream != 0 => true,
                Request::Define(Definition::Truncate(_)) => true,
                // What takes long, and has begun, is overtaken by requests on data.
                Request::Define(_) => {
                    matches!(request.request, Request::Define(_)) || earlier.began.is_none()
                }
                _ => !(reads(earlier) && reads(request)),
            }
    }

    /// Whether a reply says that the log takes no writes, or that there is no memory, where that
    /// may be.
    fn is_refused(&self, request: &Request, made: &Reply) -> bool {
        let Reply::Error(code) = made else { return false };
        let writes = matches!(request, Request::Write(..) | Request::Define(_) | Request::Commit);
        self.may_refuse && writes && matches!(*code, code::WAL_IO | code::MEMORY_ISSUE)
    }

    /// The reply to a write outside of transactions.
    fn write_outside(&mut self, space: usize, statement: &Statement) -> Reply {
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
    fn define(&mut self, at: usize, definition: Definition, made: Option<&Reply>) -> Reply {
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

    fn begin(&mut self, key: (u64, u64), timeout_ms: Option<u64>, when: When) -> Expected {
        if self.open.contains_key(&key) {
            return Expected::This(Reply::Error(code::ACTIVE_TRANSACTION));
        }
        let deadline = timeout_ms.map(|ms| (when.turn_ms + ms, when.now_ms + ms + 1));
        self.open.insert(key, Transaction { deadline, ..Transaction::default() });
        Expected::This(Reply::Done)
    }

    fn commit(
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
    fn in_transaction(
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

    /// The operation's reply has come.
    ///
    /// # Errors
    /// If it is not the one that was made.
    pub(crate) fn answered(&mut self, at: usize, reply: Reply, step: u64) -> Result<(), String> {
        let operation = &mut self.operations[at];
        let reply = reply.ordered(&operation.request);
        operation.end = Some(step);
        match &operation.ran {
            Some(ran) if ran.made == reply => Ok(()),
            Some(ran) => {
                Err(format!("{}: {reply:?} came, and {:?} was made", operation.show(), ran.made))
            }
            None => Err(format!("{}: {reply:?} came before it ran", operation.show())),
        }
    }

    /// Whether a crash may have left this.
    pub(crate) fn explains(&mut self, found: &State) -> bool {
        let firm = |it: &&Operation| it.end.is_some() && !it.may_be_lost;
        let ran = self.operations.iter().filter(firm).filter_map(|it| it.ran.as_ref());
        let at_least = ran.filter_map(|ran| ran.changed).max().unwrap_or(0);
        let kept = (at_least..self.states.len())
            .rev()
            .find(|&kept| self.states[kept] == *found && self.holds(kept, found));
        let Some(kept) = kept else { return false };
        for operation in &self.operations {
            if let (Request::Commit, Some(changed)) =
                (&operation.request, operation.ran.as_ref().and_then(|ran| ran.changed))
            {
                self.counted.lost += u64::from(changed > kept);
                self.counted.kept_unanswered +=
                    u64::from(changed <= kept && operation.end.is_none());
            }
        }
        true
    }

    /// Whether what clients were firmly shown is true without the changes behind `kept`.
    fn holds(&self, kept: usize, found: &State) -> bool {
        let alone = self.operations.iter().filter(|it| it.is_firm()).all(|operation| {
            let Some(ran) = &operation.ran else { return false };
            if let Some(met) = ran.met {
                // What a definition does not fit may have been there all the time.
                let is_met_here =
                    || shown_alone(&operation.request, found) == Some(ran.made.clone());
                return met <= kept || is_met_here();
            }
            ran.position <= kept
                || ran.is_refused
                || operation.had_rights(ran, found)
                    && (ran.is_in_transaction
                        || ran.made == Reply::Error(code::ACCESS_DENIED)
                        || shown_alone(&operation.request, found)
                            .is_none_or(|reply| reply == ran.made))
        });
        let transactions = self.ended.iter().chain(self.open.values());
        alone && transactions.into_iter().all(|it| it.holds(kept, found, &self.operations))
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

/// Rows that SQL counts for one that was written.
fn changed_by(statement: &Statement, change: &Change) -> u64 {
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
fn shown_alone(request: &Request, state: &State) -> Option<Reply> {
    Some(match request {
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

impl Operation {
    /// Its reply has come, and what it shows is permanent.
    pub(crate) fn is_firm(&self) -> bool {
        self.end.is_some() && !self.may_be_lost
    }

    /// Whether its user has the rights here that it had when it ran, as far as the reply shows that.
    fn had_rights(&self, ran: &Ran, state: &State) -> bool {
        let is_denied = state.denies(self.who, &self.request);
        match ran.made {
            Reply::Error(code::ACCESS_DENIED) => is_denied,
            // It may be one that comes before rights.
            Reply::Error(_) => true,
            _ => !is_denied,
        }
    }

    /// At a crash: whether that may take back what the reply shows.
    pub(crate) fn lose(&mut self, is_cut: bool, synced_step: u64) {
        self.may_be_lost = match self.gate.gate() {
            Gate::None => true,
            Gate::Write => is_cut,
            Gate::EverySec => is_cut && self.end.unwrap_or(0) > synced_step,
            Gate::Fsync | Gate::Quorum => false,
        };
    }

    pub(crate) fn show(&self) -> String {
        let end = self.end.map_or("never".to_owned(), |end| end.to_string());
        let request = show_request(&self.request);
        let made = self.ran.as_ref().map(|ran| {
            let made = crate::history::shortened(format!("{:?}", ran.made).as_bytes());
            format!("at {} made {made}, change {:?}", ran.position, ran.changed)
        });
        let (client, stream, gate) = (self.client, self.stream, self.gate);
        let client = format!("{:?} {client}", self.who);
        let made = made.unwrap_or_default();
        format!("[{} .. {end}] {gate:?} {client}.{stream} {request} {made}", self.begin)
    }
}

fn show_request(request: &Request) -> String {
    match request {
        Request::Write(space, it) if it.call == Call::Delete => {
            let by = if it.by_group { format!("group {}", it.row.group) } else { String::new() };
            format!("Delete {space} {:?} {by}", it.id)
        }
        other => crate::history::shortened(format!("{other:?}").as_bytes()),
    }
}

impl Counted {
    pub(crate) fn add_to(self, report: &mut crate::run::Report) {
        report.space_requests += self.ran;
        report.transactions_committed += self.committed;
        report.conflicts += self.conflicts;
        report.transactions_timed_out += self.timed_out;
        report.long_selections += self.long;
        report.definitions_changed += self.definitions;
        report.definitions_prepared += self.prepared;
        report.definitions_misfit += self.misfits;
        report.definition_slices += self.definition_slices;
        report.commits_kept_unanswered += self.kept_unanswered;
        report.commits_lost += self.lost;
        report.commit_slices += self.slices;
        report.waits_for_commits += self.waits_for_commits;
        report.requests_overtaken += self.overtakings;
        report.accesses_denied += self.denied;
        report.rights_changed += self.granted;
        report.sql_statements += self.sql;
        report.sql_slices += self.sql_slices;
    }
}
