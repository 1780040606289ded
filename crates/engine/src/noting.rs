//! The changes of a space since definitions of it began to be prepared: one list, which each
//! preparation follows at its own pace.
//!
//! ```text
//! chunk -> chunk -> chunk -> tail     writers add to the tail, under the space's lock
//!   ^                 ^
//!   a preparation     another one     what nobody is before any more is freed
//! ```

use ladon_space::Written;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, OnceLock, Weak};

/// Changes of a chunk: no list is ever copied to grow.
const CHUNK: usize = 256;
/// Changes, in short tuples, that wait for one preparation: with more, it is broken off. Writers
/// wait earlier, if the preparation goes on.
const WAITING_MAX: usize = 1 << 20;

/// What is being prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prepares {
    /// A secondary index with this number.
    Index(u32),
    /// The primary index, and the others with it.
    AllIndexes,
    /// A format, or new foreign keys.
    Format,
    /// Foreign keys that name this space.
    KeysOfOthers,
}

/// Who notes the changes of a space, if anybody does, and for what.
#[derive(Default)]
pub(crate) struct Noting {
    followers: SmallVec<[(Prepares, Weak<Noted>); 1]>,
    tail: Arc<Chunk>,
    /// How long it takes to follow all changes so far, in short tuples.
    work: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Chunk {
    changes: Mutex<Vec<Written>>,
    next: OnceLock<Arc<Chunk>>,
}

/// The changes, as one preparation follows them.
pub(crate) struct Noted {
    place: Mutex<Place>,
    /// Something is missing.
    is_broken: AtomicBool,
    /// Of all changes so far, those before its beginning included.
    work: Arc<AtomicUsize>,
    begun_at: usize,
    followed: AtomicUsize,
}

/// The next change to follow.
struct Place {
    chunk: Arc<Chunk>,
    at: usize,
}

impl Noting {
    /// Begins to note.
    pub(crate) fn begin(&mut self, prepares: Prepares) -> Arc<Noted> {
        self.followers.retain(|(_, noted)| noted.strong_count() > 0);
        if self.followers.is_empty() {
            self.tail = Arc::default();
        }
        let at = self.tail.changes.lock().len();
        let noted = Arc::new(Noted {
            place: Mutex::new(Place { chunk: Arc::clone(&self.tail), at }),
            is_broken: AtomicBool::new(false),
            work: Arc::clone(&self.work),
            begun_at: self.work.load(Relaxed),
            followed: AtomicUsize::new(0),
        });
        self.followers.push((prepares, Arc::downgrade(&noted)));
        noted
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        !self.followers.is_empty()
    }

    /// Notes what a statement that has committed did.
    #[inline]
    pub(crate) fn note(&mut self, written: &Written) {
        if self.is_on() {
            self.add(written);
        }
    }

    #[cold]
    fn add(&mut self, written: &Written) {
        let mut changes = self.tail.changes.lock();
        if changes.capacity() == 0 {
            changes.reserve_exact(CHUNK);
        }
        changes.push(written.clone());
        let is_full = changes.len() == CHUNK;
        drop(changes);
        self.work.fetch_add(written.work(), Relaxed);
        if is_full {
            self.begin_chunk();
        }
    }

    fn begin_chunk(&mut self) {
        let next = Arc::<Chunk>::default();
        let is_first = self.tail.next.set(Arc::clone(&next)).is_ok();
        debug_assert!(is_first, "the tail is the last one");
        self.tail = next;
        self.followers.retain(|(_, noted)| match noted.upgrade() {
            Some(noted) => {
                let is_late = noted.waiting() > WAITING_MAX;
                if is_late {
                    noted.is_broken.store(true, Release);
                }
                !is_late
            }
            None => false,
        });
    }

    /// Something has changed that is not noted, and breaks off some of what is being prepared.
    pub(crate) fn break_off(&mut self, breaks: impl Fn(Prepares) -> bool) {
        self.followers.retain(|(prepares, noted)| {
            let is_broken = breaks(*prepares);
            // What waits for it may take long to drop, which is not for the one who has the lock.
            if is_broken && let Some(noted) = noted.upgrade() {
                noted.is_broken.store(true, Release);
            }
            !is_broken
        });
    }
}

impl Noted {
    /// Whether something is missing.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Acquire)
    }

    /// How long it takes to follow all changes since the beginning, in short tuples.
    pub(crate) fn work(&self) -> usize {
        self.work.load(Relaxed) - self.begun_at
    }

    /// How long it takes to follow those that were not taken yet.
    pub(crate) fn waiting(&self) -> usize {
        self.work().saturating_sub(self.followed.load(Relaxed))
    }

    /// The next changes: as many as make so much work, one at least.
    pub(crate) fn take(&self, work: usize) -> Vec<Written> {
        let Place { chunk, at } = &mut *self.place.lock();
        let (mut next, mut done) = (Vec::new(), 0);
        while done < work {
            let changes = chunk.changes.lock();
            if let Some(written) = changes.get(*at) {
                done += written.work();
                next.push(written.clone());
                *at += 1;
                continue;
            }
            drop(changes);
            let Some(following) = chunk.next.get().cloned() else { break };
            (*chunk, *at) = (following, 0);
        }
        self.followed.fetch_add(done, Relaxed);
        next
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // One after the other, not each within the one before.
        let mut next = self.next.take();
        while let Some(mut chunk) = next.and_then(Arc::into_inner) {
            next = chunk.next.take();
        }
    }
}
