//! The types of the partition locks, which `--cfg loom` replaces with loom's.

#[cfg(not(loom))]
pub(crate) use parking_lot::{Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use loom_mutex::{Mutex, MutexGuard};

#[cfg(loom)]
mod loom_mutex {
    //! `parking_lot`'s shape over loom's mutex.
    pub(crate) use loom::sync::MutexGuard;

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

        /// loom has no time: one more attempt, after other threads ran.
        pub(crate) fn try_lock_for(&self, _: std::time::Duration) -> Option<MutexGuard<'_, T>> {
            loom::thread::yield_now();
            self.try_lock()
        }
    }
}
