//! The log's synchronization primitives, which `--cfg loom` replaces with loom's.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

use ladon_platform::lock_order::{self, Held, Place};
use std::ops::{Deref, DerefMut};

#[cfg(not(loom))]
pub(crate) use parking_lot::{Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use loom_mutex::{Mutex, MutexGuard};

/// A mutex with a place in the lock order.
pub(crate) struct OrderedMutex<T> {
    place: Place,
    mutex: Mutex<T>,
}

/// A locked [`OrderedMutex`].
pub(crate) struct OrderedGuard<'a, T> {
    guard: MutexGuard<'a, T>,
    _held: Held,
}

impl<T> OrderedMutex<T> {
    pub(crate) fn new(place: Place, value: T) -> Self {
        OrderedMutex { place, mutex: Mutex::new(value) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> OrderedGuard<'_, T> {
        lock_order::check(self.place);
        OrderedGuard { guard: self.mutex.lock(), _held: lock_order::taken(self.place) }
    }

    /// Checks the order too, because the holder waits for the disk.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<OrderedGuard<'_, T>> {
        lock_order::check(self.place);
        let guard = self.mutex.try_lock()?;
        Some(OrderedGuard { guard, _held: lock_order::taken(self.place) })
    }
}

impl<T> Deref for OrderedGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for OrderedGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// Puts data written by different threads on different cache lines, and avoids adjacent-line
/// prefetch.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct CachePadded<T>(pub(crate) T);

#[cfg(loom)]
mod loom_mutex {
    //! `parking_lot`'s shape over loom's mutex.
    pub(crate) use loom::sync::MutexGuard;

    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }
    }
}
