//! Work that goes on beside requests, for as long as it takes.

/// What is done on a thread of its own.
pub type Work = Box<dyn FnOnce() + Send>;

/// Threads for work that may take long, and that takes locks: their priority is the IO threads'.
pub trait Background: Send + Sync {
    /// Begins the work, and waits for nothing.
    ///
    /// # Errors
    /// Why not.
    fn begin(&self, work: Work) -> Result<(), CannotBegin>;
}

/// Why work was not begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotBegin {
    /// Others are under way.
    #[error("{0} are under way already")]
    TooMany(usize),
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(String),
}
