//! A statement that takes long runs on a thread of its own, over copies of its spaces. Its request is
//! asked for again until the thread is done; if the client leaves, the thread stops.

use super::read::BYTES_MAX;
use crate::error;
use crate::statements::{Ended, Running};
use ladon_kernel::background::CannotBegin;
use ladon_kernel::node::Node;
use ladon_kernel::request::outcome::Flow;
use ladon_space::BoxError;
use ladon_sql::Budget;
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
type IsUnwanted = Arc<AtomicBool>;

impl Drop for Aside {
    fn drop(&mut self) {
        self.is_unwanted.store(true, Relaxed);
    }
}

/// A statement that nobody waits for any more.
fn unwanted() -> BoxError {
    BoxError::new(ladon_space::ErrorCode(159), "Failed to execute SQL statement: interrupted")
}

impl Aside {
    /// Begins.
    ///
    /// # Errors
    /// If too many such statements run already, or there is no thread.
    fn begin<T: Any + Send>(
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
    fn take<T: Any>(&self) -> Option<T> {
        let made = self.made.lock().take()?;
        made.downcast().ok().map(|made| *made)
    }
}

impl Running<'_, '_> {
    /// Lets a statement go on on a thread of its own, with a budget of bytes that ends when nobody
    /// wants it any more. The request is asked for again then.
    pub(super) fn go_on_aside<T: Any + Send>(
        &mut self,
        run: impl FnOnce(&Budget) -> Result<T, BoxError> + Send + 'static,
    ) -> Result<T, Ended> {
        let run = move |is_unwanted: IsUnwanted| {
            let stops = move || is_unwanted.load(Relaxed).then(unwanted);
            run(&Budget::new(u64::MAX, BYTES_MAX, Box::new(stops)))
        };
        match Aside::begin(self.thread.node, run) {
            Ok(aside) => self.session.sql_aside = Some(aside),
            // A thread is free in a moment.
            Err(CannotBegin::TooMany(_)) if !self.session.has_left => {}
            Err(CannotBegin::TooMany(_)) => return Err(error::client_has_left().into()),
            Err(CannotBegin::Thread(why)) => {
                let message = format!("a long statement needs a thread: {why}");
                return Err(error::illegal(&message).into());
            }
        }
        Err(Ended::Again(Flow::AwaitsCommit))
    }

    /// What a statement on a thread has made, once it is done.
    pub(super) fn made_aside<T: Any>(&mut self, aside: Aside) -> Result<T, Ended> {
        match aside.take::<Result<T, BoxError>>() {
            Some(made) => Ok(made?),
            None => {
                self.session.sql_aside = Some(aside);
                Err(Ended::Again(Flow::AwaitsCommit))
            }
        }
    }
}
