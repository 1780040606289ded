//! Which threads run a script, for how long, and whether it should end.
//!
//! A script runs long once it has taken `busy-reply-threshold`. From then on, other threads that
//! meet its locks answer `-BUSY` instead of waiting, and `SCRIPT KILL` ends it.

use crate::command::error::CommandError;
use ladon_engine::PARTITIONS;
use parking_lot::Mutex;
use std::sync::atomic::{
    AtomicU8, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};

/// What is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `EVAL` and the like.
    Script,
    /// `FCALL`.
    Function,
}

impl Kind {
    /// The answer to clients that meet it while it runs long.
    pub fn busy(self) -> CommandError {
        CommandError::text(match self {
            Kind::Script => {
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN \
                 NOSAVE."
            }
            Kind::Function => {
                "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN \
                 NOSAVE."
            }
        })
    }
}

/// A script that runs long.
#[derive(Clone, Debug)]
pub struct LongRun {
    pub(crate) kind: Kind,
    /// Its digest or name.
    pub(crate) name: Box<[u8]>,
    /// The client's command.
    pub(crate) command: Vec<Box<[u8]>>,
    pub(crate) began_ns: u64,
}

/// A function that runs long, for `FUNCTION STATS`.
#[derive(Debug)]
pub struct RunningFunction {
    /// Its name.
    pub name: Box<[u8]>,
    /// The request that called it.
    pub command: Vec<Box<[u8]>>,
    /// For how long it has run.
    pub milliseconds: u64,
}

/// A thread's script.
const IDLE: u8 = 0;
const LONG_SCRIPT: u8 = 1;
const LONG_FUNCTION: u8 = 2;
const KILLED: u8 = 3;

/// The long scripts of all threads.
pub struct Running {
    threads: Box<[AtomicU8]>,
    /// How many run long.
    long: AtomicUsize,
    /// What it is, for each thread.
    runs: Box<[Mutex<Option<LongRun>>]>,
    /// For each thread, which partitions its long script holds, one bit each.
    held: Box<[[AtomicU64; WORDS]]>,
}

const WORDS: usize = PARTITIONS.div_ceil(u64::BITS as usize);

impl Running {
    pub(super) fn new(threads: usize) -> Running {
        Running {
            threads: (0..threads).map(|_| AtomicU8::new(IDLE)).collect(),
            long: AtomicUsize::new(0),
            runs: (0..threads).map(|_| Mutex::default()).collect(),
            held: (0..threads).map(|_| [const { AtomicU64::new(0) }; WORDS]).collect(),
        }
    }

    /// Whether any script runs long; one load of what hardly ever changes.
    #[inline]
    pub fn any_long(&self) -> bool {
        self.long.load(Relaxed) != 0
    }

    /// Whether a long script holds this partition.
    pub fn is_held(&self, partition: usize) -> bool {
        let bit = 1 << (partition % 64);
        self.any_long()
            && self.held.iter().any(|held| held[partition / 64].load(Relaxed) & bit != 0)
    }

    /// A thread's script holds these partitions.
    pub fn holds(&self, thread: usize, partitions: &[usize]) {
        for &partition in partitions {
            self.held[thread][partition / 64].fetch_or(1 << (partition % 64), Relaxed);
        }
    }

    /// The answer to those who meet a long script.
    pub fn busy(&self) -> CommandError {
        let function = |thread: &AtomicU8| thread.load(Relaxed) == LONG_FUNCTION;
        let only_functions = self.threads.iter().any(function)
            && !self.threads.iter().any(|thread| thread.load(Relaxed) == LONG_SCRIPT);
        if only_functions { Kind::Function.busy() } else { Kind::Script.busy() }
    }

    /// A thread's script runs long from now on.
    pub fn begins_long(&self, thread: usize, run: LongRun) {
        let state = if run.kind == Kind::Script { LONG_SCRIPT } else { LONG_FUNCTION };
        *self.runs[thread].lock() = Some(run);
        if self.threads[thread].swap(state, SeqCst) == IDLE {
            self.long.fetch_add(1, SeqCst);
        }
    }

    /// A thread's long script has ended, or releases its locks.
    pub fn ends_long(&self, thread: usize) {
        self.held[thread].iter().for_each(|word| word.store(0, Relaxed));
        *self.runs[thread].lock() = None;
        if self.threads[thread].swap(IDLE, SeqCst) != IDLE {
            self.long.fetch_sub(1, SeqCst);
        }
    }

    /// The function that runs for the longest time, if any runs long.
    ///
    /// # Errors
    /// The answer to those who meet a long script, while no function but a script runs long.
    pub fn function(&self, now_ns: u64) -> Result<Option<RunningFunction>, CommandError> {
        let mut has_script = false;
        let mut oldest: Option<LongRun> = None;
        for run in &self.runs {
            let run = run.lock();
            match &*run {
                Some(run) if run.kind == Kind::Script => has_script = true,
                Some(run) if oldest.as_ref().is_none_or(|it| run.began_ns < it.began_ns) => {
                    oldest = Some(run.clone());
                }
                _ => {}
            }
        }
        match oldest {
            Some(run) => Ok(Some(RunningFunction {
                milliseconds: now_ns.saturating_sub(run.began_ns) / 1_000_000,
                name: run.name,
                command: run.command,
            })),
            None if has_script => Err(Kind::Script.busy()),
            None => Ok(None),
        }
    }

    /// Whether somebody has killed the thread's script.
    pub fn is_killed(&self, thread: usize) -> bool {
        self.threads[thread].load(Relaxed) == KILLED
    }

    /// Ends all long scripts, or all long functions.
    pub fn kill(&self, kind: Kind) -> Result<(), CommandError> {
        let (wanted, other) = match kind {
            Kind::Script => (LONG_SCRIPT, LONG_FUNCTION),
            Kind::Function => (LONG_FUNCTION, LONG_SCRIPT),
        };
        let kill =
            |thread: &AtomicU8| thread.compare_exchange(wanted, KILLED, SeqCst, SeqCst).is_ok();
        if self.threads.iter().filter(|thread| kill(thread)).count() != 0 {
            return Ok(());
        }
        if self.threads.iter().any(|thread| thread.load(SeqCst) == other) {
            return Err(match kind {
                Kind::Script => Kind::Function.busy(),
                Kind::Function => Kind::Script.busy(),
            });
        }
        Err(CommandError::text("NOTBUSY No scripts in execution right now."))
    }
}
