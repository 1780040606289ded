//! A statement that takes long runs on a thread of its own, over copies of its spaces. Its request is
//! asked for again until the thread is done; if the client leaves, the thread stops.

use ladon_kernel::background::CannotBegin;
use ladon_kernel::node::Node;
use ladon_space::BoxError;
use parking_lot::Mutex;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What a thread makes.
type Made = Box<dyn Any + Send>;

/// A statement that runs on a thread.
pub(crate) struct Aside {
    made: Arc<Mutex<Option<Made>>>,
    is_unwanted: Arc<AtomicBool>,
}

/// Says to a statement on a thread whether it is still wanted.
pub(super) type IsUnwanted = Arc<AtomicBool>;

impl Drop for Aside {
    fn drop(&mut self) {
        self.is_unwanted.store(true, Relaxed);
    }
}

/// A statement that nobody waits for any more.
pub(super) fn unwanted() -> BoxError {
    BoxError::new(ladon_space::ErrorCode(159), "Failed to execute SQL statement: interrupted")
}

impl Aside {
    /// Begins.
    ///
    /// # Errors
    /// If too many such statements run already, or there is no thread.
    pub(super) fn begin<T: Any + Send>(
        node: &Node,
        run: impl FnOnce(IsUnwanted) -> T + Send + 'static,
    ) -> Result<Aside, CannotBegin> {
        let background =
            node.background.as_ref().ok_or_else(|| CannotBegin::Thread("none".to_owned()))?;
        let aside = Aside { made: Arc::default(), is_unwanted: Arc::default() };
        let (made, is_unwanted) = (Arc::clone(&aside.made), Arc::clone(&aside.is_unwanted));
        background.begin(Box::new(move || {
            let result = run(is_unwanted);
            *made.lock() = Some(Box::new(result));
        }))?;
        Ok(aside)
    }

    /// What it has made, once it is done.
    pub(super) fn take<T: Any>(&self) -> Option<T> {
        let made = self.made.lock().take()?;
        made.downcast().ok().map(|made| *made)
    }
}
