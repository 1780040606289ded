//! What the machine asks of the server that it lives in.

use ladon_iproto::Request;
use ladon_kernel::program::{Failed, User};
use std::sync::Arc;

/// How a request ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// Its reply was appended. It may be shown when the log has come as far as this position.
    Replied {
        /// A position of the log.
        depends: u64,
    },
    /// Nothing is to be said yet: it runs again after so many milliseconds; 0 for at once, behind
    /// what else there is to do.
    Again {
        /// Milliseconds.
        after_ms: u64,
    },
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The fiber.
    pub fiber: u64,
    /// Whose rights it has.
    pub user: User,
    /// It calls what is to be called when tuples change.
    pub calls_triggers: bool,
}

/// What a statement of a transaction has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stated {
    /// The space's number.
    pub space: u32,
    /// The tuples before and after, MessagePack arrays.
    pub old: Option<Vec<u8>>,
    /// As above.
    pub new: Option<Vec<u8>>,
}

/// The data, as a program reaches it.
pub trait Data {
    /// Runs a request for a fiber, by the rights of a user, and appends the reply, a packet of IPROTO with its length in front. In a transaction, it is one of
    /// the stream that has the fiber's number. A request that runs again is the fiber's next one.
    fn run(
        &mut self,
        caller: Caller,
        in_transaction: bool,
        request: &Request<'_>,
        reply: &mut Vec<u8>,
    ) -> Ran;

    /// Runs a command of Redis for a fiber, by the rights of the user of this name, and appends the reply, of
    /// RESP3. In a transaction, it is a part of it.
    ///
    /// # Errors
    /// The user is gone; the transaction is over, holds too much, or has a conflict.
    fn command(
        &mut self,
        caller: Caller,
        in_transaction: bool,
        command: (&str, &[&[u8]]),
        reply: &mut Vec<u8>,
    ) -> Result<Ran, Failed>;

    /// The user who has a number now.
    fn user(&self, number: u32) -> User;

    /// Whether functions of the program are called when tuples of a space change. Nobody else changes
    /// them then.
    ///
    /// # Errors
    /// There is no such space.
    fn set_triggers(&mut self, space: u32, has_triggers: bool) -> Result<(), Failed>;

    /// What the last statement of the fiber's transaction has done to a space.
    fn last_stated(&mut self, fiber: u64, user: User, space: u32) -> Option<Stated>;

    /// Makes a savepoint in the fiber's transaction.
    ///
    /// # Errors
    /// There is none, or it holds too much.
    fn savepoint(&mut self, fiber: u64, user: User) -> Result<u64, Failed>;

    /// Takes back what the fiber's transaction has done since a savepoint.
    ///
    /// # Errors
    /// There is no such one.
    fn go_back(&mut self, fiber: u64, user: User, savepoint: u64) -> Result<(), Failed>;

    /// What the fiber's transaction does is kept when it commits, for [`Data::stated`].
    ///
    /// # Errors
    /// There is no transaction.
    fn keep_stated(&mut self, fiber: u64, user: User) -> Result<(), Failed>;

    /// What the statements of the fiber's transaction have done, in order; without one, those of the
    /// transaction that the user has just committed.
    fn stated(&mut self, fiber: u64, user: User) -> Vec<Stated>;

    /// Sets the value (MessagePack) of a key that clients watch. They are told once the log has come
    /// as far as `depends`.
    ///
    /// # Errors
    /// The key is the server's, or there are too many.
    fn broadcast(&mut self, key: &[u8], value: &[u8], depends: u64) -> Result<(), Failed>;

    /// Whether a user may call a function.
    ///
    /// # Errors
    /// The user may not.
    fn check_call(&mut self, user: User, name: &str) -> Result<(), Failed>;

    /// Whether there is a client's session of this number.
    fn has_session(&self, session: u64) -> bool;

    /// Passes on what packets have left: the log's records, garbage, answers to waiting clients.
    /// Called after each turn, and before the thread sleeps.
    fn settle(&mut self);

    /// Whether the gate has passed a position of the log: what depends on it may leave the process.
    /// If not, the loop is woken when it may have.
    fn has_passed(&mut self, depends: u64) -> bool;

    /// The version of the spaces' definitions.
    fn schema_version(&self) -> u64;
}

/// One option of `box.cfg`.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
    /// A switch.
    Switch(bool),
}

/// The process that a program runs in.
pub trait Host {
    /// `box.cfg`: starts the server with these settings, or changes those of the one that runs.
    /// Returns the data if it was started by this.
    ///
    /// # Errors
    /// Why a setting cannot be as asked.
    fn configure(&mut self, options: &[(String, Setting)])
    -> Result<Option<Box<dyn Data>>, String>;

    /// Writes one line of the program's log; `level` is Tarantool's (2 error, 3 crit, 4 warn,
    /// 5 info, 6 verbose, 7 debug).
    fn log(&mut self, level: u8, text: &str);

    /// Begins to make a checkpoint.
    ///
    /// # Errors
    /// Why none can be made now.
    fn begin_checkpoint(&mut self) -> Result<(), String>;

    /// What has become of the checkpoint that was begun; `None` while it is being made.
    fn checkpoint(&mut self) -> Option<Result<(), String>>;

    /// Whether the process is to end.
    fn is_stopping(&self) -> bool;

    /// The terminal of the process, or its standard input; none for a machine that nobody types to.
    fn terminal(&mut self) -> Option<Arc<dyn Terminal>> {
        None
    }
}

/// Lines for the console of the process.
pub trait Terminal: Send + Sync {
    /// Waits for the next line, without its end; `None` at the end. An interrupt is an empty line.
    ///
    /// # Errors
    /// In words.
    fn read_line(&self, prompt: &str) -> Result<Option<String>, String>;
}
