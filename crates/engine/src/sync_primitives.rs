//! The types of the partition locks, which `--cfg loom` replaces with loom's.

#[cfg(not(loom))]
pub(crate) use parking_lot::{Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use loom_mutex::{Mutex, MutexGuard};

#[cfg(loom)]
mod loom_mutex {
    //! `parking_lot`'s shape over loom's mutex and condition variable. loom's own `try_lock` does
    //! not fit: while another thread holds the lock, loom does not let it run and fail.
    use loom::sync::{Condvar, Mutex as LoomMutex};
    use std::ops::{Deref, DerefMut};

    pub(crate) struct Mutex<T> {
        is_held: LoomMutex<bool>,
        released: Condvar,
        /// Locked by the holder only.
        data: parking_lot::Mutex<T>,
    }

    pub(crate) struct MutexGuard<'a, T> {
        /// `None` while it is dropped.
        data: Option<parking_lot::MutexGuard<'a, T>>,
        mutex: &'a Mutex<T>,
    }

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            let (is_held, released) = (LoomMutex::new(false), Condvar::new());
            Mutex { is_held, released, data: parking_lot::Mutex::new(value) }
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            let mut is_held = self.is_held.lock().expect("no panic");
            while *is_held {
                is_held = self.released.wait(is_held).expect("no panic");
            }
            *is_held = true;
            self.guard()
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            let mut is_held = self.is_held.lock().expect("no panic");
            (!std::mem::replace(&mut *is_held, true)).then(|| self.guard())
        }

        /// loom has no time: one more attempt, after other threads ran.
        pub(crate) fn try_lock_for(&self, _: std::time::Duration) -> Option<MutexGuard<'_, T>> {
            loom::thread::yield_now();
            self.try_lock()
        }

        fn guard(&self) -> MutexGuard<'_, T> {
            let data = self.data.try_lock().expect("only the holder locks it");
            MutexGuard { data: Some(data), mutex: self }
        }
    }

    impl<T> Drop for MutexGuard<'_, T> {
        fn drop(&mut self) {
            self.data = None;
            *self.mutex.is_held.lock().expect("no panic") = false;
            self.mutex.released.notify_one();
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.data.as_ref().expect("held")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.data.as_mut().expect("held")
        }
    }
}
