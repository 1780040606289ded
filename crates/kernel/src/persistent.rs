//! Persistent functions: those of `_func` that have a body, run on the thread that has the request.
//!
//! ```text
//!   CALL ── Runner::call ──> the thread's own machine
//!                               │ box.space.x:get(1)
//!                               └──> Reach: locked spaces, one transaction
//! ```
//!
//! What such a function does outside of its spaces, others could see twice. So it does nothing
//! outside: it *leaves* ([`Called::Leaves`]), what it has done is taken back, and the program runs it.

use crate::program::{Failed, Kind, Returned};
use ladon_record::SpaceId;
use ladon_space::{BoxError, Selected, Statement};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A call that takes too long counts so much, one that does not takes one off: the thread may have had no
/// turn of the processor.
const LATE_COUNTS: u32 = 64;
/// From so much on, only the program runs a function,
const LATE_MAX: u32 = 16 * LATE_COUNTS;
/// and if it has so often asked for what only a program has.
const LEFT_MAX: u32 = 3;

static NEXT: AtomicU32 = AtomicU32::new(1);
static RUNNER: OnceLock<&'static dyn Runner> = OnceLock::new();

/// A persistent function.
#[derive(Debug)]
pub struct Persistent {
    /// A number of this process, of which each text has its own.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Its text, an expression of Lua.
    pub text: String,
    late: AtomicU32,
    left: AtomicU32,
}

impl Persistent {
    /// A function that has not run.
    pub fn new(name: String, text: String) -> Persistent {
        let number = NEXT.fetch_add(1, Relaxed);
        Persistent { number, name, text, late: AtomicU32::new(0), left: AtomicU32::new(0) }
    }

    /// Notes that it has left.
    pub fn note_left(&self, leave: &Leave) {
        match leave {
            Leave::Late => self.late.fetch_add(LATE_COUNTS, Relaxed),
            Leave::Asks(_) => self.left.fetch_add(1, Relaxed),
        };
    }

    /// Notes that it has run to its end.
    #[inline]
    pub fn note_done(&self) {
        let late = self.late.load(Relaxed);
        if late > 0 {
            // If others note something in between, this one does not count.
            let _ = self.late.compare_exchange(late, late - 1, Relaxed, Relaxed);
        }
    }

    /// Whether it has left so often that only the program runs it.
    pub fn is_given_up(&self) -> bool {
        self.left.load(Relaxed) >= LEFT_MAX || self.late.load(Relaxed) >= LATE_MAX
    }
}

/// Why a function leaves the thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It takes longer than it may, or more memory.
    Late,
    /// It asks for what is not here: what that is, in words.
    Asks(String),
}

/// Why a function's request has no result.
#[derive(Debug)]
pub enum Stopped {
    /// An error, which the function may catch.
    Error(BoxError),
    /// It leaves.
    Leaves(Leave),
}

impl From<BoxError> for Stopped {
    fn from(error: BoxError) -> Stopped {
        Stopped::Error(error)
    }
}

/// Testing only: a bug in calls of persistent functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlantedInCalls {
    /// None.
    #[default]
    Nothing,
    /// The record has what was changed in the first space, and nothing else.
    HalfRecord,
    /// What a function has done that leaves is not taken back.
    Kept,
    /// What a function has done that begins again with more locks is not taken back.
    KeptTry,
    /// The reply does not wait for what the call has seen and written.
    Early,
}

/// The spaces that a function reaches. What it appends are tuples, MessagePack arrays.
pub trait Reach {
    /// Which data it is, and the version of the definitions.
    fn version(&self) -> (u64, u64);

    /// Appends tuples of a space of the system, to learn the definitions, whatever the user may see.
    /// Returns how many.
    ///
    /// # Errors
    /// See [`Stopped`].
    fn look(
        &mut self,
        space: SpaceId,
        selected: &Selected,
        out: &mut Vec<u8>,
    ) -> Result<u32, Stopped>;

    /// The function begins: from now on its time is counted.
    fn begin_time(&mut self);

    /// Whether it has run for longer than it may.
    fn is_late(&self) -> bool;

    /// Appends the tuple with a key of an index that is unique. Returns whether there is one.
    ///
    /// # Errors
    /// See [`Stopped`]; of all below as well.
    fn get(
        &mut self,
        space: SpaceId,
        index: u32,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Stopped>;

    /// Appends the selected tuples, those behind a given one if there is one. Returns how many.
    fn select(
        &mut self,
        space: SpaceId,
        selected: Selected,
        after: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<u32, Stopped>;

    /// The number of selected tuples.
    fn count(&mut self, space: SpaceId, selected: &Selected) -> Result<u64, Stopped>;

    /// The number of an index's tuples.
    fn len(&mut self, space: SpaceId, index: u32) -> Result<u64, Stopped>;

    /// Appends an index's first tuple with a key, or its last one. Returns whether there is one.
    fn extreme(
        &mut self,
        space: SpaceId,
        index: (u32, bool),
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Stopped>;

    /// Runs a statement, and appends the tuple that it shows. Returns whether there is one.
    fn write(
        &mut self,
        space: SpaceId,
        statement: Statement<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Stopped>;

    /// Begins a transaction, which is none of others: all that a function does becomes visible at
    /// once. It may be taken back.
    fn begin(&mut self);

    /// Ends the transaction, if there is one.
    fn commit(&mut self);

    /// Takes the transaction back, if there is one.
    fn roll_back(&mut self) -> Result<(), Stopped>;

    /// Whether there is a transaction.
    fn is_in_transaction(&self) -> bool;

    /// Makes a savepoint of the transaction.
    fn savepoint(&mut self) -> u64;

    /// Takes back what the transaction has done since a savepoint. Returns `false` if there is none.
    fn go_back(&mut self, savepoint: u64) -> Result<bool, Stopped>;
}

/// How a call ended.
#[derive(Debug)]
pub enum Called {
    /// The function has returned something, or raised an error.
    Done(Result<Returned, Failed>),
    /// It has left: what it has done must be taken back.
    Leaves(Leave),
}

/// What runs persistent functions.
pub trait Runner: Send + Sync {
    /// Calls a function on the running thread's machine; `kind` is one of the calls. `arguments` are
    /// a MessagePack array, or nothing.
    fn call(
        &self,
        function: &Persistent,
        kind: Kind,
        arguments: &[u8],
        reach: &mut dyn Reach,
    ) -> Called;
}

/// Says what runs persistent functions in this process; only the first one counts.
pub fn set_runner(runner: &'static dyn Runner) {
    let _ = RUNNER.set(runner);
}

/// What runs them, if anything does.
pub fn runner() -> Option<&'static dyn Runner> {
    RUNNER.get().copied()
}
