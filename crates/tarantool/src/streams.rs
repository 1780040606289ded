//! Streams: BEGIN, COMMIT and ROLLBACK, and statements in between.

use crate::access::Rights;
use crate::error;
use crate::statements::{Ended, Running, Seen, check_filler, check_write, puts, with};
use crate::transactions::Taken;
use ladon_engine::{Commit, CommitPace, Interactive};
use ladon_iproto::request::Begin;
use ladon_kernel::memory::eviction::make_room;
use ladon_kernel::request::admission::{self, Refusal};
use ladon_kernel::request::outcome::Flow;
use ladon_kernel::thread_parts::ThreadParts;
use ladon_record::SpaceId;
use ladon_space::{BoxError, Space, Statement, Written};
use ladon_system_spaces as system;
use std::borrow::Cow;

/// Open transactions of one connection.
const TRANSACTIONS_MAX: usize = 1_000;
/// How many isolation levels there are: the server's default, read-committed, read-confirmed,
/// best-effort, linearizable. Transactions here are serializable, which is all of them.
const ISOLATION_LEVELS: u64 = 5;

impl Running<'_, '_> {
    /// BEGIN.
    pub(crate) fn begin(&mut self, begin: &Begin) -> Result<(), BoxError> {
        if self.session.transactions.has(self.stream) {
            return Err(error::active_transaction());
        }
        if begin.isolation >= ISOLATION_LEVELS {
            return Err(error::illegal("Illegal parameters, unknown isolation level"));
        }
        if begin.is_sync == Some(true) {
            return Err(error::unsupported("synchronous transactions"));
        }
        if self.session.transactions.len() >= TRANSACTIONS_MAX {
            let open = format!("a connection may have {TRANSACTIONS_MAX} open transactions");
            return Err(error::illegal(&open));
        }
        let deadline_ms = match begin.timeout_seconds {
            // Connectors send 0 for none.
            None | Some(0.0) => None,
            Some(seconds) if seconds > 0.0 => {
                self.thread.now_ms.checked_add((seconds * 1000.0).ceil() as u64)
            }
            Some(_) => {
                let why = "Illegal parameters, timeout must be a number greater than 0";
                return Err(error::illegal(why));
            }
        };
        let node = self.thread.node;
        let (client, limits) = (self.session.client().0, node.transaction_limits());
        let transaction = Interactive::opened_by(client, &node.keyspace.spaces, limits);
        self.session.transactions.put(self.stream, transaction, deadline_ms);
        Ok(())
    }

    /// COMMIT. Without a transaction, nothing happens. If it takes long, the request runs again,
    /// and does the next part of it.
    pub(crate) fn commit(&mut self) -> Result<(), Ended> {
        self.end_overdue();
        let (mut transaction, mut commands) = match self.session.transactions.take(self.stream) {
            Taken::Open(transaction, commands) => (transaction, commands),
            Taken::TimedOut => return Err(error::transaction_timeout().into()),
            Taken::None => return Ok(()),
        };
        let node = self.thread.node;
        let is_written =
            transaction.is_written() || commands.as_ref().is_some_and(|commands| commands.writes());
        let admitted = match is_written {
            // What it has written is data from now on.
            true => admission::statement(node, || make_room(self.thread)),
            // It shows what it has read.
            false => admission::changes(node),
        };
        let admitted = admitted.or_else(|refusal| match refusal {
            Refusal::Follows if !is_written => Ok(()),
            Refusal::ReadOnly if commands.is_none() && !transaction.writes_what_is_kept() => Ok(()),
            refusal => Err(refusal),
        });
        if let Err(refusal) = admitted {
            transaction.roll_back(self.thread.scratch);
            return Err(error::of_refusal(refusal, node).into());
        }
        let pace = CommitPace::of_turn(self.thread.now_ms);
        let (done, lsn) = match &mut commands {
            Some(commands) => commands.commit(self.thread, &mut transaction, pace),
            None => {
                let ThreadParts { scratch, append, .. } = &mut *self.thread;
                transaction.commit(&node.keyspace, scratch, pace, &mut *append)
            }
        };
        let flow = match done {
            Ok(Commit::Done) => {
                self.session.committed = transaction.committed();
                self.depends = self.depends.max(lsn);
                return Ok(());
            }
            Ok(Commit::GoesOn) => Flow::GoesOn,
            Ok(Commit::Waits) => Flow::AwaitsCommit,
            Err(error) => {
                // Definitions that changed are a conflict as well.
                let definitions = node.schema_watchers.changed();
                self.depends = self.depends.max(lsn).max(definitions);
                return Err(error.into());
            }
        };
        // As in Tarantool, a commit that has begun does not time out.
        self.session.transactions.put(self.stream, *transaction, None);
        if let Some(place) = self.session.transactions.commands(self.stream) {
            *place = commands;
        }
        Err(Ended::Again(flow))
    }

