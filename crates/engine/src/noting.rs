//! The changes of a space since indexes of it began to be built: each has its own list.

use ladon_space::Written;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// Changes that wait to be followed. Who changes a space faster than they are followed breaks it
/// off.
const NOTED_MAX: usize = 1 << 20;

/// Who notes the changes of a space, if anybody does, and for the index with which number.
#[derive(Default)]
pub(crate) struct Noting(SmallVec<[(u32, Weak<Noted>); 1]>);

/// The changes.
#[derive(Default)]
pub(crate) struct Noted(Mutex<Changes>);

#[derive(Default)]
struct Changes {
    waiting: VecDeque<Written>,
    /// Something is missing.
    is_broken: bool,
}

impl Noting {
    /// Begins to note for the index with this number.
    pub(crate) fn begin(&mut self, index: u32) -> Arc<Noted> {
        self.0.retain(|(_, noted)| noted.strong_count() > 0);
        let noted = Arc::<Noted>::default();
        self.0.push((index, Arc::downgrade(&noted)));
        noted
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        !self.0.is_empty()
    }

    /// Notes what a statement that has committed did.
    #[inline]
    pub(crate) fn note(&mut self, written: &Written) {
        if self.is_on() {
            self.note_for_indexes(written);
        }
    }

    #[cold]
    fn note_for_indexes(&mut self, written: &Written) {
        self.0.retain(|(_, noted)| match noted.upgrade() {
            Some(noted) => {
                noted.add(written);
                true
            }
            None => false,
        });
    }

    /// Something has changed that is not noted.
    #[inline]
    pub(crate) fn break_off(&mut self) {
        if self.is_on() {
            self.break_off_where(|_| true);
        }
    }

    /// The index with this number has got another definition.
    pub(crate) fn break_off_index(&mut self, index: u32) {
        self.break_off_where(|other| other == index);
    }

    #[cold]
    fn break_off_where(&mut self, is_broken: impl Fn(u32) -> bool) {
        self.0.retain(|(index, noted)| {
            let breaks = is_broken(*index);
            if breaks && let Some(noted) = noted.upgrade() {
                noted.0.lock().break_off();
            }
            !breaks
        });
    }
}

impl Noted {
    fn add(&self, written: &Written) {
        let mut changes = self.0.lock();
        if changes.waiting.len() >= NOTED_MAX {
            changes.break_off();
        }
        if !changes.is_broken {
            changes.waiting.push_back(written.clone());
        }
    }

    /// Whether something is missing.
    pub(crate) fn is_broken(&self) -> bool {
        self.0.lock().is_broken
    }

    /// The next changes, so many at most, and how many are left.
    pub(crate) fn take(&self, most: usize) -> (Vec<Written>, usize) {
        let waiting = &mut self.0.lock().waiting;
        let count = most.min(waiting.len());
        (waiting.drain(..count).collect(), waiting.len())
    }
}

impl Changes {
    fn break_off(&mut self) {
        self.is_broken = true;
        self.waiting = VecDeque::new();
    }
}
