//! What a program asks of its transaction beside requests: savepoints, what was done in it, and commands
//! of Redis.

use crate::error;
use crate::session::Session;
use ladon_engine::{Interactive, Stated};
use ladon_kernel::program::Failed;
use ladon_kernel::request::joint::Joint;
use ladon_kernel::request::outcome::Outcome;
use ladon_kernel::thread_parts::ThreadParts;
use ladon_record::SpaceId;
use ladon_space::{BoxError, Tuple};

/// The tuples before and after a statement, MessagePack arrays.
pub type TupleBytes = (Option<Vec<u8>>, Option<Vec<u8>>);

fn bytes(tuple: Option<&Tuple>) -> Option<Vec<u8>> {
    tuple.map(|tuple| tuple.bytes().to_vec())
}

fn failed(error: BoxError) -> Failed {
    Failed::new(error.code.0, error.message, "ClientError")
}

impl Session {
    /// The transaction of a stream, if it is open.
    fn open(&mut self, stream: u64) -> Result<&mut Interactive, BoxError> {
        let open = self.transactions.of(stream).and_then(Option::as_mut);
        open.ok_or_else(error::no_transaction)
    }

    /// Whether who runs requests from now on calls what is to be called when tuples change.
    pub fn call_triggers(&mut self, calls: bool) {
        self.calls_triggers = calls;
    }

    /// Has a stream's transaction from now on, if another session has it: its fiber goes on with the
    /// rights of another user.
    pub fn take_over<'s>(&mut self, stream: u64, others: impl Iterator<Item = &'s mut Session>) {
        if self.transactions.has(stream) {
            return;
        }
        for other in others {
            if let Some(open) = other.transactions.take_out(stream) {
                self.transactions.put_back(stream, open);
                return;
            }
        }
    }

    /// Makes a savepoint in a stream's transaction, and returns its number.
    ///
    /// # Errors
    /// There is no transaction, or it holds too much.
    pub fn savepoint(&mut self, stream: u64) -> Result<u64, Failed> {
        self.open(stream).and_then(Interactive::savepoint).map_err(failed)
    }

    /// Takes back what a stream's transaction has done since a savepoint.
    ///
    /// # Errors
    /// There is no such transaction or savepoint.
    pub fn go_back(&mut self, stream: u64, savepoint: u64) -> Result<(), Failed> {
        let gone = |is_there: bool| is_there.then_some(()).ok_or_else(error::no_such_savepoint);
        let went = self.open(stream).and_then(|transaction| transaction.go_back(savepoint));
        went.and_then(gone).map_err(failed)
    }

    /// Runs a command of Redis, as the user of this name there, in a stream's transaction, and appends
    /// its reply. `begin` makes what runs the first one; `None` if it cannot.
    ///
    /// # Errors
    /// There is no transaction, or it has timed out; another user has run a command in it; those of
    /// [`Joint::call`].
    pub fn command(
        &mut self,
        thread: &mut ThreadParts<'_>,
        stream: u64,
        begin: impl FnOnce(&mut ThreadParts<'_>) -> Option<Joint>,
        (user, args, out): (&[u8], &[&[u8]], &mut Vec<u8>),
    ) -> Result<Option<Outcome>, Failed> {
        self.end_overdue(thread.now_ms, thread.scratch);
        let taken = self.transactions.of(stream).map(Option::take);
        let mut transaction =
            taken.flatten().ok_or_else(|| failed(error::transaction_timeout()))?;
        let beside = self.transactions.bytes();
        let commands = self.transactions.commands(stream).and_then(Option::take);
        let mut commands = commands.or_else(|| begin(thread).map(Box::new));
        let called = match &mut commands {
            Some(commands) if commands.user() == user => transaction
                .check_room(beside)
                .and_then(|()| commands.call(thread, &mut transaction, args, out).map(Some)),
            Some(_) => Err(error::illegal("commands of Redis in a transaction are of one user")),
            None => Ok(None),
        };
        if let Some(place) = self.transactions.commands(stream) {
            *place = commands;
        }
        if let Some(place) = self.transactions.of(stream) {
            *place = Some(transaction);
        }
        called.map_err(failed)
    }

    /// What a stream's transaction has done is kept when it commits, for [`Session::stated`].
    ///
    /// # Errors
    /// There is no transaction.
    pub fn keep_stated(&mut self, stream: u64) -> Result<(), Failed> {
        self.open(stream).map(Interactive::keep_stated).map_err(failed)
    }

    /// What the statements of a stream's transaction have done, in order; without one, those of the
    /// transaction that committed last, which kept them.
    pub fn stated(&mut self, stream: u64) -> Vec<(SpaceId, TupleBytes)> {
        let stated = match self.open(stream) {
            Ok(transaction) => transaction.stated(),
            Err(_) => std::mem::take(&mut self.committed),
        };
        let shown = |one: Stated| {
            let written = one.written;
            (one.space, (bytes(written.old.as_ref()), bytes(written.new.as_ref())))
        };
        stated.into_iter().map(shown).collect()
    }

    /// What the last statement of a stream's transaction has done to a space.
    pub fn last_stated(&mut self, stream: u64, space: SpaceId) -> Option<TupleBytes> {
        let written = self.open(stream).ok()?.last_stated(space)?;
        Some((bytes(written.old.as_ref()), bytes(written.new.as_ref())))
    }
}