    /// ROLLBACK. Without a transaction, nothing happens.
    pub(crate) fn roll_back(&mut self) {
        if let Taken::Open(transaction, _) = self.session.transactions.take(self.stream) {
            transaction.roll_back(self.thread.scratch);
        }
    }

    /// Whether the request belongs to an open transaction.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.stream != 0 && self.session.transactions.has(self.stream)
    }

    /// The worker may not have come to it yet.
    pub(crate) fn end_overdue(&mut self) {
        self.session.end_overdue(self.thread.now_ms, self.thread.scratch);
    }

    /// Does something with the stream's transaction, which is open.
    fn in_transaction<T>(
        &mut self,
        run: impl FnOnce(&mut Self, &mut Interactive) -> Result<T, BoxError>,
    ) -> Result<T, BoxError> {
        self.end_overdue();
        let taken = self.session.transactions.of(self.stream).and_then(Option::take);
        let mut transaction = taken.ok_or_else(error::transaction_timeout)?;
        // Those of other streams; this one is taken out.
        let beside = self.session.transactions.bytes();
        transaction.call_triggers(self.session.calls_triggers);
        let result = transaction.check_room(beside).and_then(|()| run(self, &mut transaction));
        if let Some(place) = self.session.transactions.of(self.stream) {
            *place = Some(transaction);
        }
        result
    }

    /// Reads a space as the transaction sees it.
    pub(crate) fn read_in_transaction<T>(
        &mut self,
        id: SpaceId,
        seen: Seen<'_>,
        read: impl FnOnce(&Space) -> Result<T, BoxError>,
    ) -> Result<T, BoxError> {
        self.in_transaction(|this, transaction| {
            let node = this.thread.node;
            let stored = system::view_of(id).unwrap_or(id);
            let (space, changed) = transaction.space(&node.keyspace, stored)?;
            this.depends = this.depends.max(changed);
            seen.check(this.session.rights(node, this.thread.scratch)?, id, space)?;
            let result = read(space)?;
            match seen {
                Seen::Schema | Seen::Definition => {}
                Seen::Tuples(selected) => transaction.note_selected(stored, selected.clone())?,
                Seen::All => transaction.note_all(stored),
            }
            Ok(result)
        })
    }

    /// Runs a statement in the transaction.
    pub(crate) fn write_in_transaction(
        &mut self,
        id: SpaceId,
        statement: Statement<'_>,
    ) -> Result<Written, BoxError> {
        let node = self.thread.node;
        if ladon_engine::is_defined_with(id) {
            return Err(error::unsupported("definitions in a transaction of several requests"));
        }
        // A sequence's number is logged at once.
        self.check_takes_writes_of(id)?;
        self.in_transaction(|this, transaction| {
            let rights = this.session.rights(node, this.thread.scratch)?.clone();
            let (space, changed) = transaction.space(&node.keyspace, id)?;
            // An error shows something of the space as well.
            this.depends = this.depends.max(changed);
            if !this.thread.local.unchecked_rights_canary {
                check_write(&rights, space)?;
            }
            let numbered = match puts(statement) {
                Some(tuple) => Some(this.number(id, &rights, tuple)?),
                None => None,
            };
            let statement = numbered.as_ref().map_or(statement, |tuple| with(statement, tuple));
            let written = transaction.write(&node.keyspace, id, statement);
            // So does that of a foreign key, of other spaces.
            this.depends = this.depends.max(transaction.depends());
            written
        })
    }

    /// Fills in a sequence's number, which is used for good, whatever becomes of the transaction.
    pub(crate) fn number<'t>(
        &mut self,
        id: SpaceId,
        rights: &Rights,
        tuple: &'t [u8],
    ) -> Result<Cow<'t, [u8]>, BoxError> {
        let node = self.thread.node;
        let catalog = node.keyspace.spaces.catalog();
        let Some(filler) = catalog.filler(id) else { return Ok(tuple.into()) };
        check_filler(rights, &filler)?;
        let ThreadParts { scratch, append, .. } = &mut *self.thread;
        let ids = [system::SEQUENCE_DATA];
        let mut tx = node.keyspace.begin_on_spaces(&catalog, &ids, scratch)?;
        let filled = tx.fill(filler, tuple);
        self.depends = self.depends.max(tx.commit(append));
        filled
    }
}
