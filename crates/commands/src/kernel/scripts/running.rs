//! Which threads run a script, for how long, and whether it should end.
//!
//! A script runs long once it has taken `busy-reply-threshold`. From then on, other threads that
//! meet its locks answer `-BUSY` instead of waiting, and `SCRIPT KILL` ends it.

use crate::kernel::error::CommandError;
use ladon_engine::PARTITIONS;
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
    /// For each thread, which partitions its long script holds, one bit each.
    held: Box<[[AtomicU64; WORDS]]>,
}

const WORDS: usize = PARTITIONS.div_ceil(u64::BITS as usize);

impl Running {
    pub(super) fn new(threads: usize) -> Running {
        Running {
            threads: (0..threads).map(|_| AtomicU8::new(IDLE)).collect(),
            long: AtomicUsize::new(0),
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
        self.any_long() && self.held.iter().any(|held| held[partition / 64].load(Relaxed) & bit != 0)
    }

    /// A thread's script holds these partitions.
    pub(crate) fn holds(&self, thread: usize, partitions: &[usize]) {
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
    pub(crate) fn begins_long(&self, thread: usize, kind: Kind) {
        let state = if kind == Kind::Script { LONG_SCRIPT } else { LONG_FUNCTION };
        if self.threads[thread].swap(state, SeqCst) == IDLE {
            self.long.fetch_add(1, SeqCst);
        }
    }

    /// A thread's long script has ended, or releases its locks.
    pub(crate) fn ends_long(&self, thread: usize) {
        self.held[thread].iter().for_each(|word| word.store(0, Relaxed));
        if self.threads[thread].swap(IDLE, SeqCst) != IDLE {
            self.long.fetch_sub(1, SeqCst);
        }
    }

    /// Whether somebody has killed the thread's script.
    pub(crate) fn is_killed(&self, thread: usize) -> bool {
        self.threads[thread].load(Relaxed) == KILLED
    }

    /// Ends all long scripts, or all long functions.
    pub fn kill(&self, kind: Kind) -> Result<(), CommandError> {
        let (wanted, other) = match kind {
            Kind::Script => (LONG_SCRIPT, LONG_FUNCTION),
            Kind::Function => (LONG_FUNCTION, LONG_SCRIPT),
        };
        let kill = |thread: &AtomicU8| {
            thread.compare_exchange(wanted, KILLED, SeqCst, SeqCst).is_ok()
        };
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
