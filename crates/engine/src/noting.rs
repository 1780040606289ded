//! The changes of a space since an index of it began to be built.

use ladon_space::Written;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// Changes that wait to be followed. Who changes a space faster than they are followed breaks it
/// off.
const NOTED_MAX: usize = 1 << 20;

/// Who notes the changes of a space, if anybody does.
#[derive(Default)]
pub(crate) struct Noting(Option<Weak<Noted>>);

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
    /// Begins to note; what was noted before for somebody else is broken off.
    pub(crate) fn begin(&mut self) -> Arc<Noted> {
        self.break_off();
        let noted = Arc::<Noted>::default();
        self.0 = Some(Arc::downgrade(&noted));
        noted
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Notes what a statement that has committed did.
    #[inline]
    pub(crate) fn note(&mut self, written: &Written) {
        if self.is_on() {
            self.note_for_index(written);
        }
    }

    #[cold]
    fn note_for_index(&mut self, written: &Written) {
        match self.0.as_ref().and_then(Weak::upgrade) {
            Some(noted) => noted.add(written),
            None => self.0 = None,
        }
    }

    /// Something has changed that is not noted.
    #[inline]
    pub(crate) fn break_off(&mut self) {
        if let Some(noted) = self.0.take().and_then(|noting| noting.upgrade()) {
            noted.0.lock().break_off();
        }
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
