//! How much a statement may do.

use crate::error::{self, Error};
use ladon_space::{BoxError, ErrorCode};
use std::cell::Cell;

/// The code of what is no error: the budget of steps is used up.
const INTERRUPTED: ErrorCode = ErrorCode(u32::MAX);
/// Steps between two looks at whether to stop.
const LOOK_EVERY: u64 = 1024;

/// A statement's budget: steps, memory, and whether to stop.
pub struct Budget {
    steps: Cell<u64>,
    steps_max: u64,
    bytes: Cell<usize>,
    bytes_max: usize,
    stops: Box<dyn Fn() -> Option<BoxError>>,
}

impl Budget {
    /// So many steps (a step reads a row or computes a few values), and so many bytes in sorters,
    /// groups, hashes and results. `stops` says now and then why to stop.
    pub fn new(
        steps_max: u64,
        bytes_max: usize,
        stops: Box<dyn Fn() -> Option<BoxError>>,
    ) -> Budget {
        Budget { steps: Cell::new(0), steps_max, bytes: Cell::new(0), bytes_max, stops }
    }

    /// Steps that were taken.
    pub fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// What so many bytes count for that a function or an operator goes over: nothing, if they are few.
    ///
    /// # Errors
    /// As [`Budget::step`].
    #[inline]
    pub(crate) fn work(&self, bytes: usize) -> Result<(), Error> {
        const BYTES_PER_STEP: usize = 64;
        if bytes < BYTES_PER_STEP {
            return Ok(());
        }
        let before = self.steps.get();
        let steps = before + (bytes / BYTES_PER_STEP) as u64;
        self.steps.set(steps);
        if steps > self.steps_max {
            return Err(error::make(INTERRUPTED, "interrupted"));
        }
        if before / LOOK_EVERY != steps / LOOK_EVERY
            && let Some(why) = (self.stops)()
        {
            return Err(why);
        }
        Ok(())
    }

    /// Takes a step.
    ///
    /// # Errors
    /// If all are taken, and those of who stops the statement.
    #[inline]
    pub(crate) fn step(&self) -> Result<(), Error> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps > self.steps_max {
            return Err(error::make(INTERRUPTED, "interrupted"));
        }
        if steps.is_multiple_of(LOOK_EVERY)
            && let Some(why) = (self.stops)()
        {
            return Err(why);
        }
        Ok(())
    }

    /// Takes memory.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Error> {
        let all = self.bytes.get() + bytes;
        self.bytes.set(all);
        if all > self.bytes_max {
            let mib = self.bytes_max >> 20;
            let message = format!("a statement may hold {mib} MiB of rows while it runs");
            return Err(error::execute(&message));
        }
        Ok(())
    }

    /// Gives memory back.
    pub(crate) fn give(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
    }
}

/// Whether an error says that the budget of steps is used up.
pub(crate) fn is_interrupted(error: &Error) -> bool {
    error.code == INTERRUPTED
}
