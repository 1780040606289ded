//! The changes of a space since definitions of it began to be prepared: each has its own list.

use ladon_space::Written;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// Changes that wait to be followed. Who changes a space faster than they are followed breaks it
/// off.
const NOTED_MAX: usize = 1 << 20;

/// What is being prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prepares {
    /// A secondary index with this number.
    Index(u32),
    /// The primary index, and the others with it.
    AllIndexes,
    /// A format.
    Format,
}

/// Who notes the changes of a space, if anybody does, and for what.
#[derive(Default)]
pub(crate) struct Noting(SmallVec<[(Prepares, Weak<Noted>); 1]>);

/// The changes.
#[derive(Default)]
pub(crate) struct Noted(Mutex<Changes>);

#[derive(Default)]
struct Changes {
    waiting: VecDeque<Written>,
    /// How long it takes to follow those that wait, and all since the beginning, in short tuples.
    waiting_work: usize,
    work: usize,
    /// Something is missing.
    is_broken: bool,
}

impl Noting {
    /// Begins to note.
    pub(crate) fn begin(&mut self, prepares: Prepares) -> Arc<Noted> {
        self.0.retain(|(_, noted)| noted.strong_count() > 0);
        let noted = Arc::<Noted>::default();
        self.0.push((prepares, Arc::downgrade(&noted)));
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
            self.note_for_all(written);
        }
    }

    #[cold]
    fn note_for_all(&mut self, written: &Written) {
        self.0.retain(|(_, noted)| match noted.upgrade() {
            Some(noted) => {
                noted.add(written);
                true
            }
            None => false,
        });
    }

    /// Something has changed that is not noted, and breaks off some of what is being prepared.
    pub(crate) fn break_off(&mut self, breaks: impl Fn(Prepares) -> bool) {
        self.0.retain(|(prepares, noted)| {
            let is_broken = breaks(*prepares);
            if is_broken && let Some(noted) = noted.upgrade() {
                noted.0.lock().break_off();
            }
            !is_broken
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
            let work = written.work();
            changes.waiting_work += work;
            changes.work += work;
            changes.waiting.push_back(written.clone());
        }
    }

    /// Whether something is missing.
    pub(crate) fn is_broken(&self) -> bool {
        self.0.lock().is_broken
    }

    /// How long it takes to follow all changes since the beginning, in short tuples.
    pub(crate) fn work(&self) -> usize {
        self.0.lock().work
    }

    /// How long it takes to follow those that were not taken yet.
    pub(crate) fn waiting(&self) -> usize {
        self.0.lock().waiting_work
    }

    /// The next changes: as many as make so much work, one at least.
    pub(crate) fn take(&self, work: usize) -> Vec<Written> {
        let Changes { waiting, waiting_work, .. } = &mut *self.0.lock();
        let mut done = 0;
        let fits = |written: &&Written| {
            let fits = done < work;
            done += written.work();
            fits
        };
        let count = waiting.iter().take_while(fits).count();
        let next: Vec<Written> = waiting.drain(..count).collect();
        *waiting_work -= next.iter().map(Written::work).sum::<usize>();
        next
    }
}

impl Changes {
    fn break_off(&mut self) {
        *self = Changes { is_broken: true, ..Changes::default() };
    }
}
