//! Awaited keys: the waiters of `BLPOP` and similar commands.
//!
//! Waiters queue for each key in order of arrival. They belong to the database's number, as
//! watchers do. A thread that creates an awaited key finds it in its scratch afterwards
//! ([`Scratch::ready`]) and serves the waiters.
//!
//! [`Scratch::ready`]: crate::Scratch

use ladon_record::{DbId, KeyHash, ValueKind};
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire};

/// Which of several ends a wait: the first that takes it.
///
/// A value that comes, a timeout, another client and the end of the connection may all want to.
#[derive(Debug, Default)]
pub struct Claim(AtomicBool);

impl Claim {
    /// Takes the right to end the wait; returns whether it was free.
    pub fn take(&self) -> bool {
        !self.0.swap(true, AcqRel)
    }

    /// Whether it is not taken yet.
    pub fn is_free(&self) -> bool {
        !self.0.load(Acquire)
    }
}

/// A client that waits.
pub struct Waiter {
    /// What type of value it waits for.
    pub wants: ValueKind,
    /// It is also served, with an error, when the key loses such a value.
    pub hears_loss: bool,
    /// The right to end the wait.
    pub claim: Arc<Claim>,
    /// What it asked for, in the form of the code that queued it.
    pub request: Box<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Waiter(for a {}, {:?})", self.wants.name(), self.claim)
    }
}

/// Its place in a key's line; places ascend, and none is given twice in a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u64);

/// A key that was created while clients waited for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyKey {
    /// Where.
    pub db: DbId,
    /// The key.
    pub key: Vec<u8>,
    /// Its hash.
    pub hash: KeyHash,
}

/// The waiters of one key, first come first served.
type Line = VecDeque<(Place, Arc<Waiter>)>;

#[derive(Default)]
struct Lines {
    by_key: HashMap<Box<[u8]>, Line>,
    next: Place,
}

/// One database's awaited keys within one partition. One word while there are no waiters, so that
/// the check needs no extra cache line.
#[derive(Default)]
pub(crate) struct Awaited(Option<Box<Lines>>);

impl Awaited {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether the key has waiters.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        self.0.as_ref().is_some_and(|lines| lines.by_key.contains_key(key))
    }

    /// Whether some waiter is served when the key loses its value.
    #[cold]
    pub(crate) fn hears_loss(&self, key: &[u8]) -> bool {
        let line = self.0.as_ref().and_then(|lines| lines.by_key.get(key));
        line.into_iter().flatten().any(|(_, waiter)| waiter.hears_loss)
    }

    /// Puts a waiter at the end of the key's line, once.
    pub(crate) fn add(&mut self, key: &[u8], waiter: &Arc<Waiter>) {
        let lines = self.0.get_or_insert_default();
        let line = lines.by_key.entry(key.into()).or_default();
        if !line.iter().any(|(_, present)| Arc::ptr_eq(present, waiter)) {
            lines.next.0 += 1;
            line.push_back((lines.next, Arc::clone(waiter)));
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8], waiter: &Arc<Waiter>) {
        let Some(lines) = &mut self.0 else { return };
        if let Some(line) = lines.by_key.get_mut(key) {
            // The leaving waiter is usually the first.
            if let Some(at) = line.iter().position(|(_, present)| Arc::ptr_eq(present, waiter)) {
                line.remove(at);
            }
            if line.is_empty() {
                lines.by_key.remove(key);
            }
        }
        if lines.by_key.is_empty() {
            self.0 = None;
        }
    }

    /// The first waiter after `after` in the key's queue that still waits, and is to be served if
    /// the key has a value of this type.
    pub(crate) fn first(
        &self,
        key: &[u8],
        kind: Option<ValueKind>,
        after: Place,
    ) -> Option<(Place, &Arc<Waiter>)> {
        let line = self.0.as_ref()?.by_key.get(key)?;
        let from = line.partition_point(|&(place, _)| place <= after);
        line.range(from..)
            .find(|(_, waiter)| {
                (Some(waiter.wants) == kind || waiter.hears_loss) && waiter.claim.is_free()
            })
            .map(|(place, waiter)| (*place, waiter))
    }

    /// Every awaited key.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().flat_map(|lines| lines.by_key.keys().map(|key| &**key))
    }

    /// Number of awaited keys.
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |lines| lines.by_key.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(wants: ValueKind) -> Arc<Waiter> {
        Arc::new(Waiter { wants, hears_loss: false, claim: Arc::default(), request: Box::new(()) })
    }

    #[test]
    fn the_first_that_still_waits_for_that_type_comes_first() {
        let (a, b, c) = (waiter(ValueKind::List), waiter(ValueKind::Set), waiter(ValueKind::List));
        let mut awaited = Awaited::default();
        for waiter in [&a, &b, &c, &a] {
            awaited.add(b"k", waiter);
        }
        awaited.add(b"other", &c);
        assert_eq!((awaited.len(), awaited.has(b"k")), (2, true));
        let first = |awaited: &Awaited, after| {
            awaited
                .first(b"k", Some(ValueKind::List), after)
                .map(|(place, w)| (place, Arc::clone(w)))
        };
        let (place, found) = first(&awaited, Place::default()).expect("a waits");
        assert!(Arc::ptr_eq(&found, &a));
        let (_, next) = first(&awaited, place).expect("c waits");
        assert!(Arc::ptr_eq(&next, &c));
        assert!(a.claim.take() && !a.claim.take());
        assert!(Arc::ptr_eq(&first(&awaited, Place::default()).expect("c waits").1, &c));
        // Once out of line and in again means last.
        awaited.remove(b"k", &c);
        assert!(first(&awaited, Place::default()).is_none());
        for waiter in [&a, &b] {
            awaited.remove(b"k", waiter);
        }
        awaited.remove(b"other", &c);
        assert!(awaited.is_empty());
    }
}
