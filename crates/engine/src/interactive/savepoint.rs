//! Savepoints: a transaction goes back to what it was.
//!
//! ```text
//! savepoint   every touched space keeps a copy of its copy, which shares memory with it
//! going back  the copies take their places; what was shown since is repeated at the commit all the
//!             same, since the client has seen it
//! ```
//!
//! A space that is touched later was, at all savepoints before, as it is then.

use super::{Encoded, Interactive, Step, Touched, View};
use ladon_record::SpaceId;
use ladon_space::{Space, Written};

/// What a view was at a savepoint.
pub(super) struct Kept {
    savepoint: u64,
    space: Space,
    /// How many parts of its changes there were, and how many statements.
    changes: usize,
    noted: usize,
    is_written: bool,
}

/// What a statement of a transaction has done.
#[derive(Clone, Debug)]
pub struct Stated {
    /// Counts the transaction's statements and savepoints.
    pub number: u64,
    /// Where.
    pub space: SpaceId,
    /// The tuples before and after.
    pub written: Written,
}

impl View {
    /// Keeps what it is.
    pub(super) fn keep(&mut self, savepoint: u64) {
        self.kept.push(Kept {
            savepoint,
            space: self.space.clone(),
            changes: self.changes.len(),
            noted: self.noted.len(),
            is_written: self.is_written,
        });
        self.changes.push(Encoded::default());
    }

    /// Is again what it was. Returns whether that was kept.
    pub(super) fn go_back(&mut self, savepoint: u64) -> bool {
        let Some(at) = self.kept.iter().position(|kept| kept.savepoint >= savepoint) else {
            return false;
        };
        self.kept.truncate(at + 1);
        let kept = &self.kept[at];
        self.space = kept.space.clone();
        self.is_written = kept.is_written;
        self.changes.truncate(kept.changes);
        self.changes.push(Encoded::default());
        self.noted.truncate(kept.noted);
        true
    }
}

impl View {
    /// Forgets what it was at a savepoint and after it; `before` is the one before, if there is one.
    fn release(&mut self, savepoint: u64, before: Option<u64>) {
        let at = self.kept.partition_point(|kept| kept.savepoint < savepoint);
        let last = self.kept[..at].last().map(|kept| kept.savepoint);
        // What was touched later was, at the one before, as it is kept of this one.
        match (before, self.kept.get_mut(at)) {
            (Some(before), Some(kept)) if last.is_none_or(|last| last < before) => {
                kept.savepoint = before;
                self.kept.truncate(at + 1);
            }
            _ => self.kept.truncate(at),
        }
    }
}

impl Touched {
    pub(super) fn keep_savepoint(&mut self, savepoint: u64) {
        self.view.keep(savepoint);
        self.keep(Step::Kept(savepoint));
    }
}

impl Interactive {
    /// Makes a savepoint, and returns its number.
    ///
    /// # Errors
    /// If the transaction holds too much.
    pub fn savepoint(&mut self) -> Result<u64, ladon_space::BoxError> {
        self.next_number += 1;
        let number = self.next_number;
        self.touched.values_mut().for_each(|touched| touched.keep_savepoint(number));
        self.savepoints.push(number);
        for _ in 0..self.touched.len().max(1) {
            self.hold(0)?;
        }
        Ok(number)
    }

    /// Takes back what was done since a savepoint, which stays; those after it are gone. Returns
    /// whether there is such a savepoint.
    ///
    /// # Errors
    /// If the transaction holds too much.
    pub fn go_back(&mut self, savepoint: u64) -> Result<bool, ladon_space::BoxError> {
        let Ok(at) = self.savepoints.binary_search(&savepoint) else { return Ok(false) };
        self.savepoints.truncate(at + 1);
        if self.is_joint {
            self.returns.push((savepoint, self.next_number));
            self.hold(0)?;
        }
        for touched in self.touched.values_mut() {
            assert!(touched.view.go_back(savepoint), "every touched space has kept what it was");
            touched.keep(Step::WentBack(savepoint));
        }
        for _ in 0..self.touched.len() {
            self.hold(0)?;
        }
        Ok(true)
    }

    /// Forgets a savepoint and those after it; what was done stays.
    pub fn release(&mut self, savepoint: u64) {
        let Ok(at) = self.savepoints.binary_search(&savepoint) else { return };
        self.savepoints.truncate(at);
        let before = self.savepoints.last().copied();
        for touched in self.touched.values_mut() {
            touched.view.release(savepoint, before);
        }
    }

    /// What a commit does is kept for [`Interactive::committed`].
    pub fn keep_stated(&mut self) {
        self.keeps_stated = true;
    }

    /// What the statements have done that were not taken back, in order, as it is shown now.
    pub fn stated(&self) -> Vec<Stated> {
        let mut stated = Vec::new();
        for (&space, touched) in &self.touched {
            for (number, written) in &touched.view.noted {
                stated.push(Stated { number: *number, space, written: written.clone() });
            }
        }
        stated.sort_by_key(|one| one.number);
        stated
    }

    /// As [`Interactive::stated`], as it was committed; nothing if it was not to be kept.
    pub fn committed(&mut self) -> Vec<Stated> {
        let mut stated = std::mem::take(&mut self.stated);
        stated.sort_by_key(|one| one.number);
        stated
    }

    /// What the last statement has done, if it was not taken back.
    pub fn last_stated(&self, space: SpaceId) -> Option<&Written> {
        let touched = self.touched.get(&space)?;
        let (number, written) = touched.view.noted.last()?;
        (*number == self.next_number).then_some(written)
    }
}
