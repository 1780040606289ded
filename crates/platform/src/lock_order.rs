//! The one order in which a thread takes locks, checked wherever debug assertions are on.
//!
//! ```text
//! the log's sync lock, its io lock   their holder may wait for the disk
//! partitions, by index               their holder waits for no disk
//! the spaces' catalog                by who changes it
//! spaces, by number                  likewise
//! the log's memory                   a record is reserved while its partitions are locked
//! ```
//!
//! A thread that holds a lock waits only for locks that come later. So no two threads wait for each
//! other, and no thread waits for the disk while it holds data. Locks that are taken last of all
//! and for a moment only (counters, lists) have no place here. Without debug assertions all of this
//! is nothing; under loom, whose threads share one thread's variables, as well.

/// A lock's place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u32);

impl Place {
    /// One sync of the log at a time.
    pub const LOG_SYNC: Place = Place(0);
    /// One write of the log at a time.
    pub const LOG_IO: Place = Place(1);
    /// Reserving in the log's memory.
    pub const LOG_MEMORY: Place = Place(u32::MAX);

    /// The catalog of spaces, for changes.
    pub const CATALOG: Place = Place(1 << 16);

    /// A space.
    ///
    /// # Panics
    /// In debug builds, if the number is above the largest that a space may have.
    #[inline]
    pub const fn space(id: u32) -> Place {
        debug_assert!(id <= i32::MAX as u32);
        Place((1 << 16) + 1 + id)
    }

    /// A partition of the keyspace.
    #[inline]
    pub const fn partition(index: usize) -> Place {
        Place(2 + index as u32)
    }
}

/// A lock that this thread holds, for as long as this lives. Not to be sent to another thread.
#[must_use]
pub struct Held {
    #[cfg(all(debug_assertions, not(loom)))]
    place: Place,
    _of_this_thread: std::marker::PhantomData<*const ()>,
}

#[cfg(all(debug_assertions, not(loom)))]
mod checked {
    use super::{Held, Place};
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::marker::PhantomData;

    thread_local! {
        /// In order.
        static HELD: RefCell<VecDeque<Place>> = const { RefCell::new(VecDeque::new()) };
    }

    pub(super) fn check(place: Place) {
        HELD.with_borrow(|held| {
            if let Some(&last) = held.back() {
                assert!(last < place, "a lock out of order: {place:?} while {last:?} is held");
            }
        });
    }

    pub(super) fn taken(place: Place) -> Held {
        HELD.with_borrow_mut(|held| {
            let at = held.partition_point(|&other| other < place);
            held.insert(at, place);
        });
        Held { place, _of_this_thread: PhantomData }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            // A thread that ends may have lost its list before its last lock.
            let _ = HELD.try_with(|held| {
                let mut held = held.borrow_mut();
                let at = held.partition_point(|&other| other < self.place);
                debug_assert_eq!(held.get(at), Some(&self.place), "a lock that was taken");
                held.remove(at);
            });
        }
    }
}

/// To be called before this thread waits for a lock, or for what its holder may wait for.
///
/// # Panics
/// With debug assertions, when it holds this one or a later one.
#[inline(always)]
pub fn check(place: Place) {
    #[cfg(all(debug_assertions, not(loom)))]
    checked::check(place);
    let _ = place;
}

/// To be called when this thread has got a lock; the result is to be dropped after the lock.
#[inline(always)]
pub fn taken(place: Place) -> Held {
    #[cfg(all(debug_assertions, not(loom)))]
    return checked::taken(place);
    #[cfg(not(all(debug_assertions, not(loom))))]
    {
        let _ = place;
        Held { _of_this_thread: std::marker::PhantomData }
    }
}

#[cfg(all(test, debug_assertions, not(loom)))]
mod tests {
    use super::*;

    fn takes(place: Place) -> Held {
        check(place);
        taken(place)
    }

    #[test]
    fn later_locks_may_follow_and_be_released_in_any_order() {
        let first = takes(Place::partition(3));
        let second = takes(Place::partition(4));
        let third = takes(Place::LOG_MEMORY);
        drop(first);
        drop(third);
        // Taken without waiting, so out of order.
        let lower = taken(Place::partition(1));
        drop(second);
        let next = takes(Place::partition(2));
        drop((lower, next));
        drop(takes(Place::LOG_SYNC));
    }

    #[test]
    #[should_panic = "a lock out of order"]
    fn a_lower_partition_is_not_waited_for() {
        let _first = takes(Place::partition(4));
        let _second = takes(Place::partition(3));
    }

    #[test]
    #[should_panic = "a lock out of order"]
    fn nor_is_the_disk_while_a_partition_is_held() {
        let _first = takes(Place::partition(4));
        let _second = takes(Place::LOG_IO);
    }

    #[test]
    #[should_panic = "a lock out of order"]
    fn nor_is_a_lock_taken_twice() {
        let _first = takes(Place::LOG_IO);
        let _second = takes(Place::LOG_IO);
    }
}
