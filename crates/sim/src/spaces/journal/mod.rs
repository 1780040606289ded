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

mod alone;
mod call;
mod counted;
mod crash;
mod operation;
mod reply;
mod streams;

use crate::spaces::contents::{State, code};
use crate::spaces::definition::Definition;
use crate::spaces::request::Request;
use crate::spaces::transaction::Transaction;
pub(crate) use counted::Counted;
pub(crate) use operation::{Operation, Ran};
pub(crate) use reply::Reply;
use std::collections::BTreeMap;
use std::rc::Rc;

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
        let mut is_refused = made.as_ref().is_some_and(|made| self.is_refused(&request, made));
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
            // It would be a part of the transaction.
            Request::Call(_) if is_in_transaction => {
                Some(Expected::This(Reply::Error(code::UNSUPPORTED)))
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
            Request::Call(procedure) => {
                let (reply, refused) = self.call(who, procedure, made.as_ref());
                is_refused = refused;
                Some(Expected::This(reply))
            }
        };
        let made = self.as_expected(at, expected, made)?;
        self.counted.denied += u64::from(made == Reply::Error(code::ACCESS_DENIED));
        let changed = (self.position() > position).then(|| self.position());
        let met = self.met.take();
        let ran = Ran { made, position, changed, is_in_transaction, is_refused, met };
        self.operations[at].ran = Some(ran);
        Ok(())
    }

    /// The reply that an operation has, if it is the expected one.
    ///
    /// # Errors
    /// It is not.
    fn as_expected(
        &mut self,
        at: usize,
        expected: Option<Expected>,
        made: Option<Reply>,
    ) -> Result<Reply, String> {
        Ok(match (expected, made) {
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
        })
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
            (Request::Write(..) | Request::Call(_), None) => {
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
                // Functions keep no order with anything.
                Request::Call(_) => false,
                _ if matches!(request.request, Request::Call(_)) => false,
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
}
