//! What a layer above demands of tuples beside their format.

use crate::error::BoxError;

/// A demand on tuples. It depends on the tuple alone.
pub trait TupleCheck: Send + Sync {
    /// Checks a tuple that fits the format.
    ///
    /// # Errors
    /// Why it may not be written.
    fn check(&self, tuple: &[u8]) -> Result<(), BoxError>;
}
